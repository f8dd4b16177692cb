"""What the chapter on positions that depend on what is read says of its exhibits, and of models."""

import math
import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from exhibits import read
from snippets.check_positions import read_layers, scale_up_weights, small_config
from snippets.forgetting import forgetting_bias
from snippets.relative_logits import relative_logits
from tests.exhibits.common import numbers
from tests.peers import peer
from tests.rows import each_of


def test_full_stops_count_sentences():
    values = read.cope_positions()[1]
    assert values["first_by_words"] == len(read.WORDS)
    assert (values["first_by_stops"], values["last_by_stops"]) == (2, 0)


def test_swapping_between_changes_nothing_and_replacing_does():
    values = read.between()
    assert values["swapped"] == pytest.approx(values["as_it_is"], abs=1e-5)
    assert abs(values["replaced"] - values["as_it_is"]) > 0.1


def test_gates_without_a_mask_leak():
    values = read.leak()
    assert values["right"] == 0
    assert values["wrong"] > 0.1


def test_the_bank_and_shaws_table_are_one_up_to_the_extent():
    values = read.shaw_in_a_bank()
    assert values["clip"] < values["extent"]
    assert values["within"] < 1e-6
    assert values["beyond"] > 0.1


def test_a_mix_is_what_its_sliders_say():
    _, values, live = read.mixed()
    assert values["one"] == pytest.approx(3 + 0.5 * math.exp(-0.5))
    made = live.function(*torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64))
    back = torch.arange(12.0)
    expected = (back == 1).float() - 2 * (-back / 2).exp() + 3 * back / 11
    assert made["bias"][:12, 1].float() == pytest.approx(expected, abs=1e-6)
    assert made["bias"][12:, 1].abs().max() == 0


def test_what_is_left_is_the_product_of_the_gates_after_a_word():
    _, values, live = read.by_gates()
    assert values["last"] == pytest.approx(0.2 * 0.95**3)
    assert values["first"] == pytest.approx(0.2**2 * 0.95**5)
    made = live.function(*torch.tensor([0.5, 1.0], dtype=torch.float64))
    assert made["gates"][:, 1].tolist() == [0.25, 0.25, 0.5, 0.5, 0.5, 1, 1, 1]


def test_gates_that_are_all_alike_are_alibi_and_the_decay_of_xpos():
    values = read.special_cases()
    assert values["FoX"] < 1e-12
    assert values["Wall"] < 1e-12
    assert values["PaTH"] < 1e-12


@pytest.mark.claim(
    "read-between-is-a-sum",
    "Swapping two tokens between a query and a key changes neither FoX's bias nor Inkling's by more than "
    "rounding, for all pairs of positions in a text of eight. Replacing one of these tokens changes FoX's "
    "bias and not Inkling's.",
)
@each_of("seed", range(3))
def test_sums_do_not_know_the_order_of_what_they_sum(seed):
    torch.manual_seed(seed)
    tokens, dim = 8, 4
    x = torch.randn(tokens, dim, dtype=torch.float64)
    gate, bank = torch.randn(dim, dtype=torch.float64), torch.randn(dim, tokens, dtype=torch.float64)
    at = torch.arange(tokens)

    def first(x):
        bias = forgetting_bias((x @ gate).sigmoid().log(), dtype=torch.float64)
        return torch.stack((bias[-1, 0], relative_logits(x, bank, at, at)[-1, 0]))

    for one in range(1, tokens - 1):
        for other in range(one):
            if other:
                order = at.clone()
                order[[one, other]] = order[[other, one]]
                assert (first(x[order]) - first(x)).abs().max() < 1e-12
        replaced = x.clone()
        replaced[one] = torch.randn(dim, dtype=torch.float64)
        fox, inkling = (first(replaced) - first(x)).abs()
        assert fox > 1e-6 and inkling == 0


