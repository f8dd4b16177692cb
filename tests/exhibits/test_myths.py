"""What the page on myths says of its exhibits, and that each sentence could have been true."""

import ast
import inspect

import pytest
import torch

from exhibits import myths
from exhibits._models import listed
from snippets.alibi import alibi_bias_symmetric, alibi_slopes
from snippets.attention import attention
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import position_interpolation, yarn
from snippets.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies
from tests.peers import peer
from tests.rows import each_of


@pytest.mark.claim(
    "equal-steps-reward-a-ramp",
    "The test for equal difference vectors rejects the sinusoidal encoding and passes a ramp and "
    "constant rows.",
)
def test_equal_steps_are_a_bad_test():
    assert myths.equal_steps() == {"passes": 2, "sinusoidal": False}
    for dim in (2, 6, 64, 512, 1024):
        rows = sinusoidal_encoding(torch.arange(20), dim)
        assert not torch.allclose(rows[5] - rows[0], rows[10] - rows[5], atol=0.1)


@pytest.mark.claim(
    "a-shift-changes-absolute-scores",
    "Moving a text to other positions changes the scores of a random table that is added to the input, "
    "but not those of RoPE or Shaw.",
)
@each_of("seed", range(5))
def test_a_shift_changes_absolute_scores_alone(seed):
    torch.manual_seed(seed)
    changes = myths.shifted_input()
    assert changes["learned"] > 0.1
    assert changes["rope"] < 1e-12
    assert changes["shaw"] == 0


@pytest.mark.claim(
    "dimension-index-squares-frequencies",
    "Using the even dimension in place of the pair index in the sinusoidal formula squares every frequency.",
)
def test_the_wrong_index_squares_every_frequency():
    values = myths.squared_frequencies()
    assert values["squared"] and values["still"] > 50
    for dim in (2, 6, 64, 1024):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        torch.testing.assert_close(10000 ** (-2 * even / dim), sinusoidal_frequencies(dim) ** 2)


@pytest.mark.claim(
    "sinusoidal-columns-are-not-orthogonal",
    "The columns of the sinusoidal table are not orthogonal. Over 50 to 4096 positions, at widths from 16 "
    "to 512, two of them have a cosine above 0.7, and from width 64 on, the table's numerical rank in "
    "float64 is below its width (29 of 64 over 100 positions). At width 8 over 4096 positions, no cosine "
    "is above 0.2.",
)
def test_the_columns_of_the_table_are_not_orthogonal():
    values = myths.orthogonal_columns()
    assert (values["rank"].item(), values["dim"], values["count"]) == (29, 64, 100)

    def alike(count, dim):
        columns = torch.nn.functional.normalize(myths._sinusoid(count, dim), dim=0)
        return (columns.mT @ columns).fill_diagonal_(0).abs().max()

    for count in (50, 100, 512, 4096):
        for dim in (16, 64, 512):
            assert alike(count, dim) > 0.7, (count, dim)
            assert dim < 64 or torch.linalg.matrix_rank(myths._sinusoid(count, dim)) < dim, (count, dim)
    assert torch.linalg.matrix_rank(myths._sinusoid(100, 64)) == values["rank"]  # torch's own tolerance
    assert alike(4096, 8) < 0.2


@pytest.mark.claim(
    "scale-decides-what-drowns",
    "At widths from 16 to 1,024, the norm of a sinusoidal row is more than ten times that of a token "
    "sampled with standard deviation 0.02, and smaller than the mean norm of tokens sampled with standard "
    "deviation 1.",
)
def test_the_scale_of_the_tokens_decides():
    values = myths.overwhelmed()
    assert 10 * values["small"] < values["position"] < values["unit"]
    for dim in (16, 64, 1024):
        position = sinusoidal_encoding(torch.tensor([7]), dim).norm()
        token = torch.randn(1000, dim).norm(dim=-1)
        assert 10 * 0.02 * token.max() < position < token.mean()


