"""Run one exhibit or lab in this process, which does nothing else, and say what it used.

An exhibit is a plain function in `exhibits/`. Everything that it prints is its
output; a matplotlib figure that it returns is its figure; a dictionary that it
returns holds its values. It may return a figure and a dictionary as a pair.

A lab is a file of cells in `labs/`. What its cells print and draw is kept for each.
"""

import ast
import contextlib
import importlib.machinery
import inspect
import io
import math
import os
import random
import re
import sys
import traceback
import types

from weave import figures
from weave.project import ROOT, digest, relative


class ExhibitError(Exception):
    """The exhibit ran, but what it returned cannot be shown."""


class CellError(Exception):
    """A cell of a lab raised; `error` is what, `place` is where."""

    def __init__(self, error, place):
        super().__init__(f"{error} in the cell at {place}")
        self.error = error
        self.place = place


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Neither reads nor writes bytecode: it hides which source was read, and may be older than an edit."""

    def path_stats(self, path):
        raise OSError("no bytecode")


class FromSource(importlib.machinery.PathFinder):
    """Import the project's own modules by their source."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if spec is None or not spec.origin or relative(spec.origin) is None:
            return None
        spec.loader = SourceLoader(spec.loader.name, spec.loader.path)
        return spec


class Recorder:
    """Every project file opened and every folder listed from now on, with its digest at that moment.

    A file that could not be opened because it is missing has no digest: it is a dependency all the same.
    Python says nothing of other ways to learn of a file: whether it exists, an import that finds none
    and is caught, and what other processes read. So exhibits, snippets and labs use none of these, as
    tests/exhibits/test_hearing.py makes sure.
    """

    def __init__(self):
        self.files = {}
        self._busy = False
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "weave":
                self._note(relative(module.__file__))
        sys.meta_path.insert(0, FromSource)
        sys.addaudithook(self._hear)

    def _note(self, name):
        if name not in self.files:
            self.files[name] = digest(name)

    def _hear(self, event, arguments):
        if event not in ("open", "os.listdir", "os.scandir") or self._busy:
            return
        path = "." if arguments[0] is None else arguments[0]
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        self._busy = True  # what follows opens files itself
        try:
            if (name := relative(path)) is None:
                return
            if event == "open" and not arguments[2] & os.O_WRONLY and not (ROOT / name).is_dir():
                self._note(name)
            if event != "open" and not sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
                self._note(f"{name or '.'}/")
        finally:
            self._busy = False


def run(name):
    """Run exhibit `module.function` or lab `lab-name`; a dictionary of what it gave and the files it used."""
    recorder = Recorder()
    outcome = {"exhibit": name}
    try:
        lab = name.removeprefix("lab-")
        outcome["result"] = _result(name) if lab == name else _lab(lab)
    except CellError as cell:
        place = cell.place
        outcome["failure"] = f"{_explain(cell.error, lambda: place)}, in the cell at {place}"
    except Exception as error:  # whatever an exhibit raises is for its reader to see
        outcome["failure"] = _explain(error, lambda: _definition(name))
    outcome["files"] = dict(sorted(recorder.files.items()))
    return outcome


def _result(name):
    module, _, function = name.partition(".")
    figures.prepare()
    _seed()
    exhibit = getattr(importlib.import_module(f"exhibits.{module}"), function)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        figure, values = _sort(exhibit())
    result = {"figure": None, "output": printed.getvalue(), "values": _plain(values)}
    if figure is not None:
        result["figure"] = figures.to_svg(figure, name, _alternative(exhibit))
    return result


def _lab(name):
    """What each cell of a lab gives with the solutions, and what it prints with the starters."""
    from weave import labs  # not above: no exhibit depends on how labs are made

    cells = labs.cells(name)
    figures.prepare()
    solved = list(_ran(name, cells, "starter"))
    started = [given["output"] for given in _ran(name, cells, "solution")]
    return {"solved": solved, "started": started}


