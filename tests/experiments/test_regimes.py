"""Chains, whose best possible loss is known, and ciphers: what they hold fixed and measure."""

import itertools
import math
import string
import tomllib

import pytest
import torch

from experiments import chains, ciphers, corpus, extensions, language, layers, regimes, tasks
from experiments.encodings import make
from experiments.runs import PLAN, plan
from snippets.block import Encoding
from tests.rows import each_of

METHODS = plan()["chains"]["methods"]
WITHOUT = ("none", "sinusoidal", "RoPE", "ALiBi", "xPos", "Sandwich")  # numbers to learn in the encoding
PREDICTIONS = tomllib.loads(PLAN.with_name("predictions.toml").read_text(encoding="utf-8"))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.claim(
    "evidence-floor-is-exact",
    "The chances that counting gives for the next state of a chain are those of Bayes' rule: the mean of the "
    "chances of all chains, each weighed by how well it explains the text so far",
)
def test_counting_is_bayes_rule():
    text = torch.tensor([[3, 1, 3, 1, 3, 2, 0, 3, 1, 5]])
    prior = torch.full((chains.STATES,), chains.PRIOR, dtype=torch.float64)
    each = torch.distributions.Dirichlet(prior).sample((1_000_000,))
    for place in (0, 3, 8):
        now = text[0, place]
        followed = [text[0, t + 1] for t in range(place) if text[0, t] == now]
        weight = each[:, followed].prod(-1)  # the other rows of a chain tell nothing of this one
        bayes = (weight[:, None] * each).sum(0) / weight.sum()
        assert torch.allclose(chains.counted(text)[0, place].double(), bayes, atol=0.01)


def test_no_other_chances_have_a_lower_loss_than_the_floor_and_the_floor_is_met():
    """On average over texts, by what then really came."""
    texts = chains.draw(3000, 65, seed=0)
    best, then = chains.counted(texts), texts[:, 1:, None]

    def met(chances):
        return -chances.gather(-1, then)[..., 0].log().mean(-1)

    gap = met(best) - chains.floor(texts).mean(-1)
    assert abs(gap.mean()) < 3 * gap.std() / math.sqrt(len(gap))
    narrow = chains.counted(texts, 32)
    lost = met(narrow) - met(best)
    told = chains.above(narrow.log(), texts).mean(-1)
    assert abs((lost - told).mean()) < 3 * (lost - told).std() / math.sqrt(len(lost))
    assert (chains.above(narrow.log(), texts) > -1e-6).all() and told.mean() > 0.05
    assert chains.above(best.log(), texts).abs().max() < 1e-6


@each_of("seen", [2, 5, 30, 41])
def test_a_count_of_the_last_states_is_that_of_a_text_that_begins_there(seen):
    texts = chains.draw(3, 41, seed=0)
    found = chains.counted(texts, seen)
    assert found.shape == (3, 40, chains.STATES) and torch.allclose(found.sum(-1), torch.ones(3, 40))
    for place in (0, 7, 39):
        alone = texts[:, max(0, place - seen + 1) : place + 2]
        assert torch.equal(found[:, place], chains.counted(alone)[:, -1])


def test_each_text_is_a_chain_whose_rows_come_from_the_prior_each_by_itself():
    """How often a state follows itself, once and twice, and comes back after one other."""
    torch.manual_seed(3)
    texts, after = chains.draw(60_000, 3, seed=0), torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), after) and torch.equal(texts, chains.draw(60_000, 3, seed=0))
    assert not torch.equal(texts, chains.draw(60_000, 3, seed=1))
    first, second, third = texts.T
    count, prior = chains.STATES, chains.PRIOR
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


