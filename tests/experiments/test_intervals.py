"""Intervals hold what they should, on data whose mean is known."""

import math

import mpmath
import pytest
import torch

from experiments.intervals import LEAST_P, SEEN, compare, could_be_seen, holm, interval, p_value, quantile
from tests.rows import each_of

# how much seeds, files, and each seed with each file differ
MIXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0.13, 1, 0.5), (0.13, 1, 0), (0.3, 1, 0)]


def data(seeds, files, by_seed, by_file, noise, skewed=False, windows=1):
    each = torch.randn(1, files, 1)
    parts = (
        by_seed * torch.randn(seeds, 1, 1),
        by_file * (torch.empty(1, files, 1).exponential_() - 1 if skewed else each),
        noise * torch.randn(seeds, files, windows),
    )
    return 0.5 + sum(parts)


def test_what_never_varies_is_sure():
    assert interval(torch.full((3, 20), 0.25)) == pytest.approx((0.25, 0.25, 0.25))


def test_the_mean_counts_each_file_once_and_its_windows_together():
    values = torch.arange(24.0).view(2, 4, 3)
    assert interval(values)[0] == pytest.approx(11.5)
    assert interval(values) == pytest.approx(interval(values.mean(-1)))
    assert interval(values[..., None].expand(-1, -1, -1, 2)) == pytest.approx(interval(values))


def outside(freedom, quantile):
    """The probability that Student's t lies beyond this, on either side."""
    return float(mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + quantile**2), regularized=True))


@each_of("freedom", [1, 2, 4, 57, 399])
@each_of("level", [0.5, 0.95, 0.99, 1 - LEAST_P])
def test_the_quantile_is_that_of_students_t(freedom, level):
    assert outside(freedom, quantile(freedom, level)) == pytest.approx(1 - level, rel=2e-3)


@each_of(("seeds", "files"), [(1, 48), (5, 1), (3, 1)])
@each_of("shift", [0.0, 0.3, 0.9])
def test_with_one_axis_the_p_value_is_that_of_students_t(seeds, files, shift):
    values = torch.randn(seeds, files, dtype=torch.float64) + shift
    number = values.numel()
    t = (values.mean() / values.std() * number**0.5).item()
    expected = max(LEAST_P, outside(number - 1, t))
    assert p_value(values) == p_value(-values) == pytest.approx(expected, rel=4e-3)


@each_of("shift", [0.0, 0.3, 0.6, 1.2])
def test_at_one_less_the_p_value_the_interval_just_ends_at_zero(shift):
    values = data(5, 48, 0.3, 1.0, 0.5)[..., 0].double() - 0.5 + shift
    p = p_value(values)
    errors = [(values.mean(1).std() / 5**0.5, 4), (values.mean(0).std() / 48**0.5, 47)]
    wide, narrow = (
        math.hypot(*(quantile(freedom, 1 - each) * error for error, freedom in errors))
        for each in (p / 1.002, p * 1.002)
    )
    assert narrow < abs(values.mean()) < wide


def test_p_values_are_corrected_as_holm_does():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([0.2]) == [0.2]


def test_among_twelve_true_null_hypotheses_one_is_seldom_rejected():
    families = [holm([p_value(data(5, 48, 0.3, 1, 0) - 0.5) for _ in range(12)]) for _ in range(600)]
    assert sum(min(family) < 0.05 for family in families) / 600 <= 0.05


@each_of(("seeds", "files"), [(1, 400), (400, 1), (3, 1)])
def test_with_one_axis_it_is_that_of_students_t(seeds, files):
    values = torch.randn(seeds, files, dtype=torch.float64)
    mean, low, high = interval(values)
    half = quantile(values.numel() - 1) * values.std().item() / values.numel() ** 0.5
    assert (mean, low, high) == pytest.approx((values.mean().item(), mean - half, mean + half))


@pytest.mark.claim(
    "evidence-interval-holds",
    "On synthetic data of 3 seeds and 58 files, or 48 texts, the 95 % interval for a mean contains it at "
    "least 93 times in 100, whether seeds or files vary more, and also where a few files are outliers. "
    "Where each seed varies with each file in its own way, the interval is too wide and nearly always "
    "contains the mean. The effects of the seeds in these data are normally distributed.",
)
@each_of("files", [48, 58])
@each_of("skewed", [False, True])
@each_of("mix", MIXES)
def test_the_interval_holds_the_mean_whichever_differs_more(mix, skewed, files):
    found = [interval(data(3, files, *mix, skewed)) for _ in range(1500)]
    held = sum(low < 0.5 < high for _, low, high in found) / 1500
    assert 0.93 <= held <= (1 if mix[2] else 0.98)


def test_the_difference_of_two_on_the_same_files_knows_nothing_of_how_hard_they_are():
    one = data(3, 58, 0.1, 2.0, 0.01)
    other = one + 0.02 + 0.01 * torch.randn(one.shape)
    _, low, high = interval(other - one)
    assert 0.01 < low < 0.02 < high < 0.03
    assert interval(one)[2] - interval(one)[1] > 20 * (high - low)


