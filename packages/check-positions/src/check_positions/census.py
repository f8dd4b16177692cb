"""Look up what a class of transformers does with positions by default."""

import difflib
import functools
import json
import re
from importlib import resources
from typing import Any


@functools.cache
def census() -> dict[str, Any]:
    """Return the measurements that this package carries.

    Returns:
        "transformers": the measured version; "models": by model type, "class",
        "reads" (the input), "words" (the facts) and "names" (released models
        that run this code).
    """
    return json.loads(
        resources.files("check_positions")
        .joinpath("census.json")
        .read_text("utf-8")
    )


def find(name: str) -> list[str]:
    """Return the model types with a text in their name or that of a release.

    Args:
        name: The text, such as "qwen2" or "Llama 3.1"; case, spaces and
            punctuation do not matter.

    Returns:
        Model types: those with exactly this name if there are any, otherwise
        all that contain it.
    """
    asked = _plain(name)
    known = {
        kind: [_plain(kind), *map(_plain, row["names"])]
        for kind, row in census()["models"].items()
    }
    exact = [kind for kind, names in known.items() if asked in names]
    return exact or [
        kind
        for kind, names in known.items()
        if asked and any(asked in each for each in names)
    ]


def nearest(name: str) -> list[str]:
    """Return at most three names of models that are spelled like this one.

    Args:
        name: The name that was not found.

    Returns:
        Names of model types or of released models.
    """
    known = {
        _plain(each): each
        for kind, row in census()["models"].items()
        for each in (kind, *row["names"])
    }
    return [
        known[each]
        for each in difflib.get_close_matches(
            _plain(name), known, n=3, cutoff=0.5
        )
    ]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
