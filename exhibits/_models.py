"""The models of docs/guide/choosing.toml, with their rows of the census."""

import tomllib
from pathlib import Path

from experiments.census.rows import row_of, words


def _list():
    path = Path(__file__).parents[1] / "docs/guide/choosing.toml"
    return tomllib.loads(path.read_text("utf-8"))["model"]


def listed():
    """The models of the list, the oldest first, each with its census row."""
    models = []
    for model in _list():
        row = row_of(model["type"])
        dated = {"released": _dated(row)} if row.dates else {}
        models.append({"row": row, "kind": _kind(row)} | model | dated)
    return sorted(models, key=lambda model: model["released"])


def _dated(row):
    return (row.dates.get("released") or row.dates["paper"])[0]


def _kind(row):
    if row.value("rotation") == "yes":
        return "rotation, some layers" if row.value("bare") else "rotation"
    if row.value("in_score") == "yes" or row.value("biased") != "no":
        return "bias or score"
    return "none" if row.value("added") == "no" else "added"


def said(model):
    """What the census says of a model, in words."""
    told = [each for each in words(model["row"]) if "context" not in each]
    return "; ".join(told)
