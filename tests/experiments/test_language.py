"""What the experiments on text hold fixed and measure, and in a few seconds the direction of the results."""

import math

import pytest
import torch

from experiments import corpus, extensions, language, shuffled, tasks, variants
from experiments.runs import plan
from snippets import rope_scaling
from snippets.rope import rope_frequencies
from snippets.xpos import xpos_decay

METHODS = plan()["language"]["methods"]


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "In the experiments every encoding meets the same initial weights outside the encoding "
    "and the same data in the same order",
)
def test_every_encoding_starts_from_the_same_weights_and_meets_the_same_windows(monkeypatch):
    seen = {}
    for name in METHODS:
        met = []
        monkeypatch.setattr(
            language,
            "losses",
            lambda model, w, met=met, real=language.losses: (met.append(w), real(model, w))[1],
        )
        model = language.decoder(name, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        language.train(model, 1, "cpu", updates=3, length=8, batch=2)
        monkeypatch.undo()
        seen[name] = outside, torch.stack(met)
    first = seen.pop("none")
    assert len(first[0]) > 10
    for weights, windows in seen.values():
        assert weights.keys() == first[0].keys()
        assert all(torch.equal(weights[key], first[0][key]) for key in weights)
        assert torch.equal(windows, first[1])
    other = language.decoder("none", 2).state_dict()
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
    model = language.decoder("RoPE", 0).double()
    windows = language.held_out(2)[:, :9]
    found = language.losses(model, windows)
    assert found.shape == (2, 8)
    at = torch.arange(8).expand(2, -1)
    scores = model(windows[:, :-1], at, torch.ones_like(at))[0]
    for row, place in ((0, 0), (1, 3), (1, 7)):
        chances = scores[row, place].softmax(-1)
        assert found[row, place].detach().item() == pytest.approx(-math.log(chances[windows[row, place + 1]]))


def test_far_bytes_come_from_every_file_that_is_long_enough():
    first, second, short = torch.arange(1, 31), torch.arange(31, 42), torch.arange(42, 51)
    end = torch.tensor([corpus.END])
    text = torch.cat((first, end, second, end, short, end))
    found = corpus.spread(text, count=2, length=10)
    assert found.shape == (2, 2, 10) and (found.diff() == 1).all()
    assert found[:, :, 0].tolist() == [[6, 16], [31, 31]]
    real = corpus.spread(corpus.corpus()[1], 1, language.ASKED)
    names = [name for name in corpus.sources() if corpus.is_held_out(name)]
    sizes = [(corpus.LIBRARY / name).stat().st_size for name in names]
    assert len(real) == sum(size >= language.ASKED for size in sizes) > 40
    assert (real != corpus.END).all()


@pytest.mark.parametrize("name", ["RoPE", "learned", "CoPE"])
def test_far_bytes_are_read_with_so_many_bytes_before_them(name, monkeypatch):
    monkeypatch.setattr(language, "CONTEXTS", (16, 40))
    model, windows = language.decoder(name, 0), language.held_out(3)[:, -100:]
    found = language.by_context(model, windows, "cpu")
    assert list(found) == ["16", "40"]
    for context, losses in found.items():
        for window, loss in zip(windows, losses, strict=True):
            alone = language.losses(model, window[None, -(int(context) + 16) :])[0, -16:]
            assert loss == pytest.approx(alone.mean().item(), abs=6e-4)


def test_the_longest_context_fills_the_window():
    assert max(language.CONTEXTS) + language.FAR == language.ASKED


def test_a_bin_is_the_mean_of_its_positions():
    assert language.binned(torch.arange(32.0)) == [7.5, 23.5]


def test_shuffling_keeps_the_bytes_of_each_window():
    windows = language.held_out(3)
    mixed = language.shuffle(windows, torch.Generator().manual_seed(1))
    assert torch.equal(mixed.sort(-1).values, windows.sort(-1).values)
    assert (mixed != windows).float().mean() > 0.5


def test_the_control_is_asked_about_shuffled_windows_too(monkeypatch):
    asked = []
    monkeypatch.setattr(
        language, "by_position", lambda model, windows, device: asked.append(windows) or torch.zeros(1024)
    )
    shuffled.run("none", 0, "cpu", updates=11, count=2)
    assert not torch.equal(asked[0], language.held_out(2))
    assert torch.equal(asked[0].sort(-1).values, language.held_out(2).sort(-1).values)


@pytest.fixture(scope="module")
def trained():
    """Small runs: the mean loss within the trained length and from position 512 on."""
    torch.set_num_threads(1)
    found = {}
    for name in ("none", "RoPE", "ALiBi", "sinusoidal"):
        loss = torch.tensor(language.run(name, 0, "cpu", updates=120, count=4)["loss"])
        found[name] = loss[:8].mean().item(), loss[32:].mean().item()
    return found


@pytest.mark.slow
def test_a_few_updates_show_that_order_helps(trained):
    assert trained["RoPE"][0] < trained["none"][0] - 0.03
    assert trained["ALiBi"][0] < trained["none"][0] - 0.03


@pytest.mark.slow
def test_a_few_updates_show_who_fails_far_out(trained):
    rise = {name: far - near for name, (near, far) in trained.items()}
    assert trained["sinusoidal"][1] > trained["none"][1] + 0.1
    assert rise["RoPE"] > rise["ALiBi"] + 0.05


def test_another_frequency_leaves_the_model_itself_as_it_is():
    model = language.decoder("RoPE", 0)
    before = model.encoding.frequencies.clone()
    other = extensions.with_frequencies(model, before / 2, 1.0)
    assert torch.equal(model.encoding.frequencies, before)
    assert torch.equal(other.encoding.frequencies, before / 2)
    assert other.blocks is model.blocks


def test_a_frequency_that_depends_on_the_length_is_that_of_the_text_so_far():
    model, device = language.decoder("RoPE", 0), "cpu"
    frequencies = rope_frequencies(extensions.WIDTH, base=10000)
    windows = language.held_out(2)
    scaled = extensions.methods(torch.ones(extensions.WIDTH // 2))["dynamic NTK"]
    found = extensions.by_position(model, scaled, windows, device)
    for length in (128, 384, 1024):
        now = rope_scaling.dynamic_ntk(frequencies, 1.0, 128, length)
        whole = language.by_position(
            extensions.with_frequencies(model, now, 1.0), windows[:, : length + 1], device
        )
        end = slice(length - extensions.STEP, length)
        assert torch.allclose(found[end], whole[end], atol=1e-5)


@pytest.mark.slow
def test_the_search_finds_factors_that_rise_and_are_no_worse_than_where_it_began():
    model = language.decoder("RoPE", 0)
    factors = extensions.search(model, "cpu", seed=0)
    assert factors.shape == (extensions.WIDTH // 2,)
    assert (factors.diff() >= 0).all() and factors.min() >= 1 and factors.max() <= extensions.FACTOR


@pytest.mark.parametrize(("decoder", "trained"), [(language.decoder, 128), (tasks.decoder, 32)])
def test_xpos_fades_over_half_of_the_trained_length_as_in_its_paper(decoder, trained):
    at = torch.tensor([[0, trained // 2]])
    cos, sin = decoder("xPos", 0).encoding.tables(at)["query"]
    assert torch.allclose(torch.hypot(cos, sin)[0, 1].double(), xpos_decay(16))


def test_a_window_hides_the_keys_that_stand_so_far_back_or_farther():
    at = torch.arange(20)[None]
    bias = variants.Windowed(5).bias(at[:, 10:], at)[0, 0]
    for query, row in enumerate(bias, 10):
        seen = (row == 0).nonzero()[:, 0].tolist()
        assert [key for key in seen if key <= query] == list(range(query - 4, query + 1))
        assert set(row.tolist()) == {0.0, -math.inf}


def test_a_window_as_long_as_the_text_changes_nothing():
    model, windows = language.decoder("RoPE", 0).double(), language.held_out(1)[:, :65]
    plain = language.losses(model, windows)
    model.encoding = variants.Windowed(64).double()
    assert torch.equal(language.losses(model, windows), plain)
    model.encoding = variants.Windowed(8).double()
    narrow = language.losses(model, windows)
    assert torch.allclose(narrow[:, :8], plain[:, :8]) and not torch.allclose(narrow[:, 8:], plain[:, 8:])


def test_every_encoding_of_the_switch_can_be_trained():
    for name in METHODS:
        model = language.decoder(name, 0)
        before = [each.clone() for each in model.encoding.parameters()]
        language.train(model, 0, "cpu", updates=11, length=8, batch=2)
        assert all(
            (old != new).any() for old, new in zip(before, model.encoding.parameters(), strict=True)
        ), name
