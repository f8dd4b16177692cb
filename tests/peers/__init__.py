"""Implementations that nobody here wrote: what snippets are checked against and timed beside.

The modules of this folder say for each method who else has it, and how to ask them for the same work. Tests
compare the numbers; cases.py lists all that `make bench` times. A library is imported where it is asked for,
so that a test is skipped by name where one is missing.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

DIM = 64  # of a head
BASE = 10000.0
ANEW, HELD = "anew", "held"
FLOAT32 = "angles in float32, which are coarser far out"


def peer(name):
    """A module by its dotted name. Skips the test if the package is not installed, and only then.

    A module that has moved within an installed package is an error, for nobody would miss its test.
    """
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return importlib.import_module(name)


class Way(NamedTuple):
    """One way to do the work: `use` what `make` gives, which a caller may keep.

    A peer that does less says so in `less`, and the snippet need not be as fast. If there is something to
    make, it is in making that it does less. `only` names the one story that a way belongs to, of two.
    """

    name: str  # "" is the snippet
    use: Callable
    make: Callable = tuple
    less: str = ""
    only: str = ""


class Case(NamedTuple):
    """The same work by a snippet and by its peers: `ways`, the snippet's first."""

    snippet: str
    what: str
    size: str
    ways: list[Way]
    close: float = 1e-4  # how far the peers' numbers may be from ours
    layers: int = 1

    def stories(self):
        """(story, what to call for each way, what it does less, if anything).

        anew: nothing is kept, each layer makes its own. held: the caller keeps what is made, from before if
        there is one layer, and from the same call for several.
        """
        for story in (ANEW, HELD):
            ways = [way for way in self.ways if way.only in ("", story)]
            if story == ANEW or ways[0].make is not tuple:
                told = anew if story == ANEW else held
                runs = {way.name: told(way, self.layers) for way in ways}
                coarse = {way.name: way.less for way in ways if story == ANEW or way.make is tuple}
                yield story, runs, {name: less for name, less in coarse.items() if less}


def anew(way, layers):
    return lambda: [way.use(*way.make()) for _ in range(layers)]


def held(way, layers):
    if layers == 1:
        with torch.no_grad():
            made = way.make()
        return lambda: way.use(*made)

    def through():
        made = way.make()
        return [way.use(*made) for _ in range(layers)]

    return through


def learnable(*shape):
    return torch.randn(shape, requires_grad=True)


def score_size(batch, heads, tokens):
    return f"{batch} × {heads} × {tokens} × {tokens}, heads of {DIM}"


def outputs(made):
    """The tensors in what a way gives."""
    return [made] if isinstance(made, torch.Tensor) else [each for part in made for each in outputs(part)]
