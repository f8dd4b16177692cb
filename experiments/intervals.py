"""How sure a mean is that was taken over files and seeds."""

import torch

DRAWS = 4000
LEVEL = 0.95


def interval(values):
    """The mean of values, (seeds, files, ...), and the ends of its interval: three numbers.

    By bootstrap: files and seeds are drawn again, with replacement, each file with all that came from it.
    Of two things that were measured on the same files with the same seeds take the interval of the
    difference: how hard a file is, is then no part of it. Three seeds are few, and their share of the
    uncertainty is put too low by about a fifth.
    """
    table = values.double().flatten(2).mean(-1) if values.ndim > 2 else values.double()
    generator = torch.Generator().manual_seed(0)
    seeds, files = (_drawn(size, generator) for size in table.shape)
    means = ((seeds @ table) * files).sum(-1)
    edge = (1 - LEVEL) / 2
    low, high = means.quantile(torch.tensor([edge, 1 - edge], dtype=torch.float64)).tolist()
    return table.mean().item(), low, high


def _drawn(size, generator):
    """For each draw how often each of so many things is drawn, as a share: (DRAWS, size)."""
    chosen = torch.randint(size, (DRAWS, size), generator=generator)
    return torch.zeros(DRAWS, size, dtype=torch.float64).scatter_add_(
        1, chosen, torch.full(chosen.shape, 1 / size, dtype=torch.float64)
    )