def test_it_is_the_same_each_time():
    values = torch.randn(3, 10)
    first, _ = interval(values), torch.rand(5)
    assert interval(values) == first


@pytest.mark.claim(
    "evidence-better-is-seldom-said-wrongly",
    "If two methods do not differ, the rule calls one of them better at most 7 times in 100, on synthetic "
    "data of 2, 3 or 5 seeds and 48 texts, or of 3 seeds and 58 files, whether seeds or files vary more, "
    'and also where the differences of files are skewed. It never returns "better" or "worse" for a '
    "method with a single seed, whatever the other has.",
)
@each_of(("seeds", "files"), [(2, 48), (3, 48), (3, 58), (5, 48)])
@each_of("skewed", [False, True])
@each_of("mix", MIXES)
def test_of_two_that_are_alike_neither_is_called_better(mix, skewed, seeds, files):
    zero = torch.zeros(seeds, files, 1)
    told = [compare(zero, data(seeds, files, *mix, skewed) - 0.5).better() for _ in range(1500)]
    assert told.count(None) / 1500 >= 0.93


@pytest.mark.claim(
    "evidence-better-is-seldom-said-wrongly",
    "If two methods do not differ, the rule calls one of them better at most 7 times in 100, on synthetic "
    "data of 2, 3 or 5 seeds and 48 texts, or of 3 seeds and 58 files, whether seeds or files vary more, "
    'and also where the differences of files are skewed. It never returns "better" or "worse" for a '
    "method with a single seed, whatever the other has.",
)
@each_of(("seeds", "others"), [(1, 1), (1, 3), (3, 1)])
def test_a_single_seed_gets_no_verdict(seeds, others):
    words = {True: "better", False: "worse", None: "alike"}
    for gain in (-5.0, 0.0, 5.0):  # far beyond any interval over files
        one, other = torch.zeros(seeds, 58), gain + 1e-3 * torch.randn(others, 58)
        found = compare(one, other)
        assert found.seeds == 1 and found.verdict(words) == found.verdict(words, -9) == "one seed"
        assert [found.better(by) for by in (-9, 0, 9)] == [None, None, None]
    rule = torch.zeros(58)
    assert compare(rule, 5 + torch.rand(1, 58)).verdict(words) == "one seed"
    assert compare(rule, 5 + torch.rand(3, 58)).verdict(words) == "better"
    assert compare(rule, 5 + torch.rand(58)).verdict(words) == "better"  # of two rules neither has seeds


def test_better_is_said_when_the_whole_interval_lies_beyond():
    one = torch.zeros(3, 4)
    other = torch.tensor([0.3, 0.5, 0.4])[:, None].expand(3, 4)
    told = compare(one, other)
    assert told[:3] == pytest.approx(interval(other)) and told.seeds == 3 and 0.1 < told.low < told.high < 0.7
    assert told.better() is True and told.better(0.1) is True
    assert told.better(0.4) is None and told.better(0.7) is False
    back = compare(other, one)
    assert back.better() is False and back.gain == pytest.approx(-told.gain)


def test_what_is_not_trained_is_compared_with_each_seed():
    rule, trained = torch.rand(5), torch.rand(3, 5)
    assert compare(rule, trained) == compare(rule.expand(3, -1), trained)
    assert compare(rule, rule + 1)[:3] == pytest.approx((1, 1, 1)) and compare(rule, rule).seeds is None


def test_only_seeds_that_both_have_are_compared():
    one, other = torch.rand(2, 7, 3), torch.rand(3, 7, 3)
    assert compare(one, other) == compare(one, other[:2]) and compare(one, other).seeds == 2


def test_of_the_same_files_only_the_differences_count():
    hard = 5 * torch.randn(1, 58)
    one = hard + 0.01 * torch.randn(3, 58)
    assert compare(one, one + 0.1 + 0.01 * torch.randn(3, 1)).better() is True


@each_of("mix", [(1.0, 0.0), (0.1, 1.0), (0.3, 1.0)])
def test_a_gain_as_large_as_could_be_seen_is_seen_as_often_as_said(mix):
    """Data whose scatter is known, and a table that scatters just as they do."""
    by_seed, by_file = mix
    files = torch.linspace(-1, 1, 58, dtype=torch.float64)
    like = by_seed * torch.tensor([-1.0, 0.0, 1.0])[:, None] + by_file * files / files.std()
    gain = could_be_seen(like)
    made = [data(3, 58, by_seed, by_file, 0) - 0.5 + gain for _ in range(1500)]
    seen = sum(interval(each)[1] > 0 for each in made) / 1500
    assert seen == pytest.approx(SEEN, abs=0.04)


def test_with_three_seeds_alone_a_gain_must_be_three_times_their_scatter():
    """What power tables say of a paired t test of three, two-sided, 0.05, 0.8: 3.26."""
    assert could_be_seen(torch.tensor([[-1.0], [0.0], [1.0]])) == pytest.approx(3.26, rel=0.02)


def test_what_could_be_seen_is_the_same_each_time_and_leaves_chance_alone():
    values = torch.randn(3, 10)
    torch.manual_seed(5)
    first, after = could_be_seen(values), torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), after) and could_be_seen(values) == first
