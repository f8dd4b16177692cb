"""Run notebooks in place, each in a fork of one process that has imported what takes seconds.

python notebooks.py one.ipynb other.ipynb ...

IPython runs the cells as in a kernel, in the notebook's folder. What a cell prints becomes its output.
"""

import json
import os
import sys
import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import torch  # noqa: F401
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib_inline.backend_inline import configure_inline_support

INLINE = "module://matplotlib_inline.backend_inline"


def run(path):
    os.chdir(path.parent)
    sys.path[0] = ""  # not the folder of this file
    shell = InteractiveShell.instance()
    plt.switch_backend(INLINE)
    configure_inline_support(shell, INLINE)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with capture_output() as said:
                done = shell.run_cell(cell["source"])
            done.raise_error()
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said.stdout}]
    path.write_text(json.dumps(notebook), encoding="utf-8")


def fork(path):
    """The exit status of a child that runs a notebook."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        run(path)
    except BaseException:
        print(path, file=sys.stderr)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    statuses = [fork(Path(each).resolve()) for each in sys.argv[1:]]
    sys.exit(any(statuses))