def _ran(name, cells, left_out):
    """What each cell of a lab prints and draws, all in one module, those with one tag left out."""
    import matplotlib.pyplot as plt

    _seed()
    plt.show = lambda *_, **__: None
    module = sys.modules[f"labs.{name}"] = types.ModuleType(f"labs.{name}")
    module.__file__ = str(ROOT / "labs" / f"{name}.py")
    plt.close("all")
    for number, cell in enumerate(cells, 1):
        printed, figure = io.StringIO(), None
        if not cell.prose and cell.tag != left_out:
            try:
                with contextlib.redirect_stdout(printed):
                    _execute(cell, module)
                if left_out == "starter":
                    figure = _drawn(cell, f"lab-{name}-{number}", plt)
            except Exception as error:
                raise CellError(error, f"labs/{name}.py:{cell.line}") from error
        yield {"output": printed.getvalue(), "figure": figure}


def _execute(cell, module):
    """Run a cell as a notebook would, which shows the value of a last expression: it must be None."""
    tree = ast.parse("\n" * (cell.line - 1) + cell.text, module.__file__)
    last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, module.__file__, "exec"), vars(module))
    if last is not None:
        value = eval(compile(ast.Expression(last), module.__file__, "eval"), vars(module))
        if value is not None:
            raise ExhibitError("it ends in a value that a notebook would show: print it or give it a name")


def _drawn(cell, name, plt):
    """The figure that a cell left open, as SVG."""
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    if len(drawn) > 1:
        raise ExhibitError(f"a cell draws one figure, this one draws {len(drawn)}")
    if bool(drawn) is not bool(cell.alt):
        what = "draws a figure, so it needs" if drawn else "draws no figure, and has"
        raise ExhibitError(f'it {what} alt="…", which says what the figure shows')
    return figures.to_svg(drawn[0], name, cell.alt) if drawn else None


def _seed():
    import numpy
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def _sort(returned):
    """What an exhibit returned, as (figure or None, values)."""
    from matplotlib.figure import Figure

    pair = returned if isinstance(returned, tuple) else (returned,)
    shown = [part for part in pair if isinstance(part, Figure)]
    values = [part for part in pair if isinstance(part, dict)]
    strange = [part for part in pair if not isinstance(part, (Figure, dict, type(None)))]
    if strange or len(shown) > 1 or len(values) > 1:
        raise ExhibitError(
            "expected a figure, a dictionary, both as a pair, or nothing; it returned "
            + ", ".join(type(part).__name__ for part in pair)
        )
    return (shown[0] if shown else None), (values[0] if values else {})


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
        if not isinstance(value, (bool, int, float, str)):
            raise ExhibitError(f"value {key!r} must be a number or text, it is a {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ExhibitError(f"value {key!r} must be finite, it is {value}")
        plain[key] = value
    return plain


def _alternative(exhibit):
    """The text that stands for the figure: the first paragraph of the docstring."""
    paragraph = (inspect.getdoc(exhibit) or "").split("\n\n")[0]
    if not paragraph.strip():
        raise ExhibitError(
            "it draws a figure but has no docstring, whose first paragraph is the figure's text alternative"
        )
    return " ".join(paragraph.split())


def _explain(error, otherwise):
    """One line: what was raised, and the last project line it passed."""
    own = isinstance(error, (ExhibitError, figures.FigureError))
    cause = " ".join((str(error) if own else f"{type(error).__name__}: {error}").split())
    places = [
        f"{relative(frame.filename)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (relative(frame.filename) or "weave/").split("/")[0] != "weave"
    ]
    if isinstance(error, SyntaxError) and error.filename and relative(error.filename):
        places.append(f"{relative(error.filename)}:{error.lineno}")
    return f"{cause} (at {places[-1] if places else otherwise()})"


def _definition(name):
    if name.startswith("lab-"):
        return f"labs/{name.removeprefix('lab-')}.py"
    module, _, function = name.partition(".")
    exhibit = inspect.unwrap(getattr(sys.modules[f"exhibits.{module}"], function))
    return f"exhibits/{module}.py:{exhibit.__code__.co_firstlineno}"
