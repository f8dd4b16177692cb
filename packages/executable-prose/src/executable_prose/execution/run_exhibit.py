"""Run one exhibit in this process, which does nothing else, and say what it used.

An exhibit is a plain function in the folder of examples. Everything that it prints is its
output; a matplotlib figure that it returns is its figure; a dictionary that it
returns holds its values. It may return a figure and a dictionary as a pair, and
with them what makes the figure live.
"""

import contextlib
import importlib
import json
import math
import os
import random
import re
import sys
import tempfile
import traceback
from typing import NamedTuple

from executable_prose import project
from executable_prose.execution.recorder import Recorder
from executable_prose.execution.sandbox import MEMORY, OUTPUT, Printed, Refused
from executable_prose.execution.seeds import seed
from executable_prose.figures import svg
from executable_prose.outcome import CellError, ExhibitError, Outcome, definition
from executable_prose.project import ours, relative

PLAIN = {bool: bool, int: int.__int__, float: float.__float__, str: str.__str__}  # of classes of one's own
ADDRESS = re.compile(r"(?:<|&lt;)[\w.,:'() -]{1,80} at 0x[0-9a-fA-F]{6,}")
WORDS = 2_000  # characters of what an exception says
BITS = 4096  # of a whole number; Python writes none of more than 4,300 digits


class Imported(NamedTuple):
    """A module of exhibits that this process has imported, for the forks that run them."""

    recorder: Recorder  # of what importing it used
    chance: tuple  # the state of Python's `random`, which a fork seeds anew


def imported(module: str) -> Imported | None:
    """Import a module of exhibits; None if that failed, which its exhibits then tell."""
    recorder = Recorder()
    _prepare()
    try:
        with recorder.watching():
            importlib.import_module(_path(module))
    except BaseException:  # whatever it raises
        return None
    recorder.pause()
    return None if Refused.raised else Imported(recorder, random.getstate())


def _path(module):
    return f"{project.settings().examples}.{module}"


def _prepare():
    svg.prepare()
    seed()


def run(name: str, module: Imported | None = None) -> Outcome:
    """The outcome of exhibit `module.function` or lab `lab-name`; in a fork, of a module that is imported."""
    recorder, outcome = module.recorder if module else Recorder(), Outcome(name)
    if module:
        recorder.resume()
        random.setstate(module.chance)
    try:
        lab = name.removeprefix("lab-")
        if lab != name:
            # Not above: no exhibit depends on how labs are made.
            from executable_prose.execution.run_lab import rehearsed

            outcome.result = rehearsed(lab, recorder)
        else:
            outcome.result = _result(name, recorder)
        _check_text(outcome.result)
        if Refused.raised:
            raise Refused.raised[0]
    except BaseException as error:  # whatever an exhibit raises is for its reader to see
        os.chdir(project.ROOT)  # it may have removed the folder that it worked in
        outcome.result, outcome.failure = None, _explain(error, name)
    functions = recorder.functions
    outcome.files = dict(sorted(recorder.files.items()))
    outcome.modules = dict(sorted(recorder.modules.items()))
    if functions is not None:
        outcome.functions = {file: sorted(names) for file, names in sorted(functions.items())}
    return outcome


def _result(name, recorder):
    module, _, function = name.partition(".")
    if _path(module) not in sys.modules:
        _prepare()
    printed = Printed()
    with recorder.watching():  # to the end: what draws and formats a figure may be the project's own
        exhibit = getattr(importlib.import_module(_path(module)), function)
        with contextlib.redirect_stdout(printed):
            returned = exhibit()
        return _shown(name, returned, printed)


def _shown(name, returned, printed):
    figure, values, live = _sort(returned)
    result = {"figure": None, "output": printed.getvalue(), "values": _plain(values)}
    if live is not None:
        from executable_prose.figures import live_graph  # not above: few exhibits pay for importing it

        result |= live_graph.drawn(figure, live, name)
    elif figure is not None:
        result["figure"] = svg.to_svg(figure, name)
    if figure is not None:
        result["data"] = svg.data(figure)
    return result


