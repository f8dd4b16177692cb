"""Markov chains, whose optimal loss is known: what their experiments hold fixed and measure."""

import itertools
import math
import tomllib

import pytest
import torch

from experiments import chains, extensions, layers, short_texts, tasks
from experiments.chain_models import BY_LAYER, EVAL_LENGTH, STATES, TRAIN_LENGTH, chain_decoder
from experiments.encodings import make
from experiments.models import clamped_table, windowed
from experiments.runs import PLAN, plan
from snippets.block import Encoding
from tests.rows import each_of

METHODS = [name for name in plan()["chains"]["methods"] if name not in BY_LAYER]
WITHOUT = ("none", "sinusoidal", "RoPE", "ALiBi", "xPos", "Sandwich")  # numbers to learn in the encoding
PREDICTIONS = tomllib.loads(PLAN.with_name("predictions.toml").read_text(encoding="utf-8"))


@pytest.mark.claim(
    "evidence-floor-is-exact",
    "The counting predictor's probabilities for the next state of a chain are those of Bayes' rule: the "
    "mean of the probabilities of all chains, each weighted by its likelihood given the text so far.",
)
def test_counting_is_bayes_rule():
    text = torch.tensor([[3, 1, 3, 1, 3, 2, 0, 3, 1, 5]])
    prior = torch.full((STATES,), chains.PRIOR, dtype=torch.float64)
    each = torch.distributions.Dirichlet(prior).sample((1_000_000,))
    for position in (0, 3, 8):
        now = text[0, position]
        followed = [text[0, t + 1] for t in range(position) if text[0, t] == now]
        weight = each[:, followed].prod(-1)  # the other rows of a chain tell nothing of this one
        bayes = (weight[:, None] * each).sum(0) / weight.sum()
        assert torch.allclose(chains.counting_predictions(text)[0, position].double(), bayes, atol=0.01)


def test_the_optimal_loss_is_met_and_no_other_prediction_has_a_lower_one():
    """In the mean over texts, by the states that really followed."""
    texts = chains.sample_chains(3000, 65, seed=0)
    best, following = chains.counting_predictions(texts), texts[:, 1:, None]

    def loss(probabilities):
        return -probabilities.gather(-1, following)[..., 0].log().mean(-1)

    gap = loss(best) - chains.optimal_loss(texts).mean(-1)
    assert abs(gap.mean()) < 3 * gap.std() / math.sqrt(len(gap))
    narrow = chains.counting_predictions(texts, 32)
    excess = chains.excess_loss(narrow.log(), texts)
    gap = loss(narrow) - loss(best) - excess.mean(-1)
    assert abs(gap.mean()) < 3 * gap.std() / math.sqrt(len(gap))
    assert (excess > -1e-6).all() and excess.mean() > 0.05
    assert chains.excess_loss(best.log(), texts).abs().max() < 1e-6


@each_of("window", [2, 5, 30, 41])
def test_a_count_in_a_window_is_that_of_a_text_that_begins_there(window):
    texts = chains.sample_chains(3, 41, seed=0)
    found = chains.counting_predictions(texts, window)
    assert found.shape == (3, 40, STATES) and torch.allclose(found.sum(-1), torch.ones(3, 40))
    for position in (0, 7, 39):
        alone = texts[:, max(0, position - window + 1) : position + 2]
        assert torch.equal(found[:, position], chains.counting_predictions(alone)[:, -1])


