"""Figures and tables of the chapter on learned position embeddings."""

import math

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Slider
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cosine_similarity,
    embedding,
    interpolate,
)

from experiments.language import BIN
from experiments.language import TRAIN_LENGTH as TRAINED
from experiments.runs import load
from snippets.attention import SelfAttention
from snippets.embed import Embed, packed_positions, padded_positions
from snippets.learned import AddLearned, learned_encoding
from snippets.sinusoidal import sinusoidal_encoding

DAYS, DIM, UPDATES = 32, 16, 300
STAY = 0.9  # probability that a day has the weather of the day before


def _weather(rows, days):
    """Return sequences of sunny (1) and rainy (-1) days."""
    first = torch.randint(2, (rows, 1))
    turns = torch.rand(rows, days - 1) > STAY
    sunny = torch.cat([first, turns], dim=1).cumsum(dim=1) % 2
    return 2.0 * sunny.double() - 1


class _Guesser(torch.nn.Module):
    """One head that predicts each day from the others, by position alone."""

    def __init__(self):
        super().__init__()
        self.query = torch.nn.Parameter(torch.randn(DIM, DIM) / DIM**0.5)
        self.key = torch.nn.Parameter(torch.randn(DIM, DIM) / DIM**0.5)
        self.gain = torch.nn.Parameter(torch.tensor(2.0))
        self.double()  # so that every machine draws the same figures

    def forward(self, weather, encoding):
        scores = (encoding @ self.query) @ (encoding @ self.key).T
        itself = torch.eye(len(encoding), dtype=torch.bool)
        scores = (scores / DIM**0.5).masked_fill(itself, -math.inf)
        return self.gain * (weather @ scores.softmax(-1).T)


def _train(table, lengths=None):
    """Train a guesser, and its table if the table requires gradients."""
    guesser = _Guesser()
    learn = [p for p in (*guesser.parameters(), table) if p.requires_grad]
    adam = _Adam(learn, rate=0.01)
    for update in range(UPDATES):
        days = DAYS if lengths is None else lengths[update]
        weather = _weather(64, days)
        encoding = learned_encoding(torch.arange(days), table)
        loss = binary_cross_entropy_with_logits(
            guesser(weather, encoding), (weather + 1) / 2
        )
        adam.step(torch.autograd.grad(loss, learn))
    return guesser.requires_grad_(False)


class _Adam:
    """Adam as in torch.optim, whose import takes longer than the training."""

    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.count = parameters, rate, 0
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]

    def step(self, gradients):
        self.count += 1
        mine = self.parameters, self.means, self.squares
        for p, mean, square, g in zip(*mine, gradients, strict=True):
            mean.lerp_(g, 0.1)
            square.lerp_(g * g, 0.001)
            size = (square / (1 - 0.999**self.count)).sqrt() + 1e-8
            p.data -= self.rate * mean / (1 - 0.9**self.count) / size


def _right(guesser, encoding, rows=8000):
    """Return the fraction of correct guesses for each day."""
    weather = _weather(rows, len(encoding))
    return (guesser(weather, encoding) * weather > 0).double().mean(0)


def _trained():
    """Return a trained guesser, and its table before and after training."""
    table = AddLearned(DAYS, DIM).double().table
    before = table.detach().clone()
    return _train(table), before, table.detach()


def _likeness(table):
    """Return the cosine similarity of all rows after centring."""
    rows = table - table.mean(0)
    return cosine_similarity(rows[:, None], rows, dim=-1)


def _near_and_far(likeness):
    """Return the mean similarity of neighbours and of distant rows."""
    near = likeness.diagonal(1).mean()
    apart = torch.arange(len(likeness))
    far = likeness[(apart[:, None] - apart).abs() > len(likeness) // 2]
    return near, far.mean()


def before_and_after():
    """Two grids of coloured cells. Left, before training: pale, without any
    pattern. Right, after training: strong colours in bands that continue from
    row to row.
    """
    _, before, after = _trained()
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 3.2), sharey=True)
    for ax, title, table in (
        (axes[0], "before training", before),
        (axes[1], "after training", after),
    ):
        ax.imshow(table, cmap="signed", vmin=-1, vmax=1, aspect="auto")
        ax.set_title(title)
        ax.set_xlabel("channel")
    axes[0].set_ylabel("position")
    return fig, {
        "days": DAYS,
        "dim": DIM,
        "updates": UPDATES,
        "stay": STAY,
        "growth": after.norm() / before.norm(),
    }