@pytest.mark.claim(
    "distinct-rows-hold-all-information",
    "Encodings with distinct rows contain all information about the position, whether the rows are "
    "sinusoidal, random or one number each.",
)
def test_distinct_rows_hold_all_information(capsys):
    most = myths.information()["most"]
    held = dict(line.rsplit(" ", 2)[:2] for line in capsys.readouterr().out.splitlines())
    assert {name.strip(): float(bits) for name, bits in held.items()} == {
        "sinusoidal": most,
        "one number": most,
        "random rows": most,
        "a constant": 0,
    }


@pytest.mark.claim(
    "rows-beyond-training-stay-put",
    "Under Adam without weight decay, rows of a learned table beyond the longest training text keep their "
    "initial values.",
)
@each_of("seed", range(3))
def test_rows_beyond_the_longest_text_do_not_move(seed):
    torch.manual_seed(seed)
    values = myths.untouched_rows()
    assert values["still"] == 0
    assert values["moved"] > 0.5


def test_the_sign_of_the_rope_identity():
    values = myths.wrong_sign()
    assert values["right"] < 1e-12 < 0.1 < values["wrong"]


def test_scores_of_rope_neither_factor_nor_fade():
    assert myths.no_factor()["largest"] > 0.9
    values = myths.not_weaker_with_distance()
    assert values["best"] == 50
    assert values["apart"] < 0.05


@pytest.mark.claim(
    "attention-is-quadratic-rope-linear",
    "With four times as many tokens, the matrix products of attention take sixteen times as many "
    "multiplications, and the rotation takes four times as many.",
)
def test_attention_grows_with_the_square_and_rotation_with_the_length():
    assert myths.linear_attention() == {"attention": 16, "turned": 4}
    for layout in ("half", "interleaved"):
        for dim, tokens in ((2, 1), (64, 100), (128, 31)):
            made = []
            for count in (tokens, 4 * tokens):
                x, w = torch.randn(count, dim), rope_frequencies(dim, base=10000)
                with myths._Products() as products:
                    apply_rope(x, *rope_tables(torch.arange(count), w), layout)
                made.append(products.made)
            assert made[1] == 4 * made[0] > 0


def test_the_other_layout_gives_other_scores_and_mixed_ones_lose_the_offset():
    values = myths.any_layout()
    assert values["trained_spread"] < 1e-12 < 1 < values["mixed_spread"]
    assert values["other_spread"] < 1e-12
    assert abs(values["trained_score"] - values["other_score"]) > 1


@pytest.mark.claim(
    "yarn-is-no-division",
    "If RoPE's highest-frequency pair completed 32 rotations in training and its lowest-frequency pair "
    "less than one, YaRN leaves the first frequency unchanged and divides the second by the factor; "
    "position interpolation divides all frequencies.",
)
def test_yarn_keeps_fast_pairs():
    values = myths.division_is_not_yarn()
    assert values["fast"] == 1
    assert values["slow"] == pytest.approx(0.25)
    for dim, base, length, factor in ((4, 1e4, 512, 2), (128, 1e4, 4096, 16), (96, 1e6, 131_072, 40)):
        w = rope_frequencies(dim, base)
        turns = length * w / (2 * torch.pi)
        assert turns[0] > 32 and turns[-1] < 1
        kept = yarn(w, factor, length) / w
        assert (kept[turns > 32] == 1).all()
        torch.testing.assert_close(kept[turns < 1] * factor, torch.ones_like(w[turns < 1]))
        torch.testing.assert_close(position_interpolation(w, factor) * factor, w)


@pytest.mark.claim(
    "alibi-bias-hides-nothing",
    "With the symmetric form of ALiBi and no mask, the first of twenty equal tokens gives more than a "
    "third of its attention to later tokens in every head, with 1 to 128 heads, and nine tenths in the "
    "head with the smallest slope.",
)
def test_a_penalty_hides_nothing():
    leaks = myths.causal_by_bias()
    assert leaks["symmetric"] > 0.5
    assert leaks["causal"] == 0
    at = torch.arange(20)
    for heads in (1, 3, 8, 16, 128):
        zero = torch.zeros(heads, 20, 4)
        _, weights = attention(zero, zero, zero, bias=alibi_bias_symmetric(at, at, alibi_slopes(heads)))
        later = weights[:, 0, 1:].sum(-1)
        assert later.min() > 0.36
        assert later.max() > 0.9


