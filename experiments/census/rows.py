"""The rows of the census with their facts joined, dates beside them, and short words for each.

Nothing is imported that models need, so that pages can be built of it.
"""

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

from executable_prose.reading import parsed
from experiments.census.joined import join_facts

RESULTS = Path(__file__).resolve().parents[1] / "results"
CENSUS, DATES = RESULTS / "census.json", RESULTS / "model_dates.json"
FIELDS = {  # the data dictionary
    "attention": "yes, no or unknown: whether there is a softmax over products of queries and keys",
    "rotation": "yes or no: whether queries are rotated by an angle that depends on position, in some layer",
    "layout": "pairs of n rotated channels in the scores: half, i and i + n/2; interleaved, 2i and 2i + 1",
    "reordered": "yes if the code moves adjacent channels into halves first, so weights pair adjacent ones",
    "share": "the fractions of a head's channels that are rotated, in the layers that rotate any",
    "base": "the bases of the rotations, to three digits",
    "scaling": "rope types other than the default one; axial is a type for images",
    "bare": "layers, counted from 0, in which attention rotates nothing although it does in other layers",
    "windows": "layers, counted from 0, in which the last token sees only nearby tokens (window or chunk)",
    "sinks": "yes or no: whether the softmax has a column that belongs to no key",
    "temperature": "yes or no: whether the norm of a query, or a factor on it, depends on its position",
    "added": "what distinguishes positions before the first layer: a learned or fixed table, convolution, no",
    "biased": "a term in the scores that depends on position only: linear in the distance, a table, or no",
    "in_score": "yes or no: whether a score term depends on position and content, apart from a rotation",
    "context": "the length that the configuration names",
    "window": "the window or chunk that the configuration names",
}
UNSURE = ("unknown", "disputed")


@dataclass(frozen=True)
class Row:
    """A model type that is no composite; dates are those of its page, where it has one."""

    kind: str
    reads: str
    layers: int | None
    facts: dict
    seen: dict
    said: dict
    cls: str | None
    file: str | None
    line: int | None
    part_of: tuple
    dates: dict
    why: str
    filled: dict = field(default_factory=dict)
    switches: dict = field(default_factory=dict)
    can_attend: bool = False

    def value(self, name):
        return self.facts[name]["value"] if name in self.facts else None

    @property
    def no_attention_by_default(self):
        """Was no attention measured although the source has one?"""
        return self.value("attention") == "no" and self.can_attend

    @property
    def measured(self):
        return not self.why


def census():
    return parsed(_read, CENSUS, DATES)[0]


def rows():
    """All of them, by name."""
    return parsed(_read, CENSUS, DATES)[1]


def _read(measured, dates):
    """The census, and its rows, of the texts of both files."""
    known = json.loads(measured)
    return known, _rows(known["models"], _dates(dates))


def _rows(models, dates):
    wholes = {}
    for kind, given in models.items():
        for part in given.get("parts", ()):
            wholes.setdefault(part, []).append(kind)
    return tuple(_row(kind, given, wholes, dates) for kind, given in models.items() if "parts" not in given)


def composites():
    return {kind: given["parts"] for kind, given in census()["models"].items() if "parts" in given}


def row_of(kind):
    return next(row for row in rows() if row.kind == kind)


def _row(kind, given, wholes, dates):
    file = given.get("file") or ""
    measured = given.get("measured", {})
    return Row(
        kind=kind,
        reads=measured.get("reads", "unknown"),
        layers=measured.get("layers"),
        facts=join_facts(given),
        seen=measured,
        said=given.get("declared", {}),
        cls=given.get("class"),
        file=file or None,
        line=given.get("line"),
        part_of=tuple(wholes.get(kind, ())),
        dates=dates.get(kind.replace("-", "_")) or dates.get(given.get("package"), {}),
        why=given.get("why", ""),
        filled=given.get("filled", {}),
        switches=given.get("switches", {}),
        can_attend="attention" in given.get("reachable", {}),
    )


