"""Figures and tables of the chapter on context extension for RoPE."""

import math

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider

from exhibits._drawing import name_lines
from exhibits._on_chains import mean_excess, optimal_loss
from experiments.chain_models import EVAL_LENGTH as EVALUATED
from experiments.chain_models import TRAIN_LENGTH as PRACTISED
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import (
    dynamic_ntk,
    llama3,
    longrope,
    longrope_attention_factor,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    yarn,
    yarn_attention_factor,
)
from snippets.xpos import apply_xpos, xpos_decay, xpos_tables

# One head of Phi-3-mini: its width, the length it was trained for, and how
# many times longer its 128k version is. Then what a search found for that
# version, a factor for each pair (its config.json, to two decimals).
DIM, TRAINED, FACTOR = 96, 4096, 32
# fmt: off
SEARCHED = torch.tensor([
    1.03, 1.05, 1.05, 1.08, 1.23, 1.23, 1.3, 1.45, 1.6, 1.65, 1.9, 2.86,
    3.69, 5.42, 5.49, 5.49, 9.09, 11.58, 15.66, 15.77, 15.79, 18.36, 21.99,
    23.08, 30.01, 32.35, 32.59, 35.56, 39.95, 53.84, 56.2, 57.95, 59.29,
    59.77, 59.92, 61.19, 61.96, 62.5, 63.37, 63.48, 63.48, 63.66, 63.85,
    64.08, 64.76, 64.8, 64.81, 64.81,
])
# fmt: on
# Models and the base that they were trained with: the base, the length of
# the training texts in tokens, the model, and the source.
RAISED = [
    (10_000, 4096, "Llama 2", "roziere2023"),
    (500_000, 8192, "Llama 3", "grattafiori2024"),
    (1_000_000, 16_384, "Code Llama", "roziere2023"),
    (1_000_000, 32_768, "Qwen3", "qwen2025"),
]
# Smallest base for a length in thousands of tokens: table 2 of men2024.
LEAST_BASE = {4: 27_000, 8: 84_000, 16: 310_000, 32: 640_000}
OFFSETS_LEARNED, STRETCH = 1024, 8  # for the two trained heads
UPDATES = 120
WAYS = {  # the methods and the colour of each
    "unchanged": "black",
    "interpolation": "C0",
    "NTK-aware": "C1",
    "by parts": "C2",
    "YaRN": "C3",
    "Llama 3": "C4",
    "LongRoPE": "C5",
}
# One head attends to the last NEAR tokens, the other to all but the last FAR.
NEAR, FAR = 16, 32


def _methods(frequencies, factor, trained):
    return {
        "unchanged": frequencies,
        "interpolation": position_interpolation(frequencies, factor),
        "NTK-aware": ntk_aware(frequencies, factor),
        "by parts": ntk_by_parts(frequencies, factor, trained),
        "YaRN": yarn(frequencies, factor, trained),
    }


def _key(name):
    return name.lower().replace("-", "_").replace(" ", "_")


def _searched(frequencies):
    ones = torch.ones_like(SEARCHED)
    length = TRAINED * FACTOR
    return longrope(frequencies, ones, SEARCHED, TRAINED, length)


def wedge():
    """Two dials, each with the same narrow blue wedge at the top right. The
    wedge is the part of the dial that the slow hand of a clock covered during
    practice.

    In a text twice as long, the hand on the left dial has left the wedge, and
    the arc behind it is orange. On the right dial, the hand runs at a quarter
    of its speed and is still inside the wedge.
    """
    pair, slower = 44, 4
    speed = rope_frequencies(DIM, base=10000)[pair : pair + 1]
    seen = TRAINED * speed.item()

    def point(times):
        made = {}
        for name, used in (
            ("as it is", speed),
            ("slowed", position_interpolation(speed, slower)),
        ):
            angle = times * TRAINED * used[0]
            tip = torch.stack((torch.sin(angle), torch.cos(angle)))
            hand = torch.stack((0 * tip, 0.9 * tip))
            sweep = torch.linspace(0, 1, 48, dtype=torch.float64) * angle
            arc = torch.stack((sweep.sin(), sweep.cos()), 1)
            out = angle > seen * (1 + 1e-9)
            made |= {
                f"{name}, known": torch.where(out, math.inf, hand),
                f"{name}, new": torch.where(out, hand, math.inf),
                f"{name}, arc": torch.where(
                    sweep[:, None] >= seen, 0.9 * arc, math.inf
                ),
                f"{name} out".replace(" ", "_"): out,
            }
        return made

    live = _wedge_live(point)
    made, moves = live.start(), live.moves
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.2))
    for ax, (name, title) in zip(
        axes,
        {
            "as it is": "the slow hand",
            "slowed": f"at 1/{slower} of its speed",
        }.items(),
        strict=True,
    ):
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
        turned = 90 - math.degrees(seen), 90
        known = plt.matplotlib.patches.Wedge((0, 0), 1, *turned)
        known.set(color="C0", alpha=0.25)
        ax.add_patch(known)
        ax.text(0.55, 1, "it knows", color="C0")
        ax.text(0, -0.5, "new to it", color="C1", ha="center", va="center")
        for part, color in (("known", "C0"), ("arc", "C1"), ("new", "C1")):
            key = f"{name}, {part}"
            width = 2 if part == "arc" else 4
            (moves[key],) = ax.plot(*made[key].T, color, lw=width)
        ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.2), aspect="equal")
        ax.set_title(title)
        ax.axis("off")
    return fig, {"slower": slower, "degrees": math.degrees(seen)}, live


