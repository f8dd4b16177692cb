"""What the chapter on models without positions says of its exhibits in words, and of models."""

import itertools
import math

import pytest
import torch

from exhibits import _loss_by_context, evidence, no_position
from experiments.intervals import compare
from snippets.attention import SelfAttention
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from tests.peers import peer
from tests.rows import each_of


@pytest.mark.claim(
    "one-nope-layer-has-one-output-for-all-orders",
    "Over all 24 orders of the four tokens before it, the last token has one output after one causal "
    "layer without positions, and 24 different outputs after two such layers, or after a RoPE layer and "
    "one without positions.",
)
def test_orders_show_from_the_second_layer_on():
    values = no_position.orders()
    assert (values["one"], values["two"], values["orders"]) == (1, 24, 24)


@pytest.mark.claim(
    "one-nope-layer-has-one-output-for-all-orders",
    "Over all 24 orders of the four tokens before it, the last token has one output after one causal "
    "layer without positions, and 24 different outputs after two such layers, or after a RoPE layer and "
    "one without positions.",
)
@each_of("layout", ["half", "interleaved"])
@each_of(("width", "heads"), [(16, 4), (4, 1), (64, 2)])
def test_orders_show_through_a_rope_layer_and_one_without(width, heads, layout):
    def rotate(x):
        tables = rope_tables(torch.arange(x.shape[-2]), rope_frequencies(x.shape[-1], base=10000), x.dtype)
        return apply_rope(x, *tables, layout)

    x = torch.randn(5, width, dtype=torch.float64)
    layers = [SelfAttention(width, heads).double().requires_grad_(False) for _ in range(2)]
    for stack, outputs in (([None], 1), ([None, None], 24), ([rotate, None], 24)):
        last = []
        for order in itertools.permutations(range(4)):
            y = x[[*order, 4]]
            for layer, turn in zip(layers, stack, strict=False):
                y = y + layer(y, rotate=turn, causal=True)[0]
            last.append(y[-1])
        rows = torch.stack(last)
        gaps = (rows[:, None] - rows).abs().amax(-1)[*torch.triu_indices(24, 24, 1)]
        assert gaps.max() < 1e-12 if outputs == 1 else gaps.min() > 1e-6


@pytest.mark.claim(
    "one-over-the-place-runs-out-of-precision",
    "Of the values 1/t for t = 1 to 16,384, fewer than one in ten are distinct in bfloat16 and fewer than "
    "one in three in float16. The first t whose value equals that of its successor is 190 in bfloat16 and "
    "1,464 in float16.",
)
def test_half_precision_loses_the_place():
    values = no_position.distinct_places()[1]
    assert (values["bfloat16"], values["float16"]) == (190, 1464)
    assert values["kept"] < values["tokens"] / 10
    assert values["kept16"] < values["tokens"] / 3


def test_outputs_shrink_along_the_text():
    values = no_position.shrinking()[1]
    assert 0.6 * values["root"] < values["fall"] < 1.2 * values["root"]


def test_a_lead_that_was_enough_is_not_in_a_longer_text():
    values = no_position.dilution()[1]
    assert values["start"] > 0.7
    assert values["end"] < 0.01


@pytest.mark.claim(
    "nope-near-means-are-alike",
    "For independent normal tokens with mean zero, the means of the tokens up to positions j and i, with "
    "j at most i, have a cosine of the square root of j/i, within 0.02 for 20,000 channels and any two of "
    "40 positions.",
)
def test_means_of_near_places_point_the_same_way():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(40, 20_000, generator=generator)
    means = torch.nn.functional.normalize(tokens.cumsum(0), dim=-1)
    place = torch.arange(1, 41.0)
    expected = (place[None] / place[:, None]).tril() ** 0.5
    assert ((means @ means.T).tril() - expected).abs().max() < 0.02


def test_windows_reach_as_far_as_they_add_up_and_a_layer_without_reaches_all():
    values = no_position.hybrid()
    assert (values["windows"], values["all"]) == (1 + 3 * 7, 40)
    assert values["apart"] < 1e-4


def test_a_sink_takes_weight_where_no_key_fits():
    values = no_position.sink()[1]
    others = (values["keys"] - 1) * math.exp(-2)
    for key, best in (("low", -4), ("high", 12)):
        seen = math.exp(best) + others
        assert values[key] == pytest.approx(seen / (seen + math.exp(2)), rel=1e-5)


def test_released_temperatures_differ_at_a_million():
    values = no_position.temperatures()[1]
    assert values["last"] == 1_000_000
    assert values["least"] == pytest.approx(1 + 0.1 * math.log(1_000_001 / 128_000))
    assert values["most"] == pytest.approx((1 + 1_000_001 / 2048) ** 0.1)


# --- what models in transformers do


EVERY_FOURTH = [1, 1, 1, 0] * 3


