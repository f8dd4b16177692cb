"""What the chapter on evidence says of today's methods on chains, held against the kept results."""

import pytest
import torch

from exhibits import regimes
from experiments.intervals import compare
from experiments.runs import load

FAR, ALL = "1024", "1024"
THREE = ("window and none", "forgetting", "relative logits")


def kept(experiment, name, end=FAR, window=ALL):
    """The distance from the best possible, (seeds, texts)."""
    return torch.tensor([run["above"][window][end] for run in load(experiment)[name]], dtype=torch.float64)


@pytest.mark.claim(
    "evidence-three-ways-read-on",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, a window below a layer without "
    "positions, forgetting and relative logits are each nearer to the best possible loss than RoPE, ALiBi, "
    "T5, xPos, sinusoids, a learned table, no encoding and a count of the last 128 states, by the rule for "
    "better and in each seed",
)
def test_three_of_today_use_what_lies_beyond_the_trained_length():
    count = torch.tensor(regimes._counting(128)[FAR], dtype=torch.float64)
    older = ("RoPE", "ALiBi", "T5", "xPos", "sinusoidal", "learned", "none")
    for name in THREE:
        ours = kept("recent", name)
        for theirs in (count, *(kept("chains", old) for old in older)):
            assert compare(ours, theirs).better() is True
            assert ours.mean(1).max() < torch.atleast_2d(theirs).mean(1).min()


@pytest.mark.claim(
    "evidence-sharper-is-nearer",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, a window below a layer without "
    "positions is nearer to the best possible loss if the scores of that layer are multiplied by a factor "
    "that grows with the logarithm of the place than without, by the rule for better and in each seed",
)
def test_a_factor_that_grows_brings_the_layer_without_positions_nearer():
    sharper, plain = kept("recent", "window and none", window="sharper"), kept("recent", "window and none")
    assert compare(sharper, plain).better() is True and (sharper.mean(1) < plain.mean(1)).all()


@pytest.mark.claim(
    "evidence-a-larger-base-is-not-enough",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, RoPE with a base of 500,000 is "
    "nearer to the best possible loss than with 10,000 and farther than T5, by the rule for better and in "
    "each seed",
)
def test_a_larger_base_is_not_enough():
    large = kept("recent", "larger base")
    assert compare(large, kept("chains", "RoPE")).better() is True
    assert compare(kept("chains", "T5"), large).better() is True
    assert kept("chains", "T5").mean(1).max() < large.mean(1).min()
    assert large.mean(1).max() < kept("chains", "RoPE").mean(1).min()


def test_two_were_not_learned_within():
    for name in ("scattered places", "dropped"):
        assert (kept("recent", name, "128").mean(1) > 0.5).all()


def test_the_table_of_today_tells_what_was_kept(capsys):
    values = regimes.recent()
    head, _, *rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert head[1:5] == ["64 to 128", "128 to 256", "256 to 512", "512 to 1,024"]
    told = list(load("recent"))
    assert [row[0] for row in rows] == [told[0], "window and none, sharper", *told[1:]]
    for name, *cells, verdict in rows:
        method, _, window = name.partition(", ")
        for end, cell in zip(("128", "256", "512", FAR), cells, strict=True):
            mean = kept("recent", method, end, window or ALL).mean().item()
            assert cell.startswith(f"{mean:.2f} ±")
            assert values[f"{name.lower().replace(', ', '_').replace(' ', '_')}_{end}"] == pytest.approx(
                mean, abs=1e-5
            )
        found = compare(kept("recent", method, FAR, window or ALL), kept("chains", "DeBERTa")).better()
        assert verdict == {True: "nearer", False: "farther", None: "not distinguishable"}[found]


def test_the_figure_of_today_draws_what_was_kept():
    ax = regimes.today().axes[0]
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"none", "RoPE", "T5", "DeBERTa", *regimes.TODAY.values()}
    for name, label in regimes.TODAY.items():
        shown = lines[label].get_ydata()[-1]
        assert float(shown) == pytest.approx(kept("recent", name).mean().item(), abs=1e-5)


def test_the_table_of_larger_models_tells_what_was_kept(capsys):
    values = regimes.larger()
    _, _, *rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == [*load("larger")]
    for name, *cells in rows:
        assert cells[-1] == f"{kept('larger', name).mean().item():.2f}"
        assert values[name.lower().replace(" ", "_")] == pytest.approx(
            kept("larger", name).mean().item(), abs=1e-5
        )
    assert values["parameters"] == max(run["parameters"] for (run,) in load("larger").values())
