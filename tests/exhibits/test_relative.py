"""What the chapter on relative positions says of its exhibits in words, and of equal words."""

import itertools
import math

import pytest
import torch

from exhibits import relative
from exhibits.in_a_transformer import DOORS
from experiments.encodings import switch
from snippets.block import Decoder
from tests.rows import each_of

LENGTHS, DEPTHS, SEEDS = (2, 8, 33, 64), (1, 2, 4), (0, 1, 2)
SETTINGS = list(itertools.product(LENGTHS, DEPTHS, SEEDS))
ROUNDING = 1e-12
THROUGH_SCORES = ("no positions", "a number", "RoPE", "Shaw's keys")


def rows(tokens, depth, seed, way, causal, marked=False):
    """What copies of one token become, and the weights of the first layer."""
    torch.manual_seed(seed)
    x = torch.randn(16, dtype=torch.float64).expand(tokens, -1)
    if marked:  # another token stands before them
        x = torch.cat((torch.randn(1, 16, dtype=torch.float64), x[1:]))
    x, weights = relative._layers(x, depth, causal, **relative._ways(tokens, 16)[way])
    return x[1:] if marked else x, weights


@pytest.mark.claim(
    "equal-words-stay-equal-where-only-scores-know-positions",
    "Self-attention layers with residual connections give all copies of one token the same output vector, "
    "to rounding, with a bias by distance, RoPE or Shaw's key table, causal or not, although the "
    "attention weights differ. With Shaw's value table, or with vectors added to the tokens, the output "
    "vectors differ.",
)
@each_of("causal", [False, True])
@each_of(("tokens", "depth", "seed"), SETTINGS)
def test_copies_stay_copies_unless_positions_reach_what_is_summed(tokens, depth, seed, causal):
    for way in THROUGH_SCORES:
        made, weights = rows(tokens, depth, seed, way, causal)
        assert relative._apart(made) < ROUNDING
        assert (relative._apart(weights) > 0.01) == (way != "no positions" or causal)
    for way in ("and values", "added vectors"):
        assert relative._apart(rows(tokens, depth, seed, way, causal)[0]) > 0.01


@pytest.mark.claim(
    "one-other-word-tells-equal-words-apart",
    "With one other token before them, copies of one token get different output vectors with a bias by "
    "distance and with RoPE, causal or not.",
)
@each_of("causal", [False, True])
@each_of(("tokens", "depth", "seed"), [case for case in SETTINGS if case[0] > 2])
def test_another_token_before_them_tells_copies_apart(tokens, depth, seed, causal):
    for way in ("a number", "RoPE"):
        assert relative._apart(rows(tokens, depth, seed, way, causal, marked=True)[0]) > 1e-3


@pytest.mark.claim(
    "equal-words-in-the-guides-decoder",
    "In the guide's decoder, which has feed-forward networks and norms in addition to attention, only two "
    "settings of the switch give copies of one token different outputs: sinusoids and the learned table.",
)
@each_of("name", switch(32, 2, 64, clip=16))
def test_in_the_decoder_only_added_vectors_tell_copies_apart(name):
    for tokens, depth, seed in SETTINGS:
        torch.manual_seed(seed)
        decoder = Decoder(switch(32, 2, 64, clip=16)[name](), 9, 32, 2, depth).double().requires_grad_(False)
        for block in decoder.blocks:
            torch.nn.init.normal_(block.project.weight, std=0.3)
        for parameter in decoder.encoding.parameters():
            torch.nn.init.uniform_(parameter, 0.2, 1)
        ids, at = torch.full((1, tokens), seed), torch.arange(tokens)[None]
        made = decoder(ids, at, torch.ones_like(at))[0][0]
        assert (relative._apart(made) > 1e-3) == (name in DOORS["embed"]), (tokens, depth, seed)
        assert name in DOORS["embed"] or relative._apart(made) < 1e-10


def test_the_table_of_equal_words_has_four_ways_that_leave_them_equal():
    values = relative.equal_words()
    assert values["equal"] == len(THROUGH_SCORES)
    assert values["rounding"] < ROUNDING


def test_deberta_learns_what_its_versions_learn():
    values = relative.parameters()
    dim, layers = values["dim"], values["layers"]
    assert values["deberta"] == 2 * values["span"] * dim + 2 * dim * dim * layers
    assert values["deberta_shared"] == 2 * values["span_shared"] * dim


@pytest.mark.claim(
    "a-taught-row-parts-from-all-others",
    "In one head with Shaw's key table, trained to return the token two positions back, the row of that "
    "distance comes to point away from all other rows, which become similar to each other, and it is the "
    "only row that raises the score on average over queries.",
)
@each_of("seed", range(4))
def test_the_row_that_is_wanted_parts_from_the_others(seed):
    before, after, scores, right = relative._taught_two_back(80, seed)
    others = torch.arange(len(scores)) != 4
    assert right == 1
    assert scores[4] > 0 > scores[others].max()
    unit = torch.nn.functional.normalize(after, dim=-1)
    assert (unit[others] @ unit[others].T).min() > 0.5
    assert (unit[others] @ unit[4]).max() < -0.5
    unit = torch.nn.functional.normalize(before, dim=-1)
    assert (unit[others] @ unit[others].T).min() < 0 < (unit[others] @ unit[4]).max()


def test_inkling_learns_a_bank_and_a_projection_in_each_layer():
    values = relative.parameters()
    dim, heads, profiles = values["dim"], values["heads"], values["profiles"]
    each = profiles * values["extent"] + dim * heads * profiles
    assert values["inkling"] == values["layers"] * each


def test_new_houses_move_the_numbers_and_not_the_doors_between():
    _, live = relative.street()
    for new in range(10):
        made = live.function(torch.tensor(new).double())
        assert (made["mine"], made["his"], made["apart"]) == (2 + new, 4 + new, 2)
        shown = made["new houses"][::7, 1].isfinite().sum()
        assert shown == new


def test_a_list_of_names_ends_where_the_formula_of_t5_has_its_last():
    _, values = relative.far_names()
    near = 16  # of 32 buckets each has one distance; the rest are by the logarithm, up to 128
    named = [near + int(16 * math.log(step / near) / math.log(128 / near)) for step in range(near, 400)]
    assert values["names"] == 31
    assert values["last"] == near + named.index(31)
