"""How far each snippet is from its peers, the implementations that nobody here wrote.

A test that compares with one says so by the fixture `same_as`. The difference that it finds is compared with
experiments/results/peers.json, which the reference pages show and `make goldens` writes anew.
"""

import json
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "experiments" / "results" / "peers.json"
# Other processors round differently: four times what is written, or so many units in the last place of 1.
SLACK, UNITS = 4, 32

FOUND = {}  # snippet, peer: the largest difference in this run


def pytest_collection_modifyitems(items):
    for item in items:
        if "same_as" in getattr(item, "fixturenames", ()):
            item.add_marker("peer")


@pytest.fixture
def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.fixture
def same_as(request, stored):
    """A function (peer, ours, theirs) that compares the largest difference with the stored one.

    peer is the dotted name of what was compared, from its package on.
    """
    snippet = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    rewriting = request.config.getoption("--rewrite-goldens")

    def same_as(peer, ours, theirs):
        gap = largest(ours.double(), theirs.double())
        known = FOUND.setdefault(snippet, {})
        known[peer] = max(gap, known.get(peer, 0.0))
        if not rewriting:
            written = stored.get(snippet, {})
            assert peer in written, f"{STORED.name} has no {peer!r}: `make goldens` writes it"
            floats = [x.dtype for x in (ours, theirs) if x.is_floating_point()]
            rounding = max((torch.finfo(dtype).eps for dtype in floats), default=0.0)
            allowed = max(SLACK * written[peer], UNITS * rounding)
            assert gap <= allowed, f"{peer}: {gap:.1e} apart, {written[peer]:.1e} stored"

    return same_as


def largest(ours, theirs):
    assert ours.shape == theirs.shape
    differ = ours != theirs  # two infinities are equal, their difference is no number
    return (ours - theirs)[differ].abs().max().item() if differ.any() else 0.0


def pytest_sessionfinish(session):
    if session.config.getoption("--rewrite-goldens") and FOUND:
        written = json.loads(STORED.read_text(encoding="utf-8"))
        text = json.dumps(rewritten(written, FOUND), indent=2, sort_keys=True)
        STORED.write_text(text + "\n", encoding="utf-8")


def rewritten(written, found):
    """The stored differences with what was found; of snippets that were not compared it keeps what it has."""
    folders = (Path(__file__).parent, ROOT / "packages" / "check-positions" / "tests")
    here = {path.stem for folder in folders for path in folder.glob("test_*.py")}
    kept = {s: known for s, known in written.items() if f"test_{s}" in here}
    return kept | {s: {p: float(f"{gap:.1e}") for p, gap in known.items()} for s, known in found.items()}