@pytest.mark.claim(
    "no-rope-layers-one-means-rope",
    "In the llama4 and smollm3 models of transformers, a one in `no_rope_layers` marks a layer that uses "
    "RoPE, and a zero marks a layer that does not. By default, every fourth layer does not use RoPE.",
)
def test_a_one_in_no_rope_layers_means_rope():
    llama4 = peer("transformers.models.llama4.modeling_llama4")
    smollm3 = peer("transformers.models.smollm3.modeling_smollm3")
    small = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = llama4.Llama4TextConfig(num_hidden_layers=12, attn_implementation="eager", head_dim=8, **small)
    assert config.no_rope_layers == EVERY_FOURTH
    spans = ["chunked_attention" if one else "full_attention" for one in EVERY_FOURTH]
    assert config.layer_types == spans
    x = torch.randn(1, 5, 16)
    angles = torch.outer(torch.arange(5.0), torch.tensor([1.0, 0.1, 0.01, 0.001]))[None]
    for layer, one in enumerate(EVERY_FOURTH[:4]):
        attend = llama4.Llama4TextAttention(config, layer).eval()
        turned, unturned = (
            attend(x, position_embeddings=torch.polar(torch.ones_like(a), a), attention_mask=None)[0]
            for a in (angles, 0 * angles)
        )
        assert torch.equal(turned, unturned) == (not one)
    config = smollm3.SmolLM3Config(num_hidden_layers=12, attn_implementation="eager", **small)
    assert config.no_rope_layers == EVERY_FOURTH
    assert config.layer_types == ["full_attention"] * 12
    angles = angles.repeat(1, 1, 2)
    for layer, one in enumerate(EVERY_FOURTH[:4]):
        attend = smollm3.SmolLM3Attention(config, layer).eval()
        turned, unturned = (
            attend(x, position_embeddings=(a.cos(), a.sin()), attention_mask=None)[0]
            for a in (angles, 0 * angles)
        )
        assert torch.equal(turned, unturned) == (not one)


@pytest.mark.claim(
    "cohere2-rotates-in-its-windows-only",
    "In the cohere2 model of transformers, layers with a sliding window use RoPE and layers with full "
    "attention use no positions; by default every fourth layer has full attention.",
)
def test_cohere2_rotates_in_layers_with_a_window_only():
    cohere2 = peer("transformers.models.cohere2.modeling_cohere2")
    config = cohere2.Cohere2Config(
        num_hidden_layers=12,
        hidden_size=16,
        num_attention_heads=2,
        num_key_value_heads=1,
        attn_implementation="eager",
    )
    assert config.layer_types == ["sliding_attention" if one else "full_attention" for one in EVERY_FOURTH]
    x = torch.randn(1, 5, 16)
    angles = torch.outer(torch.arange(5.0), torch.tensor([1.0, 0.1, 0.01, 0.001])).repeat_interleave(2, -1)[
        None
    ]
    for layer, one in enumerate(EVERY_FOURTH[:4]):
        attend = cohere2.Cohere2Attention(config, layer).eval()
        turned, unturned = (
            attend(x, position_embeddings=(a.cos(), a.sin()), attention_mask=None)[0]
            for a in (angles, 0 * angles)
        )
        assert torch.equal(turned, unturned) == (not one)


def test_a_bowl_pales_as_one_over_the_place():
    _, live = no_position.bowls()
    for word in range(1, 41):
        made = live.function(torch.tensor(word).double())
        here, there = made["this"].item(), made["next"].item()
        assert here == pytest.approx(1 / word) and there == pytest.approx(1 / (word + 1))
        assert (here - there) / here == pytest.approx(1 / made["parts"].item())
        assert made["water"] == word - 1


@pytest.mark.claim(
    "nope-far-beyond",
    "In our runs on source code, the model without positional encoding has the highest loss of the "
    "fifteen models with 64 bytes before the same bytes, in each seed. With 1,008 bytes, its loss is "
    "lower than that of sinusoids and RoPE, not distinguishable from that of T5 and the learned table, "
    'and higher than that of the other ten: by the rule for "better".',
)
def test_with_no_marks_a_program_is_last_at_its_length_and_beats_two_far_beyond():
    _, values = no_position.bare()
    near, kept = _loss_by_context.losses(64), evidence._far()
    assert all((near[name] < near["none"]).all() for name in near.keys() - {"none"})
    found = {name: compare(kept["none"][-1], kept[name][-1]).better() for name in kept.keys() - {"none"}}
    assert {name for name, better in found.items() if better} == {"RoPE", "sinusoidal"}
    assert {name for name, better in found.items() if better is None} == {"T5", "learned"}
    assert (values["beaten_far"], values["alike_far"]) == (2, 2)
    assert values["marks"] + 1 == values["all"] == len(near) == 15
