"""What exhibits import, imported once: on Linux and macOS each runs in a fork of a process that has this."""

import tomllib  # noqa: F401

import matplotlib.backends.backend_svg
import matplotlib.pyplot
import matplotlib.style  # noqa: F401
import torch._dynamo
import torch.fx.experimental.symbolic_shapes  # noqa: F401  (a second, for those that export a graph)

from weave import isolate  # noqa: F401
from weave.recorder import compile_ahead

compile_ahead()