def _wedge_live(point):
    return Live(
        point,
        {
            "times": Slider(
                "length of the text (1 = as long as a practice text)",
                *(0.1, 6, 2),
                step=0.1,
                shows="{value:.1f}",
            )
        },
        says="The hand {as_it_is_out|is inside the blue wedge|has left the "
        "blue wedge}. The slowed hand {slowed_out|is still inside the wedge|"
        "has left it as well: the text is too long even at this speed}.",
        tolerance=1e-9,
    )


def price():
    """Three pairs of bars: the chance typically given to the right letter, in
    short texts and far beyond the training length.

    With unchanged RoPE, the bar for long texts is lower than the one for
    short texts. With all pairs slowed, both are low. With YaRN, which slows
    only the slow pairs, the bar for short texts is about as high as with
    unchanged RoPE, and the one for long texts is higher.
    """
    ways = {
        "RoPE": "RoPE,\nunchanged",
        "position interpolation": "all pairs\nslowed",
        "YaRN": "YaRN: slow\npairs slowed",
    }
    chances, best = {}, optimal_loss()
    bands = (("within", PRACTISED, -1, "C0"), ("far", EVALUATED, 1, "C1"))
    fig, ax = plt.subplots(figsize=(4.4, 2.5))
    for n, name in enumerate(ways):
        for band, end, side, color in bands:
            away = mean_excess(
                "RoPE stretched", end, f"untuned {name}", "extensions"
            )
            chance = math.exp(-best[end] - away.gain)
            chances[f"{_key(name)}_{band}"] = chance
            ax.bar(n + 0.2 * side, 100 * chance, width=0.36, color=color)
            ax.text(
                *(n + 0.2 * side, 100 * chance + 0.2, f"{100 * chance:.0f}"),
                ha="center",
            )
    ax.set_xticks(range(3), ways.values())
    ax.set(ylim=(0, 31), yticks=[], ylabel="typical chance (%)")
    ax.tick_params(length=0)
    ax.text(-0.4, 28, "short texts", color="C0")
    ax.text(0.5, 28, "long texts", color="C1")
    return fig, chances


def one_pair():
    frequencies, factor, pair = rope_frequencies(DIM, base=10000), 2, 40
    slowed = position_interpolation(frequencies, factor)
    wavelengths = 2 * math.pi / frequencies
    last = TRAINED - 1
    print("pair wavelength offset before after")
    for p, offset in ((pair, last), (pair, factor * last), (0, 1)):
        was, now = (
            math.degrees(offset * w[p]) for w in (frequencies, slowed)
        )
        print(
            f"{p:>4} {wavelengths[p]:>10.0f} {offset:>6}"
            f"  {was:>4.0f}°  {now:>3.0f}°"
        )
    return {
        "pair": pair,
        "trained": TRAINED,
        "factor": factor,
        "pairs": len(frequencies),
        "wavelength": wavelengths[pair],
        "seen": math.degrees(last * frequencies[pair]),
        "asked": math.degrees(factor * last * frequencies[pair]),
        "step": math.degrees(frequencies[0]),
        "slowed_step": math.degrees(slowed[0]),
    }