def lockers():
    """A row of words, drawn as dots, and below it a row of lockers.

    Each of the first words has a card of coloured cells in the locker below
    it. The last words are orange: there are no lockers below them.
    """
    table = _trained()[2].float()
    most = 44
    word = torch.arange(1, most + 1, dtype=torch.float64)
    nowhere = torch.full_like(word, math.inf)

    def hand_out(words):
        cards = learned_encoding(torch.arange(DAYS), table)
        given, there = word[:DAYS] <= words, word <= words
        on_row = torch.where(there, 1.0, nowhere)
        return {
            "cards": cards.T * given,
            "have": torch.stack((word, on_row), 1)[:DAYS],
            "lack": torch.stack((word, on_row), 1)[DAYS:],
            "without": (words - DAYS).clamp(min=0),
        }

    live = _lockers_live(hand_out, most)
    made, moves = live.start(), live.moves
    fig, (row, wall) = plt.subplots(
        2, figsize=(4.4, 2), height_ratios=(1, 3), sharex=True
    )
    for name, color in (("have", "C0"), ("lack", "C1")):
        moves[name] = row.scatter(*made[name].T, s=36, color=color)
    row.set(xlim=(0, most + 1), ylim=(0.5, 1.5), yticks=[1])
    row.set_yticklabels(["words"])
    extent = (0.5, DAYS + 0.5, 0, 1)
    moves["cards"] = wall.imshow(
        made["cards"], cmap="signed", vmin=-1, vmax=1, extent=extent
    )
    wall.vlines([n + 0.5 for n in range(DAYS + 1)], 0, 1, "gray", lw=0.6)
    wall.hlines([0, 1], 0.5, DAYS + 0.5, "gray", lw=0.6)
    wall.set(ylim=(0, 1), yticks=[0.5], xticks=[1, DAYS, most])
    wall.set_yticklabels(["lockers"])
    for ax in (row, wall):
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)
    return fig, {"lockers": DAYS}, live


def _lockers_live(hand_out, most):
    return Live(
        hand_out,
        {"words": Slider("words in the text", 1, most, 38)},
        says=f"Words: {{words:.0f}}. Lockers: {DAYS}. {{without|Every word "
        "gets a card.|The last word gets none.|The last words get none.}",
    )


def past_lockers():
    """A line that shows, for each day, how often its weather is guessed
    right.

    The line is level at the top up to the last day that has a trained card,
    a row of the table. There it falls to about a dotted line, which belongs
    to a machine without cards.
    """
    guesser, _, table = _trained()
    fresh = AddLearned(DAYS, DIM).double().table.detach()
    right = _right(guesser, torch.cat([table, fresh]))
    weather = _weather(8000, 2 * DAYS)
    others = weather.sum(1, keepdim=True) - weather
    blind = (others * weather > 0).double().mean()
    days = range(1, 2 * DAYS + 1)
    fig, ax = plt.subplots(figsize=(4.4, 2.2))
    ax.axvspan(1, DAYS, color="gray", alpha=0.2, linewidth=0)
    ax.plot(days, 100 * right, "C1")
    ax.plot(days[:DAYS], 100 * right[:DAYS], "C0")
    ax.plot([1, 2 * DAYS], [100 * blind] * 2, ":", color="black")
    ax.text(DAYS / 2, 92, "trained cards", color="C0", ha="center")
    ax.text(
        2 * DAYS, 100 * blind + 3, "untrained cards", color="C1", ha="right"
    )
    ax.text(2, 100 * blind - 1.5, "no cards", va="top")
    ax.set(ylim=(50, 100), xlabel="day", ylabel="right guesses (%)")
    ax.set_xticks([1, DAYS, 2 * DAYS])
    return fig, {
        "inside": right[:DAYS].mean(),
        "beyond": right[DAYS:].mean(),
        "blind": blind,
    }


def by_hand():
    table = torch.tensor([[0.1, 0.4], [0.3, -0.2], [-0.5, 0.0]])
    tokens = {"to": [1.0, 2.0], "be": [3.0, 0.0]}
    print("word  row     table     token     sum")
    for position, word in enumerate(["to", "be", "to"]):
        row = learned_encoding(torch.tensor(position), table)
        token = torch.tensor(tokens[word])
        shown = (
            " ".join(f"{x:4.1f}" for x in vector)
            for vector in (row, token, row + token)
        )
        print(f"{word:<7} {position}  ", *shown)
    return {"rows": len(table)}


