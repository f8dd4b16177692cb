"""What the experiments on source code hold fixed and measure; in a few seconds, the direction of results."""

import math
from collections import Counter, defaultdict

import pytest
import torch

from experiments import corpus, language, models, shuffled, tasks, variants
from experiments.runs import plan
from snippets.xpos import xpos_decay
from tests.rows import each_of

METHODS = plan()["language"]["methods"]


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code, on Markov chains and in the tasks, every encoding starts from the same weights "
    "outside the encoding and is trained on the same data in the same order, for the same number of "
    "updates.",
)
def test_every_encoding_starts_from_the_same_weights_and_meets_the_same_windows(monkeypatch):
    seen = {}
    for name in METHODS:
        met = []
        monkeypatch.setattr(
            models,
            "next_token_losses",
            lambda model, w, met=met, real=models.next_token_losses: (met.append(w), real(model, w))[1],
        )
        model = language.byte_decoder(name, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        language.trained(model, 1, "cpu", updates=3)
        monkeypatch.undo()
        seen[name] = outside, torch.stack(met)
    first = seen.pop("none")
    assert len(first[0]) > 10
    for weights, windows in seen.values():
        assert weights.keys() == first[0].keys()
        assert all(torch.equal(weights[key], first[0][key]) for key in weights)
        assert torch.equal(windows, first[1])
    other = language.byte_decoder("none", 2).state_dict()
    assert not torch.equal(other["tokens.weight"], first[0]["tokens.weight"])


def test_files_held_out_are_not_trained_on():
    names = corpus.sources()
    apart = [corpus.is_held_out(name) for name in names]
    assert 0.05 < sum(apart) / len(names) < 0.2
    train, held_out = corpus.corpus()
    assert len(train) > 5 * len(held_out) > 1_000_000
    files = [(corpus.LIBRARY / name).read_bytes() for name, out in zip(names, apart, strict=True) if out]
    assert bytes(held_out.tolist()) == b"".join(text + bytes([corpus.END]) for text in files if 0 not in text)
    assert (train == corpus.END).sum() + (held_out == corpus.END).sum() <= len(names)


def test_windows_are_stretches_of_the_text():
    text = torch.arange(50)
    windows = corpus.windows(text, 200, 8, torch.Generator().manual_seed(0))
    assert windows.shape == (200, 8) and (windows.diff() == 1).all()
    assert windows.min() == 0 and windows.max() == 49


def test_the_loss_is_that_of_the_next_byte():
    model = language.byte_decoder("RoPE", 0).double()
    windows = language.heldout_windows(2)[:, :9]
    found = models.next_token_losses(model, windows)
    assert found.shape == (2, 8)
    at = torch.arange(8).expand(2, -1)
    scores = model(windows[:, :-1], at, torch.ones_like(at))[0]
    for row, position in ((0, 0), (1, 3), (1, 7)):
        probability = scores[row, position].softmax(-1)[windows[row, position + 1]]
        assert found[row, position].item() == pytest.approx(-math.log(probability))


def test_windows_are_spread_over_every_file_that_is_long_enough():
    first, second, short = torch.arange(1, 31), torch.arange(31, 42), torch.arange(42, 51)
    end = torch.tensor([corpus.END])
    text = torch.cat((first, end, second, end, short, end))
    found = corpus.spread(text, count=2, length=10)
    assert found.shape == (2, 2, 10) and (found.diff() == 1).all()
    assert found[:, :, 0].tolist() == [[6, 16], [31, 31]]
    real = corpus.spread(corpus.corpus()[1], 1, language.EVAL_LENGTH)
    names = [name for name in corpus.sources() if corpus.is_held_out(name)]
    sizes = [(corpus.LIBRARY / name).stat().st_size for name in names]
    assert len(real) == sum(size >= language.EVAL_LENGTH for size in sizes) > 40
    assert (real != corpus.END).all()


@pytest.mark.parametrize("name", ["RoPE", "learned", "CoPE"])
def test_the_scored_bytes_are_read_with_so_many_bytes_before_them(name, monkeypatch):
    monkeypatch.setattr(language, "CONTEXTS", (16, 40))
    model, windows = language.byte_decoder(name, 0), language.heldout_windows(3)[:, -100:]
    found = language.loss_by_context(model, windows, "cpu")
    assert list(found) == ["16", "40"]
    for context, losses in found.items():
        for window, loss in zip(windows, losses, strict=True):
            alone = models.next_token_losses(model, window[None, -(int(context) + 16) :])[0, -16:]
            assert loss == pytest.approx(alone.mean().item(), abs=6e-4)


def test_the_longest_context_fills_the_window():
    assert max(language.CONTEXTS) + language.SCORED == language.EVAL_LENGTH


def test_a_bin_is_the_mean_of_its_positions(monkeypatch):
    monkeypatch.setattr(language, "loss_by_position", lambda *_: torch.arange(32.0))
    found = language.evaluate(language.byte_decoder("none", 0), None, "cpu")
    assert found["loss_by_position"] == [7.5, 23.5]


def test_shuffling_keeps_the_bytes_of_each_window():
    windows = language.heldout_windows(3)
    mixed = language.shuffle(windows, torch.Generator().manual_seed(1))
    assert torch.equal(mixed.sort(-1).values, windows.sort(-1).values)
    assert (mixed != windows).float().mean() > 0.5


def test_the_control_is_evaluated_on_shuffled_windows_too(monkeypatch):
    met, plain = [], language.heldout_windows(2)
    monkeypatch.setattr(
        language, "loss_by_position", lambda _, each, device: met.append(each) or torch.zeros(1024)
    )
    shuffled.run("none", 0, "cpu", updates=11, count=2)
    assert not torch.equal(met[0], plain) and torch.equal(met[0].sort(-1).values, plain.sort(-1).values)


@pytest.fixture(scope="module")
def trained():
    """Small runs: the mean loss within the training length and from position 512 on."""
    torch.set_num_threads(1)
    found = {}
    for name in ("none", "RoPE", "ALiBi", "sinusoidal"):
        loss = torch.tensor(language.run(name, 0, "cpu", updates=120, count=4)["loss_by_position"])
        found[name] = loss[:8].mean().item(), loss[32:].mean().item()
    return found


@pytest.mark.slow
def test_a_few_updates_show_that_order_helps(trained):
    assert trained["RoPE"][0] < trained["none"][0] - 0.03
    assert trained["ALiBi"][0] < trained["none"][0] - 0.03


@pytest.mark.slow
def test_a_few_updates_show_which_encodings_fail_on_long_texts(trained):
    rise = {name: far - near for name, (near, far) in trained.items()}
    assert trained["sinusoidal"][1] > trained["none"][1] + 0.1
    assert rise["RoPE"] > rise["ALiBi"] + 0.05


def task_decoder(name, seed):
    return models.decoder(name, tasks.VOCABULARY, seed, max(tasks.EVAL_LENGTHS))


@each_of(("decoder", "length"), [(language.byte_decoder, 128), (task_decoder, 32)])
def test_xpos_fades_over_half_of_the_training_length_as_in_its_paper(decoder, length):
    at = torch.tensor([[0, length // 2]])
    cos, sin = decoder("xPos", 0).encoding.tables(at)["query"]
    assert torch.allclose(torch.hypot(cos, sin)[0, 1].double(), xpos_decay(16))


def test_every_method_of_the_plan_is_one_of_the_variants_and_every_variant_is_planned(monkeypatch):
    far = corpus.spread(corpus.corpus()[1], 1, language.EVAL_LENGTH).flatten(0, 1)
    for variant in variants.VARIANTS:

        def evaluate(name, seed, device, updates, windows, variant=variant):
            assert (seed, device, updates) == (4, "cpu", 5) and torch.equal(windows, far)
            return variant, name

        monkeypatch.setitem(variants.VARIANTS, variant, evaluate)
    found = {
        name: variants.run(name, 4, "cpu", updates=5, each=1)["loss_by_context"]
        for name in plan()["variants"]["methods"]
    }
    assert {variant for variant, _ in found.values()} == {*variants.VARIANTS}
    gram = found.pop("5-gram")
    assert gram == ("5-gram", "5-gram")
    assert all(method == f"{name} {variant}" for method, (variant, name) in found.items())


@pytest.fixture
def untrained(monkeypatch):
    """Nothing is trained, and few contexts are scored; what would have been trained, and how."""
    met = []

    def train(model, seed, device, updates):
        met.append((model, seed, updates))
        return model.eval()

    monkeypatch.setattr(language, "trained", train)
    monkeypatch.setattr(language, "CONTEXTS", (16, 80))
    return met


@pytest.mark.parametrize("name", ["RoPE", "none", "learned", "sinusoidal"])
def test_a_window_at_test_time_hides_bytes_farther_back_and_no_others(name, untrained):
    far = language.heldout_windows(3)[:, -200:]
    found = variants.with_a_window(name, 1, "cpu", 7, far)
    assert list(found) == ["32", "64", "128", "1024"]
    ((model, *how),) = untrained
    assert how == [1, 7]
    same = language.byte_decoder("none" if name == "learned" else name, 1)
    if name == "learned":
        assert model.encoding.table.table.shape == (language.TRAIN_LENGTH, models.DIM)
        torch.manual_seed(1)
        language.byte_decoder("none", 1)  # draws the weights outside, and then the table
        same.encoding = models.clamped_table(language.TRAIN_LENGTH)
    assert found["1024"] == found["128"] == language.loss_by_context(same.eval(), far, "cpu")
    assert all(found[window]["16"] == found["1024"]["16"] for window in found)  # of 32 bytes all are seen
    assert found["32"]["80"] != found["64"]["80"] != found["1024"]["80"] != found["32"]["80"]


def test_a_slow_fade_is_eight_times_as_slow(untrained):
    found = variants.with_a_slow_fade("xPos", 1, "cpu", 7, language.heldout_windows(2)[:, -200:])
    ((model, *how),) = untrained
    assert how == [1, 7] and list(found) == ["16", "80"]
    at = torch.arange(600)[None]
    cos, sin = model.encoding.tables(8 * at)["key"]
    usual_cos, usual_sin = language.byte_decoder("xPos", 1).encoding.tables(at)["key"]
    assert torch.allclose(torch.hypot(cos, sin), torch.hypot(usual_cos, usual_sin), rtol=1e-3)


def test_windows_that_slide_and_windows_side_by_side(monkeypatch, untrained):
    """Of a model whose loss depends on nothing but how many bytes it has read: 1 / their number.

    Sliding, the scored bytes have nearly a whole window before them. Side by side, a byte stands anywhere
    in its window, so that the loss is the mean over the window.
    """
    files = corpus.spread(corpus.corpus()[1], 1, language.EVAL_LENGTH + 1).flatten(0, 1)
    met = Counter()

    def losses(model, windows):
        last = files[:, -windows.shape[1] :]
        assert all((window == last).all(-1).any() for window in windows), "the last bytes of a stretch"
        met[windows.shape[1] - 1] += len(windows)
        return (1 / torch.arange(1, windows.shape[1])).expand(len(windows), -1)

    monkeypatch.setattr(variants, "next_token_losses", losses)
    found = variants.both_ways("ALiBi", 1, "cpu", 7, None)
    assert met == dict.fromkeys(range(16, 1025, 16), len(files))
    for way, first in (("sliding", lambda length: length - 15), ("side by side", lambda length: 1)):
        assert list(found[way]) == ["128", "256", "512", "1024"]
        for length, told in found[way].items():
            read = range(first(int(length)), int(length) + 1)
            mean = sum(1 / many for many in read) / len(read)
            assert told == [pytest.approx(mean, abs=6e-4)] * len(files), (way, length)


def test_n_grams_are_counted_in_the_windows_that_models_learn_from(monkeypatch):
    far, met, real = language.heldout_windows(2), [], corpus.windows
    monkeypatch.setattr(corpus, "windows", lambda *given: (met.append(real(*given)), met[-1])[1])
    language.trained(language.byte_decoder("none", 3), 3, "cpu", updates=11)
    variants.n_grams("5-gram", 3, "cpu", 11, far)
    assert len(met) == 22 and torch.equal(torch.stack(met[:11]), torch.stack(met[11:]))


def test_n_grams_fall_back_by_the_rule_of_witten_and_bell():
    """Counted anew, a byte at a time."""
    far = corpus.spread(corpus.corpus()[1], 1, language.EVAL_LENGTH).flatten(0, 1)[:3]
    found = variants.n_grams("5-gram", 2, "cpu", 6, far)
    generator, text = torch.Generator().manual_seed(2), corpus.corpus()[0]
    seen = [w for _ in range(6) for w in corpus.windows(text, 16, 129, generator).tolist()]
    follows = defaultdict(Counter)
    for window in seen:
        for end in range(len(window)):
            for order in range(min(5, end + 1)):
                follows[tuple(window[end - order : end])][window[end]] += 1

    def probability(before, byte):
        lower = probability(before[1:], byte) if before else 1 / 256
        came = follows.get(before, Counter())
        return (came[byte] + len(came) * lower) / (came.total() + len(came)) if came else lower

    assert sum(probability((32, 32, 32, 32), byte) for byte in range(256)) == pytest.approx(1)
    assert list(found) == ["1", "2", "3", "4", "5"]
    for order in range(1, 6):
        for window, told in zip(far.tolist(), found[str(order)], strict=True):
            ends = range(len(window) - 16, len(window))
            each = [-math.log(probability(tuple(window[end - order + 1 : end]), window[end])) for end in ends]
            assert told == pytest.approx(sum(each) / 16, abs=6e-4)


def test_the_parameters_of_every_encoding_are_trained():
    for name in METHODS:
        model = language.byte_decoder(name, 0)
        before = [each.clone() for each in model.encoding.parameters()]
        language.trained(model, 0, "cpu", updates=3)
        assert all(
            (old != new).any() for old, new in zip(before, model.encoding.parameters(), strict=True)
        ), name
