"""What the chapter on evidence says of layers and context extension on chains, against the stored results."""

import re

import pytest
import torch

from exhibits import layers
from exhibits._on_chains import counting as counting_in
from experiments import extensions
from experiments.intervals import compare
from experiments.runs import load

WITHIN, FAR, PLAIN = "128", "1024", "1024"
ORDERED = (
    "RoPE",
    "T5",
    "window + NoPE layer",
    "window + RoPE layer",
    "RoPE + NoPE layer",
)  # that can be shifted


def kept(experiment, name, end=FAR, window=PLAIN):
    """The distance from the best possible, (seeds, texts)."""
    return torch.tensor(
        [run["excess_loss"][window][end] for run in load(experiment)[name]], dtype=torch.float64
    )


def excess(name, end=FAR, window=PLAIN):
    return kept("layers", name, end, window)


def test_models_whose_layers_were_patched_are_those_of_chains_to_the_last_digit():
    for name in ("RoPE", "none", "ALiBi", "T5", "Transformer-XL"):
        for end in (WITHIN, "256", "512", FAR):
            assert torch.equal(excess(name, end), kept("chains", name, end)[:3])
    assert torch.equal(excess("window + NoPE layer"), kept("chains", "window + NoPE layer")[:3])


@pytest.mark.claim(
    "evidence-the-first-layer-lives-by-order",
    "On Markov chains, in the second half of the training length, shifting each key of the first layer "
    "one position farther back raises the excess loss of RoPE, T5 and each model with RoPE only in its "
    "first layer to at least 2 nats. In the second layer, the same shift changes none of the shifted "
    "models by more than 0.01 nats. In neither layer does it change ALiBi by more than 0.001 nats. All of "
    "this holds in each seed.",
)
def test_a_shift_ruins_the_first_layer_and_not_the_second():
    for name in load("layers"):
        if name == "Transformer-XL":
            continue
        plain = excess(name, WITHIN).mean(1)
        first, second = (excess(name, WITHIN, f"{layer} shifted").mean(1) for layer in ("first", "second"))
        assert ((second - plain).abs() <= 0.01).all(), name
        if name in ORDERED:
            assert (first >= 2).all() and (plain < 0.05).all(), name
        else:
            assert ((first - plain).abs() <= 0.001).all() and ((second - plain).abs() <= 0.001).all(), name


@pytest.mark.claim(
    "evidence-second-layer-uses-some-order",
    "On Markov chains, in the second half of the training length, removing positions only from the second "
    "layer raises the excess loss of RoPE, T5, ALiBi, Transformer-XL and the model with RoPE in both "
    "layers and a window in the first, by 0.005 to 0.13 nats in each seed; for T5 and Transformer-XL, "
    'this holds by the rule for "better".',
)
def test_the_second_layer_uses_some_order_within_the_trained_length():
    found = {
        name: excess(name, WITHIN, "second no positions") - excess(name, WITHIN) for name in load("layers")
    }
    cost = {name: each.mean(1) for name, each in found.items() if each.any()}
    assert {*cost} == {"RoPE", "T5", "ALiBi", "Transformer-XL", "window + RoPE layer"}
    assert all(((each > 0.005) & (each < 0.13)).all() for each in cost.values())
    for name in ("T5", "Transformer-XL"):
        assert compare(excess(name, WITHIN), excess(name, WITHIN, "second no positions")).better() is True
    values, means = layers.patched()[1], [each.mean().item() for each in cost.values()]
    assert (values["second_least"], values["second_most"]) == pytest.approx(
        (min(means), max(means)), abs=1e-5
    )


@pytest.mark.claim(
    "evidence-rope-breaks-in-both-layers",
    "On Markov chains, from 512 to 1,024 states after training on 128, the excess loss of RoPE is at "
    "least 0.25 nats lower if only its first layer is limited to the last 128 states, and also if only "
    'its second layer has no positions, by the rule for "better" and in each seed.',
)
def test_each_layer_of_rope_has_its_part():
    plain = excess("RoPE")
    for patch in ("first 128", "second no positions"):
        assert compare(excess("RoPE", window=patch), plain).better(0.25) is True
        assert (excess("RoPE", window=patch).mean(1) < plain.mean(1) - 0.25).all()
    assert (excess("RoPE", window="second 128").mean(1) > plain.mean(1)).all()


@pytest.mark.claim(
    "evidence-a-first-window-helps-t5",
    "On Markov chains, from 512 to 1,024 states after training on 128, T5's bias has a lower excess loss if "
    "only its first layer is limited to the last 128 states, and then a lower one than the Bayes-optimal "
    'predictor that sees only these states, by the rule for "better".',
)
def test_a_window_in_the_first_layer_helps_t5_too():
    windowed = excess("T5", window="first 128")
    assert compare(windowed, excess("T5")).better() is True
    assert compare(windowed, torch.tensor(counting_in(128)[FAR])).better() is True


