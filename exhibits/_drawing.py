"""Shared by all figures: the colours of methods, names at lines."""

import matplotlib.pyplot as plt

# Where an encoding enters; all that enter there have one colour.
FAMILIES = {
    "added to the input": ("sinusoidal", "learned"),
    "rotating q and k": ("RoPE", "xPos"),
    "added to scores": (
        *("ALiBi", "T5", "clipped bias"),
        *("KERPLE", "FIRE", "Sandwich"),
    ),
    "inside the score": ("Shaw", "DeBERTa", "Transformer-XL", "CoPE"),
}
COLORS = {"none": "black"} | {
    name: f"C{number}"
    for number, names in enumerate(FAMILIES.values())
    for name in names
}
# Of which no model was trained.
UNTRAINED = dict.fromkeys(
    ("relative logits", "forget gates", "PaTH"), COLORS["CoPE"]
)


def spaced(heights, gap):
    """Heights, lowest first, moved up so that none is nearer than gap."""
    placed = []
    for height in heights:
        placed.append(max([height, *(each + gap for each in placed[-1:])]))
    return placed


def centred(heights, gap):
    """Heights, lowest first, moved up or down, so that none is nearer."""
    crowds = []  # of each the mean, less what stands below, and how many
    for number, height in enumerate(heights):
        crowds.append((height - number * gap, 1))
        while len(crowds) > 1 and crowds[-2][0] >= crowds[-1][0]:
            (low, some), (high, more) = crowds[-2:]
            both = some + more
            crowds[-2:] = [((low * some + high * more) / both, both)]
    flat = [mean for mean, count in crowds for _ in range(count)]
    return [mean + number * gap for number, mean in enumerate(flat)]


def name_lines(ax, place=spaced):
    """Write each line's label at its right end, in its colour; no legend."""
    ax.figure.draw_without_rendering()  # so that it is known where they end
    low, high = sorted(ax.get_ylim())
    ends = []
    for line in ax.lines:
        if not line.get_label().startswith("_"):
            x, y = line.get_xydata()[-1]
            end = x, min(max(y, low), high)
            height = ax.transData.transform(end)[1] * 72 / ax.figure.dpi
            ends.append((height, end, line))
    ends.sort(key=lambda each: each[0])
    places = place(
        [each[0] for each in ends], 1.2 * plt.rcParams["font.size"]
    )
    for (height, end, line), place in zip(ends, places, strict=True):
        ax.annotate(
            *(line.get_label(), end, (4, place - height)),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
            annotation_clip=False,
        )
