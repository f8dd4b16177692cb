"""What the chapter on time, space and graphs shows."""

import itertools
import math

import matplotlib.pyplot as plt
import torch
from executable_prose.figures.live import Live, Slider

from snippets.fourier import fourier_features
from snippets.graph_positions import (
    laplacian,
    laplacian_encoding,
    random_walk_encoding,
)
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding, sinusoidal_encoding_t2t

# The positional encodings of audio and time-series models in Transformers
# 5.23.0, by folder.
LISTENERS = {
    "whisper": (
        "audio",
        "added sinusoids (tensor2tensor) for audio; a learned table for text",
    ),
    "wav2vec2": ("audio", "an added convolution over neighbours"),
    "audio_spectrogram_transformer": (
        "audio",
        "an added learned table over patches",
    ),
    "parakeet": ("audio", "Transformer-XL relative scores"),
    "wav2vec2_conformer": (
        "audio",
        "a convolution, and Transformer-XL relative scores or RoPE",
    ),
    "granite_speech": ("audio", "Shaw's relative keys, in blocks"),
    "moonshine": ("audio", "RoPE on part of each head"),
    "time_series_transformer": (
        "time series",
        "added sinusoids, and features of the date",
    ),
    "patchtst": ("time series", "added sinusoids or an added learned table"),
    "timesfm": ("time series", "added sinusoids (tensor2tensor)"),
    "timesfm2_5": ("time series", "RoPE"),
}


def _graph(edges, nodes):
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for one, other in edges:
        adjacency[one, other] = adjacency[other, one] = 1
    return adjacency


def _ring(nodes):
    return _graph([(i, (i + 1) % nodes) for i in range(nodes)], nodes)


def _around(nodes, centre=(0.0, 0.0), radius=1.0):
    """Coordinates of nodes on a circle."""
    angles = [2 * math.pi * i / nodes + math.pi / 2 for i in range(nodes)]
    x, y = centre
    return [
        (x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles
    ]


def _draw(ax, adjacency, places, shades):
    """Nodes as circles, orange above zero and blue below, and their edges."""
    reach = 0.26  # of a circle, where its edges end
    for i, j in itertools.combinations(range(len(places)), 2):
        if adjacency[i, j]:
            one, other = torch.tensor((places[i], places[j]))
            way = torch.nn.functional.normalize(other - one, dim=0) * reach
            ends = torch.stack((one + way, other - way))
            ax.plot(*ends.T, "-", color="gray", linewidth=1)
    for place, shade in zip(places, shades, strict=True):
        colour = "C1" if shade > 0 else "C0"
        ax.add_patch(
            plt.Circle(
                place, reach, facecolor=colour, alpha=min(abs(shade), 1)
            )
        )
        ax.add_patch(plt.Circle(place, reach, fill=False, edgecolor="gray"))
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.set_axis_off()


def home():
    """Two drawings of six circles joined by lines: two triangles, and a ring
    of six. The circles of the triangles are filled with colour; those of the
    ring are empty.
    """
    two = torch.block_diag(_ring(3), _ring(3))
    sides = _around(3, (-1.3, -0.2), 0.9) + _around(3, (1.3, -0.2), 0.9)
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.1))
    values = {}
    ring = _around(6, radius=1.3)
    shapes = ("triangles", two, sides), ("ring", _ring(6), ring)
    for ax, (name, graph, places) in zip(axes, shapes, strict=True):
        back = random_walk_encoding(graph, 3)[:, 2]
        _draw(ax, graph, places, (2 * back).tolist())
        ax.set_title(name)
        values[name] = back[0]
    return fig, values


def _loops():
    """A ring of five and a ring of four, joined by one edge."""
    joined = torch.block_diag(_ring(5), _ring(4))
    joined[4, 6] = joined[6, 4] = 1
    return joined, _around(5, (-1.7, 0), 1.1) + _around(4, (1.7, 0), 1.1)


