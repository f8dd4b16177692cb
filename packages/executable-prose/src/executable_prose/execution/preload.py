"""What each exhibit imports and does first, done once: on Linux and macOS it runs in a fork of this."""

import contextlib
import gc
import importlib
import io
import sys
import tomllib  # noqa: F401

import matplotlib.backends.backend_svg
import matplotlib.style
from matplotlib import pyplot

from executable_prose import project
from executable_prose.execution import run_exhibit  # noqa: F401
from executable_prose.execution.recorder import compile_ahead, loaded
from executable_prose.figures import svg


def draw() -> None:
    """What matplotlib prepares when it is first used, forks have."""
    with matplotlib.rc_context(svg.STYLE):  # type: ignore[arg-type]
        figure, (left, right) = pyplot.subplots(1, 2)
        left.set(title="title", xlabel="x", ylabel="y", yscale="log")
        left.plot([1, 2], [1, 10], label="line")
        left.annotate("note", (1, 1))
        left.legend()
        right.imshow([[0, 1], [1, 0]], cmap="gray")
        figure.savefig(io.StringIO(), format="svg")
        pyplot.close(figure)


def train() -> None:
    """So with torch, and what of it takes a second to import."""
    import torch._dynamo.backends.debugging  # for exhibits that call flex_attention
    import torch.fx.experimental.symbolic_shapes  # for those that export a graph
    import torch.nn.attention.flex_attention
    import torch.utils.flop_counter

    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(2, 2)).softmax(-1).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()
    repr(torch.ones(2))


compile_ahead()
loaded()
draw()
libraries = project.settings().libraries
for library in libraries:
    with contextlib.suppress(Exception):  # some have other names here; who imports one that is broken is told
        importlib.import_module(library)
if "torch" in libraries and "torch" in sys.modules:
    train()  # last: what small projects have in the place of torch has none of this
gc.freeze()  # else the first search for garbage in each fork copies what all share