def unseen():
    """Upper chart: a bar for each pair, blue for the fraction of its circle
    covered in training, with orange on top for what a longer text adds.
    Lower chart: how far each pair rotates from one token to the next,
    relative to training.

    Without any change, the slow pairs on the right have orange on top of the
    blue, and the line in the lower chart is level at one.
    """
    ways = {
        "unchanged": lambda w, times: w,
        "interpolation": position_interpolation,
        "NTK-aware": ntk_aware,
        "dynamic NTK": lambda w, s: dynamic_ntk(w, 1, TRAINED, s * TRAINED),
        "by parts": lambda w, s: ntk_by_parts(w, s, TRAINED),
        "YaRN": lambda w, s: yarn(w, s, TRAINED),
        "Llama 3": lambda w, s: llama3(w, s, TRAINED),
    }
    before = _step(rope_frequencies(DIM, base=10000))

    def ask(method, times):
        w = rope_frequencies(DIM, base=10000)
        used = ways[method](w, times)
        seen, asked = (
            (length * speeds / (2 * math.pi)).clamp(max=1)
            for length, speeds in ((TRAINED, w), (TRAINED * times, used))
        )
        return {
            "asked": asked,
            "seen": seen,
            "kept": torch.stack((torch.arange(len(w)), used / w), 1),
            "new": (asked > seen * (1 + 1e-9)).sum(),
            "pairs": torch.tensor(len(w)),
            "tokens": times * TRAINED,
            "before": before,
            "now": _step(used),
            "way": torch.tensor(list(ways).index(method)),
        }

    live = _unseen_live(ask, ways)
    made = live.start()
    fig, (circle, step) = plt.subplots(
        2, figsize=(4.4, 2.6), height_ratios=(4, 3), sharex=True
    )
    pairs = range(DIM // 2)
    for name, color, label in (
        ("asked", "C1", "new in the longer text"),
        ("seen", "C0", "seen in training"),
    ):
        live.moves[name] = circle.bar(
            pairs, made[name], width=0.8, color=color, label=label
        )
    circle.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    (live.moves["kept"],) = step.plot(*made["kept"].T, "C2")
    for ax, label in (
        (circle, "fraction of\nthe circle"),
        (step, "step relative\nto training"),
    ):
        ax.set_ylim(0, 1.05)
        ax.set_ylabel(label)
    step.set_xlabel("channel pair")
    fig.align_ylabels()
    return fig, {"pairs": len(pairs)}, live


def _unseen_live(ask, ways):
    return Live(
        ask,
        {
            "times": Slider(
                *("length (multiples of the training length)", 1, 16, 4),
                step=0.5,
            ),
            "method": Choice("method", tuple(ways), "unchanged"),
        },
        says=f"Trained on {TRAINED:,} tokens, evaluated on "
        "{tokens:,.0f}, method: {method}. {new:.0f} of {pairs:.0f} pairs "
        "meet angles that did not occur in training. At neighbouring tokens, "
        "two vectors of ones are {now:.1f}° apart after rotation (in "
        "training: {before:.1f}°).",
        call="import math\n\n"
        "import torch\n"
        "from rope import apply_rope, rope_frequencies, rope_tables\n"
        "from rope_scaling import (\n"
        "    dynamic_ntk, llama3, ntk_aware, ntk_by_parts,\n"
        "    position_interpolation, yarn,\n"
        ")\n\n"
        f"w, times = rope_frequencies({DIM}, base=10000), {{times}}\n"
        "used = {way|w|position_interpolation(w, times)|ntk_aware(w, times)|"
        f"dynamic_ntk(w, 1, {TRAINED}, times * {TRAINED})|"
        f"ntk_by_parts(w, times, {TRAINED})|yarn(w, times, {TRAINED})|"
        f"llama3(w, times, {TRAINED})}}\n"
        f"seen = ({TRAINED} * w / (2 * math.pi)).clamp(max=1)\n"
        f"asked = (times * {TRAINED} * used / (2 * math.pi)).clamp(max=1)\n\n"
        "def step(w):  # in degrees, from one token to the next\n"
        f"    tables = rope_tables(torch.arange(2), w, torch.float64)\n"
        f"    x = torch.ones(2, {DIM}, dtype=torch.float64)\n"
        '    a, b = apply_rope(x, *tables, "half")\n'
        f"    return math.degrees(math.acos(a @ b / {DIM}))\n\n"
        f"times * {TRAINED}, (asked > seen * 1.000001).sum(), len(w)\n"
        "step(used), step(w)",
        draws={"asked": "asked", "seen": "seen", "kept": "used / w"},
        tolerance=1e-9,
    )


def _step(w):
    """Return the degrees between vectors of ones on neighbouring tokens."""
    cos, _ = rope_tables(torch.ones(1, dtype=torch.int64), w, torch.float64)
    cosine = cos.mean()
    return torch.rad2deg(torch.atan2((1 - cosine**2).sqrt(), cosine))


def ramp_ends():
    """Line chart of the factor by which each pair is slowed: level at one on
    the left, then rising, and level again on the right.
    """
    dim, factor = 128, 16

    def slow(alpha, beta, factor):
        frequencies = rope_frequencies(dim, base=10000)
        turns = TRAINED * frequencies / (2 * math.pi)
        used = ntk_by_parts(frequencies, factor, TRAINED, alpha, beta)
        pairs = torch.arange(len(frequencies), dtype=torch.float64)
        return {
            "slowed": torch.stack((pairs, frequencies / used), 1),
            "kept": (turns >= beta).sum(),
            "pairs": torch.tensor(len(turns)),
            "full": (turns <= alpha).sum(),
        }

    live = _ramp_ends_live(slow, dim, factor)
    made = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 2.4))
    (live.moves["slowed"],) = ax.plot(*made["slowed"].T)
    ax.set_yscale("log", base=2)
    ax.set_ylim(0.9, 72)
    ax.set_yticks([1, 4, 16, 64], [1, 4, 16, 64])
    ax.set_xlabel("channel pair")
    ax.set_ylabel("slowed by (factor)")
    return fig, {"dim": dim, "factor": factor, "trained": TRAINED}, live


