"""extrapolation.py: losses token by token, and intervals that hold what they should.

The intervals are held to the normal law, which they come near to for many windows.
"""

import itertools
import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.block import Decoder, Encoding
from snippets.extrapolation import confidence_interval, loss_by_context, loss_by_position
from tests.snippets.common import EXACT, refusals, vectors

WORDS, WINDOWS, TOKENS = 9, 5, 12


def windows(seed=0, count=WINDOWS, tokens=TOKENS):
    return torch.randint(WORDS, (count, tokens), generator=torch.Generator().manual_seed(seed))


def decoder():
    torch.manual_seed(0)
    encoding = Encoding()
    encoding.bias = lambda at, keys: alibi_bias(at, keys, alibi_slopes(2))
    model = Decoder(encoding, WORDS, dim=8, heads=2, layers=2, scale=20.0).double().eval()

    def read(ids):
        positions = torch.arange(ids.shape[1])[None]
        return model(ids, positions, torch.ones_like(positions))[0]

    return read


def row_loss(model, text):
    """The loss of the last token of a text, read alone."""
    scores = model(torch.tensor([text[:-1]]))[0, -1].tolist()
    return math.log(sum(map(math.exp, scores))) - scores[text[-1]]


# --- losses


def test_loss_by_position_is_that_of_each_token_alone():
    model, texts = decoder(), windows()
    made = loss_by_position(model, texts)
    expected = [[row_loss(model, text[: n + 1]) for n in range(1, TOKENS)] for text in texts.tolist()]
    assert_close(made, torch.tensor(expected, dtype=torch.float64), **EXACT)


def test_loss_by_context_is_that_of_each_token_with_so_many_before_the_first():
    model, texts, far, contexts = decoder(), windows(), 3, [1, 4, 9]
    made = loss_by_context(model, texts, far, contexts)
    for row, context in zip(made.tolist(), contexts, strict=True):
        for found, text in zip(row, texts.tolist(), strict=True):
            first = TOKENS - far - context
            each = [row_loss(model, text[first : TOKENS - n]) for n in range(far)]
            assert found == pytest.approx(sum(each) / far)


@pytest.mark.parametrize(
    "function", [loss_by_position, lambda *given: loss_by_context(*given[:2], 2, [3], *given[2:])]
)
def test_how_many_rows_at_a_time_changes_nothing(function):
    asked = []

    def model(ids):
        asked.append(len(ids))
        return torch.eye(WORDS)[ids]

    whole = function(model, windows(1, 20))
    for rows, parts in ((1, [1] * 20), (8, [8, 8, 4]), (100, [20])):
        asked.clear()
        assert_close(function(model, windows(1, 20), rows), whole)
        assert asked == parts
    asked.clear()
    function(model, windows(1, 20))
    assert asked == [8, 8, 4]  # unless told otherwise


def test_the_model_reads_no_more_than_it_may():
    read = []

    def model(ids):
        read.append(ids.tolist())
        return torch.zeros(*ids.shape, WORDS)

    texts = torch.tensor([[0, 1, 2, 3, 4, 5]])
    loss_by_context(model, texts, 2, [1, 4])
    assert read == [[[3, 4]], [[0, 1, 2, 3, 4]]]  # the last one is only asked for


def test_a_guess_has_the_loss_of_a_guess():
    def guess(ids):
        return torch.zeros(*ids.shape, WORDS)

    assert_close(loss_by_position(guess, windows()), torch.full((WINDOWS, TOKENS - 1), math.log(WORDS)))


def test_no_gradients_are_kept():
    learned = torch.zeros(WORDS, requires_grad=True)
    for made in (
        loss_by_position(lambda ids: learned.expand(*ids.shape, -1), windows()),
        loss_by_context(lambda ids: learned.expand(*ids.shape, -1), windows(), 2, [3]),
    ):
        assert not made.requires_grad


@pytest.mark.parametrize(
    ("dtype", "wide"), [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64,) * 2]
)
def test_losses_are_wide(dtype, wide):
    scores = vectors(2, WINDOWS, TOKENS - 1, WORDS).to(dtype)
    made = loss_by_position(lambda ids: scores, windows())
    assert made.dtype == wide
    assert torch.equal(made, loss_by_position(lambda ids: scores.to(wide), windows()))


# --- intervals


def test_the_interval_is_the_bootstrap_written_out():
    values = vectors(3, 6, 2)
    mean, low, high = confidence_interval(values, level=0.9, resamples=40, seed=5)
    drawn = torch.randint(6, (40, 6), generator=torch.Generator().manual_seed(5)).tolist()
    for n in range(2):
        means = sorted(sum(values[row, n].item() for row in rows) / 6 for rows in drawn)
        assert mean[n].item() == pytest.approx(values[:, n].mean().item())
        assert (low[n].item(), high[n].item()) == pytest.approx((means[2], means[37]))