@pytest.mark.claim(
    "evidence-window-and-bare-layer-mend-a-part-each",
    "On Markov chains, from 512 to 1,024 states after training on 128, models with a window of 32 only in "
    "the first layer, and models without positions only in the second layer, have a lower excess loss "
    "than RoPE in both layers without a window. Models with both changes have an excess loss at least 0.2 "
    "nats lower than models with only the window. A window of 128 in the first layer, added after "
    "training, lowers the excess loss of models with only the NoPE layer. All of this holds by the rule "
    'for "better".',
)
def test_the_window_and_the_bare_layer_mend_a_part_each():
    both, neither = excess("window + NoPE layer"), excess("RoPE")
    window, bare = excess("window + RoPE layer"), excess("RoPE + NoPE layer")
    for near, far in ((window, neither), (bare, neither), (both, window)):
        assert compare(near, far).better(0.2) is True
    assert compare(both, bare).better() is None, "not to be told apart, as their seeds scatter"
    assert compare(excess("RoPE + NoPE layer", window="first 128"), bare).better() is True


def test_the_grids_and_the_table_of_layers_tell_what_was_kept(capsys):
    figure, values = layers.patched()
    columns = [PLAIN, *layers.PATCHES]
    for ax, end in zip(figure.axes, (WITHIN, FAR), strict=True):
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == [name.removesuffix(" layer") for name in load("layers")]
        texts = {text.get_position(): text.get_text() for text in ax.texts}
        for row, name in enumerate(load("layers")):
            for column, window in enumerate(columns):
                if name == "Transformer-XL" and "shifted" in window:
                    assert (column, row) not in texts
                    continue
                mean = excess(name, end, window).mean().item()
                assert texts[column, row] == f"{mean:.2f}".removeprefix("0")
                asked = "all" if window == PLAIN else window
                key = re.sub(r"\W+", "_", f"{name} {asked} {end}".lower())
                assert values[key] == pytest.approx(mean, abs=1e-5)
    values = layers.parted()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    names = [["RoPE", "RoPE + NoPE layer"], ["window + RoPE layer", "window + NoPE layer"]]
    for (head, *cells), row in zip(rows, names, strict=True):
        assert head == ("sees 32 states" if "window" in row[0] else "sees all states")
        for cell, name in zip(cells, row, strict=True):
            assert cell.startswith(f"{excess(name).mean():.2f} ±")
    told = [excess(name).mean().item() for row in names for name in row]
    assert [*values.values()] == pytest.approx(told, abs=1e-5)


def stretched(name, end=FAR):
    return kept("extensions", "RoPE stretched", end, name)


def test_the_table_of_stretching_has_what_was_kept(capsys):
    values = layers.stretched()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == [*extensions.methods(torch.ones(32))] == layers._ways()
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
    "On Markov chains, from 512 to 1,024 states after training on 128, without fine-tuning, RoPE with "
    "heads of 64 has a lower excess loss with a larger base, NTK-aware or dynamic NTK scaling, YaRN, "
    "LongRoPE and Llama 3's scaling than with its own frequencies, in each seed. With position "
    "interpolation or NTK-by-parts, its excess loss is not lower.",
)
def test_most_ways_to_stretch_help_untuned():
    plain = by_seed("untuned RoPE")
    helps = {name for name in layers._ways() if (by_seed(f"untuned {name}") < plain - 0.1).all()}
    assert helps == {*layers._ways()} - {"RoPE", "position interpolation", "NTK-by-parts"}
    for name in ("position interpolation", "NTK-by-parts"):
        assert by_seed(f"untuned {name}").mean() > plain.mean()
        assert compare(stretched(f"untuned {name}"), stretched("untuned RoPE")).better() is not True
    best = sorted(helps, key=lambda name: by_seed(f"untuned {name}").mean())
    assert {*best[:2]} == {"YaRN", "LongRoPE"} and best[2] == "Llama 3"
    assert (by_seed("untuned position interpolation", WITHIN) > 1).all()


@pytest.mark.claim(
    "evidence-the-fastest-pair-should-stay",
    "On Markov chains, in the second half of the training length and without fine-tuning, the excess loss "
    "of RoPE with heads of 64 is at least 0.6 nats with position interpolation and with NTK-by-parts as "
    "in its paper, which lower the highest frequency by 30 % or more there. With each other method, which "
    "leaves that frequency unchanged, it is at most 0.1 nats. Both hold in each seed.",
)
def test_who_slows_the_fastest_pair_is_bad_within():
    ways = extensions.methods(torch.full((32,), 3.0))
    plain = ways["RoPE"](128)[0][0]
    for name in layers._ways():
        found = by_seed(f"untuned {name}", WITHIN)
        if ways[name](128)[0][0] < 0.7 * plain:
            assert name in ("position interpolation", "NTK-by-parts") and (found >= 0.6).all()
        else:
            assert ways[name](128)[0][0] == plain and (found <= 0.1).all(), name


@pytest.mark.claim(
    "evidence-tuning-helps",
    "On Markov chains, from 512 to 1,024 states after training on 128, a few updates at the full length "
    "lower the excess loss of RoPE with heads of 64, with its own frequencies, a larger base and each "
    "method of context extension, in each seed. After these updates, all but position interpolation have "
    "an excess loss of at most 0.12 nats, and RoPE's own frequencies have the highest of these.",
)
def test_tuning_helps_each():
    tuned = {name: by_seed(f"tuned {name}") for name in layers._ways()}
    for name, found in tuned.items():
        assert (found < by_seed(f"untuned {name}")).all(), name
    assert (tuned.pop("position interpolation") > 1).all()
    assert all((found <= 0.12).all() for found in tuned.values())
    for name in tuned:
        if name != "RoPE":
            assert compare(stretched(f"tuned {name}"), stretched("tuned RoPE")).better() is True, name