def looked_up():
    """A grid of coloured cells in which one row is framed, and next to it the
    same row alone. Below the last row of the grid, there is nothing.
    """
    table = _trained()[2].float()
    longest, last = 40, DAYS - 1
    across = torch.tensor([0, DIM, DIM, 0, 0], dtype=torch.float64) - 0.5
    down = torch.tensor([-0.5, -0.5, 0.5, 0.5, -0.5], dtype=torch.float64)

    def look_up(position):
        row = learned_encoding(position.clamp(max=last).long()[None], table)
        return {
            "frame": torch.stack((across, position + down), 1),
            "row": row * (position <= last),
            "missing": position > last,
        }

    live = _looked_up_live(look_up, longest, table)
    made = live.start()
    fig, (grid, beside) = plt.subplots(
        1, 2, figsize=(4.4, 3.4), width_ratios=(3, 2)
    )
    extent = (-0.5, DIM - 0.5, DAYS - 0.5, -0.5)
    grid.imshow(table, cmap="signed", vmin=-1, vmax=1, extent=extent)
    (live.moves["frame"],) = grid.plot(*made["frame"].T, "black")
    grid.set(xlabel="channel", ylabel="position", ylim=(longest, -1))
    live.moves["row"] = beside.imshow(
        made["row"], cmap="signed", vmin=-1, vmax=1
    )
    beside.set(aspect=2, xticks=[], yticks=[], title="added to the token")
    return fig, {"last": last}, live


def _looked_up_live(look_up, longest, table):
    return Live(
        look_up,
        {
            "position": Slider(
                "position", 0, longest - 1, 20, drag="frame", along="y"
            )
        },
        says="Position {position:.0f}: {missing|the table has a row for it|"
        "the table has no row for it, and the code raises an error}.",
        call="import torch\n"
        "from learned import learned_encoding\n\n"
        "row = learned_encoding(torch.tensor({position}), table)",
        title="The call, with the table trained here",
        draws={"row": "row"},
        given={"table": table},
    )


def one_step():
    add = AddLearned(length=6, dim=4)
    before = add.table.detach().clone()
    short = torch.randn(1, 3, 4)  # three tokens, at positions 0, 1, 2
    loss = add(short, torch.arange(3)).square().sum()
    loss.backward()
    add.table.data -= 0.1 * add.table.grad
    moved = (add.table.detach() - before).norm(dim=-1)
    for position, distance in enumerate(moved.tolist()):
        print(f"row {position} changed by {distance:.2f}")
    return {"used": 3, "rows": 6}


def similarity():
    """Three square grids. The untrained table shows a diagonal line on
    noise. The trained table shows broad bands along the diagonal, and the
    sinusoidal table shows narrower bands.
    """
    _, before, after = _trained()
    waves = sinusoidal_encoding(torch.arange(DAYS), DIM).double()
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 1.9), sharey=True)
    values = {}
    for ax, name, table in (
        (axes[0], "fresh", before),
        (axes[1], "trained", after),
        (axes[2], "sinusoidal", waves),
    ):
        likeness = _likeness(table)
        ax.imshow(likeness, cmap="signed", vmin=-1, vmax=1)
        ax.set_title({"fresh": "untrained"}.get(name, name))
        ax.set_xticks([0, 15, 31])
        near, far = _near_and_far(likeness)
        values |= {f"{name}_near": near, f"{name}_far": far}
    axes[0].set_ylabel("position")
    axes[1].set_xlabel("position")
    return fig, values


def directions():
    """Two smooth curves against position, each close to one wave. The second
    is the first, shifted by about a quarter of a wave.
    """
    _, _, after = _trained()
    rows = after - after.mean(0)
    left, size, _ = torch.linalg.svd(rows, full_matrices=False)
    left = left * left[0].sign()  # the sign is arbitrary
    fig, ax = plt.subplots(figsize=(4.4, 2.4))
    for n, line in enumerate(("-", "--")):
        ax.plot(left[:, n] * size[n], line, label=f"direction {n + 1}")
    ax.set_xlabel("position")
    ax.set_ylabel("coordinate of the row")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    share = size.square() / size.square().sum()
    return fig, {"share": share[:2].sum()}