def _sort(returned):
    """What an exhibit returned, as (figure or None, values, what makes the figure live or None)."""
    from matplotlib.figure import Figure

    parts = returned if isinstance(returned, tuple) else (returned,)
    known = {"Figure": Figure}
    if live := sys.modules.get("executable_prose.figures.live"):  # else nobody can have made one
        known["Live"] = live.Live
    kinds = [next((n for n, k in known.items() if isinstance(p, k)), type(p).__name__) for p in parts]
    found = {kind: part for kind, part in zip(kinds, parts, strict=True) if kind != "NoneType"}
    strange = set(found) - {"Figure", "dict", "Live"} or ("Live" in found and "Figure" not in found)
    if strange or len(found) < len(parts) - kinds.count("NoneType"):
        raise ExhibitError(
            f"expected a figure, a dictionary, both as a pair, or nothing; it returned {', '.join(kinds)}"
        )
    return found.get("Figure"), found.get("dict", {}), found.get("Live")


def _plain(values):
    """The values as Python numbers and text."""
    plain = {}
    for key, value in values.items():
        if not isinstance(key, str) or not re.fullmatch(r"[\w-]+", key):
            raise ExhibitError(f"the name of a value must be a word, it is {key!r}")
        if hasattr(value, "item"):
            if math.prod(value.shape) != 1:
                raise ExhibitError(f"value {key!r} must be one number, it has the shape {tuple(value.shape)}")
            value = value.item()
        plainly = next((made for kind, made in PLAIN.items() if isinstance(value, kind)), None)
        if not plainly:
            raise ExhibitError(f"value {key!r} must be a number or text, it is a {type(value).__name__}")
        value = plainly(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ExhibitError(f"value {key!r} must be finite, it is {value}")
        if isinstance(value, int) and value.bit_length() > BITS:
            raise ExhibitError(
                f"value {key!r} must have at most {BITS:,} bits, it has {value.bit_length():,}"
            )
        if isinstance(value, str) and len(value) > OUTPUT:
            raise ExhibitError(
                f"value {key!r} must have at most {OUTPUT:,} characters, it has {len(value):,}"
            )
        plain[key] = value
    return plain


def _check_text(result):
    """Refuse lone UTF-16 surrogates, and addresses in memory or paths on the disk."""
    try:
        text = json.dumps(result, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise ExhibitError(f"expected text, got {error.object[error.start]!r}, half of a character") from None
    if address := ADDRESS.search(text):
        raise ExhibitError(
            f"expected the same text in each run, got {address[0]!r}: an address in memory. Print what the "
            "object holds, or its name"
        )
    for folder in map(str, (tempfile.gettempdir(), project.ROOT)):
        if len(folder) > 1 and json.dumps(folder, ensure_ascii=False)[1:-1] in text:
            raise ExhibitError(
                f"expected the same text wherever the project lies, got {folder!r}: print the rest of it"
            )


def _explain(error, name):
    """One line: what was raised, the last project line it passed, and where the cell of a lab begins."""
    cell = error.cell if isinstance(error, CellError) else None
    error = error.__cause__ if cell else error
    cause = " ".join(_words(error).split()).encode(errors="backslashreplace").decode()
    cause = cause if len(cause) <= WORDS else f"{cause[:WORDS]}..."
    if isinstance(error, MemoryError) or re.search("(?:can't|[Cc]annot) allocate memory", cause):
        cause = f"expected at most {MEMORY >> 30} GiB of memory, got {cause}"
    frames = [(ours(each.filename), each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    places = [f"{file}:{line}" for file, line in frames if file and not file.startswith("<")]
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and relative(error.filename):
        places.append(f"{relative(error.filename)}:{error.lineno}")
    place = places[-1] if places else cell or definition(name)
    return f"{cause} (at {place})" + (f", in the cell at {cell}" if cell else "")


def _words(error):
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException as other:  # a class of the exhibit's own
        return f"{kind}, of which str() raises {type(other).__name__}"
    if isinstance(error, (ExhibitError, Refused, svg.FigureError)):
        return text
    return f"{kind}: {text}" if isinstance(error, Exception) else f"expected it to return, got {kind}: {text}"
