"""What the half-page on the generator shows: what the trained models of
experiments/generator.py wrote, and the way in which they write.
"""

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS, name_lines
from experiments import generator, models
from experiments.encodings import switch
from experiments.generator import BIN, TEMPERATURES, generate
from experiments.generator import TRAIN_LENGTH as TRAINED
from experiments.runs import load, made_with
from snippets.block import Decoder, Encoding

WIDTH = 58  # characters that a phone shows
WARM = "0.8"
SHOWN = ("none", "sinusoidal", "learned", "RoPE", "ALiBi")


def _quote(text):
    """A text, its lines folded where they are too long."""
    folded = []
    for line in text.split("\n"):
        parts = [
            line[i : i + WIDTH - 4] for i in range(0, len(line), WIDTH - 4)
        ]
        folded += [parts[0] if parts else ""]
        folded += [f"  ↪ {part}" for part in parts[1:] if part.strip()]
    for line in folded:
        print(f"| {line.rstrip()}")


def _mean(values):
    values = list(values)
    return sum(values) / len(values)


def samples():
    results = load("generator")
    for name in ("none", "RoPE"):
        for seed, run in enumerate(results[name]):
            print("without positions" if name == "none" else name, end="")
            print(f", seed {seed}")
            _quote(run["texts"][WARM][:TRAINED])
    return {
        "temperature": float(WARM),
        "bytes": TRAINED,
        "seeds": len(results["none"]),
    }


def made():
    """How the models were trained."""
    results, notes = load("generator"), made_with("generator")
    text = notes[0]["corpus"]
    return {
        "updates": generator.UPDATES,
        "windows": generator.BATCH_SIZE,
        "trained": TRAINED,
        "asked": generator.EVAL_LENGTH,
        "layers": models.LAYERS,
        "width": models.DIM,
        "parameters": results["none"][0]["parameters"],
        "seen": generator.UPDATES * generator.BATCH_SIZE * TRAINED / 1e6,
        "corpus": text["train_bytes"] / 1e6,
        "held_out": text["held_out_bytes"] / 1e6,
        "runs": len(notes),
        "methods": len(results),
        "python": notes[0]["python"].rpartition(".")[0],
    }


def trained_length():
    results, values = load("generator"), {}
    print("loss on unseen text (nats per byte)")
    print(f"{'':<12} seed 0  seed 1  seed 2    mean")
    bins = TRAINED // BIN
    for name, runs in results.items():
        losses = [_mean(run["loss_by_position"][:bins]) for run in runs]
        cells = "".join(f"{loss:8.3f}" for loss in (*losses, _mean(losses)))
        print(f"{name:<11}{cells}")
        values[name.lower()] = _mean(losses)
    return values


def by_position():
    """Line chart of the loss on held-out text against position.

    Up to position 128, the training length, the model without positions has
    the highest loss and RoPE the lowest. The line of the learned table ends
    there. Beyond it, the sinusoidal line jumps above all others; RoPE's line
    rises a little later, and just as high; ALiBi's line is flat.
    """
    results, values = load("generator"), {}
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    ax.axvspan(0, TRAINED, color="gray", alpha=0.2, linewidth=0)
    for name in SHOWN:
        color, line = COLORS[name], "--" if name == "learned" else "-"
        losses = torch.tensor(
            [run["loss_by_position"] for run in results[name]]
        )
        losses = losses.unflatten(1, (-1, 2)).mean(-1)
        mean, places = losses.mean(0), torch.arange(losses.shape[1])
        places = (places + 0.5) * 2 * BIN
        spread = losses.amin(0), losses.amax(0)
        ax.fill_between(places, *spread, color=color, alpha=0.15, linewidth=0)
        ax.plot(places, mean, line, color=color, label=name)
        values[f"{name.lower()}_end"] = mean[-4:].mean()
        values[f"{name.lower()}_trained"] = mean[
            : TRAINED // (2 * BIN)
        ].mean()
    ax.set_xlabel("position")
    ax.set_ylabel("loss (nats per byte)")
    ax.text(TRAINED, ax.get_ylim()[1], " training length", va="top")
    name_lines(ax)
    return fig, values | {"lead": _lead(results)}


def _lead(results):
    """How far past the training length RoPE is better than ALiBi, by seed."""
    rope, alibi = (
        torch.tensor([run["loss_by_position"] for run in results[name]])
        for name in ("RoPE", "ALiBi")
    )
    behind = (rope > alibi).any(0)
    return int(behind.int().argmax()) * BIN - TRAINED


