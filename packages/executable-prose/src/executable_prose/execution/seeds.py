"""Chance that is the same in every run."""

import os
import random

import numpy

from executable_prose import project


def seed() -> None:
    """Seed Python and numpy, and torch where the project computes with it."""
    random.seed(0)
    numpy.random.seed(0)
    if "torch" in project.settings().libraries:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
    # Also for `secrets` and numpy's default_rng().
    os.urandom = random._urandom = random.Random(0).randbytes  # type: ignore[attr-defined]