def test_the_table_of_what_lies_between_says_what_its_numbers_say():
    values = read.what_lies_between()
    assert values["inkling_replaced"] == 0 == values["inkling_swapped"]
    assert min(values["fox_replaced"], values["cope_replaced"]) > 1e-6
    assert min(values["path_replaced"], values["path_swapped"]) > 1e-6
    assert max(values["fox_swapped"], values["cope_swapped"]) < 1e-12


@pytest.mark.claim(
    "read-gated-recurrence-is-forgetting-without-softmax",
    "Attention without a softmax, whose products of query and key are multiplied by the exponential of "
    "FoX's bias, gives the same result as a recurrence that multiplies one matrix by each gate and adds "
    "the outer product of key and value. This was tested in float64, for one to fifty tokens and gates "
    "from almost zero to one.",
)
@each_of("tokens", [1, 2, 50])
@each_of("least", [1e-9, 0.5, 1.0])
def test_a_gated_recurrence_is_forgetting_without_a_softmax(tokens, least):
    q, k, v = torch.randn(3, tokens, 5, dtype=torch.float64)
    gates = least + (1 - least) * torch.rand(tokens, dtype=torch.float64)
    state, steps = torch.zeros(5, 5, dtype=torch.float64), []
    for t in range(tokens):
        state = gates[t] * state + k[t, :, None] * v[t]
        steps.append((q[t, :, None] * state).sum(0))
    whole = (q @ k.T * forgetting_bias(gates.log(), dtype=torch.float64).exp()) @ v
    assert (torch.stack(steps) - whole).abs().max() < 1e-10
    assert read.recurrence()["apart"] < 1e-12


# --- what models in transformers do


