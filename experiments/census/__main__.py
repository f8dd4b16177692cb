"""The census, or one row of it.

python -m experiments.census
    makes experiments/results/census.json again, and goes on where it was stopped
python -m experiments.census qwen3 [--json]
    one model type, or a folder with a config.json, or such a file
python -m experiments.census --again bros udop
    measures these types again and leaves all other rows as they are, after a change of the code that can
    alter no other row

Ends with 0, with 1 where a model could not be measured, with 2 where there is no such model.
"""

import argparse
import contextlib
import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import transformers
from tqdm import tqdm
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from executable_prose import command
from executable_prose.execution.provenance import code_of
from experiments.census.declared import declared, parts
from experiments.census.fenced import fenced
from experiments.census.joined import join_facts
from experiments.census.measured import NotMeasuredError, filled, measured
from experiments.census.reachable import class_of, lines_of, reachable, switches

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "experiments" / "results" / "census.json"
MEASURING = (
    "snippets/check_positions.py",
    "experiments/census/inputs.py",
    "experiments/census/measured.py",
    "experiments/census/streams.py",
)
READING = ("experiments/census/declared.py", "experiments/census/reachable.py")
SECONDS, MEMORY = 120, 12 * 2**30


def measure_row(config):
    """What the three witnesses say of a configuration; "why" where it could not be measured.

    "filled": the keys that the configuration leaves empty, and with which it could be measured.
    """
    found = describe(config)
    if "class" not in found:
        return found
    cls = class_of(config)
    try:
        return found | {"measured": measured(cls, config)}
    except NotMeasuredError as error:
        found["why"] = str(error)
    whole, given = filled(config)
    if given:
        with contextlib.suppress(NotMeasuredError):
            found |= {"measured": measured(cls, whole), "filled": given}
            del found["why"]
    return found


def describe(config):
    """What needs no model: the parts of a composite, or what is declared and reachable, and where."""
    if made_of := parts(config):
        return {"parts": made_of}
    found = {"declared": declared(config), "package": type(config).__module__.split(".")[-2]}
    try:
        cls = class_of(config)
    except ValueError as error:
        return found | {"why": str(error)}
    file, line = lines_of(cls)
    on = switches(cls, config)
    found |= {"class": cls.__name__, "file": file, "line": line, "reachable": reachable(cls)}
    return found | ({"switches": on} if on else {})


def measure_type(kind):
    return measure_row(transformers.CONFIG_MAPPING[kind]())


def describe_type(kind):
    return describe(transformers.CONFIG_MAPPING[kind]())


def measure_source(source):
    """The row of a type, a folder or a config.json. ValueError: there is none of them."""
    named = {kind.lower(): kind for kind in CONFIG_MAPPING_NAMES}
    if source.lower() in named:
        return fenced(measure_type, named[source.lower()], SECONDS, MEMORY)
    if not Path(source).exists():
        near = [kind for kind in CONFIG_MAPPING_NAMES if kind.startswith(source.lower()[:4])]
        raise ValueError(
            f"{source} must be a model type of transformers, or a folder with a config.json; near: {near[:5]}"
        )
    return fenced(measure_row, transformers.AutoConfig.from_pretrained(source), SECONDS, MEMORY)


def silence_warnings():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)


def measure_all(again=()):
    """Every model type, each in its own process; what the same code measured in the same library stays.

    again: types that are measured once more while all others count as measured by the code as it is.
    """
    head = {"transformers": transformers.__version__, "code": code_of(dict.fromkeys((*MEASURING, *READING)))}
    models = {kind: row for kind, row in reusable_rows(head, bool(again)).items() if kind not in again}
    left = {kind: None for kind in sorted(CONFIG_MAPPING_NAMES) if kind not in models}
    for kind, _, row in in_processes(measure_type, left):
        models[kind] = row if isinstance(row, dict) else {"why": row}
        write(head, models)


def reusable_rows(head, trusted=False):
    """Rows whose models were measured as they would be now, read again if the code that reads has changed.

    trusted: rows count as measured so, whatever has changed in the code that measures.
    """
    known = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    changed = {file for file, code in head["code"].items() if known.get("code", {}).get(file) != code}
    if known.get("transformers") != head["transformers"] or (changed & {*MEASURING} and not trusted):
        return {}
    if not changed & {*READING}:
        return known["models"]
    models = {}
    for kind, old, found in in_processes(describe_type, known["models"]):
        found = found if isinstance(found, dict) else {}
        models[kind] = found | {name: old[name] for name in ("measured", "filled", "why") if name in old}
    write(head, models)
    return models


def in_processes(function, kinds):
    """(name, what kinds holds of it, what function says of it or why it cannot), on all cores, with a bar."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda kind: fenced(function, kind, SECONDS, MEMORY), kinds)
        yield from tqdm(zip(kinds, kinds.values(), found, strict=True), total=len(kinds), unit="model")


def write(head, models):
    lines = [f"  {json.dumps(kind)}: {json.dumps(models[kind])}" for kind in sorted(models)]
    begin = json.dumps(head, indent=1).removesuffix("\n}") + ',\n "models": {\n'
    RESULT.write_text(begin + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


def format_row(found):
    """The facts of one row, a line each, with witness and agreement."""
    second = {True: ", a second agrees", False: ", a second does not agree", None: ""}
    lines = [f"{found.get('class')}, {found.get('file')} line {found.get('line')}"]
    for name, fact in join_facts(found).items():
        lines.append(f"{name:12} {fact['value']!s:40} {fact['witness']}{second[fact['agrees']]}")
    if "filled" in found:
        lines.append(f"measured with keys that the configuration leaves empty: {found['filled']}")
    if "why" in found:
        lines.append(f"not measured: {found['why']}")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser("python -m experiments.census", description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", help="a model type, or a folder with a config.json")
    parser.add_argument("--json", action="store_true", help="the row as JSON")
    parser.add_argument("--again", nargs="+", default=(), choices=CONFIG_MAPPING_NAMES, metavar="TYPE",
                        help="model types to measure again for the file of all")  # fmt: skip
    given = parser.parse_args(arguments)
    if given.model and given.again:
        parser.error(
            f"--again must stand without a model, got {given.model!r}: all are written into one file"
        )
    if given.json and not given.model:
        parser.error("--json must stand beside a model, whose row it prints")
    silence_warnings()
    if given.model is None:
        measure_all(given.again)
        return 0
    try:
        found = measure_source(given.model)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"census: {error}\n")
        return 2
    found = found if isinstance(found, dict) else {"why": found}
    if "parts" in found:
        found["why"] = f"it is made of {', '.join(found['parts'])}: ask for these"
    sys.stdout.write(
        (json.dumps(found | {"facts": join_facts(found)}) if given.json else format_row(found)) + "\n"
    )
    return int("why" in found)


if __name__ == "__main__":
    command.run(main)