def guesses():
    waves = sinusoidal_encoding(torch.arange(2 * DAYS), DIM).double()
    table = AddLearned(DAYS, DIM).double().table
    tables = {
        "no positions": torch.zeros(DAYS, DIM).double(),
        "sinusoidal": waves[:DAYS],
        "learned": table,
    }
    right = {}
    for name, encoding in tables.items():
        guesser = _train(encoding)
        right[name] = _right(guesser, encoding.detach()).mean()
        print(f"{name:<13} {right[name]:.1%} correct")
        if name == "sinusoidal":
            beyond = _right(guesser, waves)[DAYS:].mean()
    print(f"{'the best rule':<13} {STAY:.1%}")
    return {
        "none": right["no positions"],
        "sinusoidal": right["sinusoidal"],
        "learned": right["learned"],
        "sinusoidal_beyond": beyond,
        "gap": (right["sinusoidal"] - right["learned"]).abs(),
    }


def beside_sinusoidal():
    """Compare sinusoidal and learned positions in a table."""
    places, width = 1024, 768
    tables = {
        "sinusoidal": sinusoidal_encoding(torch.arange(places), width),
        "learned": AddLearned(places, width).table.detach(),
    }
    rows = {
        f"Learned parameters, {places:,} positions of width {width}": (
            "0",
            f"{tables['learned'].numel():,}",
        ),
        "Norm of a row at initialisation": [
            f"{table.norm(dim=-1).mean():.2f}" for table in tables.values()
        ],
    }
    dates, text = load("translator"), load("language")
    for table in tables:
        exact = [f"{100 * seed['exact']:.1f}" for seed in dates[table]]
        losses = [
            f"{_within(seed['loss_by_position']):.2f}" for seed in text[table]
        ]
        rows.setdefault("Dates translated correctly (%)", []).append(
            ", ".join(exact)
        )
        rows.setdefault("Loss on source code (nats per byte)", []).append(
            ", ".join(losses)
        )
    print("| Quantity | Sinusoidal | Learned |")
    print("|---|--:|--:|")
    for name, cells in rows.items():
        print(f"| {name} |", *(f"{cell} |" for cell in cells))


def _within(loss):
    """Return the mean over the training length without the first bin."""
    within = loss[1 : TRAINED // BIN]
    return sum(within) / len(within)


def rarely_trained():
    """Dots that rise with some variation: rows that were used by more updates
    usually have a larger norm, up to a level at which it stays the same. The
    rows that were never used lie at the bottom left, close to zero.
    """
    table = AddLearned(DAYS, DIM).double().table
    before = table.detach().clone()
    lengths = (3 + 22 * torch.rand(UPDATES) ** 9).int().tolist()
    guesser = _train(table, lengths)
    after = table.detach()
    often = (torch.tensor(lengths) > torch.arange(DAYS)[:, None]).sum(1)
    size = after.norm(dim=-1)
    fig, ax = plt.subplots()
    ax.scatter(often, size, s=14)
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    ax.set_xlabel("updates that used the row")
    ax.set_ylabel("norm of the row")
    never = often == 0
    right = _right(guesser, after)
    return fig, {
        "never": never.sum(),
        "never_moved": (after - before)[never].abs().max(),
        "never_size": size[never].mean(),
        "always_size": size[often == UPDATES].mean(),
        "right_used": right[often > 100].mean(),
        "right_seldom": right[(often > 20) & (often < 100)].mean(),
        "right_never": right[never].mean(),
    }


TEXTS = ["dog bites man", "man runs", "the dog bites the man"]


def left_padding():
    """Two batches of three texts, padded on the left with gray cells. Each
    word has its position below it.

    Above, positions count columns, so each text starts at a different number.
    Below, every text starts at zero.
    """
    words = [text.split() for text in TEXTS]
    width = max(map(len, words))
    mask = torch.tensor(
        [[0] * (width - len(w)) + [1] * len(w) for w in words]
    )
    naive = torch.arange(width).expand_as(mask)
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 3.6))
    for ax, title, positions in (
        (axes[0], "columns counted", naive),
        (axes[1], "tokens counted", padded_positions(mask)),
    ):
        ax.set_title(title)
        for row, text in enumerate(words):
            padded = [""] * (width - len(text)) + text
            for column, word in enumerate(padded):
                colour = "white" if word else "gray"
                ax.add_patch(
                    plt.Rectangle(
                        (column, row),
                        0.94,
                        0.9,
                        facecolor=colour,
                        edgecolor="black",
                        alpha=1 if word else 0.3,
                    )
                )
                if word:
                    place = str(positions[row, column].item())
                    ax.text(column + 0.47, row + 0.3, word, **CENTRE)
                    ax.text(
                        column + 0.47, row + 0.66, place, color="C0", **CENTRE
                    )
        ax.set_xlim(-0.05, width)
        ax.set_ylim(len(words), -0.05)
        ax.axis("off")
    return fig


