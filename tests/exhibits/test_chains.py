"""What the chapter on evidence says of layers, recipes and stretching on chains, against the kept results."""

import re

import pytest
import torch

from exhibits import chains, regimes
from experiments import extensions
from experiments.intervals import compare
from experiments.runs import load, plan

WITHIN, FAR, PLAIN = "128", "1024", "1024"
ORDERED = ("RoPE", "T5", "window and none", "window and RoPE", "RoPE and none")  # that can be shifted


def kept(experiment, name, end=FAR, window=PLAIN):
    """The distance from the best possible, (seeds, texts)."""
    return torch.tensor([run["above"][window][end] for run in load(experiment)[name]], dtype=torch.float64)


def layers(name, end=FAR, window=PLAIN):
    return kept("layers", name, end, window)


def test_models_whose_layers_were_patched_are_those_of_chains_to_the_last_digit():
    for name in ("RoPE", "none", "ALiBi", "T5", "Transformer-XL"):
        for end in (WITHIN, "256", "512", FAR):
            assert torch.equal(layers(name, end), kept("chains", name, end))
    assert torch.equal(layers("window and none"), kept("recent", "window and none"))


@pytest.mark.claim(
    "evidence-the-first-layer-lives-by-order",
    "In our runs on chains, in the second half of the trained length, a first layer to whose queries each "
    "key seems one place farther back than it is takes RoPE, T5, and each model with RoPE in its first layer "
    "alone, at least 2 nats away from the best possible; in the second layer that changes no model by more "
    "than 0.01, nor ALiBi in either by more than 0.001; in each seed",
)
def test_a_shift_ruins_the_first_layer_and_not_the_second():
    for name in load("layers"):
        if name == "Transformer-XL":
            continue
        plain = layers(name, WITHIN).mean(1)
        first, second = (layers(name, WITHIN, f"{layer} shifted").mean(1) for layer in ("first", "second"))
        assert ((second - plain).abs() <= 0.01).all(), name
        if name in ORDERED:
            assert (first >= 2).all() and (plain < 0.05).all(), name
        else:
            assert ((first - plain).abs() <= 0.001).all() and ((second - plain).abs() <= 0.001).all(), name


@pytest.mark.claim(
    "evidence-rope-breaks-in-both-layers",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, RoPE is nearer to the best "
    "possible by 0.25 nats or more if its first layer alone sees no more than the last 128 states, and if "
    "its second layer alone is told nothing of positions, by the rule for better and in each seed",
)
def test_each_layer_of_rope_has_its_part():
    plain = layers("RoPE")
    for patch in ("first 128", "second nothing"):
        assert compare(layers("RoPE", window=patch), plain).better(0.25) is True
        assert (layers("RoPE", window=patch).mean(1) < plain.mean(1) - 0.25).all()


@pytest.mark.claim(
    "evidence-window-and-bare-layer-mend-a-part-each",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, models with a window of 32 in "
    "the first layer alone, and models with no positions in the second alone, are nearer to the best "
    "possible than RoPE in both layers without a window, those with both nearer than those with the window, "
    "by 0.2 nats or more; a window of 128 in the first layer, put on after training, brings those with the "
    "bare layer alone nearer; all by the rule for better",
)
def test_the_window_and_the_bare_layer_mend_a_part_each():
    both, neither = layers("window and none"), layers("RoPE")
    window, bare = layers("window and RoPE"), layers("RoPE and none")
    for near, far in ((window, neither), (bare, neither), (both, window)):
        assert compare(near, far).better(0.2) is True
    assert compare(both, bare).better() is None, "not to be told apart, as their seeds scatter"
    assert compare(layers("RoPE and none", window="first 128"), bare).better() is True


def test_the_grids_and_the_table_of_layers_tell_what_was_kept(capsys):
    figure, values = chains.patched()
    columns = [PLAIN, *chains.PATCHES]
    for ax, end in zip(figure.axes, (WITHIN, FAR), strict=True):
        assert [label.get_text() for label in ax.get_yticklabels()] == [*load("layers")]
        texts = {text.get_position(): text.get_text() for text in ax.texts}
        for row, name in enumerate(load("layers")):
            for column, window in enumerate(columns):
                if name == "Transformer-XL" and "shifted" in window:
                    assert (column, row) not in texts
                    continue
                mean = layers(name, end, window).mean().item()
                assert texts[column, row] == f"{mean:.2f}".removeprefix("0")
                asked = "all" if window == PLAIN else window
                key = re.sub(r"\W+", "_", f"{name} {asked} {end}".lower())
                assert values[key] == pytest.approx(mean, abs=1e-5)
    values = chains.parted()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    names = [["RoPE", "RoPE and none"], ["window and RoPE", "window and none"]]
    for (head, *cells), row in zip(rows, names, strict=True):
        assert head == ("sees 32" if "window" in row[0] else "sees all")
        for cell, name in zip(cells, row, strict=True):
            assert cell.startswith(f"{layers(name).mean():.2f} ±")
    told = [layers(name).mean().item() for row in names for name in row]
    assert [*values.values()] == pytest.approx(told, abs=1e-5)