@pytest.mark.claim(
    "alibi-slopes-are-no-formula",
    "For 1 to 129 heads, the slopes of ALiBi's released code equal those of the formula for powers of two "
    "if the number of heads is a power of two, and for no other number of heads.",
)
def test_the_formula_for_slopes_is_one_for_powers_of_two():
    assert myths.any_number_of_heads()["apart"] > 0.05
    for heads in range(1, 130):
        formula = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
        apart = (alibi_slopes(heads).sort(descending=True).values - formula).abs().max()
        assert (apart < 1e-6) == (heads & (heads - 1) == 0)
        assert apart < 1e-6 or apart > 1e-3


@pytest.mark.claim(
    "gaussian-bias-is-flat",
    "With a Gaussian bias of width one, most of the attention over six hundred keys goes to keys beyond "
    "distance ten; with KERPLE's logarithm with r1 = 2 and r2 = 1, little does.",
)
def test_a_gaussian_is_flat_where_a_logarithm_falls():
    far = myths.gaussian()
    assert far["gaussian"] > 0.9
    assert far["kerple"] < 0.1


def test_the_last_bucket_begins_before_the_maximum_distance():
    values = myths.last_bucket()
    assert values["own"] < values["first"] < values["maximum"]


def test_without_the_shift_one_step_back_is_another_score_in_every_row():
    values = myths.no_shift()
    assert values["shifted"] < 1e-12 < 1 < values["no_shift"]


@pytest.mark.claim(
    "a-ramp-wins-quality-scores",
    "Over 256 positions, mean similarity and correlation with distance are higher for a ramp, the "
    "position as a single number, than for the sinusoidal encoding of width 128.",
)
def test_a_ramp_wins_the_scores():
    values = myths.ramp_wins()
    assert values["quality"] > 0.95 and values["coherence"] > 0.999
    assert values["quality"] > values["sinusoidal_quality"]
    assert values["coherence"] > values["sinusoidal_coherence"]


def test_one_hand_comes_round():
    values = myths.one_compass()
    assert 0.999 < values["to_44"] < values["to_710"] < 1


def test_what_the_order_myths_say():
    torch.manual_seed(0)
    values = myths.same_pattern()
    assert values["permuted"] < 1e-12 < 0.1 < values["same"]
    values = myths.blind_without_positions()
    assert values["full"] < 1e-12 < 0.01 < values["causal"]
    assert myths.set_or_multiset()["change"] > 0.05
    assert myths.uniform_without_positions()["largest"] > 0.5
    values = myths.sums()
    assert values["sum"] < 1e-12 < 0.1 < values["attended"]
    values = myths.too_late()
    assert values["one"] < 1e-12 < 0.05 < values["two"]
    values = myths.additive()
    assert values["miss"] > values["length"]


# --- what models of today are said to do


@pytest.mark.claim(
    "values-can-turn",
    "If one rotated tensor serves as both keys and values, moving the text changes the outputs, unless "
    "the outputs are rotated back by the query's angle; then each value is rotated by its distance from "
    "the query. This is the case in the attention of DeepSeek V4 in transformers 5.23.0, for moves of up "
    "to a thousand positions.",
)
@each_of("seed", range(5))
def test_turned_values_are_turned_back(seed):
    torch.manual_seed(seed)
    values = myths.values_turn()
    assert values["turned"] > 0.1
    assert values["turned_back"] < 1e-13
    x, weights = myths._random(6, 16), torch.rand(6, 6).double()
    w, at = rope_frequencies(16, base=10000), torch.arange(6)
    cos, sin = rope_tables(at, w, x.dtype)
    back = apply_rope(weights @ apply_rope(x, cos, sin, "interleaved"), cos, -sin, "interleaved")
    for i in at:
        by_distance = apply_rope(x, *rope_tables(at - i, w, x.dtype), "interleaved")
        assert (weights[i] @ by_distance - back[i]).abs().max() < 1e-13