def _ramp_ends_live(slow, dim, factor):
    return Live(
        slow,
        {
            "alpha": Slider(
                "α (rotations)", 0.1, 8, 1, step=0.1, shows="{value:.1f}"
            ),
            "beta": Slider("β (rotations)", 9, 128, 32),
            "factor": Slider("factor", 2, 64, factor),
        },
        says="{kept:.0f} of {pairs:.0f} pairs keep their frequency, "
        "{full:.0f} are slowed by the factor {factor}, and the other pairs "
        "lie on the ramp.",
        call="import math\n\n"
        "from rope import rope_frequencies\n"
        "from rope_scaling import ntk_by_parts\n\n"
        f"w = rope_frequencies({dim}, base=10000)\n"
        f"rotations = {TRAINED} * w / (2 * math.pi)\n"
        f"slowed = w / ntk_by_parts(w, {{factor}}, {TRAINED}, "
        "{alpha}, {beta})\n"
        "(rotations >= {beta}).sum(), len(w)\n"
        "(rotations <= {alpha}).sum()",
        draws={"slowed": "slowed"},
        tolerance=1e-9,
    )


def factors():
    """Line chart of the factor by which six methods slow a pair, against the
    wavelength of the pair, both on logarithmic axes.

    Interpolation is a level line at the top. NTK-aware scaling is a straight
    line from end to end. NTK-by-parts, YaRN and Llama 3 stay at one on the
    left, are level on the right, and differ in how steeply they rise in
    between. The searched factors of LongRoPE rise along with them and end
    higher.
    """
    frequencies = rope_frequencies(DIM, base=10000)
    wavelengths = 2 * math.pi / frequencies
    made = _methods(frequencies, FACTOR, TRAINED)
    made.pop("unchanged")
    made["Llama 3"] = llama3(frequencies, FACTOR, TRAINED)
    made["LongRoPE"] = _searched(frequencies)
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    for name in made:
        slower = frequencies / made[name]
        ax.loglog(wavelengths, slower, color=WAYS[name], label=name)
    ax.axvline(TRAINED, color="gray", linestyle="--", linewidth=1)
    ax.text(1.1 * TRAINED, 1, "training\nlength", va="bottom")
    ax.set_yticks([1, 2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64])
    ax.minorticks_off()
    ax.set_xlabel("wavelength of the pair (positions)")
    ax.set_ylabel("slowed by (factor)")
    pair = ax.secondary_xaxis("top")
    shown = range(0, len(frequencies), 8)
    pair.set_xticks(wavelengths[::8].tolist(), list(shown))
    pair.minorticks_off()
    pair.set_xlabel("channel pair")
    fig.legend(loc="outside lower center", ncols=3)
    slower = {name: frequencies / w for name, w in made.items()}
    return fig, {
        "dim": DIM,
        "pairs": len(frequencies),
        "trained": TRAINED,
        "factor": FACTOR,
        "slow_pairs": (wavelengths > TRAINED).sum(),
        "ntk_middle": slower["NTK-aware"][len(frequencies) // 2],
        "untouched_by_parts": (slower["by parts"] < 1.0001).sum(),
        "untouched_yarn": (slower["YaRN"] < 1.0001).sum(),
        "untouched_llama3": (slower["Llama 3"] < 1.0001).sum(),
        "searched_most": slower["LongRoPE"].max(),
        "searched_least": slower["LongRoPE"].min(),
    }


def neighbours():
    """Line chart of the score of one query with equal keys, at small offsets,
    for five methods.

    Unchanged RoPE falls steeply within a few tokens; NTK-by-parts and YaRN
    coincide with it, and NTK-aware scaling lies a little above. The line of
    interpolation is almost level.
    """
    frequencies, offsets = rope_frequencies(DIM, base=10000), torch.arange(41)
    fig, ax = plt.subplots(figsize=(4.4, 2.6))
    x, near = torch.ones(41, DIM, dtype=torch.float64), {}
    lines = ("-", "-", "-", "--", ":")
    made = _methods(frequencies, FACTOR, TRAINED)
    for (name, used), line in zip(made.items(), lines, strict=True):
        key = apply_rope(x, *rope_tables(offsets, used, x.dtype), "half")
        score = key @ x[0] / DIM  # the query is at position zero
        ax.plot(score, line, color=WAYS[name], label=name)
        near[_key(name)] = score[4]
    ax.set_xlabel("offset (tokens)")
    ax.set_ylabel("score (relative to offset 0)")
    name_lines(ax)
    return fig, {"offset": 4, "factor": FACTOR, **near}


def ramp():
    """Two rising curves of the factor by which each channel pair is slowed.
    They agree at both ends.

    In the middle, the paper's curve rises at once and the curve of the code
    much later; for one pair the two differ by a factor of three.
    """
    dim, factor = 128, 16
    frequencies = rope_frequencies(dim, base=10000)
    paper = frequencies / ntk_by_parts(frequencies, factor, TRAINED)
    code = frequencies / yarn(frequencies, factor, TRAINED)
    pair = (paper / code).argmax().item()
    fig, ax = plt.subplots()
    ax.plot(paper, "--", color="C0")
    ax.plot(code, color="C1")
    ax.text(30, 11, "paper: linear\nin rotations", color="C0", ha="right")
    ax.text(47, 4, "code: linear in\nthe pair's index", color="C1")
    ax.plot([pair, pair], [code[pair], paper[pair]], ":", color="gray")
    ax.set_xlabel("channel pair")
    ax.set_ylabel("slowed by (factor)")
    return fig, {
        "dim": dim,
        "factor": factor,
        "trained": TRAINED,
        "pair": pair,
        "apart": (paper / code).max(),
        "paper": paper[pair],
        "code": code[pair],
        "turns": TRAINED * frequencies[pair] / (2 * math.pi),
    }


def dynamic():
    """Line chart of the factor by which the slowest pair is slowed, against
    the length of the text: level up to the training length and straight
    beyond it.

    The line of the code with factor 4 is four times as steep as that of the
    paper, and the line with factor 2 twice as steep.
    """
    frequencies, longest = rope_frequencies(128, base=10000), 8 * TRAINED
    lengths = torch.arange(1024, longest + 1, 1024).tolist()
    fig, ax = plt.subplots(figsize=(4.4, 2.7))

    def slower(factor, length):
        used = dynamic_ntk(frequencies, factor, TRAINED, length)
        return (frequencies / used)[-1].item()

    for factor, line, name in (
        (4, "-.", "code,\nfactor 4"),
        (2, "-", "code,\nfactor 2"),
        (1, "--", "paper"),
    ):
        curve = [slower(factor, length) for length in lengths]
        ax.plot(lengths, curve, line, label=name)
    ax.axvline(TRAINED, color="gray", linestyle="--", linewidth=1)
    ax.set_xticks(range(0, 5 * 8192, 8192))
    ax.set_xlabel("current length of the text (tokens)")
    ax.set_ylabel("slowest pair slowed by (factor)")
    ax.text(1.2 * TRAINED, 26, "training\nlength")
    name_lines(ax)
    return fig, {
        "trained": TRAINED,
        "code": slower(2, 2 * TRAINED),
        "paper": slower(1, 2 * TRAINED),
        "code_far": slower(2, longest),
        "paper_far": slower(1, longest),
        "times": longest // TRAINED,
    }


def stale_keys():
    frequencies = rope_frequencies(128, base=10000)
    factor, length = 2, 2 * TRAINED
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 128, generator=generator, dtype=torch.float64)

    def turned(x, position, length):
        used = dynamic_ntk(frequencies, factor, TRAINED, length)
        tables = rope_tables(torch.tensor([position]), used, x.dtype)
        return apply_rope(x, *tables, "half")[0]

    query = turned(q, length - 1, length)
    print("key at   rotated now   as cached")
    errors = []
    for position in (8100, 7000, 6000, 5000, 4095):
        right = query @ turned(k, position, length) / math.sqrt(128)
        arrived = max(TRAINED, position + 1)
        stale = query @ turned(k, position, arrived) / math.sqrt(128)
        errors.append(abs(stale - right))
        print(f"{position:>6}   {right:>11.2f}   {stale:>9.2f}")
    return {
        "dim": 128,
        "worst": max(errors),
        "length": length,
        "factor": factor,
    }