def _dates(text):
    """By the names of packages, in which pages' hyphens are underscores."""
    pages = json.loads(text)["pages"]
    return {name.replace("-", "_"): page for name, page in pages.items()}


def digest():
    """Of what is published: changes with any fact."""
    told = json.dumps([(row.kind, row.facts) for row in rows()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def words(row):
    """What a row says, in short; ✓: a second witness agrees, ✗: it does not; (declared): by its key alone."""
    told = [_said(row, name) for name in FIELDS if _speaks(row, name)]
    told += [f"rotates only if {condition}" for condition in row.switches]
    if row.filled:
        told.append(f"measured with {', '.join(row.filled)}, which the default leaves empty")
    if row.why:
        return [*told, f"not measured: {row.why}"]
    if all(row.value(name) == "no" for name in _MARKS):
        told.insert(0, "no positions in its attention")
    for word in UNSURE:
        names = [_NAMES.get(name, name) for name in row.facts if row.value(name) == word]
        told += [f"{word}: {', '.join(names)}"] if names else []
    return told


_MARKS = ("rotation", "added", "biased", "in_score")
_NAMES = {"in_score": "in the score", "bare": "layers without rotation", "biased": "biases"}


def _speaks(row, name):
    value = row.value(name)
    silent = (None, [], "no", *UNSURE)
    if name == "attention":
        return value == "no"
    return value not in silent and name not in (*_OF_TURNS, "window")


def _said(row, name):
    said = _SAY[name](row, row.value(name))
    return said if name == "rotation" else said + _mark(row.facts[name])


def _mark(fact):
    if fact["witness"] == "declared":
        return " (declared)"
    return {True: " ✓", False: " ✗", None: ""}[fact["agrees"]]


def _turns(row, _):
    """The rotation with what is known of it, each with its own mark."""
    known = [name for name in _OF_TURNS if row.value(name) and row.value(name) not in UNSURE]
    parts = [_OF_TURNS[name](row.value(name)) + _mark(row.facts[name]) for name in known]
    return f"rotates {', '.join(parts)}" if parts else "rotates" + _mark(row.facts["rotation"])


def _layouts(value):
    names = {"axes": "by rows and columns"}
    return " and ".join(names.get(each, f"in the {each} layout") for each in value)


def _shares(value):
    return (
        "whole heads" if value == [1.0] else f"{' and '.join(f'{each:.3g}' for each in value)} of each head"
    )


def _bases(value):
    return f"with default base {' and '.join(f'{each:,.0f}' for each in value)}"


_OF_TURNS = {"share": _shares, "layout": _layouts, "base": _bases}


def plan(numbers, layers):
    """Which layers, in short: every n-th, all, or how many."""
    if layers and len(numbers) == layers:
        return f"all {layers} layers"
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if layers and len(steps) == 1 and (step := steps.pop()) > 1 and len(numbers) > 2:
        return f"every {_th(step)} layer from layer {numbers[0]} on"
    of = f" of {layers}" if layers else ""
    return f"{len(numbers)}{of} layers"


def _th(n):
    return {2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def _windows(row, value):
    near = row.value("window")
    return f"window{f' of {near:,}' if near else ''} in {plan(value, row.layers)}"


_SAY = {
    "attention": lambda row, value: "no attention" + " by default" * row.no_attention_by_default,
    "rotation": _turns,
    "scaling": lambda row, value: f"scaled by {', '.join(value)}",
    "bare": lambda row, value: f"no rotation (NoPE) in {plan(value, row.layers)}",
    "reordered": lambda row, value: "its weights pair adjacent channels, according to the source",
    "windows": _windows,
    "sinks": lambda row, value: "sinks",
    "temperature": lambda row, value: "a temperature that depends on position",
    "added": lambda row, value: {
        "learned": "adds a learned table",
        "fixed": "adds a fixed table",
        "convolution": "a convolution before the layers",
    }[value],
    "biased": lambda row, value: {"linear": "a bias linear in distance", "table": "a table of biases"}[value],
    "in_score": lambda row, value: "positions inside the score",
    "context": lambda row, value: f"default context {value:,}",
}
