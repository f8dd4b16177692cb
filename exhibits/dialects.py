"""Tables of the page on RoPE settings in different libraries.

docs/dialects.toml has the settings. experiments/dialects.py ran its cases in
the libraries and stored the resulting angles.
"""

import json

import torch

from experiments.dialect_outcomes import (
    DATA,
    DIM,
    LENGTH,
    STACKS,
    meanings,
    outcome,
    results,
)


def _cell(found, means):
    word = outcome(found)
    if word == "refuses":
        return "error"
    as_meant = word == means
    word = "as meant" if as_meant else word
    if found["warns"]:
        return f"{word}, warns"
    return word if as_meant else f"**{word}**"


def _row(cells):
    print("|", " | ".join(cells), "|")


def stacks():
    _row(("Library", "Version", "Input file"))
    _row(("---",) * 3)
    for stack in DATA["stack"]:
        _row((stack["name"], f"`{stack['version']}`", stack["reads"]))
    return {"stacks": len(DATA["stack"])}


def _names(part):
    _row(("Setting, library", "Key", "If absent"))
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
    _row(("Library", "Effect of an unknown key"))
    _row(("---",) * 2)
    (setting,) = [
        each for each in DATA["setting"] if each["part"] == "unknown"
    ]
    for each in setting["cells"]:
        _row((each["stack"], each["key"]))


def outcomes():
    known = results()
    _row(("Configuration", *STACKS))
    _row(("---",) * (1 + len(STACKS)))
    silent = dict.fromkeys(STACKS, 0)
    for case in DATA["case"]:
        cells = []
        for name in STACKS:
            found = known[name.replace(" ", "-")][case["name"]]
            cells.append(_cell(found, case["means"]))
            silent[name] += cells[-1].startswith("**")
        _row((case.get("title", case["name"]), *cells))
    return {
        "cases": len(DATA["case"]),
        "length": LENGTH,
        "dim": DIM,
        "served": sum(
            outcome(known["vLLM"][case["name"]])
            != outcome(known["SGLang"][case["name"]])
            for case in DATA["case"]
        ),
        "silent": sum(silent.values()),
        "most": max(silent, key=silent.get),
    }


def _words(config):
    given = json.loads(config).items()
    return "; ".join(f"`{key}` {json.dumps(value)}" for key, value in given)


COMMON = {"--rotary-base": 500_000, "--rotary-scaling-factor": 4}


def _command(flags):
    """Show the type, and the flags that are not common to its rows."""
    kind, *given = json.loads(flags).items()
    words = [f"`{kind[1]}`"]
    for flag, value in given:
        if flag not in COMMON:
            words.append(
                f"`{flag}`" if value is True else f"`{flag} {value}`"
            )
    based = "--rotary-base" in dict(given)
    return " ".join(words) if based else f"{words[0]}, no `--rotary-base`"


def own():
    known = results()
    _row(("Library", "Settings", "Result"))
    _row(("---",) * 3)
    for case in DATA["own"]:
        if case["stack"] != "Megatron-LM":
            found = known[case["stack"]][case["name"]]
            _row((case["stack"], _words(case["config"]), outcome(found)))


def megatron():
    known = results()["Megatron-LM"]
    _row(("Type and flags", "Result", "Paired channels"))
    _row(("---",) * 3)
    cases = [case for case in DATA["own"] if case["stack"] == "Megatron-LM"]
    for case in cases:
        found = known[case["name"]]
        word = outcome(found)
        if word != case["means"]:
            word = "error" if word == "refuses" else f"**{word}**"
        _row((_command(case["config"]), word, found.get("layout", "")))
    return {"dim": DIM}


def llama_3_1():
    known, widest = results(), 0.0
    angles, _ = meanings()["Llama 3.1"]
    for each in DATA["spelling"]:
        found = known[each["stack"].replace(" ", "-")][each["case"]]
        gap = torch.tensor(found["angles"], dtype=torch.float64) / angles - 1
        widest = max(widest, gap.abs().max().item())
        print(f"{each['stack']}: {outcome(found)}")
        print(each["text"].strip(), end="\n\n")
    return {"spellings": len(DATA["spelling"]), "apart": round(widest, 4)}