def waves():
    """Two graphs, each drawn three times: a line of eight nodes, and two
    loops joined by one edge. Nodes are orange above zero and blue below.
    Along the line, the colour changes once, twice and three times. The first
    wave makes one of the two loops orange and the other blue.
    """
    path = _graph([(i, i + 1) for i in range(7)], 8)
    line = [(0.8 * i, 0.0) for i in range(8)]
    fig, axes = plt.subplots(2, 3, figsize=(4.4, 1.9), height_ratios=(1, 3))
    values = {}
    for row, (graph, places) in zip(
        axes, ((path, line), _loops()), strict=True
    ):
        _, vectors = laplacian_encoding(
            graph, 3, normalized=False, skip="first"
        )
        for n, (ax, wave) in enumerate(zip(row, vectors.T, strict=True), 1):
            wave = wave * wave[0].sign()
            _draw(ax, graph, places, (1.6 * wave).tolist())
            if graph is path:
                changes = wave[1:].sign() != wave[:-1].sign()
                values[f"line_{n}"] = changes.sum()
    for n, ax in enumerate(axes[0], 1):
        ax.set_title(f"wave {n}")
    joined = _loops()[0]
    _, first = laplacian_encoding(joined, 1, normalized=False, skip="first")
    five, four = (first * first[0].sign()).split([5, 4])
    return fig, values | {"apart": five.amin() - four.amax()}


def unit():
    """A curve that shows the similarity of each time from zero to one to the
    chosen time. With a factor of one, it is a flat line near one: all times
    have almost the same encoding. With a large factor, it is a narrow peak at
    the chosen time.
    """
    dim = 64
    times = torch.arange(101, dtype=torch.float64) / 100

    def compare(factor, time):
        rows = sinusoidal_encoding(factor * times, dim, dtype=torch.float64)
        one = sinusoidal_encoding(factor * time, dim, dtype=torch.float64)
        likeness = rows @ one / (dim / 2)
        ends = torch.tensor([-1.0, 1.0], dtype=torch.float64)
        return {
            "likeness": torch.stack((times, likeness), 1),
            "time line": torch.stack((time.expand(2), ends), 1),
            "least": likeness.amin(),
        }

    live = Live(
        compare,
        {
            "factor": Slider("factor", 1, 1000, 1000, log=True),
            "time": Slider("time", 0, 1, 0.3, step=0.01, drag="time line"),
        },
        says="The similarity to time {time} is nowhere less than "
        "{least:.2f down}.",
        call="import torch\n"
        "from sinusoidal import sinusoidal_encoding\n\n"
        "times = torch.arange(101).double() / 100\n"
        f"rows = sinusoidal_encoding({{factor}} * times, {dim})\n"
        "time = torch.tensor({time}).double()\n"
        f"one = sinusoidal_encoding({{factor}} * time, {dim})\n"
        f"likeness = rows @ one / {dim // 2}\n"
        "likeness.min()",
        draws={"likeness": "likeness"},
        tolerance=1e-9,
    )
    made = live.start()
    one, start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    flat = compare(one, start)[
        "least"
    ]  # of the times that are farthest apart
    fig, ax = plt.subplots()
    (live.moves["likeness"],) = ax.plot(*made["likeness"].T)
    (live.moves["time line"],) = ax.plot(
        *made["time line"].T, "--", color="gray"
    )
    ax.set_ylim(-0.3, 1.05)
    ax.set_xlabel("time (before the factor)")
    ax.set_ylabel("similarity")
    return fig, {"flat": flat, "least": made["least"], "dim": dim}, live


def timesteps():
    t = torch.tensor([0, 1, 500, 999])  # steps
    share = t / 1000  # the same times, from 0 to 1
    shortest, longest = 0.004, 4.0  # periods of pi0
    rows = {
        "DDPM": sinusoidal_encoding_t2t(t, 64),
        "guided-diffusion": sinusoidal_encoding(t, 64, layout="cos_sin"),
        "Qwen2.5-Omni": sinusoidal_encoding_t2t(1000 * share, 64),
        "pi0": sinusoidal_encoding_t2t(
            2 * math.pi / shortest * share.double(), 64, longest / shortest
        ),
    }
    print(f"{'step ' + str(t[2].item()):18} channel 1   channel 33")
    for name, encoding in rows.items():
        one, other = encoding[2, 1], encoding[2, 33]
        print(f"{name:18} {one:9.4f}   {other:10.4f}")
    ours, theirs = rows["DDPM"], rows["guided-diffusion"]
    return {"apart": (ours - theirs).abs().max()}


