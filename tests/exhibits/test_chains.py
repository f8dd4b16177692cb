"""What the chapter says of texts in which length matters, held against the kept results, seed by seed."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
import torch

from exhibits import _on_chains, chains
from experiments import chains as markov
from experiments.chain_models import BY_LAYER, STATES
from experiments.intervals import compare, could_be_seen, quantile
from experiments.runs import load

WITHIN, FAR, ALL = "128", "1024", "1024"  # two bands, by their ends; the window that hides nothing
SEEN = (32, 63, 64, 127, 128, 255)  # windows, and what two layers with one reach
# The nearest at the end, and who is farthest of them last.
READ_ON = ("DeBERTa", "Transformer-XL", "Shaw", "CoPE", "KERPLE", "clipped bias")


def means(name, end, window=ALL):
    """The distance from the best possible, of each seed."""
    runs = [run["excess_loss"][window][end] for run in load("chains")[name]]
    return torch.tensor(runs, dtype=torch.float64).mean(-1)


@pytest.fixture(scope="module")
def counted():
    """By how many states are seen, then by band: what is lost by counting, text by text, slowly.

    With None what is best possible is told itself.
    """
    lost = {seen: defaultdict(list) for seen in (None, *SEEN)}
    for text in markov.evaluation_texts()[:12].tolist():
        for place in range(len(text) - 1):
            whole = chances(text[: place + 1], text[place])
            end = next(str(end) for _, end in markov.BANDS if place < end)
            lost[None][end].append(-sum(p * math.log(p) for p in whole))
            for seen in SEEN:
                part = chances(text[max(0, place + 1 - seen) : place + 1], text[place])
                lost[seen][end].append(sum(p * math.log(p / q) for p, q in zip(whole, part, strict=True)))
    return {seen: {end: sum(e) / len(e) for end, e in bands.items()} for seen, bands in lost.items()}


def chances(text, now):
    came = Counter(then for before, then in pairwise(text) if before == now)
    all_ = sum(came.values()) + markov.PRIOR * STATES
    return [(came[state] + markov.PRIOR) / all_ for state in range(STATES)]


def test_the_floor_and_the_counts_are_those_of_counting_by_hand(counted):
    texts = markov.evaluation_texts()[:12]
    floor = markov.band_means(markov.optimal_loss(texts))
    for end, expected in counted[None].items():
        assert sum(floor[end]) / 12 == pytest.approx(expected, abs=1e-3)
    for seen in SEEN:
        lost = markov.band_means(markov.excess_loss(markov.counting_predictions(texts, seen).log(), texts))
        for end, expected in counted[seen].items():
            assert sum(lost[end]) / 12 == pytest.approx(expected, abs=1e-3)
            shown = _on_chains.counting(seen)[end]
            assert shown[:12] == lost[end] and len(shown) == markov.EVAL_TEXTS


def test_the_tables_tell_what_was_kept_and_who_is_surely_nearer(capsys):
    values, names = chains.distances(), [*chains.WITHOUT]
    head, _, _, *rows, count, reach = [
        line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()
    ]
    asked = [("128", ALL), ("256", ALL), ("512", ALL), (FAR, ALL), (FAR, "128")]
    assert head[1:5] == [f"{int(end) // 2} to {int(end):,}" for end, _ in asked[:4]]
    assert {row[0] for row in rows} == {*names} and values["reach"] == 255
    for cells, seen in ((count, 128), (reach, 255)):
        assert cells[0] == f"*counting, last {seen}*"
        for cell, (end, _) in zip(cells[1:5], asked[:4], strict=True):
            assert cell.startswith(f"{distance('count', end, seen).mean():.2f} ±")
        assert values[f"count_{seen}_1024"] == pytest.approx(
            distance("count", FAR, seen).mean().item(), abs=1e-5
        )
    for name, *cells in rows:
        assert_cells(cells, name, asked)
    ends = [means(row[0], FAR).mean() for row in rows]
    assert ends == sorted(ends)
    assert chains.windows() == {"pairs": 105}
    head, _, *rows, same, reach = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert head[1:] == ["64", "32", "Beats", "Not distinguishable from"] and {row[0] for row in rows} == {
        *names
    }
    for cells, seen in ((same, (64, 32)), (reach, (127, 63))):
        for cell, each in zip(cells[1:3], seen, strict=True):
            assert cell.startswith(f"{distance('count', FAR, each).mean():.2f} ±")
    for name, *cells, beats, level in rows:
        assert_cells(cells, name, [(FAR, window) for window in head[1:3]])
        others = [e for e in names if e != name]
        better = {e: compare(distance(name, FAR), distance(e, FAR)).better() for e in others}
        assert int(beats) == [*better.values()].count(True)
        assert level == (", ".join(e for e in others if better[e] is None) or "–")
    for name in names:
        for end, window in (*asked, (FAR, "64"), (FAR, "32")):
            seen = "all" if window == ALL else window
            kept = means(name, end, window).mean().item()
            assert values[f"{_on_chains.key(name)}_{seen}_{end}"] == pytest.approx(kept, abs=1e-5)


def assert_cells(cells, name, asked):
    for cell, (end, window) in zip(cells, asked, strict=True):
        assert cell.startswith(f"{means(name, end, window).mean():.2f} ±")


def test_a_verdict_is_that_of_the_rule():
    told = chains.verdicts()
    words = _on_chains.WORDS
    for one in chains.WITHOUT:
        for other in (*chains.WITHOUT, "count"):
            if one != other:
                seen = ALL if other != "count" else 128
                found = compare(distance(one, FAR), distance(other, FAR, seen)).better()
                assert told[f"{_on_chains.key(one)}_{_on_chains.key(other)}"] == words[found]
    assert told["none_rope"] == told["rope_none"] == words[None]  # in the recipe of the table
    assert told["t5_count"] == words[None]
    assert told["sinusoidal_rope"] == told["sinusoidal_none"] == words[True]  # in plain words


def test_what_could_have_been_seen_at_the_end_is_told_of_the_surest_and_the_least_sure_pair():
    values, names = chains.distances(), [*chains.WITHOUT]
    seen = [
        could_be_seen(distance(one, FAR) - distance(other, FAR))
        for at, one in enumerate(names)
        for other in names[:at]
    ]
    assert values["seen_least"] == pytest.approx(min(seen), rel=0.05)
    assert values["seen_most"] == pytest.approx(max(seen), rel=0.05)
    for key, name, window in (("rope", "RoPE", ALL), ("none", "none", ALL), ("deberta", "DeBERTa", ALL)):
        found = compare(_on_chains.excess_loss("best", int(FAR)), distance(name, FAR, window))
        assert values[f"{key}_half"] == pytest.approx((found.high - found.low) / 2)


def test_an_outcome_is_that_of_the_whole_interval(capsys):
    told = chains.expected()
    rows = capsys.readouterr().out.splitlines()[2:]
    outcomes = Counter()
    for experiment, stop, entry in chains._predictions():
        less, more = (torch.atleast_2d(each.double()) for each in chains._losses(experiment, entry))
        gain = more - less
        seeds, texts = gain.mean(1), gain.mean(0)
        halves = [quantile(len(e) - 1) * e.std() / len(e) ** 0.5 for e in (seeds, texts) if len(e) > 1]
        half = math.hypot(*halves)
        low, high = gain.mean() - half, gain.mean() + half
        outcome = "held" if low > entry["by"] else "failed" if high < entry["by"] else "open"
        outcomes[outcome] += not stop and experiment != "tasks"
        outcome += ", known" if experiment == "tasks" else ""
        cells = rows.pop(0)[2:-2].split(" | ")
        says = f"*Stop rule.* {entry['says']}" if stop else entry["says"]
        assert cells[:2] == [f"{experiment}: {says}", outcome]
        assert cells[2] == f"{gain.mean():+.2f} ({low:+.2f} to {high:+.2f})"
    assert rows == []
    assert {word: told[word] for word in ("held", "failed", "open")} == outcomes


def distance(name, end, window=ALL):
    return _on_chains.excess_loss(name, int(end), window)


@pytest.mark.claim(
    "evidence-chains-are-learned",
    "On Markov chains, in the second half of the training length, the excess loss of sinusoids, DeBERTa, "
    "Shaw, FIRE, Transformer-XL, CoPE, the clipped bias, T5, RoPE, xPos and KERPLE is at most 0.05 nats "
    "in each seed, lowest with sinusoids; with Sandwich, the learned table and ALiBi it is 0.09 to 0.2, on "
    "average above 0.1, and without positional encoding at least 0.6.",
)
def test_chains_are_learned_within_the_trained_length():
    middling = ("Sandwich", "learned", "ALiBi")
    near = {*chains.WITHOUT} - {*middling, "none"}
    assert len(near) == 11
    assert max(near, key=lambda name: means(name, WITHIN).mean()) == "KERPLE"
    assert all(means(name, WITHIN).mean() > 0.1 for name in middling)
    for name in near:
        assert (means(name, WITHIN) < 0.05).all()
        for farther in (*middling, "none"):
            assert compare(distance(name, WITHIN), distance(farther, WITHIN)).better() is True
    for name in near - {"sinusoidal"}:
        assert compare(distance("sinusoidal", WITHIN), distance(name, WITHIN)).better() is True
        assert (means("sinusoidal", WITHIN) < means(name, WITHIN)).all()
    for name in middling:
        assert (means(name, WITHIN) > 0.09).all() and (means(name, WITHIN) < 0.2).all()
    ends = [means(name, WITHIN).mean() for name in middling]
    assert ends == sorted(ends)
    assert (means("none", WITHIN) > 0.6).all()


@pytest.mark.claim(
    "evidence-a-longer-window-is-better",
    "On Markov chains, from 512 to 1,024 states after training on 128, the excess loss of RoPE with heads "
    "of 16 is lower with a window of 128 states in each layer than with a window of 64, lower with 64 "
    "than with 32, and lower with 32 than with no window, by at least 0.05 nats in each seed. With a "
    "window of 128, it is less than half of the excess loss with no window, in each seed, and higher than "
    'that of counting in the 255 states that two such layers see, by the rule for "better".',
)
def test_a_longer_window_is_better_and_with_any_rope_is_behind_a_count_of_what_it_sees():
    windows = [means("RoPE", FAR, seen) for seen in ("128", "64", "32", ALL)]
    assert all((one < other - 0.05).all() for one, other in pairwise(windows))
    assert compare(distance("RoPE", FAR, 128), distance("RoPE", FAR)).better(0.1) is True
    assert compare(distance("count", FAR, 255), distance("RoPE", FAR, 128)).better() is True
    assert (means("RoPE", FAR, "128") < means("RoPE", FAR) / 2).all()


@pytest.mark.claim(
    "evidence-older-ones-read-on",
    "On Markov chains, from 512 to 1,024 states after training on 128, DeBERTa, Transformer-XL, Shaw, CoPE, "
    "KERPLE and the clipped bias have a lower excess loss than counting in the last 128 states, by at least "
    '0.05 nats in each seed and by the rule for "better", and an excess loss at least 0.1 nats lower than '
    "their own with a window of 128. By the rule, FIRE and Sandwich have a lower excess loss than that "
    "counting, too, FIRE with four of five seeds, and no other encoding has.",
)
def test_older_ones_beat_a_count_of_what_was_trained():
    count = distance("count", FAR, 128)
    for name in READ_ON:
        assert (means(name, FAR) < count.mean() - 0.05).all(), name
        assert compare(distance(name, FAR), count).better() is True, name
        assert compare(distance(name, FAR), distance(name, FAR, 128)).better(0.1) is True, name
    for name in ("FIRE", "Sandwich"):
        assert compare(distance(name, FAR), count).better() is True, name
    assert (means("FIRE", FAR) < count.mean()).sum() == 4
    for name in {*chains.WITHOUT} - {*READ_ON, "FIRE", "Sandwich"}:
        assert compare(distance(name, FAR), count).better() is not True, name
    ends = [means(name, FAR).mean() for name in READ_ON]
    assert min(ends) == ends[0] and max(ends) == ends[-1]


@pytest.mark.claim(
    "evidence-far-text-is-used",
    "On Markov chains, from 512 to 1,024 states after training on 128, ALiBi, T5, sinusoids and a learned "
    "table have a lower excess loss without a window than with a window of 128 states in each layer, by "
    'the rule for "better" and in each seed. For sinusoids and the table, the difference is larger than '
    "the excess loss of counting in the last 128 states. By the rule, none of the four has a lower excess "
    "loss than that of counting in the last 128 states.",
)
def test_a_window_takes_something_from_four():
    values, count = chains.distances(), distance("count", FAR, 128)
    for name in ("ALiBi", "T5", "sinusoidal", "learned"):
        assert (means(name, FAR) < means(name, FAR, "128")).all()
        assert compare(distance(name, FAR), distance(name, FAR, 128)).better() is True
        assert compare(distance(name, FAR), count).better() is not True
        uses = (means(name, FAR, "128") - means(name, FAR)).mean().item()
        assert values[f"{name.lower()}_uses"] == pytest.approx(uses, abs=1e-5)
        assert (uses > count.mean()) == (name in ("sinusoidal", "learned"))


@pytest.mark.claim(
    "evidence-sinusoids-hold-on-chains",
    "On Markov chains, from 512 to 1,024 states after training on 128, with one recipe, the excess loss "
    "is at most 0.4 nats with sinusoids, at most 0.7 with a learned table, which uses its last row for "
    "each later position, and at least 0.9 with RoPE with heads of 16, in each seed. In the second half "
    "of the training length, the excess loss of sinusoids is at most 0.02 nats. With a window of 32, 64 "
    "or 128 states, the excess loss of sinusoids and of the table is at least 0.4 nats higher than "
    'without a window, by the rule for "better".',
)
def test_sinusoids_hold_and_a_window_hurts_them_and_the_table():
    assert (means("sinusoidal", FAR) < 0.4).all() and (means("learned", FAR) < 0.7).all()
    assert (means("RoPE", FAR) > 0.9).all() and (means("sinusoidal", WITHIN) < 0.02).all()
    for name in ("sinusoidal", "learned"):
        assert compare(distance(name, FAR), distance("RoPE", FAR)).better() is True
        for window in (32, 64, 128):
            assert compare(distance(name, FAR), distance(name, FAR, window)).better(0.4) is True


def test_the_rule_for_stopping_lets_pass_what_is_drawn():
    rule = [entry for regime, stop, entry in chains._predictions() if stop and regime == "chains"]
    assert len(rule) == 2
    for entry in rule:
        assert compare(*chains._losses("chains", entry)).better(entry["by"]) is True, entry["says"]


def test_the_best_possible_keeps_falling(counted):
    values = chains.distances()
    assert values["best_within"] - values["best_far"] > 0.3
    floors = [_on_chains.optimal_loss()[end] for _, end in markov.BANDS]
    assert floors == sorted(floors, reverse=True)


@pytest.mark.claim(
    "evidence-three-ways-read-on",
    "On Markov chains, from 512 to 1,024 states after training on 128, a window below a NoPE layer, "
    "forget gates and relative logits each have a lower excess loss than RoPE, ALiBi, T5, xPos, "
    "sinusoids, a learned table, no encoding and counting in the last 128 states, by the rule for "
    '"better" and in each seed.',
)
def test_three_of_today_use_what_lies_beyond_the_trained_length():
    count = torch.tensor(_on_chains.counting(128)[FAR], dtype=torch.float64)
    older = ("RoPE", "ALiBi", "T5", "xPos", "sinusoidal", "learned", "none")
    for name in BY_LAYER:
        ours = distance(name, FAR)
        for theirs in (count, *(distance(old, FAR) for old in older)):
            assert compare(ours, theirs).better() is True
            assert ours.mean(1).max() < torch.atleast_2d(theirs).mean(1).min()


@pytest.mark.claim(
    "evidence-sharper-is-nearer",
    "On Markov chains, from 512 to 1,024 states after training on 128, the excess loss of a window below "
    "a NoPE layer is lower if the scores of the NoPE layer are multiplied by a factor that grows with the "
    'logarithm of the position, by the rule for "better" and in each seed.',
)
def test_a_factor_that_grows_brings_the_layer_without_positions_nearer():
    sharper, plain = distance("window + NoPE layer", FAR, "temperature"), distance("window + NoPE layer", FAR)
    assert compare(sharper, plain).better() is True and (sharper.mean(1) < plain.mean(1)).all()


def test_the_table_of_today_tells_what_was_kept(capsys):
    values = chains.recent()
    head, _, *rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert head[1:5] == ["64 to 128", "128 to 256", "256 to 512", "512 to 1,024"]
    told = list(BY_LAYER)
    assert [row[0] for row in rows] == [told[0], "window + NoPE layer, temperature", *told[1:]]
    for name, *cells, verdict in rows:
        method, _, window = name.partition(", ")
        for end, cell in zip(("128", "256", "512", FAR), cells, strict=True):
            mean = distance(method, end, window or ALL).mean().item()
            assert cell.startswith(f"{mean:.2f} ±")
            assert values[f"{_on_chains.key(name)}_{end}"] == pytest.approx(mean, abs=1e-5)
        found = compare(distance(method, FAR, window or ALL), distance("DeBERTa", FAR)).better()
        assert verdict == {True: "lower", False: "higher", None: "not distinguishable"}[found]


def test_the_figure_of_today_draws_what_was_kept():
    ax = chains.today().axes[0]
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"none", "RoPE", "T5", "DeBERTa", *BY_LAYER}
    for name in BY_LAYER:
        assert float(lines[name].get_ydata()[-1]) == pytest.approx(
            distance(name, FAR).mean().item(), abs=1e-5
        )


def test_of_two_methods_that_do_not_differ_the_rule_seldom_calls_one_better(capsys):
    told = chains.coverage()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["2", "3", "5"]
    shares = [float(cell.rstrip("%")) / 100 for row in rows for cell in row[1:]]
    assert max(shares) == pytest.approx(told["worst"], abs=6e-4) and told["worst"] < 0.09
    assert min(shares) > 0.01, "the simulation can say that one is better"