CENTRE = {"ha": "center", "va": "center"}


def padded_outputs():
    tokens, layer = torch.randn(1, 3, 16), SelfAttention(16, heads=2)
    add = AddLearned(8, 16)
    torch.nn.init.normal_(add.table)  # same scale as the tokens
    alone, _ = layer(add(tokens, torch.arange(3)), causal=True)

    mask = torch.tensor([[0, 0, 1, 1, 1]])
    padded = torch.cat([torch.zeros(1, 2, 16), tokens], dim=1)
    hidden = torch.zeros(5, 5).masked_fill(mask == 0, -math.inf)
    positions = {
        "from the edge": torch.arange(5),
        "from the first token": padded_positions(mask),
    }
    values = {}
    for name, at in positions.items():
        output, _ = layer(add(padded, at), bias=hidden, causal=True)
        error = (output[:, 2:] - alone).abs().max()
        print(f"{name:<21} off by {error:.0e}")
        values[name.split()[-1]] = error
    return values


def past_the_end():
    table = torch.tensor([[0.0], [10.0], [20.0], [30.0]])
    last = len(table) - 1
    ways = {
        "this snippet": lambda at: learned_encoding(at, table),
        "F.embedding": lambda at: embedding(at, table),
        "plain indexing": lambda at: table[at],
        "clamped": lambda at: table[at.clamp(0, last)],
        "wrapped": lambda at: table[at % len(table)],
    }
    places = last, last + 1, -1
    print("position       ", *(f"{place:>6}" for place in places))
    for name, look_up in ways.items():
        found = []
        for place in places:
            try:
                found.append(f"{look_up(torch.tensor(place)).item():.0f}")
            except (IndexError, ValueError):
                found.append("error")
        print(f"{name:<15}", *(f"{each:>6}" for each in found))
    return {"rows": len(table)}


def clamped():
    """Five curves of the fraction of correct guesses by day. The stretched
    table stays high to the end. Fresh rows fall, at the end of the table, to
    the level of a model without positions. The clamped table falls a little
    earlier and is also low on the first day. The wrapped table lies below all
    other curves almost everywhere.
    """
    guesser, _, table = _trained()
    days = 2 * DAYS
    at = torch.arange(days)
    stretched = interpolate(
        table.T[None], days, mode="linear", align_corners=True
    )[0].T
    fresh = AddLearned(DAYS, DIM).double().table.detach()
    ways = {
        "stretched": stretched,
        "fresh rows": torch.cat([table, fresh]),
        "clamped": table[at.clamp(max=DAYS - 1)],
        "wrapped": table[at % DAYS],
    }
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    ax.axvspan(0, DAYS - 1, color="gray", alpha=0.2, linewidth=0)
    values = {"days": DAYS, "tested": days}
    lines = (":", "-.", "-", "--")
    for (name, encoding), line in zip(ways.items(), lines, strict=True):
        right = _right(guesser, encoding)
        ax.plot(right, line, linewidth=1.2, label=name)
        key = name.split()[0]
        values[f"{key}_inside"] = right[:DAYS].mean()
        values[f"{key}_beyond"] = right[DAYS:].mean()
    weather = _weather(8000, days)
    others = weather.sum(1, keepdim=True) - weather
    blind = (others * weather > 0).double().mean(0)
    ax.plot(blind, color="gray", linewidth=1, label="no positions")
    values["blind"] = blind.mean()
    values["untouched"] = _right(guesser, table).mean()
    ax.set_xlabel("day")
    ax.set_ylabel("fraction of correct guesses")
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, values


def parameters():
    print("model          rows   width parameters")
    counts = {}
    for name, rows, width in (
        ("BERT base", 512, 768),
        ("GPT-2 small", 1024, 768),
        ("OPT 125M", 2048 + 2, 768),
    ):
        table = AddLearned(rows, width).table
        counts[name.split()[0].lower()] = table.numel()
        print(f"{name:<13} {rows:>5} {width:>7} {table.numel():>10,}")
    return {"gpt2_small": AddLearned(1024, 768).table.numel()}


