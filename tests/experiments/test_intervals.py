"""Intervals hold what they should, on data whose mean is known."""

import pytest
import torch

from experiments.intervals import interval


def data(seeds, files, by_seed, by_file, noise, windows=1):
    parts = (
        by_seed * torch.randn(seeds, 1, 1),
        by_file * torch.randn(1, files, 1),
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


@pytest.mark.parametrize(("seeds", "files"), [(1, 400), (400, 1)])
def test_with_one_axis_it_is_that_of_the_normal_law(seeds, files):
    values = torch.randn(seeds, files, dtype=torch.float64)
    mean, low, high = interval(values)
    half = 1.96 * values.std().item() / 20
    assert mean == pytest.approx(values.mean().item())
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.1 * half)


@pytest.mark.parametrize(("by_seed", "by_file", "noise"), [(0, 1, 0), (0.3, 1, 0.5), (1, 0.1, 0.1)])
def test_nineteen_of_twenty_hold_the_truth(by_seed, by_file, noise):
    found = [interval(data(25, 58, by_seed, by_file, noise)) for _ in range(200)]
    held = sum(low < 0.5 < high for _, low, high in found)
    assert 0.88 <= held / 200 <= 0.99


def test_with_three_seeds_that_differ_it_is_narrower_than_it_should_be():
    held = [low < 0.5 < high for _, low, high in (interval(data(3, 58, 1, 0, 0)) for _ in range(300))]
    assert 0.6 < sum(held) / 300 < 0.9


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