def ends(experiment, name):
    return [kept(experiment, name, end)[0].mean().item() for end in (WITHIN, FAR)]


def test_the_table_of_step_sizes_tells_what_was_kept_and_which_is_nearest_within(capsys):
    values = chains.recipes()
    head, _, *rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert head[1:] == ["0.001", "0.003", "0.006", "0.012"] and values["usual"] == 0.003
    asked = {method.split(", ")[0] for method in plan()["recipes"]["methods"] if ", rate" in method}
    assert {row[0] for row in rows} == asked
    for name, *cells in rows:
        usual = "recent" if name == "window and none" else "chains"
        found = [
            ends(usual, name) if rate == "0.003" else ends("recipes", f"{name}, rate {rate}")
            for rate in head[1:]
        ]
        for cell, (within, far) in zip(cells, found, strict=True):
            bold = within == min(each[0] for each in found)
            shown = f"{within:.2f} / {far:.2f}"
            assert cell == (f"**{shown}**" if bold else shown)
            if bold:
                key = name.lower().replace(" ", "_")
                assert values[f"{key}_far"] == pytest.approx(far, abs=1e-5)
                assert values[f"{key}_within"] == pytest.approx(within, abs=1e-5)


def test_the_table_of_changes_tells_what_was_kept(capsys):
    values = chains.changes()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    methods = [m for m in plan()["recipes"]["methods"] if ", rate" not in m]
    assert [f"{row[0]}, {row[1]}" for row in rows] == methods and values["longer"] == 4
    for name, change, *cells in rows:
        changed = ends("recipes", f"{name}, {change}")
        usual = ends("recent" if name == "window and none" else "chains", name)
        assert cells == [f"{each:.2f}" for each in (*changed, *usual)]


def stretched(name, end=FAR):
    return kept("extensions", "RoPE stretched", end, name)


def test_the_table_of_stretching_has_what_was_kept(capsys):
    values = chains.stretched()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == [*extensions.methods(torch.ones(32))] == chains._ways()
    for name, *cells in rows:
        asked = [(state, end) for state in ("untuned", "tuned") for end in (WITHIN, FAR)]
        for cell, (state, end) in zip(cells, asked, strict=True):
            mean = stretched(f"{state} {name}", end).mean().item()
            assert cell.startswith(f"{mean:.2f} ±")
            key = re.sub(r"\W+", "_", f"{name} {state} {'within' if end == WITHIN else 'far'}".lower())
            assert values[key] == pytest.approx(mean, abs=1e-5)


def by_seed(name, end=FAR):
    return stretched(name, end).mean(1)


@pytest.mark.claim(
    "evidence-stretching-helps-untuned",
    "In our runs on chains with heads of 64, from 512 to 1,024 states, where 128 were trained, RoPE is "
    "nearer to the best possible with a larger base, NTK-aware or dynamic NTK scaling, YaRN, LongRoPE and "
    "Llama 3's scaling than as trained, in each seed, and no nearer with position interpolation or "
    "NTK-by-parts",
)
def test_most_ways_to_stretch_help_untuned():
    plain = by_seed("untuned RoPE")
    helps = {name for name in chains._ways() if (by_seed(f"untuned {name}") < plain - 0.1).all()}
    assert helps == {*chains._ways()} - {"RoPE", "position interpolation", "NTK-by-parts"}
    for name in ("position interpolation", "NTK-by-parts"):
        assert by_seed(f"untuned {name}").mean() > plain.mean()
        assert compare(stretched(f"untuned {name}"), stretched("untuned RoPE")).better() is not True
    best = sorted(helps, key=lambda name: by_seed(f"untuned {name}").mean())
    assert {*best[:2]} == {"YaRN", "LongRoPE"} and best[2] == "Llama 3"
    assert (by_seed("untuned position interpolation", WITHIN) > 1).all()