@pytest.mark.claim(
    "values-can-turn",
    "If one rotated tensor serves as both keys and values, moving the text changes the outputs, unless "
    "the outputs are rotated back by the query's angle; then each value is rotated by its distance from "
    "the query. This is the case in the attention of DeepSeek V4 in transformers 5.23.0, for moves of up "
    "to a thousand positions.",
)
@torch.no_grad()
def test_deepseek_v4_turns_its_values_and_turns_them_back(monkeypatch):
    folder = "transformers.models.deepseek_v4"
    modeling = peer(f"{folder}.modeling_deepseek_v4")
    config = peer(f"{folder}.configuration_deepseek_v4").DeepseekV4Config(
        hidden_size=32,
        num_attention_heads=2,
        head_dim=16,
        q_lora_rank=16,
        o_groups=2,
        o_lora_rank=8,
        num_hidden_layers=1,
        layer_types=["sliding_attention"],
        partial_rotary_factor=0.5,
    )
    config._attn_implementation = "eager"
    layer, rotary = modeling.DeepseekV4Attention(config, 0).eval(), modeling.DeepseekV4RotaryEmbedding(config)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, later = torch.randn(1, 6, 32), torch.ones(6, 6).triu(1) > 0
    mask = torch.zeros(1, 1, 6, 6).masked_fill(later, -torch.inf)
    attend, read = modeling.eager_attention_forward, []

    def watched(module, q, k, v, *rest, **options):
        read.append((k, v))
        return attend(module, q, k, v, *rest, **options)

    def output(at):
        tables = {"main": rotary(x, at[None], layer_type="main")}
        return layer(x, tables, at[None], mask)[0]

    monkeypatch.setattr(modeling, "eager_attention_forward", watched)
    before = output(torch.arange(6))
    for start in (1, 6, 1000):
        assert (output(torch.arange(6) + start) - before).abs().max() < 1e-4
    assert all(k is v for k, v in read)
    assert (read[1][1] - read[0][1]).abs().max() > 0.1  # turned, not only in name
    assert (output(3 * torch.arange(6)) - before).abs().max() > 0.01
    turn, calls = modeling.apply_rotary_pos_emb, []

    def all_but_back(x, cos, sin):
        calls.append(x)
        return turn(x, cos, sin) if len(calls) % 3 else x

    monkeypatch.setattr(modeling, "apply_rotary_pos_emb", all_but_back)
    assert (output(torch.arange(6) + 6) - output(torch.arange(6))).abs().max() > 0.01


@pytest.mark.claim(
    "not-every-model-rotates",
    "In transformers 5.23.0, the text layers of Inkling and Inkling-2 have no rotation, no sine and no "
    "cosine, and Kimi Linear has none of these either. The attention of Nemotron-H has no rotation, and "
    "some layers of EXAONE 4, Llama 4 and SmolLM3 have none.",
)
def test_some_models_of_today_do_not_rotate(capsys):
    values = myths.all_rotate()
    rows = {row["name"]: row for row in listed() if row["released"] >= "2025"}
    assert values["late"] == len(rows)
    still = {name for name, row in rows.items() if row["kind"] in ("none", "bias or score")}
    assert still == {"Inkling", "Kimi Linear", "Nemotron-H"}
    named = {line.partition(": ")[2] for line in capsys.readouterr().out.splitlines() if ": " in line}
    assert named == still and values["still"] == len(still)
    some = {name for name, row in rows.items() if row["kind"] == "rotation, some layers"}
    assert {"Llama 4", "SmolLM3", "EXAONE 4"} <= some and values["some"] == len(some)
    for name in ("inkling", "inkling2", "kimi_linear"):
        code = inspect.getsource(peer(f"transformers.models.{name}.modeling_{name}"))
        read = 0
        for node in ast.parse(code).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and "vision" not in node.name.lower():
                text = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
                text |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                text -= {"qk_rope_head_dim"}  # Kimi Linear's name for channels that nothing turns
                words = "rotary", "rotate", "rope", "sinusoid"
                assert not [name for name in text if name in ("cos", "sin") or any(w in name for w in words)]
                read += "Attention" in node.name
        assert read