@pytest.mark.parametrize(("level", "widths"), [(0.95, 1.96), (0.5, 0.6745), (0.99, 2.5758)])
def test_of_many_windows_it_is_that_of_the_normal_law(level, widths):
    values = vectors(4, 600)
    mean, low, high = confidence_interval(values, level)
    half = widths * values.std().item() / math.sqrt(600)
    assert mean.item() == pytest.approx(values.mean().item())
    assert low.item() == pytest.approx(mean.item() - half, abs=0.1 * half)
    assert high.item() == pytest.approx(mean.item() + half, abs=0.1 * half)


def test_nineteen_of_twenty_hold_the_truth():
    values = vectors(5, 60, 500) + 0.5
    _, low, high = confidence_interval(values)
    assert 0.92 < ((low < 0.5) & (high > 0.5)).double().mean() < 0.97


def test_every_column_is_as_if_it_were_alone():
    values = vectors(6, 7, 2, 600)  # more than are drawn at one time
    whole = torch.stack(confidence_interval(values, resamples=100))
    assert whole.shape == (3, 2, 600)
    assert whole.dtype == torch.float64
    for row, column in itertools.product((0, 1), (0, 311, 312, 599)):
        alone = confidence_interval(values[:, row, column], resamples=100)
        assert_close(whole[:, row, column], torch.stack(alone), **EXACT)
        assert alone[0].shape == ()


def test_what_never_varies_is_sure_and_a_difference_hides_what_is_shared():
    hard, gap = 10 * vectors(7, 50), 0.01 * vectors(8, 50)
    for each in confidence_interval(torch.full((5,), 0.25)):
        assert each.item() == pytest.approx(0.25)
    _, low, high = confidence_interval(hard + gap)
    _, near, far = confidence_interval((hard + gap) - hard)
    assert (far - near) < (high - low) / 100


def test_one_seed_gives_one_interval():
    values = vectors(9, 20)
    first, again, other = (confidence_interval(values, resamples=50, seed=seed) for seed in (0, 0, 1))
    assert first == again == confidence_interval(values, resamples=50)
    assert first != other
    assert confidence_interval(values) == confidence_interval(values, 0.95, 4000)
    assert confidence_interval(values) != confidence_interval(values, 0.95, 3900)


def test_gradients_and_other_dtypes_are_taken():
    values = vectors(10, 5)
    for given in (values.clone().requires_grad_(), values.to(torch.bfloat16)):
        made = confidence_interval(given)
        assert_close(made[0], given.detach().double().mean())
        assert not made[1].requires_grad


# --- bad input


def nothing(ids):
    return torch.zeros(*ids.shape, WORDS)


def scored(shape):
    return loss_by_position(lambda ids: torch.zeros(shape), windows())


@refusals
def test_refuses():
    by_position, by_context = partial(loss_by_position, nothing), partial(loss_by_context, nothing)
    want = "windows must be int64 (windows, 2 tokens or more), got torch"
    for given in (torch.zeros(2, 5), windows()[0, :5], windows()[:0]):
        got = f"{str(given.dtype)[5:]} {tuple(given.shape)}"
        yield f"{want}{got}", by_position, given
        yield f"{want}{got}", by_context, given, 1, [1]
    yield f"{want}.int64 (5, 1)", by_position, windows()[:, :1]
    for bad in (0, -1):
        yield f"batch_size must be 1 or more, got {bad}", by_position, windows(), bad
        yield f"batch_size must be 1 or more, got {bad}", by_context, windows(), 1, [1], bad
    for shape in ((5, 11), (5, 12, WORDS), (1, 11, WORDS), (5, 11, WORDS, 1)):
        yield f"scores must be (5, 11, 'words'), got {shape}", scored, shape
    for bad in (0, -1, TOKENS):
        yield f"target_tokens must be 1 to 11, got {bad}", by_context, windows(), bad, [1]
    for bad in ([], [0], [3, 10], [-1]):
        yield f"contexts must be some of 1 to 9, got {bad}", by_context, windows(), 3, bad
    for values in (torch.arange(3), torch.zeros(1, 4), torch.zeros(())):
        got = f"got {values.dtype} {tuple(values.shape)}"
        yield f"values must be floating (2 windows or more, ...), {got}", confidence_interval, values
    for bad in (0, 1, 1.5, math.nan):
        yield f"level must be between 0 and 1, got {bad}", confidence_interval, torch.zeros(3), bad
    yield (
        "resamples must be more for a level of 0.995, got 100",
        confidence_interval,
        torch.zeros(3),
        0.995,
        100,
    )


def test_takes_the_least_windows_and_draws_and_the_farthest_tokens():
    assert loss_by_position(nothing, windows()[:, :2]).shape == (WINDOWS, 1)
    assert loss_by_context(nothing, windows(), 3, [1, 9]).shape == (2, WINDOWS)
    assert loss_by_context(nothing, windows(), TOKENS - 1, [1]).shape == (1, WINDOWS)
    assert len(confidence_interval(torch.zeros(3), 0.98, 100)) == 3
    assert len(confidence_interval(torch.zeros(2), 0.5, 4)) == 3