def temperature():
    """Line chart of the factor on the scores against the factor by which the
    context grows, for YaRN and LongRoPE.

    Both curves start at one, and YaRN's rises faster.
    """
    shown = torch.logspace(0, 6, 40, base=2).tolist()
    ours = [yarn_attention_factor(factor) ** 2 for factor in shown]
    other = [longrope_attention_factor(f, TRAINED) ** 2 for f in shown]
    fig, ax = plt.subplots(figsize=(4.4, 2.4))
    for name, scale in (("YaRN", ours), ("LongRoPE", other)):
        ax.semilogx(shown, scale, color=WAYS[name], label=name, base=2)
    ticks = [1, 2, 4, 8, 16, 32, 64]
    ax.set_xticks(ticks, ticks)
    ax.set_xlabel("factor by which the context grows")
    ax.set_ylabel("scores multiplied by (factor)")
    name_lines(ax)
    return fig, {
        "factor": FACTOR,
        "trained": TRAINED,
        "yarn": yarn_attention_factor(FACTOR) ** 2,
        "longrope": longrope_attention_factor(FACTOR, TRAINED) ** 2,
    }


def mscale():
    print("factor on     q and k    scores")
    values = {}
    for name, factor, scaled, all_dim, in_code in (
        ("gpt-oss", 32, None, None, 1),
        ("Ministral 3", 16, 1, 1, 1),
        ("in DeepSeek", 16, 1, 1, _strength(16, 1)),
    ):
        vectors = _strength(factor, 1)
        if scaled and all_dim:
            vectors = _strength(factor, scaled) / _strength(factor, all_dim)
        scores = vectors**2 * in_code**2
        print(f"{name:<11}  {vectors:>10.4f}  {scores:>9.4f}")
        values |= {_key(name): vectors, f"{_key(name)}_scores": scores}
    return values | {"times": yarn_attention_factor(16) ** 2, "factor": 16}


