"""diagnostics.py: each check with what it must praise, what it must blame, and what must not fool it."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.attention import attention
from snippets.diagnostics import (
    attention_mass,
    extrapolation_skill,
    min_row_distance,
    row_similarity,
    shift_invariance_error,
)
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding
from snippets.t5_bias import t5_bias, t5_bias_by_offset
from tests.snippets.common import refusals

N, DIM = 64, 32
PLACES = torch.arange(N)
SCALES = st.floats(-60, 60).map(lambda power: 10.0**power)


def table(rows=400, dim=DIM, seed=0):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ramp(rows=400, dim=DIM, seed=9):
    return torch.arange(float(rows), dtype=torch.float64)[:, None] * table(1, dim, seed)


def sinusoid(rows=400, dim=DIM):
    return sinusoidal_encoding(torch.arange(rows), dim, dtype=torch.float64)


def clamped(rows=400, known=50):
    return table(known)[torch.arange(rows).clamp(max=known - 1)]


def added(encoding, places=N):
    """The score of fixed contents to which the rows of an encoding are added."""
    x, y = (table(places, encoding.shape[1], seed) for seed in (1, 2))
    return lambda i, j: (x + encoding[i]) @ (y + encoding[j]).mT


def turn(x, positions, frequencies, layout):
    return apply_rope(x, *rope_tables(positions, frequencies, torch.float64), layout)


def rotated(layout="half", key_layout=None, dtype=torch.float64, places=N, dim=DIM):
    (q, k), w = (table(places, dim, seed).to(dtype) for seed in (1, 2)), rope_frequencies(dim, base=10000)
    other = key_layout or layout
    return lambda i, j: turn(q, i, w, layout) @ turn(k, j, w, other).mT


# --- relativity


@pytest.mark.claim(
    "diagnostics-relativity-tells-offsets-from-places",
    "In float32 and float64, at widths from 2 to 128 and over 16 to 256 positions, shift_invariance_error "
    "is below one in a million for the scores of RoPE, ALiBi and T5's bias with fixed contents. It is "
    "above a tenth for the dot products of standard normal contents to which a standard normal table, a "
    "ramp along a standard normal vector, or sinusoids were added.",
)
@pytest.mark.parametrize("places", [16, 256])
@pytest.mark.parametrize(("dim", "heads"), [(2, 1), (32, 4), (128, 12)])
def test_scores_that_know_only_offsets_pass(dim, heads, places):
    fixed, buckets = table(places, places), table(32, heads)
    for dtype in (torch.float32, torch.float64):
        for score in (
            rotated("half", None, dtype, places, dim),
            rotated("interleaved", None, dtype, places, dim),
            lambda i, j, dtype=dtype: alibi_bias(i, j, alibi_slopes(heads), dtype),
            lambda i, j, dtype=dtype: alibi_bias_symmetric(i, j, alibi_slopes(heads), dtype),
            lambda i, j, dtype=dtype: t5_bias(i, j, t5_bias_by_offset(buckets.to(dtype))),
            lambda i, j, dtype=dtype: fixed.to(dtype) + alibi_bias(i, j, alibi_slopes(heads), dtype),
            lambda i, j, dtype=dtype: fixed.to(dtype) + t5_bias(i, j, t5_bias_by_offset(buckets.to(dtype))),
        ):
            assert shift_invariance_error(score, torch.arange(places)) < 1e-6


@pytest.mark.claim(
    "diagnostics-relativity-tells-offsets-from-places",
    "In float32 and float64, at widths from 2 to 128 and over 16 to 256 positions, shift_invariance_error "
    "is below one in a million for the scores of RoPE, ALiBi and T5's bias with fixed contents. It is "
    "above a tenth for the dot products of standard normal contents to which a standard normal table, a "
    "ramp along a standard normal vector, or sinusoids were added.",
)
@pytest.mark.parametrize("places", [16, 256])
@pytest.mark.parametrize("dim", [2, 32, 128])
def test_scores_that_know_places_fail(dim, places):
    for seed in range(3, 7):
        for rows in (table(400, dim, seed), ramp(400, dim, seed), sinusoid(400, dim)):
            for dtype in (torch.float32, torch.float64):
                assert shift_invariance_error(added(rows.to(dtype), places), torch.arange(places)) > 0.1


def test_a_clamped_table_knows_places():
    assert shift_invariance_error(added(clamped()), PLACES) > 0.1


def test_a_random_table_gets_about_one():
    encoding = 10 * table()
    assert 0.7 < shift_invariance_error(added(encoding), PLACES) < 1.5


def test_raw_sinusoids_without_contents_know_only_offsets():
    encoding = sinusoid()
    assert shift_invariance_error(lambda i, j: encoding[i] @ encoding[j].mT, PLACES) < 1e-12


@pytest.mark.claim(
    "diagnostics-relativity-finds-mixed-layouts",
    "shift_invariance_error detects that queries and keys are rotated in different layouts, in four "
    "dimensions or more; in two dimensions the layouts are the same. It does not detect that both are "
    "rotated in the layout that the checkpoint does not use.",
)
def test_two_layouts_in_one_score_fail_and_one_wrong_layout_does_not():
    for dim, places in itertools.product((2, 4, 32, 128), (16, 64, 256)):
        at, size = torch.arange(places), {"places": places, "dim": dim}
        mixed = shift_invariance_error(rotated("half", "interleaved", **size), at)
        assert mixed < 1e-6 if dim == 2 else mixed > 0.1
        assert shift_invariance_error(rotated("half", **size), at) < 1e-6
        assert shift_invariance_error(rotated("interleaved", **size), at) < 1e-6


@pytest.mark.claim(
    "diagnostics-no-position-is-no-pass",
    "shift_invariance_error is nan, which passes no comparison, for scores that do not depend on "
    "positions: without an encoding, and with an encoding whose rows are all equal.",
)
@pytest.mark.parametrize(
    "encoding",
    [
        torch.zeros(400, DIM),
        torch.ones(400, DIM),
        1e-30 * torch.ones(400, DIM),
        table(1).expand(400, -1),
        100 * table(1, 2).expand(400, -1),
    ],
)
def test_scores_without_position_do_not_pass(encoding):
    error = shift_invariance_error(added(encoding.double()), PLACES)
    assert error.isnan()
    assert not error < 1e-6


def test_scores_that_a_shift_changes_and_trading_does_not_are_infinite():
    contents = added(torch.zeros(400, DIM, dtype=torch.float64))
    error = shift_invariance_error(lambda i, j: (1 + i[:, None]) * contents(i, j), PLACES)
    assert error == math.inf


def test_what_the_keys_of_a_query_share_does_not_count():
    def key_only(i, j):  # slope * j: the same weights as slope * (j - i)
        return 0.1 * j.double() + 0 * i[:, None]

    def with_place_of_query(i, j):
        return alibi_bias(i, j, alibi_slopes(2)).double() + 5 * i[:, None]

    assert shift_invariance_error(key_only, PLACES) < 1e-12
    assert shift_invariance_error(with_place_of_query, PLACES) < 1e-12


def test_the_worst_shift_decides():
    encoding = table(8)[torch.arange(400) % 8]  # positions that start again at every eighth

    def score(i, j):
        return encoding[i] @ encoding[j].mT

    assert shift_invariance_error(score, PLACES, shifts=[8, 16]) == 0
    assert shift_invariance_error(score, PLACES, shifts=[8, 1]) > 0.1
    assert shift_invariance_error(score, PLACES, shifts=[1, 8]) > 0.1


def test_the_default_shifts_reach_100():
    def score(i, j):
        return (i[:, None] - j).double() + (i[:, None] >= 100) * j**2

    assert shift_invariance_error(score, torch.arange(9)) > 0.1
    assert shift_invariance_error(score, torch.arange(9), shifts=(1, 10, 50)) == 0


def test_a_mask_that_moves_along_passes_and_one_that_does_not_is_infinite():
    def blocks(i, j):  # each block of 8 positions sees itself
        hidden = i[:, None] // 8 != j // 8
        return (-abs(i[:, None] - j)).double().masked_fill(hidden, -math.inf)

    assert shift_invariance_error(blocks, PLACES[:24], shifts=[8, 80]) == 0
    assert shift_invariance_error(blocks, PLACES[:24], shifts=[8, 1]) == math.inf
    assert shift_invariance_error(blocks, PLACES[:16], shifts=[8]).isnan()  # no pair is seen before and after


def test_broken_scores_do_not_pass():
    def broken(i, j):
        return (i[:, None] - j).double().where(i[:, None] < 70, math.nan)

    assert shift_invariance_error(broken, PLACES).isnan()


@settings(max_examples=25)
@given(SCALES, st.integers(0, 5))
@pytest.mark.claim(
    "diagnostics-do-not-depend-on-scale",
    "In float64, multiplying the scores, the rows, or the losses together with the loss of a guess by any "
    "power of ten from -60 to 60 changes shift_invariance_error, min_row_distance, row_similarity and "
    "extrapolation_skill only by rounding.",
)
def test_no_check_depends_on_the_scale(scale, seed):
    encoding = table(170, seed=seed) + sinusoid(170)
    score = added(encoding)
    assert_close(
        shift_invariance_error(lambda i, j: scale * score(i, j), PLACES),
        shift_invariance_error(score, PLACES),
    )
    assert_close(min_row_distance(scale * encoding), min_row_distance(encoding))
    assert_close(row_similarity(scale * encoding), row_similarity(encoding))
    losses = table(100, 1, seed=seed)[:, 0].abs()
    assert_close(extrapolation_skill(scale * losses, 60, scale * 3.0), extrapolation_skill(losses, 60, 3.0))


def test_relativity_written_out():
    place = torch.tensor([3.0, 1.0, 4.0, 1.5, 9.0], dtype=torch.float64)
    here = [[place[i] * place[j] for j in range(3)] for i in range(3)]
    there = [[place[i + 2] * place[j + 2] for j in range(3)] for i in range(3)]
    traded = [[place[i] * place[2 - j] for j in range(3)] for i in range(3)]

    def rms(other):
        total = 0
        for row, was in zip(other, here, strict=True):
            gaps = [a - b for a, b in zip(row, was, strict=True)]
            total += sum((gap - sum(gaps) / 3) ** 2 for gap in gaps)
        return total**0.5

    made = shift_invariance_error(lambda i, j: place[i][:, None] * place[j], torch.arange(3), shifts=[2])
    assert_close(made, rms(there) / rms(traded))


def test_relativity_leaves_out_the_hidden_keys_only():
    place = torch.tensor([3.0, 1.0, 4.0, 1.5], dtype=torch.float64)

    def score(i, j):
        return (place[i][:, None] * place[j]).masked_fill(i[:, None] < j, -math.inf)

    here = [[9, None, None], [3, 1, None], [12, 4, 16]]
    there = [[1, None, None], [4, 16, None], [1.5, 6, 2.25]]
    traded = [[None, None, 9], [None, 1, 3], [16, 4, 12]]

    def rms(other):
        total, count = 0, 0
        for row, was in zip(other, here, strict=True):
            gaps = [a - b for a, b in zip(row, was, strict=True) if a is not None and b is not None]
            if gaps:
                mean = sum(gaps) / len(gaps)
                total += sum((gap - mean) ** 2 for gap in gaps)
                count += len(gaps)
        return (total / count) ** 0.5

    made = shift_invariance_error(score, torch.arange(3), shifts=[1])
    assert made.item() == pytest.approx(rms(there) / rms(traded))


# --- rows


@pytest.mark.claim(
    "diagnostics-margin-of-good-rows-is-large",
    "Over 400 positions and 32 dimensions, min_row_distance is above 0.2 for sinusoids and above 0.4 for "
    "random rows, below 0.01 for a ramp, and 0 for a table whose last row is repeated.",
)
def test_margins_of_good_and_bad_rows():
    assert min_row_distance(sinusoid()) > 0.2
    for seed in range(10):
        assert min_row_distance(table(seed=seed)) > 0.4
        assert min_row_distance(ramp(seed=seed)) < 0.01
    assert min_row_distance(clamped()) == 0


def test_random_rows_of_many_dimensions_have_a_margin_of_nearly_one():
    assert min_row_distance(table(100, 4096)) > 0.9


@pytest.mark.claim(
    "diagnostics-ramp-is-not-praised",
    "n evenly spaced points on a line have a min_row_distance of sqrt(6 / (n (n + 1))), whatever the step "
    "and the direction, and any two of them on the same side of the midpoint have a row_similarity of 1.",
)
@given(st.integers(2, 200), SCALES, st.integers(1, 40), st.integers(0, 9))
def test_the_margin_of_a_ramp_is_the_formula_and_its_sides_look_alike(rows, scale, dim, seed):
    line = scale * (ramp(rows, dim, seed) + table(1, dim, seed + 1))
    assert min_row_distance(line).item() == pytest.approx(math.sqrt(6 / (rows * (rows + 1))))
    similarity, half = row_similarity(line), rows // 2
    assert_close(similarity[:half, :half], torch.ones(half, half, dtype=torch.float64))
    assert_close(similarity[:half, rows - half :], -torch.ones(half, half, dtype=torch.float64))


@pytest.mark.claim(
    "diagnostics-constant-rows-are-not-praised",
    "Rows that are all equal, exactly or up to the rounding of their dtype, have a min_row_distance of 0 "
    "and row similarities of 1. For other rows, adding one vector to all of them changes neither measure "
    "by more than rounding.",
)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.7e20, 1e-20])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(2, 1), (9, 8), (100, 768)])
def test_constant_rows_are_all_alike(shape, value, dtype):
    if torch.tensor(value, dtype=dtype).isinf():
        value = 4000.0
    constant = torch.full(shape, value, dtype=dtype)
    next_up = constant.nextafter(torch.full_like(constant, math.inf)) if constant.any() else constant
    for rows in (constant, constant.where(torch.rand(shape) < 0.5, next_up)):
        assert min_row_distance(rows) == 0
        assert torch.equal(row_similarity(rows), torch.ones(shape[0], shape[0], dtype=torch.float64))


@pytest.mark.claim(
    "diagnostics-constant-rows-are-not-praised",
    "Rows that are all equal, exactly or up to the rounding of their dtype, have a min_row_distance of 0 "
    "and row similarities of 1. For other rows, adding one vector to all of them changes neither measure "
    "by more than rounding.",
)
@given(st.integers(0, 9), st.floats(-6, 6), st.integers(2, 60), st.sampled_from([2, 8, 32, 100]))
def test_a_vector_that_all_rows_share_changes_nothing(seed, power, rows, dim):
    shared = 10**power * table(1, dim, seed)
    for encoding in (sinusoid(rows, dim), table(rows, dim, seed + 1)):
        assert_close(min_row_distance(encoding + shared), min_row_distance(encoding), rtol=1e-6, atol=1e-7)
        assert_close(row_similarity(encoding + shared), row_similarity(encoding), rtol=1e-6, atol=1e-7)


def test_noise_of_the_size_of_rounding_is_none():
    rows = torch.ones(50, 16) + torch.finfo(torch.float32).eps * torch.randint(-1, 2, (50, 16))
    assert min_row_distance(rows) == 0
    assert min_row_distance(rows.double()) > 0.1  # to float64 the same differences are real


def test_rounding_grows_with_the_root_of_the_width():
    rows = torch.ones(2, 64, dtype=torch.float64)
    rows[1, 0] += 20 * torch.finfo(torch.float64).eps  # above 8 roundings and below 32
    assert min_row_distance(rows) > 0


def test_near_rows_among_far_ones_keep_their_distance():
    rows = torch.arange(40, dtype=torch.float64)[:, None] * 1e-9
    rows[-1] = 1.0
    pairs = 40 * 39 / 2
    assert min_row_distance(rows).item() == pytest.approx(1e-9 / math.sqrt(39 / pairs), rel=1e-4)


def test_margin_and_similarity_written_out():
    rows = table(7, 5)
    centred = rows - rows.mean(0)
    gaps = [(rows[a] - rows[b]).norm().item() for a in range(7) for b in range(a)]
    wanted = min(gaps) / math.sqrt(sum(gap**2 for gap in gaps) / len(gaps))
    assert min_row_distance(rows).item() == pytest.approx(wanted)
    for a in range(7):
        for b in range(7):
            cosine = centred[a] @ centred[b] / centred[a].norm() / centred[b].norm()
            assert_close(row_similarity(rows)[a, b], cosine)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_row_at_the_mean_is_like_itself_alone(dtype):
    similarity = row_similarity(torch.tensor([[-1.0], [0.0], [1.0]], dtype=dtype))
    assert similarity.tolist() == [[1, 0, -1], [0, 1, 0], [-1, 0, 1]]
    line = torch.arange(-5.0, 6.0)[:, None].to(dtype) * ramp(2)[1:].to(dtype) + 0.3
    similarity = row_similarity(line.to(dtype))
    assert similarity[5].tolist() == [0] * 5 + [1] + [0] * 5  # the middle of a ramp, up to rounding


def test_rows_that_are_not_numbers_do_not_pass():
    rows = table(5)
    rows[2, 3] = math.nan
    assert min_row_distance(rows).isnan()


# --- beyond the trained length


VOCABULARY, TRAINED = 16, 48


def clamped_model(ids):
    """It names the token before the current one, by a row for each of the trained positions."""
    basis = torch.linalg.qr(table(TRAINED, TRAINED)).Q
    back = basis[1:].mT @ basis[:-1]  # row t @ back is row t - 1
    rows = basis[torch.arange(ids.shape[1]).clamp(max=TRAINED - 1)]
    scores = (20 * rows @ back @ rows.mT).masked_fill(ahead(ids), -math.inf)
    return predictions(scores, ids)


def relative_model(ids):
    """The same by a bias on offsets: it looks one step back, wherever it stands."""
    places = torch.arange(ids.shape[1])
    scores = torch.where(places[:, None] - places == 1, 20.0, 0.0).double()
    return predictions(scores.masked_fill(ahead(ids), -math.inf), ids)


def ahead(ids):
    return torch.ones(ids.shape[1], ids.shape[1]).triu(1) > 0


def predictions(scores, ids):
    """Log probabilities: the weights on the tokens that were read, and a little for all others."""
    seen = torch.nn.functional.one_hot(ids, VOCABULARY).double()
    return (scores.softmax(-1) @ seen + 1e-3).log()


def losses_of(model, tokens=160, texts=64):
    ids = torch.randint(VOCABULARY, (texts, tokens))
    targets = ids.roll(1, -1)  # of the first token it is the last, which does not count
    return cross_entropy(model(ids).mT, targets, reduction="none").mean(0)[1:]


@pytest.mark.claim(
    "diagnostics-skill-tells-computing-from-predicting",
    "On the task of naming the previous token, extrapolation_skill stays at 0.99 or more in every block "
    "for a model that looks one step back by offset, and falls below 0.2 for a model whose positions are "
    "clamped to its table. Neither model raises an error.",
)
@pytest.mark.parametrize("seed", range(3))
def test_a_clamped_table_loses_its_skill_and_an_offset_keeps_it(seed):
    torch.manual_seed(seed)
    clamped_losses = losses_of(clamped_model)
    assert clamped_losses[: TRAINED - 1].max() < 0.1
    assert clamped_losses.isfinite().all()
    guess = math.log(VOCABULARY)
    assert extrapolation_skill(clamped_losses, TRAINED - 1, guess, block=28).max() < 0.2
    assert extrapolation_skill(losses_of(relative_model), TRAINED - 1, guess, block=28).min() > 0.99


def test_one_trained_position_and_one_beyond_are_enough():
    assert_close(
        extrapolation_skill(torch.tensor([1.0, 3.0]), 1, baseline_loss=4.0, block=1), torch.tensor([1 / 3])
    )


def test_skill_written_out():
    losses = torch.tensor([9.0, 9.0, 1.0, 3.0, 2.0, 4.0, 7.0])
    made = extrapolation_skill(
        losses, training_length=4, baseline_loss=6.0, block=2
    )  # inside: (1 + 3) / 2 = 2
    assert_close(made, torch.tensor([(6 - 3) / 4, (6 - 7) / 4]))
    assert_close(extrapolation_skill(losses, 4, 6.0), torch.tensor([(6 - 13 / 3) / 4]))  # one block of 64


def test_losses_that_climb_lose_skill_and_losses_that_stay_keep_it():
    climbing = torch.linspace(1, 3, 200)
    assert (extrapolation_skill(climbing, 100, baseline_loss=3.0).diff() < 0).all()
    assert_close(extrapolation_skill(torch.full((200,), 1.0), 100, baseline_loss=3.0), torch.ones(2))


def test_a_model_that_never_had_skill_does_not_pass():
    assert extrapolation_skill(torch.full((200,), 3.0), 100, baseline_loss=3.0).isnan().all()
    assert extrapolation_skill(torch.full((200,), 4.0), 100, baseline_loss=3.0).isnan().all()
    better = torch.cat((torch.full((100,), 3.0), torch.full((100,), 2.0)))
    assert extrapolation_skill(better, 100, baseline_loss=3.0).isnan().all()


def test_losses_that_are_not_numbers_do_not_pass():
    losses = torch.ones(200)
    losses[150] = math.nan
    assert extrapolation_skill(losses, 100, baseline_loss=3.0, block=50).isnan().tolist() == [False, True]
    losses[50] = math.inf
    assert not (extrapolation_skill(losses, 100, baseline_loss=3.0) > 0).any()


def test_block_is_64_unless_another_is_given():
    assert len(extrapolation_skill(torch.ones(165), 100, baseline_loss=3.0)) == 2
    assert len(extrapolation_skill(torch.ones(164), 100, baseline_loss=3.0)) == 1


# --- attention


STEPS = PLACES[:, None] - PLACES
CAUSAL = STEPS >= 0


def weights_of(bias):
    return bias.softmax(-1)


@pytest.mark.claim(
    "diagnostics-mass-compares-with-equal-weights",
    "Under a causal mask, equal weights put more mass on near keys than on distant ones. attention_mass "
    "returns this curve alongside the measured one, so that equal weights show no preference.",
)
@pytest.mark.parametrize("tokens", [2, 9, 64, 300])
def test_equal_weights_behind_a_causal_mask_show_no_preference(tokens):
    at = torch.arange(tokens)
    steps = at[:, None] - at
    equal = weights_of(torch.zeros(3, tokens, tokens).masked_fill(steps < 0, -math.inf))
    mass, even = attention_mass(equal, steps, steps >= 0, reach=tokens)
    assert_close(mass, even)
    assert (mass[:, tokens:-1].diff() < 0).all()  # nearer keys get more, though nothing prefers them


@pytest.mark.claim(
    "diagnostics-mass-finds-sign-and-mask",
    "attention_mass shows ALiBi's preference for near keys, its reversal if the offset has the wrong "
    "sign, and mass on later keys if the causal mask was forgotten.",
)
@pytest.mark.parametrize(("heads", "tokens"), [(1, 8), (4, 64), (12, 64), (12, 300)])
def test_a_wrong_sign_and_a_forgotten_mask_show_in_every_head(heads, tokens):
    at = torch.arange(tokens)
    steps = at[:, None] - at
    symmetric = alibi_bias_symmetric(at, at, alibi_slopes(heads))
    right = weights_of(alibi_bias(at, at, alibi_slopes(heads)))
    swapped = weights_of((-symmetric).masked_fill(steps < 0, -math.inf))
    mass, even = attention_mass(right, steps, steps >= 0, reach=tokens)
    assert ((mass / even)[:, tokens] > 1).all() and ((mass / even)[:, -2] < 1).all()
    assert (mass[:, :tokens] == 0).all()
    mass, even = attention_mass(swapped, steps, steps >= 0, reach=tokens)
    assert ((mass / even)[:, tokens] < 1).all() and ((mass / even)[:, -2] > 1).all()
    mass, even = attention_mass(weights_of(symmetric), steps, steps >= 0, reach=tokens)
    assert (mass[:, :tokens].sum(-1) > 0.1).all()
    assert (even[:, :tokens] == 0).all()


@pytest.mark.claim(
    "diagnostics-equal-weights-by-distance",
    "With a causal mask over n tokens, equal weights put (H(n) - H(d)) / n of their mass on the keys d "
    "steps back, where H(n) is the sum of 1/k for k from 1 to n.",
)
@pytest.mark.parametrize("tokens", [1, 2, 9, N])
def test_equal_weights_fall_with_the_harmonic_numbers(tokens):
    steps, seen = STEPS[:tokens, :tokens], CAUSAL[:tokens, :tokens]
    _, even = attention_mass(seen.double(), steps, seen, reach=tokens)
    harmonic = [sum(1 / k for k in range(1, n + 1)) for n in range(tokens + 1)]
    wanted = [(harmonic[tokens] - harmonic[d]) / tokens for d in range(tokens)]
    assert even[tokens : 2 * tokens].tolist() == pytest.approx(wanted)


@given(st.integers(1, 8), st.integers(2, 9), st.integers(0, 99))
def test_mass_is_the_double_loop(reach, tokens, seed):
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(0, 12, (tokens,), generator=generator)
    weights = torch.rand(2, 3, tokens, tokens, generator=generator, dtype=torch.float64)
    visible = torch.rand(tokens, tokens, generator=generator) < 0.6
    visible[0, 0] = True
    steps = places[:, None] - places
    mass, even = attention_mass(weights, steps, visible, reach)
    assert mass.shape == even.shape == (2, 3, 2 * reach + 1)
    wanted, equal = torch.zeros_like(mass), torch.zeros_like(mass)
    rows = [i for i in range(tokens) if visible[i].any()]
    for i in rows:
        for j in range(tokens):
            at = max(-reach, min(reach, int(steps[i, j]))) + reach
            wanted[..., at] += weights[..., i, j] / len(rows)
            equal[..., at] += visible[i, j] / visible[i].sum() / len(rows)
    assert_close(mass, wanted)
    assert_close(even, equal)


@given(st.integers(0, 99), st.integers(1, 40))
def test_all_mass_is_somewhere(seed, reach):
    bias = table(N, N, seed).masked_fill(~CAUSAL, -math.inf)
    for each in attention_mass(weights_of(bias), STEPS, CAUSAL, reach):
        assert each.sum().item() == pytest.approx(1)


def test_padding_does_not_count():
    visible = CAUSAL.clone()
    visible[:5], visible[:, :5] = False, False
    weights = weights_of(torch.zeros(N, N).masked_fill(~visible, -math.inf))
    assert weights[:5].isnan().all()  # what softmax makes of a row without keys
    alone = CAUSAL[5:, 5:] / CAUSAL[5:, 5:].sum(-1, keepdim=True)
    for each in (weights, weights.nan_to_num(nan=1 / N)):
        mass, even = attention_mass(each, STEPS, visible)
        assert_close(mass, attention_mass(alone, STEPS[5:, 5:], CAUSAL[5:, 5:])[0])
        assert_close(mass, even)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_mass_is_lost_among_many_small_weights(dtype):
    places = torch.arange(2048)
    steps = places[:, None] - places
    even = attention_mass((steps >= 0).to(dtype), steps, steps >= 0)[1]
    assert even.double().sum().item() == pytest.approx(1, rel=1e-6 if dtype == torch.float32 else 0.01)


def test_reach_is_32_unless_another_is_given():
    assert attention_mass(torch.eye(N), STEPS, CAUSAL)[0].shape == (65,)


# --- what a check cannot find, and what mistakes do


@pytest.mark.claim(
    "diagnostics-relativity-is-blind-to-wrong-offsets",
    "Squared frequencies, or an offset with the wrong sign, leave shift_invariance_error below one in a "
    "million, because such scores still depend only on offsets.",
)
@pytest.mark.parametrize("dim", [2, DIM, 128])
def test_a_wrong_function_of_the_offset_is_still_one(dim):
    q, k = table(N, dim, seed=1), table(N, dim, seed=2)
    squared = rope_frequencies(dim, base=10000) ** 2
    for score in (
        lambda i, j: turn(q, i, squared, "half") @ turn(k, j, squared, "half").mT,
        lambda i, j: 0.25 * (i[:, None] - j),  # ALiBi's bias is -0.25 * (i - j)
    ):
        assert shift_invariance_error(score, PLACES) < 1e-6


@pytest.mark.claim(
    "diagnostics-margin-is-blind-to-squared-frequencies",
    "Sinusoids of 64 dimensions with squared frequencies have a larger min_row_distance over 512 "
    "positions than sinusoids with the correct frequencies.",
)
def test_squared_frequencies_do_not_lower_the_margin():
    squared = torch.arange(512)[:, None] * rope_frequencies(64, base=10000) ** 2
    waves = torch.cat((squared.sin(), squared.cos()), -1)
    assert min_row_distance(waves) > min_row_distance(sinusoid(512, 64)) > 0.2


@pytest.mark.claim(
    "diagnostics-relativity-needs-minus-infinity",
    "If later keys are masked with a large finite number instead of -inf, shift_invariance_error can be "
    "below one in a million for scores that depend on absolute positions.",
)
@pytest.mark.parametrize("number", [-1e9, torch.finfo(torch.float32).min])
def test_a_finite_mask_drowns_what_places_do(number):
    score = added(table())

    def hidden(i, j, by):
        return score(i, j).masked_fill(i[:, None] < j, by)

    assert shift_invariance_error(lambda i, j: hidden(i, j, number), PLACES) < 1e-6
    assert shift_invariance_error(lambda i, j: hidden(i, j, -math.inf), PLACES) > 0.1


@pytest.mark.claim(
    "diagnostics-relativity-misses-small-places",
    "shift_invariance_error can be below one in a hundred for scores that depend on absolute positions, "
    "if much larger scores that depend only on offsets are added to them.",
)
def test_a_steep_bias_or_large_sinusoids_hide_what_places_do():
    score = added(table())
    assert shift_invariance_error(score, PLACES) > 0.1
    assert shift_invariance_error(lambda i, j: score(i, j) + 100 * (j - i[:, None]), PLACES) < 0.01
    assert shift_invariance_error(added(1000 * sinusoid()), PLACES) < 0.01  # their own products know offsets


@pytest.mark.claim(
    "is-causal-with-a-cache-sees-one-key",
    "torch's scaled_dot_product_attention with is_causal=True lets a single query attend only to the "
    "first key, however many keys the cache contains.",
)
@pytest.mark.parametrize("keys", [1, 2, 7, 40])
def test_is_causal_lets_a_single_query_see_the_first_key_alone(keys):
    q, k, v = torch.randn(2, 3, 1, 8), torch.randn(2, 3, keys, 8), torch.randn(2, 3, keys, 8)
    first = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_close(first, v[:, :, :1])


@pytest.mark.claim(
    "left-padding-shifts-added-positions-not-rope",
    "With padding hidden from attention, counting positions from the first column instead of the first "
    "token changes the output of causal attention with added sinusoids, and changes that of causal "
    "attention with RoPE only by rounding.",
)
@given(st.integers(1, 200), st.integers(0, 9), st.integers(2, 20), st.sampled_from(["half", "interleaved"]))
def test_left_padding_shifts_what_is_added_and_not_what_is_rotated(pad, seed, tokens, layout):
    words, rows, w = table(tokens, seed=seed), sinusoid(220), rope_frequencies(DIM, base=10000)
    from_word = torch.arange(tokens)
    from_column = from_word + pad

    def added_output(places):
        x = words + rows[places]
        return attention(x, x, words, causal=True)[0]

    def rotated_output(places):
        x = turn(words, places, w, layout)
        return attention(x, x, words, causal=True)[0]

    assert (added_output(from_column) - added_output(from_word)).abs().max() > 1e-6
    assert_close(rotated_output(from_column), rotated_output(from_word))


@pytest.mark.claim(
    "batch-as-sequence-gives-a-text-one-row",
    "Code that takes its positions from the first axis of [texts, tokens, dim] adds the same row to all "
    "tokens of a text, so that min_row_distance is 0, and a different row if the text is at another index "
    "in the batch.",
)
@pytest.mark.parametrize(("texts", "tokens", "dim"), [(2, 2, 2), (5, 7, 8), (9, 40, 64)])
def test_positions_from_the_batch_give_a_text_one_row(texts, tokens, dim):
    encoding = sinusoid(9, dim)

    def broken(x):
        return x + encoding[: x.shape[0], None]

    read = broken(torch.zeros(texts, tokens, dim, dtype=torch.float64))
    for text, row in zip(read, encoding, strict=False):
        assert torch.equal(text, row.expand(tokens, dim))
        assert min_row_distance(text) == 0
    assert not torch.equal(broken(torch.zeros(1, tokens, dim))[0], read[1])


# --- modes


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_dtype_is_measured(dtype):
    assert min_row_distance(sinusoid(50).to(dtype)).item() == pytest.approx(
        min_row_distance(sinusoid(50)).item(), rel=0.02
    )
    weights = weights_of(alibi_bias(PLACES, PLACES, alibi_slopes(4))).to(dtype)
    mass, even = attention_mass(weights, STEPS, CAUSAL)
    assert mass.dtype == even.dtype == dtype
    assert_close(mass.sum(-1).float(), torch.ones(4), rtol=0.02, atol=0)
    assert shift_invariance_error(lambda i, j: (-abs(i[:, None] - j)).to(dtype), torch.arange(9), [1]) == 0
    assert extrapolation_skill(torch.ones(9, dtype=dtype), 5, 2.0).dtype == dtype


def test_results_are_single_numbers_of_float64():
    for made in (
        min_row_distance(table(9).float()),
        shift_invariance_error(rotated(dtype=torch.float32), PLACES),
    ):
        assert made.shape == ()
        assert made.dtype == torch.float64


@pytest.mark.slow
def test_functions_compile_into_one_graph():
    score, losses, weights = rotated(), table(100, 1)[:, 0], torch.rand(2, N, N)
    for function, arguments in (
        (min_row_distance, (table(20),)),
        (row_similarity, (table(20),)),
        (extrapolation_skill, (losses, 60, 5.0, 16)),
        (attention_mass, (weights, STEPS, CAUSAL, 8)),
        (lambda places: shift_invariance_error(score, places), (PLACES,)),
    ):
        torch.compiler.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        assert_close(compiled(*arguments), function(*arguments))


# --- what is refused, and in which words


def test_a_shift_of_nothing_beside_another_says_nothing():
    assert shift_invariance_error(added(table()), PLACES, (0, 3)) == shift_invariance_error(
        added(table()), PLACES, [3]
    )


@refusals
def test_refuses():
    for positions in (torch.tensor(3), torch.zeros(2, 3).long()):
        message = f"positions must be (tokens,), got {tuple(positions.shape)}"
        yield message, shift_invariance_error, added(table()), positions
    for shifts in ([], [0], (0, 0)):
        message = f"shifts must be one number or more, not all 0, got {shifts}"
        yield message, shift_invariance_error, added(table()), PLACES, shifts
    scores = torch.zeros(64, 63)
    yield "scores must be (..., 64, 64), got (64, 63)", shift_invariance_error, lambda i, j: scores, PLACES
    for shape in ((3,), (1, 3), (2, 0), (2, 3, 4), (3, 4)):
        dtype = torch.int64 if shape == (3, 4) else torch.float32
        message = f"encoding must be (2 positions or more, dim) of a floating dtype, got {shape} of {dtype}"
        for function in (min_row_distance, row_similarity):
            yield message, function, torch.zeros(shape, dtype=dtype)
    for number in (math.nan, math.inf, -math.inf):  # with which all rows would seem the same
        encoding = torch.eye(9)
        encoding[4, 0] = number
        yield "encoding must be finite, got nan or inf", row_similarity, encoding
    yield "losses must be (positions,), got (3, 4)", extrapolation_skill, torch.zeros(3, 4), 1, 3.0
    for trained in (0, -1, 9, 10):
        yield (
            f"training_length must be 1 to 8, got {trained}",
            extrapolation_skill,
            torch.zeros(9),
            trained,
            3.0,
        )
    for block in (0, -4):
        yield f"block must be 1 or more, got {block}", extrapolation_skill, torch.zeros(9), 3, 3.0, block
    for wrong in (CAUSAL[:, :-1], CAUSAL[None]):
        got, weights = tuple(wrong.shape), CAUSAL / N
        yield f"visible must be (64, 64), got {got}", attention_mass, weights, STEPS, wrong
        yield f"steps must be (64, 64), got {got}", attention_mass, weights, wrong.long(), CAUSAL
    for reach in (0, -1):
        yield f"reach must be 1 or more, got {reach}", attention_mass, CAUSAL / N, STEPS, CAUSAL, reach
