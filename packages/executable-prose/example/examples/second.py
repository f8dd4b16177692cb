"""What moves."""

import matplotlib.pyplot as plt
import torch
from waves.shapes import square

from executable_prose import Live, Slider

X = torch.linspace(0, 1, 201, dtype=torch.float64)
CALL = """\
import torch
from shapes import square

x = torch.linspace(0, 1, 201)
square({shift} + x[50], terms=3).item()"""


def shifted():
    """A square wave of three sines, which a slider moves to the left."""

    def wave(shift):
        moved = square(X + shift, terms=3)
        return {"line": torch.stack([X, moved], -1), "middle": moved[50]}

    shift = Slider("shift", low=0.0, high=1.0, start=0.0, step=0.05)
    live = Live(
        wave,
        {"shift": shift},
        says="A quarter along, the wave is at {middle:.2f}.",
        call=CALL,
        tolerance=1e-12,
    )
    figure, axes = plt.subplots(figsize=(4.4, 2.5))
    (line,) = axes.plot(*live.start()["line"].T, color="C0")
    live.moves["line"] = line
    return figure, live