def nerf():
    waves, axes = 10, 3
    powers = 2.0 ** torch.arange(waves, dtype=torch.float64)
    code = torch.kron(powers[:, None], torch.eye(axes).double())
    paper = math.pi * code  # (waves * axes, axes), as is code
    ends = torch.tensor([[-1.0, 0, 0], [1.0, 0, 0]])  # of the cube
    found = {}
    for name, frequencies in (("paper", paper), ("code", code)):
        left, right = fourier_features(ends, frequencies)
        apart = (left - right).norm() / left.norm()
        print(f"{name}: distance of the two ends over the norm: {apart:.2f}")
        found[name] = apart
    return found


def irregular():
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    frequencies = rope_frequencies(8, base=10000)

    def score(q_time, k_time):
        rotated = [
            apply_rope(x, *rope_tables(t, frequencies, x.dtype), "half")
            for x, t in ((q, q_time), (k, k_time))
        ]
        return (rotated[0] @ rotated[1].mT).item()

    now = torch.tensor([7.25], dtype=torch.float64)  # hours, say
    early, later = torch.tensor([2.5]).double(), 1000.125
    print(f"score at 7.25 and 2.5:  {score(now, early):.6f}")
    print(f"1000.125 hours later:   {score(now + later, early + later):.6f}")
    return {
        "apart": abs(score(now, early) - score(now + later, early + later))
    }


def turned():
    ring = _ring(6)
    values, waves = laplacian_encoding(
        ring, 2, normalized=True, skip="first", dtype=torch.float64
    )
    angle = torch.tensor(0.5).double()
    rotation = torch.stack(
        (angle.cos(), -angle.sin(), angle.sin(), angle.cos())
    ).view(2, 2)
    other = waves @ rotation  # as good a pair as the first

    matrix = laplacian(ring, normalized=True)
    wrong = (matrix @ other - other * values).abs().max()
    spaces = (waves @ waves.T - other @ other.T).abs().max()
    print(f"eigenvalues                   {values[0]:.2f}, {values[1]:.2f}")
    print(f"error of the rotated pair     {wrong:.4f}")
    print(f"difference of the vectors     {(waves - other).norm():.2f}")
    print(f"difference of the projectors  {spaces:.4f}")
    return {"wrong": wrong, "spaces": spaces}


def steps_home():
    two = torch.block_diag(_ring(3), _ring(3))
    shapes = {"two triangles": two, "ring of six": _ring(6)}
    print("| Steps | 1 | 2 | 3 | 4 | 5 | 6 |")
    print("|---|" + "--:|" * 6)
    back = {}
    for name, graph in shapes.items():
        back[name] = random_walk_encoding(graph, 6)[0].tolist()
        print(f"| {name} |", *(f"{share:.4f} |" for share in back[name]))
    return {"third": back["two triangles"][2]}


def twins():
    squares = list(itertools.product(range(4), repeat=2))
    numbered = list(itertools.combinations(enumerate(squares), 2))
    rook = [
        (i, j)
        for (i, (row, column)), (j, (down, across)) in numbered
        if row == down or column == across
    ]
    moves = {(0, 1), (1, 0), (1, 1), (0, 3), (3, 0), (3, 3)}
    shrikhande = [
        (i, j)
        for (i, (row, column)), (j, (down, across)) in numbered
        if ((down - row) % 4, (across - column) % 4) in moves
    ]
    pair = [_graph(edges, 16) for edges in (rook, shrikhande)]
    walks = [random_walk_encoding(a, 20, torch.float64) for a in pair]
    spectra = [
        laplacian_encoding(
            a, 15, normalized=True, skip="first", dtype=torch.float64
        )[0]
        for a in pair
    ]
    # how many triangles the six neighbours of a node form
    threes = []
    for graph in pair:
        near = graph[0].nonzero().flatten()
        around = graph[near][:, near]
        threes.append((around @ around @ around).trace().item() / 6)
    apart = [(one - other).abs().max() for one, other in (walks, spectra)]
    print(f"difference of walks, up to 20 steps: {apart[0]:.4f}")
    print(f"difference of eigenvalues:           {apart[1]:.4f}")
    print("triangles among the neighbours:", *(f"{n:.0f}" for n in threes))
    return {
        "walks": apart[0],
        "values": apart[1],
        "rook": threes[0],
        "shrikhande": threes[1],
    }


def listeners():
    """The positional encodings of audio and time-series models."""
    print("| Model type | Input | Positional encoding |\n|---|---|---|")
    for name, (reads, does) in LISTENERS.items():
        print(f"| `{name}` | {reads} | {does} |")
    return {"models": len(LISTENERS)}