def temperatures():
    texts = load("generator")["RoPE"][0]["texts"]
    for heat in TEMPERATURES:
        print(f"temperature {heat}")
        _quote(texts[str(heat)][:TRAINED])
    return {"hottest": TEMPERATURES[-1]}


def by_temperature():
    results = load("generator")
    heats = [str(heat) for heat in TEMPERATURES]
    print(f"{'temperature':<12}" + "".join(f"{heat:>7}" for heat in heats))
    for name, runs in results.items():
        row = [_mean(run["words"][heat][0] for run in runs) for heat in heats]
        print(f"{name:<12}" + "".join(f"{found:7.1f}" for found in row))
    first = results["none"][0]["words"]
    print(f"text of held-out files: {first['held out'][0]:.1f}")
    print(f"the same bytes, shuffled: {first['shuffled'][0]:.1f}")


def chances():
    scores = torch.tensor([2.0, 1.0, 0.0])
    print("scores          2     1     0")
    for heat in TEMPERATURES[1:]:
        row = (scores / heat).softmax(-1)
        cells = "".join(f"{chance:6.2f}" for chance in row)
        print(f"temperature {heat}{cells}"[:60])


def lines():
    for run in load("generator")["RoPE"][:1]:
        for line in run["lines"]:
            text, end, _ = line.partition("\n")
            print(f"{text}{'  [end]' if end else '  [longest]'}")


def ends():
    """How likely the models find the end of a file where one ends."""
    runs = load("generator")["RoPE"]
    at, before = (_mean(run["ends"][i] for run in runs) for i in (0, 1))
    return {"at": at, "before": before, "ratio": at / before}


def beyond():
    """Line chart of the number of different known words in four stretches of
    generated text, for five encodings.

    A grey line far above the others is real text. RoPE's line starts highest
    and falls to almost nothing, the sinusoidal line falls, too, ALiBi's line
    is level, and the line without positions stays near zero. The learned
    table has one point.
    """
    results, values = load("generator"), {}
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    real = results["none"][0]["words"]["held out"]
    ax.plot(range(1, 5), real, color="gray", linewidth=1, label="real text")
    for name in SHOWN:
        found = torch.tensor([run["words"][WARM] for run in results[name]])
        places = torch.arange(1, found.shape[1] + 1)
        spread = found.mean(0) - found.amin(0), found.amax(0) - found.mean(0)
        ax.errorbar(
            places,
            found.mean(0),
            torch.stack(spread),
            marker="o",
            markersize=4,
            color=COLORS[name],
            capsize=2,
        )
        (line,) = ax.plot(places, found.mean(0), color=COLORS[name])
        line.set_label(name if len(places) > 1 else "_learned")
        values[f"{name.lower()}_first"] = found.mean(0)[0]
        values[f"{name.lower()}_last"] = found.mean(0)[-1]
    ax.set_xticks(range(1, 5), ["to 128", "to 256", "to 384", "to 512"])
    ax.set_xlabel("stretch (positions)")
    ax.set_ylabel("different known words")
    ax.set_ylim(0)
    name_lines(ax)
    return fig, values | {"real": _mean(real), "stretch": TRAINED}


def far_samples():
    results = load("generator")
    for name in ("sinusoidal", "RoPE", "ALiBi"):
        print(name)
        _quote(results[name][0]["texts"][WARM][3 * TRAINED :])
    return {"start": 3 * TRAINED}


def table_ends():
    model = _untrained("learned", rows=8)
    prompt = torch.tensor([[1, 2, 3]])
    text = generate(model, prompt, most=6, temperature=0)
    print(f"tokens: {text.shape[1]}")
    try:
        generate(model, prompt, most=7, temperature=0)
    except ValueError as error:
        print(f"ValueError: {error}")


def with_and_without_a_cache():
    model, most = _untrained("RoPE", rows=8), 60
    prompt = torch.tensor([[1, 2, 3, 4]])
    seeded = torch.Generator().manual_seed(0)
    cached = generate(model, prompt, most, generator=seeded)

    seeded, whole, read = torch.Generator().manual_seed(0), prompt, 0
    for _ in range(most):
        scores, _ = generator.read(model, whole)
        read += whole.shape[1]
        token = generator.pick(scores[:, -1], 1.0, seeded)
        whole = torch.cat((whole, token), 1)

    print("same text:", torch.equal(cached, whole))
    print("tokens read with a cache:   ", cached.shape[1] - 1)
    print("tokens read without a cache:", read)


def _untrained(name, rows):
    model = Decoder(Encoding(), 32, dim=16, heads=2, layers=2)
    model.encoding = switch(16, 2, rows, clip=4)[name]()
    return model.double().eval()