def test_each_text_is_a_chain_whose_rows_come_from_the_prior_each_by_itself():
    """How often a state follows itself, once and twice, and comes back after one other."""
    torch.manual_seed(3)
    texts, after = chains.sample_chains(60_000, 3, seed=0), torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), after) and torch.equal(texts, chains.sample_chains(60_000, 3, seed=0))
    assert not torch.equal(texts, chains.sample_chains(60_000, 3, seed=1))
    first, second, third = texts.T
    count, prior = STATES, chains.PRIOR
    shares = first.bincount(minlength=count) / len(texts)
    assert len(shares) == count and torch.allclose(shares, torch.tensor(1 / count), atol=0.005)
    stays, back = second == first, third == first
    twice = (prior + 1) / (count * prior + 1) / count
    for share, expected in (
        (stays, 1 / count),
        (stays & back, twice),
        (~stays & back, (1 - 1 / count) / count),
    ):
        assert share.double().mean().item() == pytest.approx(expected, abs=0.004)


def test_the_excess_loss_of_a_model_is_that_of_each_text_and_band():
    model = chain_decoder("RoPE", 0)
    texts = chains.evaluation_texts(9)[:, :65]
    found = chains.model_excess_loss(model, texts, "cpu")
    at = torch.arange(64)[None]
    scores = model(texts[5:6, :-1], at, torch.ones_like(at))[0].log_softmax(-1)[0]
    best = chains.counting_predictions(texts[5:6])[0]
    expected = [(b * (b.log() - s)).sum().item() for b, s in zip(best, scores, strict=True)]
    assert found[5].tolist() == pytest.approx(expected, abs=1e-5)
    bands = chains.band_means(torch.arange(1024.0).expand(2, -1))
    assert bands == {str(end): [(first + end - 1) / 2] * 2 for first, end in chains.BANDS}
    assert [first for first, _ in chains.BANDS] == [0, *(end for _, end in chains.BANDS[:-1])]
    assert chains.BANDS[-1][1] == EVAL_LENGTH


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code, on Markov chains and in the tasks, every encoding starts from the same weights "
    "outside the encoding and is trained on the same data in the same order, for the same number of "
    "updates.",
)
def test_every_method_starts_from_the_same_weights_and_its_tables_are_trained():
    first = None
    for name in METHODS:
        model = chain_decoder(name, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        first = first or outside
        assert outside.keys() == first.keys()
        assert all(torch.equal(outside[key], first[key]) for key in outside)
        before = [each.clone() for each in model.encoding.parameters()]
        assert bool(before) == (name not in WITHOUT)
        chains.trained(model, 0, "cpu", updates=3)
        after = model.encoding.parameters()
        assert all((old != new).any() for old, new in zip(before, after, strict=True))


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code, on Markov chains and in the tasks, every encoding starts from the same weights "
    "outside the encoding and is trained on the same data in the same order, for the same number of "
    "updates.",
)
def test_every_method_meets_the_same_texts(monkeypatch):
    met = {}
    monkeypatch.setattr(chains, "evaluate", lambda *_: {})
    for name in plan()["chains"]["methods"]:

        def train(model, batches, device, updates, learning_rate, name=name):
            met[name] = [texts for (texts,) in batches], updates, learning_rate
            return model.eval()

        monkeypatch.setattr(chains, "train", train)
        chains.run(name, 1, "cpu", updates=2, count=1)
    first, *how = met["RoPE"]
    assert len(first) == 2 and {tuple(each.shape) for each in first} == {(8, 129)}
    for texts, *others in met.values():
        assert all(torch.equal(a, b) for a, b in zip(first, texts, strict=True)) and others == how


def test_a_learned_table_gives_positions_past_its_end_its_last_row():
    encoding = chain_decoder("learned", 0).encoding
    rows = encoding.embed(torch.zeros(1, 4, 64), torch.tensor([[3, 127, 128, 1023]]))[0]
    assert torch.equal(rows[1], rows[2]) and torch.equal(rows[1], rows[3])
    assert torch.equal(rows[0], encoding.table.table[3]) and torch.equal(rows[1], encoding.table.table[127])


