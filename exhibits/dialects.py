"""What the page on dialects shows: how stacks spell RoPE, what comes.

docs/dialects.toml has the spellings. tools/dialects.py gave its cases to the
stacks, and wrote the angles that came out to measurements/dialects.json.
Here they are compared with those of the snippets.
"""

import json
import tomllib
from pathlib import Path

import torch

from snippets.rope import rope_frequencies
from snippets.rope_scaling import (
    dynamic_ntk,
    llama3,
    position_interpolation,
    yarn,
    yarn_attention_factor,
)

CASES = Path(__file__).parents[1] / "docs/dialects.toml"
DATA = tomllib.loads(CASES.read_text("utf-8"))
RESULTS = Path(__file__).parents[1] / "measurements" / "dialects.json"
DIM, BASE, LENGTH, ORIGINAL, FACTOR = 32, 500_000.0, 16384, 4096, 4.0
EQUAL = (
    0.002  # llama.cpp's angles are read from weights of attention in float32
)


def _meanings():
    """What a configuration may mean: a step's angles, attention's factor."""
    plain = rope_frequencies(DIM, base=BASE)
    sharper = yarn_attention_factor(FACTOR)
    still = torch.zeros(DIM // 4, dtype=torch.float64)  # half of the pairs

    def yarned(original=ORIGINAL, **more):
        return yarn(plain, FACTOR, original, **more)

    halves = torch.cat((rope_frequencies(DIM // 2, base=BASE), still))
    return {
        "base 500,000": (plain, 1.0),
        "base 10,000": (rope_frequencies(DIM, base=10000), 1.0),
        "linear": (position_interpolation(plain, FACTOR), 1.0),
        "half of each head": (halves, 1.0),
        "half of the frequencies of the whole head": (
            torch.cat((plain[: DIM // 4], still)),
            1.0,
        ),
        "dynamic": (dynamic_ntk(plain, 2.0, LENGTH, 2 * LENGTH), 1.0),
        "YaRN": (yarned(), sharper),
        "YaRN, attention as it was": (yarned(), 1.0),
        "YaRN, beta_fast 8": (yarned(beta_fast=8.0), sharper),
        "YaRN, unrounded": (yarned(truncate=False), sharper),
        "YaRN from 16,384": (yarned(LENGTH), sharper),
        "Llama 3.1": (llama3(plain), 1.0),
        "Llama 3.1 from 131,072": (
            llama3(plain, original_length=131072),
            1.0,
        ),
    }


CASES = [stack["name"] for stack in DATA["stack"][:5]]  # read a config.json


def _results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def _equal(found, meaning):
    angles, attention = _meanings()[meaning]
    gap = (torch.tensor(found["angles"], dtype=torch.float64) - angles).abs()
    near = bool((gap <= EQUAL * angles).all())
    return near and abs(found["stretch"] - attention) <= EQUAL


def _came(found):
    """What a result means, in words, or the error."""
    if "refuses" in found:
        return "refuses"
    named = [name for name in _meanings() if _equal(found, name)]
    return named[0] if named else "other"


def _cell(found, means):
    word = _came(found)
    as_meant = word == means
    word = "as meant" if as_meant else word
    if found["warns"] and word != "refuses":
        return f"{word}, warns"
    return word if as_meant or word == "refuses" else f"**{word}**"


def _row(cells):
    print("|", " | ".join(cells), "|")


def stacks():
    _row(("Stack", "At", "Reads"))
    _row(("---",) * 3)
    for stack in DATA["stack"]:
        _row((stack["name"], f"`{stack['version']}`", stack["reads"]))
    return {"stacks": len(DATA["stack"])}


def _names(part):
    _row(("Setting, stack", "Key", "If absent"))
    _row(("---",) * 3)
    for setting in DATA["setting"]:
        if setting["part"] == part:
            _row((f"**{setting['name']}**", setting["means"], ""))
            for each in setting["cells"]:
                _row((each["stack"], each["key"], each["absent"]))


def frequencies():
    _names("frequencies")


def channels():
    _names("channels")


def layers():
    _names("layers")


def unknown():
    _row(("Stack", "A key that it does not know"))
    _row(("---",) * 2)
    (setting,) = [
        each for each in DATA["setting"] if each["part"] == "unknown"
    ]
    for each in setting["cells"]:
        _row((each["stack"], each["key"]))


def outcomes():
    results = _results()
    _row(("Written", *CASES))
    _row(("---",) * (1 + len(CASES)))
    silent = dict.fromkeys(CASES, 0)
    for case in DATA["case"]:
        cells = []
        for name in CASES:
            found = results[name.replace(" ", "-")][case["name"]]
            cells.append(_cell(found, case["means"]))
            silent[name] += cells[-1].startswith("**")
        _row((case["name"], *cells))
    return {
        "cases": len(DATA["case"]),
        "length": LENGTH,
        "dim": DIM,
        "silent": sum(silent.values()),
        "most": max(silent, key=silent.get),
    }


def own():
    results = _results()
    _row(("Stack", "Given", "What comes"))
    _row(("---",) * 3)
    for case in DATA["own"]:
        found = results[case["stack"]][case["name"]]
        given = json.loads(case["config"]).items()
        words = "; ".join(
            f"`{key}` {json.dumps(value)}" for key, value in given
        )
        _row((case["stack"], words, _came(found)))


def llama_3_1():
    results, widest = _results(), 0.0
    angles, _ = _meanings()["Llama 3.1"]
    for each in DATA["spelling"]:
        found = results[each["stack"].replace(" ", "-")][each["case"]]
        gap = torch.tensor(found["angles"], dtype=torch.float64) / angles - 1
        widest = max(widest, gap.abs().max().item())
        print(f"{each['stack']}: {_came(found)}")
        print(each["text"].strip(), end="\n\n")
    return {"spellings": len(DATA["spelling"]), "apart": round(widest, 4)}