def _strength(factor, share):
    return 0.1 * share * math.log(factor) + 1


def _reach(frequencies, limit=200_000):
    """Return the greatest L up to which no distance has a negative sum."""
    for first in range(0, limit, 8192):
        distance = torch.arange(first, first + 8192)
        sums = (distance[:, None] * frequencies).cos().sum(-1)
        if (sums < 0).any():
            return first + (sums < 0).nonzero()[0].item() - 1
    raise ValueError(f"no negative sum up to {limit}")


def bases():
    dim, rows = 128, {}
    print("| Base | Longest wavelength | Reach |")
    print("|---|--:|--:|")
    for base, length, model, source in RAISED:
        link = f"[{model}](../bibliography.md#{source}), {length:,}"
        rows[base] = [*rows.get(base, [f"**{base:,}**"]), link]
    values = {"dim": dim}
    for base, links in rows.items():
        frequencies = rope_frequencies(dim, base)
        wave, reach = 2 * math.pi / frequencies[-1], _reach(frequencies)
        print(f"| {'<br>'.join(links)} | {wave:,.0f} | {reach:,} |")
        values |= {f"wave_{base}": wave, f"reach_{base}": reach}
    lucky, more = 27_000, 27_270
    passed = [
        model
        for base, length, model, _ in RAISED
        if length > values[f"reach_{base}"]
    ]
    listed = [
        model
        for base, length, model, _ in RAISED
        if base < LEAST_BASE[length // 1024]
    ]
    most = max(LEAST_BASE)
    return values | {
        "beyond": len(passed),
        "beyond_by_table": len(listed),
        "listed_thousands": most,
        "listed_base": LEAST_BASE[most],
        "listed_reach": _reach(rope_frequencies(dim, LEAST_BASE[most])),
        "lucky": lucky,
        "more": more,
        "lucky_reach": _reach(rope_frequencies(dim, lucky)),
        "more_reach": _reach(rope_frequencies(dim, more)),
    }


def base_bound():
    """Three falling staircases against distance, on a logarithmic axis, one
    for each base. The staircase of the smallest base crosses zero first, at a
    dot; those of the two larger bases run close together and cross zero
    further right, the largest base last.
    """
    distance = torch.arange(40_000)
    shown = torch.logspace(0, math.log10(39_999), 36).long().unique()
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    ax.axhline(0, color="gray", linewidth=0.8)
    for n, (base, line) in enumerate(
        ((10_000, "-"), (500_000, "--"), (1_000_000, "-."))
    ):
        frequencies = rope_frequencies(128, base)
        mean = (distance[:, None] * frequencies).cos().mean(-1)
        lowest = mean.cummin(0).values
        ax.semilogx(shown, lowest[shown], line, color=f"C{n}")
        reach = _reach(frequencies)
        ax.plot(reach, 0, "o", color=f"C{n}", zorder=3)
        ax.annotate(
            *(f"base {base:,}\nup to {reach:,}", (reach, 0)),
            [(-130, -45), (-60, 62), (-50, 105)][n],
            textcoords="offset points",
            color=f"C{n}",
            arrowprops={"arrowstyle": "-", "color": f"C{n}", "lw": 0.6},
        )
    ax.minorticks_off()
    ax.set_xlabel("distance (tokens)")
    ax.set_ylabel("lowest mean cosine up to this distance")
    return fig


def _self_extend(distance, query, window, group):
    """Keep distances below the window, and count larger ones in groups."""
    grouped = query // group - (query - distance) // group
    far = grouped + window - window // group
    return torch.where(distance < window, distance, far)


def reassigned():
    tokens, window, group = 16_000, 1024, 5
    query = tokens - 1
    print("distance  used as")
    for distance in (1, 1000, 1024, 1025, 1029, 4096, query):
        far = _self_extend(torch.tensor(distance), query, window, group)
        print(f"{distance:>8,}  {far:>8,}")
    most = _self_extend(torch.arange(tokens), query, window, group).max()
    return {"tokens": tokens, "most": most}


def critical():
    dim, raised = 128, 1_000_000
    came_round = TRAINED * rope_frequencies(dim, base=10000) >= 2 * math.pi
    first_new = came_round.sum()  # the first pair that did not
    wave = 2 * math.pi / rope_frequencies(dim, raised)[first_new]
    return {
        "dim": dim,
        "trained": TRAINED,
        "raised": raised,
        "channels": 2 * came_round.sum(),
        "bound": wave,
    }


def _p_rope(frequencies, share):
    turning = torch.arange(len(frequencies)) < int(share * len(frequencies))
    return frequencies * turning  # slow pairs are not rotated


def p_rope():
    for name, used in (
        ("RoPE", rope_frequencies(16, base=10000)),
        ("p-RoPE", _p_rope(rope_frequencies(16, base=10000), 0.25)),
        ("partial", rope_frequencies(4, base=10000)),
    ):
        print(f"{name:<7}", *(f"{w:.3f}" for w in used[:4]), end="")
        print(" ..." if len(used) > 4 else "")
    wide = _p_rope(rope_frequencies(512, 1e6), 0.25)
    turning = wide[wide > 0]
    return {
        "dim": 512,
        "pairs": len(wide),
        "turning": len(turning),
        "wave": 2 * math.pi / turning[-1],
    }


def llama3_counts():
    frequencies = rope_frequencies(128, base=500_000.0)
    slower = frequencies / llama3(frequencies)
    kept = (slower == 1).sum()
    divided = ((slower - 8).abs() < 1e-9).sum()
    blended = len(slower) - kept - divided
    print(f"of {len(slower)} pairs, by rotations in 8192 tokens")
    print(f"  {kept:>2} unchanged, 4 rotations or more")
    print(f"  {blended:>2} in between")
    print(f"  {divided:>2} slowed by 8, less than 1 rotation")
    return {
        "pairs": len(slower),
        "kept": kept,
        "blended": blended,
        "divided": divided,
    }


def switch():
    frequencies = rope_frequencies(DIM, base=10000)
    ones = torch.ones_like(SEARCHED)
    position, pair = 4000, 33
    print(f"angle of pair {pair} for the key at {position}")
    angles = []
    for length in (TRAINED, TRAINED + 1):
        used = longrope(frequencies, ones, SEARCHED, TRAINED, length)
        angles.append(math.degrees(position * used[pair]))
        print(f"  in a text of {length} tokens  {angles[-1]:>5.1f}°")
    return {"before": angles[0], "after": angles[1]}


def in_a_model():
    factor, trained, dim = 16, 4096, 64
    frequencies = yarn(rope_frequencies(dim, base=10000), factor, trained)
    strength = yarn_attention_factor(factor)

    q = torch.randn(1, 2, 5, dim)  # batch, heads, tokens, dim
    k = torch.randn(1, 2, 9, dim)  # with four tokens from the cache
    positions = torch.arange(50_000, 50_009)
    cos, sin = rope_tables(positions, frequencies)  # for all layers
    q = apply_rope(q, cos[4:], sin[4:], "half") * strength
    k = apply_rope(k, cos, sin, "half") * strength
    scores = q @ k.mT / math.sqrt(dim)
    print(tuple(frequencies.shape), tuple(q.shape), tuple(scores.shape))


def _features(frequencies, count):
    """Return what a score that depends only on the offset is built from."""
    angles = torch.arange(count)[:, None] * frequencies
    return torch.cat((angles.cos(), angles.sin()), dim=-1)


def _near(score):
    """Return the excess loss for equal attention to the last NEAR tokens."""
    reach = score.logcumsumexp(0)[NEAR:]
    return (reach - score[:NEAR].mean()).mean() - math.log(NEAR)


def _far(score):
    """Return the excess loss for equal attention to all but the last FAR."""
    reach, count = score.logcumsumexp(0)[FAR:], len(score) - FAR
    so_far = torch.arange(1, count + 1)
    mean = score[FAR:].cumsum(0) / so_far
    return (reach - mean - so_far.log()).mean()


def _trained(features, head, task, updates, rate=0.05):
    head = head.clone().requires_grad_()
    optimizer = torch.optim.Adam([head], lr=rate)
    for _ in range(updates):
        loss = task(features @ head)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head.detach()


def _head(task, seed=0):
    generator = torch.Generator().manual_seed(seed)
    frequencies = rope_frequencies(64, base=10000)
    # In float32, the result would depend on how the processor rounds.
    start = 0.1 * torch.randn(64, generator=generator).double()
    known = _features(frequencies, OFFSETS_LEARNED)
    return frequencies, _trained(known, start, task, UPDATES)


def beyond():
    """Two curves of scores against the offset; a gray band marks the trained
    range.

    Within the band, the unchanged curve rises at once and is then almost
    level. Beyond the band, it climbs again and again above every score of
    the trained range and once falls below all of them. With interpolation,
    the curve has the shape of the trained part, stretched to eight times its
    width.
    """
    frequencies, head = _head(_far)
    count = OFFSETS_LEARNED * STRETCH
    plain = _features(frequencies, count) @ head
    slowed = position_interpolation(frequencies, STRETCH)
    slowed = _features(slowed, count) @ head
    within, outside = plain[FAR:OFFSETS_LEARNED], plain[OFFSETS_LEARNED:]
    fig, ax = plt.subplots(figsize=(4.4, 2.6))
    ax.axvspan(0, OFFSETS_LEARNED, color="gray", alpha=0.2, linewidth=0)
    shown = range(0, count, 32)
    ax.plot(shown, plain[::32], color="black", linewidth=1, label="unchanged")
    ax.plot(shown[::2], slowed[::64], color="C0", label="interpolation")
    ax.set_xlabel("offset (tokens)")
    ax.set_ylabel("attention score")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    parts = {
        "within": within,
        "outside": outside,
        "slowed": slowed[FAR * STRETCH :],
    }
    lowest = {
        f"lowest_{n}": round(p.min().item(), 3) for n, p in parts.items()
    }
    highest = {
        f"highest_{n}": round(p.max().item(), 3) for n, p in parts.items()
    }
    counts = {
        "dim": len(head),
        "trained": OFFSETS_LEARNED,
        "count": count,
    }
    return fig, counts | lowest | highest


def two_heads(seed=0):
    print(f"excess loss (nats), {STRETCH} times the length")
    print("                  near         far")
    print("             as is tuned as is tuned")
    rows, count = {}, OFFSETS_LEARNED * STRETCH
    columns = ("near", "near_tuned", "far", "far_tuned")
    for task in (_near, _far):
        frequencies, head = _head(task, seed)
        made = _methods(frequencies, STRETCH, OFFSETS_LEARNED)
        for name, used in made.items():
            features = _features(used, count)
            tuned = _trained(features, head, task, 20, rate=0.02)
            losses = [task(features @ h).item() for h in (head, tuned)]
            rows[name] = [*rows.get(name, []), *losses]
    for name, row in rows.items():
        near, near_tuned, far, far_tuned = row
        print(
            f"{name:<13}{near:>5.2f} {near_tuned:>5.2f}"
            f" {far:>5.2f} {far_tuned:>5.2f}"
        )
    return {
        "stretch": STRETCH,
        "near": NEAR,
        "far": FAR,
        **{
            f"{_key(name)}_{column}": loss
            for name, row in rows.items()
            for column, loss in zip(columns, row, strict=True)
        },
    }


def xpos_scale():
    """Line chart of the factor on the score of three pairs, on a logarithmic
    axis, against distance. All lines pass through one at distance zero.

    To the right the lines fall, that of the fast pair most; to the left, for
    keys after the query, they rise. A dotted line, the formula printed in the
    paper, falls so steeply that it looks vertical.
    """
    dim, reach = 64, 2048
    decay, distance = xpos_decay(dim), torch.arange(-512, reach + 1, 256)
    tables = xpos_tables(
        distance, dim, "query", centre=0, dtype=torch.float64
    )
    fig, ax = plt.subplots()
    ax.axvspan(-512, 0, color="gray", alpha=0.2, linewidth=0)
    for pair, line in ((0, "-"), (16, "--"), (31, "-.")):
        x = torch.zeros(1, dim, dtype=torch.float64)
        x[0, 2 * pair] = 1
        moved = apply_xpos(x.expand(len(distance), dim), *tables)
        ax.semilogy(distance, moved.norm(dim=-1), line, label=f"pair {pair}")
    printed = decay[31] ** torch.arange(0, 193, 16)
    ax.semilogy(range(0, 193, 16), printed, ":k", label="pair 31\nas printed")
    ax.set_xlabel("distance from the key to the query (tokens)")
    ax.set_ylabel("score multiplied by (factor)")
    name_lines(ax)
    return fig, {
        "base": 512,
        "first": decay[0],
        "last": decay[-1],
        "growth": 1 / decay[0],
        "printed_first": decay[0] ** 8,
        "printed_last": decay[-1] ** 512,
    }


def xpos_centre():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 64, generator=generator, dtype=torch.float64)
    here, there = torch.tensor([700]), torch.tensor([650])

    def scaled(x, at, role, centre):
        tables = xpos_tables(at, 64, role, centre, dtype=x.dtype)
        return apply_xpos(x, *tables)

    def score(of_query, of_key):
        query = scaled(q, here, "query", of_query)
        return (query @ scaled(k, there, "key", of_key).T).item()

    print("centre: query    key   score")
    for centres in ((0, 0), (350, 350), (5000, 5000), (350, 0)):
        print(f"{centres[0]:>13}  {centres[1]:>5}   {score(*centres):>5.2f}")
    return {"right": score(0, 0), "wrong": score(350, 0)}