@each_of("name", METHODS)
def test_a_window_hides_keys_at_its_distance_or_farther_and_no_others(name):
    encoding = clamped_table(TRAIN_LENGTH) if name == "learned" else make(name, 64, 4, 1024, 32)
    at = torch.arange(20)[None]
    plain = encoding.bias(at[:, 10:], at)
    plain = torch.zeros(1, 10, 20) if plain is None else plain
    narrow = windowed(encoding, 5).bias(at[:, 10:], at)
    back = at[0, 10:, None] - at[0]
    for mine, theirs in zip(narrow.view(-1, 10, 20), plain.view(-1, 10, 20), strict=True):
        assert torch.equal(mine.isinf(), theirs.isinf() | (back >= 5))
        assert torch.equal(mine[back < 5], theirs[back < 5])


def test_a_window_as_long_as_the_text_changes_nothing():
    for name in METHODS:
        model, texts = chain_decoder(name, 0), chains.evaluation_texts(2)[:, :150]
        encoding, plain = model.encoding, chains.model_excess_loss(model, texts, "cpu")
        for window in chains.WINDOWS:
            model.encoding = windowed(encoding, window)
            same = torch.isclose(chains.model_excess_loss(model, texts, "cpu"), plain, atol=1e-6)
            assert same[:, :window].all() and same[:, window + 1 :].all() == (window > 150)


@pytest.mark.claim(
    "evidence-two-windows-reach-nearly-twice-as-far",
    "In our models with two layers, a window of n positions in each layer lets the output depend on the "
    "last 2n - 1 states and on no earlier ones: tested for windows of 3 and 9 with each encoding that "
    "takes a window.",
)
@each_of("window", [3, 9])
@each_of("name", METHODS)
def test_what_two_layers_with_a_window_see(name, window):
    model, texts = chain_decoder(name, 0).double(), chains.evaluation_texts(1)[:, :40]
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.3)
    model.encoding = windowed(model.encoding, window)
    at = torch.arange(40)[None]

    def last(ids):
        return model(ids, at, torch.ones_like(at))[0][0, -1]

    plain, reach = last(texts), 2 * window - 1
    for back, moves in ((reach - 1, True), (reach, False)):
        other = texts.clone()
        other[0, 39 - back] = (other[0, 39 - back] + 1) % STATES
        change = (last(other) - plain).abs().max()
        assert change > 1e-9 if moves else change < 1e-12, back


def test_a_run_on_chains_stores_each_window_and_band():
    excess = chains.run("T5", 0, "cpu", updates=20, count=2)["excess_loss"]
    assert {*excess} == {"32", "64", "128", "1024"}
    assert all([*map(int, bands)] == [end for _, end in chains.BANDS] for bands in excess.values())
    assert all(len(each) == 2 and min(each) > 0 for bands in excess.values() for each in bands.values())


def test_each_prediction_names_what_there_is():
    patches = [f"{layer} {patch}" for layer in ("first", "second") for patch in layers.patches(Encoding())]
    ways = extensions.methods(torch.ones(extensions.WIDTH // 2))
    settings = {
        "chains": [*chains.WINDOWS, "temperature"],
        "layers": [EVAL_LENGTH, *patches],
        "recipes": [EVAL_LENGTH],
        "extensions": [EVAL_LENGTH, *(f"{state} {way}" for state in ("untuned", "tuned") for way in ways)],
        "short_texts": list(short_texts.ways()),
    }
    for experiment, kinds in PREDICTIONS.items():
        assert set(kinds) <= {"stop", "expected"}
        for entry in itertools.chain(*kinds.values()):
            assert set(entry) == {"says", "less", "more", "by"}
            for side in (entry["less"], entry["more"]):
                of = side.get("experiment", experiment)
                known = plan()[of]["methods"]
                if of == "tasks":
                    assert side["method"] in known and side["task"] in tasks.TASKS
                    assert side["end"] in tasks.EVAL_LENGTHS
                    continue
                assert side["method"] in (*known, "best", "count"), entry
                assert side["end"] in {end for _, end in chains.BANDS}
                assert side.get("window", EVAL_LENGTH) in settings[of], entry