HEADS = {"num_attention_heads": 2, "num_key_value_heads": 2, "hidden_size": 32}
LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 2} | {
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}
SIZES = {  # of those that are slow otherwise, or whose widths depend on each other
    "granitemoehybrid": HEADS
    | {"intermediate_size": 32, "shared_intermediate_size": 32, "num_local_experts": 2}
    | {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8},
    "kimi_linear": HEADS
    | {"intermediate_size": 32, "moe_intermediate_size": 16, "num_local_experts": 8}
    | {"kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16}
    | {"linear_num_heads": 2, "linear_head_dim": 16},
    "nemotron_h": HEADS
    | {"intermediate_size": 32, "moe_intermediate_size": 16, "n_routed_experts": 8, "head_dim": 16}
    | {"mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 1, "ssm_state_size": 8},
    "olmo_hybrid": LINEAR,
    "qwen3_5_text": LINEAR,
    "qwen3_next": LINEAR,
    "zamba2": HEADS | {"intermediate_size": 32, "n_mamba_heads": 4, "mamba_d_state": 8, "mamba_ngroups": 1},
}


def hybrid(name, **keys):
    """Recurrent layers, those with attention, and whether these rotate, with these keys."""
    transformers = peer("transformers")
    assert transformers.__version__ == "5.23.0", "look at the sentence again"
    config = transformers.AutoConfig.for_model(name, **keys)
    kinds = Counter(config.layer_types)
    attention = sum(kinds[kind] for kind in kinds if kind not in ("linear_attention", "moe", "mlp"))
    if not attention:
        return kinds["linear_attention"], 0, None
    config = transformers.AutoConfig.for_model(name, **keys, **SIZES.get(name, {}))
    config = config if name == "zamba2" else small_config(config)  # which lists layers of its own
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    scale_up_weights(model)
    layers = read_layers(model, lambda token: model(torch.full((1, 40), token)))
    (kind,) = {layer.kind for layer in layers}
    return kinds["linear_attention"], attention, {"turns": True, "still": False}[kind]


@pytest.mark.claim(
    "read-hybrids-as-their-code-has-them",
    "The layers of each listed model type are those of its default configuration in the tested version of "
    "transformers. In a small random model built from it, the queries of all attention layers rotate with "
    "the position, or those of none do, as the list states.",
)
@pytest.mark.parametrize("name", read.HYBRIDS)
def test_hybrids_are_as_their_code_has_them(name):
    assert hybrid(name) == read.HYBRIDS[name]


def kinds(layers, attention, *names):
    return [names[n in attention] for n in range(layers)]


def kimi(layers, full):
    kda = [n for n in range(1, layers + 1) if n not in full]  # counted from one
    return {"num_hidden_layers": layers, "linear_attn_config": {"full_attn_layers": full, "kda_layers": kda}}


def nemotron(pattern):
    return {"hybrid_override_pattern": pattern, "rope_theta": 10_000, "partial_rotary_factor": 1.0}


# The keys of the published configurations that say which layers there are and whether they rotate.
RELEASED = {
    "Granite 4.0 H Small": {
        "num_hidden_layers": 40,
        "layer_types": kinds(40, (5, 15, 25, 35), "mamba", "attention"),
        "position_embedding_type": "nope",
        "rope_theta": 10_000,
    },
    "Jamba v0.1": {"num_hidden_layers": 32, "attn_layer_period": 8, "attn_layer_offset": 4},
    "Kimi Linear 48B": kimi(27, [4, 8, 12, 16, 20, 24, 27]),
    "Kimi K3": kimi(93, [*range(4, 93, 4), 93]),
    "MiniMax-Text-01": {  # as converted for the class: attn_type_list of the release is not read by it
        "num_hidden_layers": 80,
        "layer_types": kinds(80, range(7, 80, 8), "linear_attention", "full_attention"),
        "rope_theta": 10_000_000,
    },
    "Nemotron-H 56B": nemotron("M-M-M-M*-" + 9 * "M-M-M-M-M*-" + "M-M-M-M-M-"),
    "Nemotron 3 Nano 30B": nemotron("MEMEM*E" + 4 * "MEMEM*E" + "MEMEMEM*E" + "MEMEMEME"),
    "Olmo Hybrid 7B": {"num_hidden_layers": 32, "rope_parameters": {"rope_theta": None}},
    "Qwen3.5 27B": {
        "num_hidden_layers": 64,
        "layer_types": kinds(64, range(3, 64, 4), "linear_attention", "full_attention"),
    },
    "RecurrentGemma 2B": {
        "num_hidden_layers": 26,
        "block_types": ["recurrent", "recurrent", "attention"],
        "partial_rotary_factor": 0.5,
    },
    "Zamba2 2.7B": {
        "num_hidden_layers": 54,
        "layers_block_type": kinds(54, (6, 12, 18, 24, 30, 36, 42, 47, 51), "mamba", "hybrid"),
        "rope_theta": 10_000,
    },
}


@pytest.mark.claim(
    "read-hybrids-as-released",
    "With the keys that the published configuration of each listed checkpoint has for its layers and its "
    "positions, its class in the tested version of transformers has the listed layers. In a small random "
    "model built from it, the queries of all attention layers rotate with the position, or those of none "
    "do, as the list states.",
)
@pytest.mark.parametrize("name", RELEASED)
def test_hybrids_are_as_they_were_released(name):
    (kind,) = (kind for kind, releases in read.RELEASES.items() if name in releases)
    assert hybrid(kind, **RELEASED[name]) == read.RELEASES[kind][name]


def test_the_switch_of_zamba_2_makes_its_attention_rotate():
    assert hybrid("zamba2", use_mem_rope=True) == (45, 9, True)


def test_the_table_of_hybrids_has_each_release_and_counts_those_that_rotate_nothing(printed):
    assert read.hybrids() == {"models": 11, "bare": 8}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("read.hybrids")[2:]]
    verified = {row[2] for row in rows if row[3] != "not verified"}
    assert verified == set(RELEASED) and len(rows) == len(verified) + 1
    assert {row[0].strip("`") for row in rows} - {""} == set(read.HYBRIDS) == set(read.RELEASES)


@pytest.mark.claim(
    "read-cope-fits-tiles",
    "CoPE can be computed by a loop over tiles of queries and keys. The loop goes backwards from the "
    "queries, stores the products of a block of queries with the rows of CoPE's table, and carries one "
    "sum of gates for each query in addition to the maximum, the sum and the weighted values of a fused "
    "softmax. It gives the same result as CoPE's scores, a softmax and a product with the values, to "
    "1e-11 in float64, and never holds more scores than one tile.",
)
@each_of(
    ("tokens", "rows", "tile"),
    [(1, 1, 8), (301, 24, 32), (64, 300, 64), (100, 5, 7), (33, 1, 16), (40, 60, 100)],
)
@each_of("seed", range(3))
def test_cope_fits_a_loop_over_tiles(tokens, rows, tile, seed):
    torch.manual_seed(seed)
    values = read.cope_in_tiles(tokens, 16, rows, tile)
    assert values["same"]
    assert values["largest"] == min(tokens, tile) ** 2 and values["all"] == tokens**2


@pytest.mark.claim(
    "read-not-in-transformers",
    "No modeling file of the tested version of transformers names contextual position encoding, "
    "forgetting attention, Householder transformations, or context-aware or selective rotary embeddings.",
)
def test_what_did_not_cross_over_is_in_no_modeling_file():
    transformers = peer("transformers")
    assert transformers.__version__ == "5.23.0", "look at the sentence again"
    names = ("contextual.position", r"\bcope\b", "forgetting", "householder", "carope")
    words = "|".join([*names, "context.aware.rotary", "selective.rope", "selective.rotary"])
    files = list(Path(transformers.__file__).parent.glob("models/*/modeling_*.py"))
    assert len(files) > 400
    assert [file.name for file in files if re.search(words, file.read_text("utf-8"), re.I)] == []


@pytest.mark.claim(
    "summaries-stand-where-their-windows-begin",
    "In DeepSeek V4 of transformers 5.23.0, the weighted mean of each full window of 4 or 128 tokens is "
    "rotated as at the first position of that window, with a larger base, and a query sees it if no token "
    "of the window is later than the query.",
)
@each_of("kind", ["CSA", "HCA"])
@each_of("tokens", [4, 14, 130, 300])
@torch.no_grad()
def test_deepseek_v4_puts_a_summary_at_the_first_token_of_its_window(kind, tokens):
    folder = "transformers.models.deepseek_v4"
    modeling = peer(f"{folder}.modeling_deepseek_v4")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "head_dim": 16, "q_lora_rank": 16}
    sizes |= {"partial_rotary_factor": 0.5, "index_n_heads": 2, "index_head_dim": 16}
    config = peer(f"{folder}.configuration_deepseek_v4").DeepseekV4Config(**sizes)
    shown = read.summaries()
    assert {shown["rate"], shown["wide"]} == set(config.compress_rates.values())
    assert config.compress_rope_theta > config.rope_theta
    compressor = getattr(modeling, f"DeepseekV4{kind}Compressor")(config).eval()
    for parameter in compressor.parameters():
        torch.nn.init.normal_(parameter)
    rate, turned, seen = compressor.compress_rate, [], compressor.rotary_emb.forward

    def watched(x, position_ids, layer_type):
        turned.append((layer_type, position_ids[0]))
        return seen(x, position_ids, layer_type=layer_type)

    compressor.rotary_emb.forward = watched
    at = torch.arange(tokens)[None]
    entries, bias = compressor(torch.randn(1, tokens, 32), torch.randn(1, tokens, 16), at, None, 0)
    windows = tokens // rate
    assert entries.shape[2] == windows
    if windows:
        ((label, places),) = turned
        assert label == "compress" and places.tolist() == [rate * window for window in range(windows)]
        last = rate * torch.arange(windows) + rate - 1
        assert torch.equal(bias[0, 0] == 0, last <= at[0, :, None])


def test_what_the_page_says_of_summaries(printed):
    rows = [numbers(line) for line in printed("read.summaries")[1:]]
    assert [row[0] for row in rows] == [0, 4, 8]  # that of 12 to 15 is not there yet
    for first, last, place, near, far, back in rows:
        assert (place, back) == (first, 13 - first) and (near, far) == (13 - last, 13 - first)