def starts():
    dim = 768
    print("initialisation                std      norm of a row")
    bert = AddLearned(512, dim, init="bert").table
    gpt2 = AddLearned(1024, dim, init="gpt2").table
    hugging_face = torch.nn.init.normal_(torch.empty(1024, dim), std=0.02)
    waves = sinusoidal_encoding(torch.arange(1024), dim)
    for name, table in (
        ("GPT-2, OpenAI's code", gpt2),
        ("GPT-2, Transformers", hugging_face),
        ("BERT, Google's code", bert),
        ("sinusoidal, for comparison", waves),
    ):
        spread, length = table.std(), table.norm(dim=-1).mean()
        print(f"{name:<29} {spread:.4f}   {length:.2f}")
    return {
        "dim": dim,
        "waves_over_gpt2": waves.norm() / gpt2.norm(),
        "bert_spread": bert.std(),
    }


def fooled():
    _, fresh, trained = _trained()
    common = torch.full((DIM,), 0.5)
    print("                       distance  cosine  centred")
    values = {}
    for name, key, table in (
        ("untrained", "fresh", fresh),
        ("untrained, 100 times", "scaled", 100 * fresh),
        ("untrained, plus vector", "shifted", fresh + common),
        ("trained", "trained", trained),
    ):
        distance = torch.pdist(table).mean()
        cosine = cosine_similarity(table[:-1], table[1:], dim=-1).mean()
        near, _ = _near_and_far(_likeness(table))
        print(f"{name:<24}{distance:7.2f} {cosine:7.2f} {near:8.2f}")
        values |= {f"{key}_cosine": cosine, f"{key}_centred": near}
    return values


def any_scores():
    positions, dim = 50, 8
    wanted = torch.randn(positions, 4) @ torch.randn(4, positions)

    left, right = torch.linalg.svd(wanted, full_matrices=False)[::2]
    size = torch.linalg.svdvals(wanted)
    table = torch.cat([left[:, :4] * size[:4], right[:4].T], dim=1)
    between = torch.zeros(dim, dim)
    between[:4, 4:] = torch.eye(4)  # the first half times the second
    free = (table @ between @ table.T - wanted).norm() / wanted.norm()

    waves = sinusoidal_encoding(torch.arange(positions), dim)
    inverse = torch.linalg.pinv(waves)
    best = waves @ (inverse @ wanted @ inverse.T) @ waves.T
    fixed = (best - wanted).norm() / wanted.norm()
    print(f"relative error, learned table    {free:.0e}")
    print(f"relative error, sinusoidal rows  {fixed:.2f}")
    return {"positions": positions, "dim": dim, "rank": 4, "fixed": fixed}


def scaled_and_dropped():
    class Scaled(torch.nn.Module):
        """Scale an added encoding by a learned number; then apply dropout."""

        def __init__(self, add, rate):
            super().__init__()
            self.add = add
            self.scale = torch.nn.Parameter(torch.tensor(1.0))
            self.drop = torch.nn.Dropout(rate)

        def forward(self, x, positions):
            rows = self.add(torch.zeros_like(x), positions)
            return self.drop(x + self.scale * rows)

    plain = AddLearned(1024, 768)
    embed = Embed(torch.nn.Embedding(50257, 768), Scaled(plain, rate=0.1))
    ids, positions = torch.randint(50257, (2, 5)), torch.arange(5)

    x = embed(ids, positions)
    x.square().sum().backward()
    print(f"training: {(x == 0).float().mean():.2f} dropped,")
    print(f"the scale is trained: {embed.add.scale.grad != 0}")

    x, alone = (
        embed.eval()(ids, positions),
        plain(embed.tokens(ids), positions),
    )
    print(f"evaluation, the plain sum: {torch.equal(x, alone)}")


def in_a_model():
    embed = Embed(torch.nn.Embedding(50257, 768), AddLearned(1024, 768))

    ids = torch.randint(50257, (2, 5))
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    print("padded:", tuple(embed(ids, padded_positions(mask)).shape))

    documents = torch.tensor([[7, 7, 7, 8, 8], [9, 9, 9, 9, 9]])
    positions = packed_positions(documents)
    x = embed(ids, positions)
    print("packed:", tuple(x.shape), positions[0].tolist())

    next_id = torch.randint(50257, (2, 1))
    position = mask.sum(1, keepdim=True)  # the number of tokens so far
    shape = tuple(embed(next_id, position).shape)
    print("next:  ", shape, position.tolist())