def test_how_far_a_model_is_is_told_of_each_text_and_band():
    model = regimes.decoder("RoPE", chains.STATES, 0)
    texts = chains.asked(9)[:, :65]
    found = chains.asked_about(model, texts, "cpu")
    at = torch.arange(64)[None]
    scores = model(texts[5:6, :-1], at, torch.ones_like(at))[0].log_softmax(-1)[0]
    best = chains.counted(texts[5:6])[0]
    expected = [(b * (b.log() - s)).sum().item() for b, s in zip(best, scores, strict=True)]
    assert found[5].tolist() == pytest.approx(expected, abs=1e-5)
    bands = chains.by_band(torch.arange(1024.0).expand(2, -1))
    assert bands == {str(end): [(first + end - 1) / 2] * 2 for first, end in chains.BANDS}
    assert [first for first, _ in chains.BANDS] == [0, *(end for _, end in chains.BANDS[:-1])]
    assert chains.BANDS[-1][1] == regimes.ASKED


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code and on chains every encoding meets the same initial weights outside the encoding and the "
    "same data in the same order; in the tasks the same as far as its training goes, which ends when the "
    "task is learned",
)
def test_every_method_starts_from_the_same_weights_and_its_tables_are_trained():
    first = None
    for name in METHODS:
        model = regimes.decoder(name, chains.STATES, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        first = first or outside
        assert outside.keys() == first.keys()
        assert all(torch.equal(outside[key], first[key]) for key in outside)
        before = [each.clone() for each in model.encoding.parameters()]
        assert bool(before) == (name not in WITHOUT)
        regimes.train(model, chains.draw(44, 9, seed=0).split(4), 11, "cpu")
        after = model.encoding.parameters()
        assert all((old != new).any() for old, new in zip(before, after, strict=True))


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code and on chains every encoding meets the same initial weights outside the encoding and the "
    "same data in the same order; in the tasks the same as far as its training goes, which ends when the "
    "task is learned",
)
def test_every_method_meets_the_same_texts_and_one_on_long_texts_as_many_tokens(monkeypatch):
    met = {}
    monkeypatch.setattr(chains, "by_window", lambda model, measure: {})
    monkeypatch.setattr(language, "by_context", lambda model, windows, device: {})
    for module in (chains, ciphers):
        for name in (*METHODS, "RoPE on long texts"):

            def train(model, batches, updates, device, key=(module, name)):
                met[key] = [*batches]
                return model.eval()

            monkeypatch.setattr(module, "train", train)
            module.run(name, 1, "cpu", updates=2, **{"count": 1} if module is chains else {"each": 1})
        one, long = (met[module, name] for name in ("RoPE", "RoPE on long texts"))
        for name in METHODS:
            assert (
                all(torch.equal(a, b) for a, b in zip(one, met[module, name], strict=True)) and len(one) == 2
            )
        assert {tuple(each.shape) for each in one} == {(8, 129)}
        assert {tuple(each.shape) for each in long} == {(1, 1025)}


def test_a_learned_table_gives_places_past_its_end_its_last_row():
    encoding = regimes.decoder("learned", 8, 0).encoding
    rows = encoding.embed(torch.zeros(1, 4, 64), torch.tensor([[3, 127, 128, 1023]]))[0]
    assert torch.equal(rows[1], rows[2]) and torch.equal(rows[1], rows[3])
    assert torch.equal(rows[0], encoding.table.table[3]) and torch.equal(rows[1], encoding.table.table[127])


@each_of("name", METHODS)
def test_a_window_hides_what_stands_so_far_back_or_farther_and_nothing_else(name):
    encoding = regimes.clamped() if name == "learned" else make(name, 64, 4, 1024, 32)
    at = torch.arange(20)[None]
    plain = encoding.bias(at[:, 10:], at)
    plain = torch.zeros(1, 10, 20) if plain is None else plain
    narrow = regimes.windowed(encoding, 5).bias(at[:, 10:], at)
    back = at[0, 10:, None] - at[0]
    for mine, theirs in zip(narrow.view(-1, 10, 20), plain.view(-1, 10, 20), strict=True):
        assert torch.equal(mine.isinf(), theirs.isinf() | (back >= 5))
        assert torch.equal(mine[back < 5], theirs[back < 5])


def test_a_window_as_long_as_the_text_changes_nothing_and_the_encoding_is_left_as_it_was():
    for name in METHODS:
        model, texts = regimes.decoder(name, chains.STATES, 0), chains.asked(2)[:, :150]
        encoding, plain = model.encoding, chains.asked_about(model, texts, "cpu")
        found = regimes.by_window(model, lambda now, texts=texts: chains.asked_about(now, texts, "cpu"))
        assert list(found) == ["32", "64", "128", "1024"] and model.encoding is encoding
        assert torch.equal(found["1024"], plain)
        for window in (32, 64, 128):
            same = torch.isclose(found[str(window)], plain, atol=1e-6)
            assert same[:, :window].all() and not same[:, window + 1 :].all()


@pytest.mark.claim(
    "evidence-two-windows-reach-nearly-twice-as-far",
    "In the two layers of our models a window of n positions in each lets the output depend on the last 2n - "
    "1 states and on none before: tested for windows of 3 and 9 with each encoding that takes a window",
)
@each_of("window", [3, 9])
@each_of("name", METHODS)
def test_what_two_layers_with_a_window_see(name, window):
    model, texts = regimes.decoder(name, chains.STATES, 0).double(), chains.asked(1)[:, :40]
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.3)
    model.encoding = regimes.windowed(model.encoding, window)
    at = torch.arange(40)[None]

    def last(ids):
        return model(ids, at, torch.ones_like(at))[0][0, -1]

    plain, reach = last(texts), 2 * window - 1
    for back, moves in ((reach - 1, True), (reach, False)):
        other = texts.clone()
        other[0, 39 - back] = (other[0, 39 - back] + 1) % chains.STATES
        change = (last(other) - plain).abs().max()
        assert change > 1e-9 if moves else change < 1e-12, back


