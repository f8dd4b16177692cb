"""What the chapter on order says of its exhibits in words."""

import math

import pytest
import torch

from exhibits import order
from snippets.attention import attention
from tests.peers import peer
from tests.rows import each_of


@pytest.mark.claim(
    "one-over-the-place-coincides-more-between-powers-of-two",
    "For 1/t in bfloat16, the fraction of neighbouring values that are equal grows from each power of two "
    "to the next, from 128 to 65,536, and falls at each power of two; after each power of two, it is "
    "higher than after the previous one.",
)
def test_neighbours_coincide_more_between_powers_of_two_and_fewer_at_them():
    kept = (1 / torch.arange(1, 2**16 + 1, dtype=torch.float64)).bfloat16()
    same = torch.cat((torch.zeros(1), (kept[1:] == kept[:-1]).float()))  # entry t is place t
    assert same.argmax() == 190
    shares = torch.stack([same[2**n : 2 ** (n + 1)].unflatten(0, (4, -1)).mean(-1) for n in range(7, 16)])
    assert (shares[1:].diff() > 0).all()
    assert (shares[0].diff() >= 0).all()
    assert (shares[1:, 0] < shares[:-1, -1]).all()
    assert (shares[1:, 0].diff() > 0).all()


def test_fewer_places_coincide_after_a_power_of_two_than_before_it():
    values = order.place_from_a_mask()[1]
    assert values["first_twin"] == 190
    assert values["after"] < values["before"] < values["after_next"] < values["before_next"]


def test_a_word_gets_another_sum_in_another_place():
    values = order.word_plus_place()[1]
    assert values["bites"] == 0
    assert min(values["dog"], values["man"]) > 0.5


@pytest.mark.claim(
    "no-encoding-has-all-of-it",
    "Of the encodings in the guide's switch, with random weights of several sizes, none has all eight "
    "properties of the table. Encodings that are added distinguish copies of a token and change their "
    "scores under a shift; of the others, only Shaw's value table distinguishes copies.",
)
@each_of(("dim", "heads", "seed"), [(32, 2, 0), (32, 2, 1), (64, 4, 2), (16, 2, 3)])
def test_no_encoding_has_every_property(dim, heads, seed):
    table = order._properties(dim, heads, seed)
    has = {name: {key for key, value in row.items() if value} for name, row in table.items()}
    assert len(has) == 16
    for name, properties in has.items():
        assert len(properties) <= 6 < len(order.WANTED)
        added = name in ("sinusoidal", "learned")
        assert ("ties" in properties) == (added or name == "Shaw, with values")
        assert ("alike" in properties) == (not added and name != "FIRE")
        assert ({"level", "no_pairs"} <= properties) == (name == "xPos")
        assert ("no_end" in properties) == (name != "learned")
        assert ("positions" in properties) == (name not in ("none", "Transformer-XL", "CoPE"))
    assert {name for name in has if "steady" not in has[name]} == {"xPos", "ALiBi", "KERPLE"}
    clipped = {"none", "T5", "clipped bias", "Shaw", "Shaw, with values", "DeBERTa", "CoPE"}
    assert {name for name in has if "mark" not in has[name]} == clipped
    if seed == 0:
        assert order.properties()[1]["most"] == max(map(len, has.values())) == 6


@each_of("sink", [-2.0, 0.0, 2.0])
def test_the_weights_of_a_token_add_up_to_one_but_with_a_learned_sink_to_less(sink):
    """What the glossary says of gpt-oss."""
    attend = peer("transformers.models.gpt_oss.modeling_gpt_oss").eager_attention_forward
    module = torch.nn.Module()
    module.num_key_value_groups, module.sinks = 1, torch.nn.Parameter(torch.full((2,), sink))
    q, k, v = torch.randn(3, 1, 2, 5, 8).double()
    _, weights = attend(module.double(), q, k, v, None, scaling=8**-0.5)
    scores = q / 8**0.5 @ k.mT
    assert torch.allclose(attention(q, k, v)[1].sum(-1), torch.ones(1).double())
    assert (weights.sum(-1) < 1).all()
    assert torch.allclose(weights, scores.exp() / (scores.exp().sum(-1, keepdim=True) + math.exp(sink)))