@pytest.mark.claim(
    "left-padding-is-heard",
    "With a mask that hides left padding, RoPE gives a text the same result as without padding, up to "
    "rounding, after 1 to 1,000 padding tokens. A learned table and a temperature by position do not; "
    "neither do chunks, unless the padding fills whole chunks. Layers of Llama 4 in transformers 5.23.0 "
    "that have a temperature do not either, even with positions that leave the padding out.",
)
@each_of("seed", range(3))
@each_of("pad", [1, 3, 4, 8, 1000])
def test_left_padding_is_harmless_for_rope_alone(seed, pad):
    torch.manual_seed(seed)
    changes = myths.left_padding(pad)
    assert changes["RoPE"] < 1e-11
    assert changes["a_learned_table"] > 0.01
    assert changes["temperature"] > 1e-4
    assert (changes["chunks_of_four"] > 0.01) == (pad % 4 > 0)


@pytest.mark.claim(
    "left-padding-is-heard",
    "With a mask that hides left padding, RoPE gives a text the same result as without padding, up to "
    "rounding, after 1 to 1,000 padding tokens. A learned table and a temperature by position do not; "
    "neither do chunks, unless the padding fills whole chunks. Layers of Llama 4 in transformers 5.23.0 "
    "that have a temperature do not either, even with positions that leave the padding out.",
)
@torch.no_grad()
def test_llama_4_hears_padding_by_its_temperature():
    folder = "transformers.models.llama4"
    config = peer(f"{folder}.configuration_llama4").Llama4TextConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        num_hidden_layers=1,
        no_rope_layers=[0],
        floor_scale=4,
    )
    config._attn_implementation = "eager"
    modeling = peer(f"{folder}.modeling_llama4")
    layer, x = modeling.Llama4TextAttention(config, 0).eval(), torch.randn(1, 12, 32)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)

    def output(pad):
        """Of the last six tokens, after so many that no query but themselves sees."""
        at = torch.arange(pad + 6)
        hidden = (at > at[:, None]) | ((at < pad) & (at != at[:, None]))
        mask = torch.zeros(1, 1, pad + 6, pad + 6).masked_fill(hidden, -torch.inf)
        positions = (at - pad).clamp(min=0)[None]  # right, and not asked for
        return layer(x[:, 6 - pad :], None, mask, position_ids=positions)[0][:, pad:]

    assert not layer.use_rope
    assert (output(6) - output(0)).abs().max() > 1e-3
    layer.attn_temperature_tuning = False
    assert (output(6) - output(0)).abs().max() < 1e-5


@pytest.mark.claim(
    "positions-hide-nothing",
    "A text that is packed after another text and whose positions restart at zero gets the same result as "
    "alone if a mask hides the other text, and a different result without the mask.",
)
@each_of("seed", range(5))
def test_positions_that_start_again_hide_no_text(seed):
    torch.manual_seed(seed)
    values = myths.packed_by_positions()
    assert values["positions"] > 0.1
    assert values["mask"] < 1e-13


@pytest.mark.claim(
    "jamba-turns-nothing",
    "Jamba in transformers 5.23.0 defines `apply_rotary_pos_emb` and never calls it: with attention in "
    "every layer, it gives the same numbers, bit for bit, at positions that are shifted, scaled or "
    "random.",
)
@torch.no_grad()
def test_jamba_defines_what_it_never_calls(monkeypatch):
    modeling = peer("transformers.models.jamba.modeling_jamba")
    tree = ast.parse(inspect.getsource(modeling))
    defined = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert "apply_rotary_pos_emb" in defined and not [name for name in called if "rotary" in name]
    config = peer("transformers").JambaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_experts=1,
        num_experts_per_tok=1,
        attn_layer_period=1,
        attn_layer_offset=0,
        use_mamba_kernels=False,
        pad_token_id=0,
    )
    assert set(config.layers_block_type) == {"attention"}
    model, ids = modeling.JambaForCausalLM(config).eval(), torch.randint(50, (1, 12))
    at = torch.arange(12)[None]
    before = model(ids, position_ids=at).logits
    for other in (at + 40, 7 * at, torch.randint(1000, (1, 12))):
        assert torch.equal(model(ids, position_ids=other).logits, before)
    assert (model(ids.flip(-1)).logits - before).abs().max() > 0.01
    values = myths.named_not_used()
    assert values["calls"] > 0.01 and values["names"] == 0
