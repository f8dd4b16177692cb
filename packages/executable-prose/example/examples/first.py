"""What the first page shows."""

import matplotlib.pyplot as plt
import torch
from waves.shapes import square

X = torch.linspace(0, 1, 401, dtype=torch.float64)


def three_terms():
    """The sum of three sines is nearly square, and overshoots at its corners."""
    wave = square(X, terms=3)
    figure, axes = plt.subplots(figsize=(4.4, 2.5))
    axes.plot(X, wave, color="C0")
    axes.axhline(1, color="gray", linewidth=1)
    return figure, {"terms": 3, "overshoot": wave.max().item() - 1}


def more_terms():
    print("terms  highest")
    for terms in (3, 30, 300):
        fine = torch.linspace(0, 0.5, 4001, dtype=torch.float64)
        print(f"{terms:>5}  {square(fine, terms).max():.4f}")
