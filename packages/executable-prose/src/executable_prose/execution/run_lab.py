"""Run a lab, as one exhibit is run: its cells one after another, with the solutions and with the starters."""

import ast
import contextlib
import sys
import types
from typing import TYPE_CHECKING

from executable_prose import labs, project
from executable_prose.execution.sandbox import Printed
from executable_prose.execution.seeds import seed
from executable_prose.figures import svg
from executable_prose.outcome import CellError, ExhibitError, Result

if TYPE_CHECKING:
    from executable_prose.execution.recorder import Recorder


def rehearsed(name: str, recorder: "Recorder") -> Result:
    """What each cell of a lab gives with the solutions, and what it prints with the starters."""
    cells = labs.cells(name)
    svg.prepare()
    with recorder.watching():
        solved = list(_ran(name, cells, "starter"))
        starts = any(cell.tag == "starter" for cell in cells)
        started = [given["output"] for given in (_ran(name, cells, "solution") if starts else solved)]
    try:
        labs.check_mistakes(name)  # now: a solution that fails is told first
    except labs.LabError as error:
        raise ExhibitError(str(error)) from None
    return {"solved": solved, "started": started}


def _ran(name, cells, left_out):
    """What each cell of a lab prints and draws, all in one module, those with one tag left out."""
    import matplotlib.pyplot as plt

    seed()
    plt.show = lambda *_, **__: None
    title = f"{project.settings().labs}.{name}"
    module = sys.modules[title] = types.ModuleType(title)
    module.__file__ = str(project.ROOT / labs.file(name))
    plt.close("all")
    for number, cell in enumerate(cells, 1):
        printed, figure = Printed(), None
        if not cell.prose and cell.tag != left_out:
            try:
                with contextlib.redirect_stdout(printed):
                    _execute(cell, module)
                if left_out == "starter":
                    figure = _drawn(cell, f"lab-{name}-{number}", plt)
            except BaseException as error:
                raise CellError(f"{labs.file(name)}:{cell.line}") from error
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
    return svg.to_svg(drawn[0], name) if drawn else None