@pytest.mark.claim(
    "evidence-the-fastest-pair-should-stay",
    "In our runs on chains with heads of 64, not tuned, RoPE is at least 0.6 nats above the best possible in "
    "the second half of the trained length with position interpolation and NTK-by-parts as in its paper, "
    "which slow the fastest pair by a third or more there, and at most 0.1 with each other way, which leaves "
    "that pair as it is, in each seed",
)
def test_who_slows_the_fastest_pair_is_bad_within():
    ways = extensions.methods(torch.full((32,), 3.0))
    plain = ways["RoPE"](128)[0][0]
    for name in chains._ways():
        found = by_seed(f"untuned {name}", WITHIN)
        if ways[name](128)[0][0] < 0.7 * plain:
            assert name in ("position interpolation", "NTK-by-parts") and (found >= 0.6).all()
        else:
            assert ways[name](128)[0][0] == plain and (found <= 0.1).all(), name


@pytest.mark.claim(
    "evidence-tuning-helps",
    "In our runs on chains with heads of 64, a few updates at the full length bring RoPE nearer to the best "
    "possible from 512 to 1,024 states, with its own frequencies, a larger base and each way to stretch it, "
    "in each seed; all but position interpolation then are at most 0.12 from it, RoPE's own frequencies "
    "farthest",
)
def test_tuning_helps_each():
    tuned = {name: by_seed(f"tuned {name}") for name in chains._ways()}
    for name, found in tuned.items():
        assert (found < by_seed(f"untuned {name}")).all(), name
    assert (tuned.pop("position interpolation") > 1).all()
    assert all((found <= 0.12).all() for found in tuned.values())
    for name in tuned:
        if name != "RoPE":
            assert compare(stretched(f"tuned {name}"), stretched("tuned RoPE")).better() is True, name


def by_rate(name):
    """Within and at the end, of one seed, with each step size."""
    usual = "recent" if name == "window and none" else "chains"
    return torch.tensor(
        [ends(usual, name), *(ends("recipes", f"{name}, rate {rate}") for rate in (0.001, 0.006, 0.012))]
    )


@pytest.mark.claim(
    "evidence-no-step-size-saves-rope",
    "In our runs on chains with one seed and step sizes of 0.001, 0.003, 0.006 and 0.012, RoPE is at least "
    "0.9 nats above the best possible from 512 to 1,024 states, and the model without positions at least 0.6 "
    "in the second half of the trained length; T5 is nearer at the end with 0.006 and 0.012 than a count of "
    "the last 128 states, by the rule for better over texts, and farther with 0.001; KERPLE and a window "
    "below a layer without positions are nearer with each",
)
def test_no_step_size_saves_rope_and_t5_profits_of_larger_ones():
    assert (by_rate("RoPE")[:, 1] >= 0.9).all() and (by_rate("none")[:, 0] >= 0.6).all()
    count = regimes._measured("chains", "count", 1024, 128).double()
    better = {
        (name, rate): compare(kept("recipes", f"{name}, rate {rate}"), count).better()
        for name in ("T5", "KERPLE", "window and none")
        for rate in (0.001, 0.006, 0.012)
    }
    assert better.pop(("T5", 0.001)) is False and all(better.values())
    assert chains.recipes()["t5_nearest"] == pytest.approx(by_rate("T5")[:, 1].min().item(), abs=1e-5)


@pytest.mark.claim(
    "evidence-more-training-does-not-save-rope",
    "In our runs on chains with one seed and four times the updates, RoPE comes within 0.01 nats of the best "
    "possible in the second half of the trained length, and is at least 1 above it from 512 to 1,024 states; "
    "a window below a layer without positions is then nearer than T5, and T5 than RoPE, by the rule for "
    "better over texts; the model without positions is still at least 0.5 above it within",
)
def test_more_training_does_not_save_rope():
    within, far = ends("recipes", "RoPE, long")
    assert within <= 0.01 and far >= 1
    assert compare(kept("recipes", "window and none, long"), kept("recipes", "T5, long")).better() is True
    assert compare(kept("recipes", "T5, long"), kept("recipes", "RoPE, long")).better() is True
    assert ends("recipes", "none, long")[0] >= 0.5


@pytest.mark.claim(
    "evidence-sinusoids-hold-by-their-loudness",
    "In our runs on chains with one seed, sinusoids that are added as loud as the tokens are at least 0.5 "
    "nats farther from the best possible from 512 to 1,024 states, where 128 were trained, than sinusoids as "
    "they are, by the rule for better over texts",
)
def test_sinusoids_as_loud_as_the_tokens_do_not_hold():
    loud = kept("chains", "sinusoidal")[:1]
    assert compare(loud, kept("recipes", "sinusoidal, quiet")).better(0.5) is True
