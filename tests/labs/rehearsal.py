"""A lab, run in this process, and run again with a mistake in its solution."""

import contextlib
import io

import matplotlib
import matplotlib.pyplot as plt
import torch

from executable_prose import labs
from executable_prose.project import ROOT


class Rehearsal:
    """A lab that has run, with its solutions or with its starters."""

    def __init__(self, name, left_out="starter"):
        matplotlib.use("agg")
        torch.manual_seed(0)
        self.file = str(ROOT / labs.file(name))
        self.cells = [cell for cell in labs.cells(name) if not cell.prose and cell.tag != left_out]
        self.names = {"__name__": name}
        self.verdicts = []  # (whether it passed, what it said), one for each check
        self.printed = []
        for cell in self.cells:
            self._run(cell.text, cell.line)
            if cell.tag == "check":
                self.verdicts.append((self.names["passed"], self.printed[-1]))

    def _run(self, text, line):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + text, self.file, "exec"), self.names)
        plt.close("all")
        self.printed.append(printed.getvalue())

    def with_mistake(self, was, now, step="", until=lambda said: False):
        """What the checks that do not pass say with a mistake in the one solution that has these words.

        The last is the first of which `until` is true. Only checks below the solution can tell.
        """
        solutions = [cell for cell in self.cells if cell.tag == "solution" and f"def {step}" in cell.text]
        (cell,) = [cell for cell in solutions if was in cell.text]
        assert cell.text.count(was) == 1
        torch.default_generator.manual_seed(0)
        self._run(cell.text.replace(was, now), cell.line)
        said = []
        for check in self.cells:
            if check.tag == "check" and check.line > cell.line:
                self._run(check.text, check.line)
                said += [] if self.names["passed"] else [" ".join(self.printed[-1].split())]
                if said and until(said[-1]):
                    break
        self._run(cell.text, cell.line)
        return said