def test_a_run_on_chains_tells_each_window_and_band():
    above = chains.run("T5", 0, "cpu", updates=20, count=2)["above"]
    assert list(above) == ["32", "64", "128", "1024"]
    assert all([*map(int, bands)] == [end for _, end in chains.BANDS] for bands in above.values())
    assert all(len(each) == 2 and min(each) > 0 for bands in above.values() for each in bands.values())


def test_a_cipher_exchanges_letters_and_leaves_all_else():
    words = (string.printable * 2).encode()
    windows = torch.tensor([list(words)] * 3)
    found = [bytes(each.tolist()).decode() for each in ciphers.cipher(windows, generator())]
    assert len(set(found)) == 3
    for text in found:
        told = dict(zip(words.decode(), text, strict=True))
        assert all(told[each] == each for each in string.printable if each not in string.ascii_letters)
        assert sorted(told[each] for each in string.ascii_lowercase) == [*string.ascii_lowercase]
        assert all(told[each.upper()] == told[each].upper() for each in string.ascii_lowercase)
        assert text[: len(text) // 2] == text[len(text) // 2 :]


def test_every_alphabet_is_as_likely_as_another():
    letters = torch.arange(ord("a"), ord("z") + 1).repeat(20_000, 1)
    found = ciphers.cipher(letters, generator())
    shares = torch.nn.functional.one_hot(found - ord("a")).double().mean(0)
    assert torch.allclose(shares, torch.full((26, 26), 1 / 26, dtype=torch.float64), atol=0.008)


def test_the_windows_asked_about_are_those_of_the_language_experiment_in_other_alphabets():
    plain = corpus.spread(corpus.corpus()[1], 1, regimes.ASKED).flatten(0, 1)
    found = ciphers.asked(1)
    letter = (plain.int().bitwise_or(32) >= ord("a")) & (plain.int().bitwise_or(32) <= ord("z"))
    assert (
        torch.equal(found[~letter], plain[~letter]) and (found[letter] != plain[letter]).float().mean() > 0.9
    )
    assert (ciphers.asked(1) == found).all() and len(ciphers.asked()) == 3 * len(found)


def test_a_run_on_ciphers_tells_the_same_bytes_with_ever_more_before_them(monkeypatch):
    monkeypatch.setattr(language, "CONTEXTS", (16, 200))
    far = ciphers.run("ALiBi", 0, "cpu", updates=11, each=1)["far"]
    assert list(far) == ["128", "1024"] and list(far["128"]) == ["16", "200"]
    assert far["128"]["16"] == far["1024"]["16"] and far["128"]["200"] != far["1024"]["200"]
    assert len(far["128"]["16"]) == len(ciphers.asked(1))


def test_each_prediction_names_what_there_is():
    places = {"ciphers": {*language.CONTEXTS}}
    patches = layers.patches(Encoding())
    ways = extensions.methods(torch.ones(extensions.WIDTH // 2))
    windows = {
        "ciphers": ciphers.WINDOWS,
        "recent": (regimes.ASKED, "sharper"),
        "layers": [regimes.ASKED, *(f"{e} {p}" for e in ("first", "second") for p in patches)],
        "extensions": [regimes.ASKED, *(f"{state} {way}" for state in ("untuned", "tuned") for way in ways)],
    }
    for regime, kinds in PREDICTIONS.items():
        assert set(kinds) <= {"stop", "expected"}
        for entry in itertools.chain(*kinds.values()):
            assert set(entry) == {"says", "less", "more", "by"}
            for side in (entry["less"], entry["more"]):
                of = side.get("regime", regime)
                if of == "tasks":
                    assert side["method"] in plan()[of]["methods"] and side["task"] in tasks.TASKS
                    assert side["at"] in tasks.LENGTHS
                    continue
                name = side["method"].removesuffix(regimes.LONG)
                known = {*METHODS} if of == "ciphers" else {*METHODS, "best", "count", *plan()[of]["methods"]}
                assert name in known, entry
                assert side["at"] in places.get(of, {end for _, end in chains.BANDS})
                assert side.get("window", regimes.ASKED) in windows.get(of, regimes.WINDOWS)
