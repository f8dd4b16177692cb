"""The generator: its cache changes nothing, its samples follow the scores, its end and its limits hold."""

import math

import pytest
import torch
from torch.testing import assert_close

from exhibits import generator as shown
from experiments import corpus, generator, models
from experiments.encodings import make
from experiments.generator import TRAIN_LENGTH, generate, pick, read, show, words
from experiments.runs import load, plan
from snippets.block import Decoder, Encoding
from tests.rows import each_of

VOCABULARY, ROWS = 11, 12  # ROWS of the learned table
every_encoding = pytest.mark.parametrize("name", plan()["language"]["methods"])


def untrained(name="none"):
    """With weights large enough for scores that differ."""
    torch.manual_seed(3)
    made = Decoder(Encoding(), VOCABULARY, 16, 2, 2)
    made.encoding = make(name, 16, 2, ROWS, 4)
    for weight in made.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.4)
    return made.double().eval()


def prompts(rows=2, tokens=3):
    return torch.randint(VOCABULARY, (rows, tokens), generator=seeded(1))


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


@torch.no_grad()
def slowly(model, text, most, temperature, random):
    """The definition: read the whole text again for every token."""
    for _ in range(most):
        scores, _ = read(model, text)
        text = torch.cat((text, pick(scores[:, -1], temperature, random)), 1)
    return text


class Fixed:
    """No model: the same scores everywhere, and a record of what it read."""

    def __init__(self, scores):
        self.scores = torch.tensor(scores)
        self.tokens = torch.nn.Embedding(len(scores), 1)
        self.seen = []

    def __call__(self, ids, positions, documents, past=None):
        self.seen.append((ids.tolist(), positions.tolist(), documents.unique().tolist(), past))
        return self.scores.expand(*ids.shape, -1), len(self.seen)


# --- the cache


@pytest.mark.claim(
    "generator-cache-changes-nothing",
    "With each encoding of the guide behind one switch, in float64, text generated with a cache of keys "
    "and values is, token by token, the text that is generated if everything is processed again at each "
    "step: with greedy decoding, and with sampling from the same random numbers.",
)
@every_encoding
@each_of(("rows", "tokens"), [(1, 1), (2, 3), (3, ROWS - 4)])
def test_a_cache_writes_what_reading_everything_again_writes(name, rows, tokens):
    model, prompt = untrained(name), prompts(rows, tokens)
    for temperature in (0.0, 1.5):
        ours = generate(model, prompt, ROWS - tokens, temperature, generator=seeded())
        assert ours.shape == (rows, ROWS)
        assert torch.equal(ours, slowly(model, prompt, ROWS - tokens, temperature, seeded()))
    assert len(set(ours[:, tokens:].flatten().tolist())) > 1, "one token for ever would show nothing"


@every_encoding
@torch.no_grad()
def test_scores_from_a_cache_are_those_of_the_whole_text(name):
    model, text = untrained(name), prompts(tokens=ROWS)
    whole, _ = read(model, text)
    atol = 1e-4 if name == "Sandwich" else 1e-10  # Sandwich works in float32
    scores, past = read(model, text[:, :3])
    assert_close(scores, whole[:, :3], rtol=0, atol=atol)
    for position in range(3, ROWS):
        scores, past = read(model, text[:, position : position + 1], past, first=position)
        assert_close(scores[:, 0], whole[:, position], rtol=0, atol=atol)


@pytest.mark.claim(
    "generator-reads-each-token-once",
    "The generator processes the prompt, and then each token that it has generated, except the last, "
    "once: at its position in the text.",
)
@each_of(("rows", "tokens", "most"), [(2, 2, 4), (1, 1, 1), (3, 7, 20)])
def test_each_token_is_read_once_at_the_position_where_it_stands(rows, tokens, most):
    model = Fixed([0.0] * VOCABULARY)
    text = generate(model, prompts(rows, tokens), most, generator=seeded())
    ids, positions, documents, pasts = zip(*model.seen, strict=True)
    assert torch.cat([torch.tensor(each) for each in ids], 1).tolist() == text[:, :-1].tolist()
    steps = [[*range(tokens)], *([position] for position in range(tokens, tokens + most - 1))]
    assert list(positions) == [[step] for step in steps], "one row for all texts"
    assert documents == ([1],) * most
    assert pasts == (None, *range(1, most)), "what a call returned is the past of the next"


# --- which token


@pytest.mark.claim(
    "generator-temperature",
    "At a temperature above zero the generator samples the next token with the probabilities "
    "softmax(scores / temperature); at zero it takes the one with the highest score.",
)
@each_of("temperature", [0.05, 0.3, 1.0, 2.5, 100.0])
def test_tokens_are_sampled_with_the_probabilities_of_their_scores(temperature):
    scores, samples = torch.tensor([1.0, 0.2, -0.5, 0.9]), 20_000
    sampled = pick(scores.expand(samples, 4), temperature, seeded())
    assert sampled.shape == (samples, 1)
    weights = [math.exp(score / temperature) for score in scores.tolist()]
    for token, weight in enumerate(weights):
        probability = weight / sum(weights)
        spread = math.sqrt(probability * (1 - probability) / samples)
        assert abs((sampled == token).double().mean().item() - probability) < 4 * spread + 1e-12


@pytest.mark.claim(
    "generator-temperature",
    "At a temperature above zero the generator samples the next token with the probabilities "
    "softmax(scores / temperature); at zero it takes the one with the highest score.",
)
def test_temperature_zero_takes_the_likeliest_and_needs_no_random_numbers():
    scores = torch.tensor([[1.0, 3.0, 2.0], [0.5, 0.1, 0.2]])
    random = seeded()
    before = random.get_state()
    assert pick(scores, 0, random).tolist() == [[1], [0]]
    assert torch.equal(random.get_state(), before)
    assert pick(scores, 1e-9, random).tolist() == [[1], [0]], "the limit"


def test_the_same_seed_writes_the_same_and_another_writes_another():
    model, prompt = Fixed([0.0] * 9), torch.zeros(1, 1, dtype=torch.int64)
    first, again, other = (generate(model, prompt, 20, generator=seeded(n)) for n in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


# --- where it stops


@pytest.mark.claim(
    "generator-stops",
    "The generator writes at most as many tokens as requested. A sequence that has the end token contains "
    "nothing else from there on, and generation stops early once every sequence has ended.",
)
@each_of("seed", range(3))
def test_a_row_ends_at_the_end_token_and_all_stop_when_all_have_ended(seed):
    prompt = torch.zeros(40, 1, dtype=torch.int64)
    text = generate(Fixed([0.0, 0.0, 0.0]), prompt, 200, end=2, generator=seeded(seed))
    ended = text == 2
    assert ended[:, -1].all() and not ended[:, -2].all(), (
        "the last step is the one at which the last row ends"
    )
    assert text.shape[1] < 100
    assert torch.equal(ended, ended.cummax(1).values), "after an end there are only ends"
    firsts = ended.int().argmax(1)
    assert len(set(firsts.tolist())) > 3, "rows end at places of their own"
    endless = generate(Fixed([0.0, 0.0, 0.0]), prompt, 30, generator=seeded())
    assert endless.shape == (40, 31) and (endless[:, -1] != 2).any(), (
        "without an end token it is a token like any"
    )


def test_an_end_token_in_the_prompt_ends_nothing():
    text = generate(Fixed([9.0, 0.0, 0.0]), torch.tensor([[2, 2]]), 3, temperature=0, end=2)
    assert text.tolist() == [[2, 2, 0, 0, 0]]


@each_of("most", [0, 1, 5])
def test_it_writes_as_many_tokens_as_it_is_told(most):
    text = generate(untrained(), prompts(), most)
    assert text.shape == (2, 3 + most)
    assert torch.equal(text[:, :3], prompts())


@pytest.mark.claim(
    "generator-learned-table-refuses",
    "With a learned table of n rows, the generator writes a text of up to n + 1 tokens; one more token "
    "raises a ValueError that names the rows.",
)
def test_a_learned_table_refuses_the_token_after_its_last_row():
    model = untrained("learned")
    for tokens in (1, 3, ROWS):
        assert generate(model, prompts(2, tokens), ROWS + 1 - tokens).shape == (2, ROWS + 1)
        with pytest.raises(ValueError, match=f"positions must be 0 to {ROWS - 1}, got {ROWS} to {ROWS}"):
            generate(model, prompts(2, tokens), ROWS + 2 - tokens)


@each_of(
    ("options", "message"),
    [
        ({"prompt": torch.tensor([1, 2])}, r"prompt must be int64 \(batch, tokens\), got torch.int64 \(2,\)"),
        ({"prompt": torch.zeros(1, 0, dtype=torch.int64)}, r"prompt must be .*, got torch.int64 \(1, 0\)"),
        ({"prompt": torch.zeros(1, 2)}, r"prompt must be .*, got torch.float32 \(1, 2\)"),
        ({"most": -1}, "most must be at least 0, got -1"),
        ({"temperature": -0.1}, "temperature must be 0 or more, got -0.1"),
        ({"temperature": math.nan}, "temperature must be 0 or more, got nan"),
        ({"temperature": math.inf}, "temperature must be 0 or more, got inf"),
        ({"end": VOCABULARY}, "end must be 0 to 10, got 11"),
        ({"end": -1}, "end must be 0 to 10, got -1"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        generate(untrained(), **({"prompt": prompts(), "most": 2} | options))


# --- what is measured


def test_a_repeated_word_counts_once_and_other_text_not_at_all():
    assert words([b"self" * 128]) == [0, 0, 0, 0], "one long word that the corpus does not have"
    assert words([b"self " * 25 + b"..."]) == [1]
    assert words([b"\n" * 256]) == [0, 0]
    assert words([b"def if x1 import_self qzqzj"]) == [2], "import and self; three letters are no word"
    assert words([b"self", b"none"]) == [1] and words([b"self", b"qzqz"]) == [0.5]
    assert words([b"." * TRAIN_LENGTH + b"self return"]) == [0, 2], "each stretch for itself"


def test_the_words_are_those_of_the_texts_that_are_trained_on(monkeypatch):
    generator.vocabulary.cache_clear()
    texts = torch.tensor(list(b"one_four fives\0")), torch.tensor(list(b"other\0"))
    monkeypatch.setattr(corpus, "corpus", lambda: texts)
    try:
        assert generator.vocabulary() == {b"four", b"fives"}
    finally:
        generator.vocabulary.cache_clear()


def test_the_probability_of_the_end_is_taken_where_files_end(monkeypatch):
    class Ender(Fixed):
        def __call__(self, ids, positions, documents, past=None):
            scores = torch.zeros(*ids.shape, 4)
            scores[..., corpus.END] = math.log(9.0) * (ids == 3)  # 9 in 12 after a 3, else 1 in 4
            return scores, None

    file = [1] * (TRAIN_LENGTH + 5) + [3, corpus.END]
    text = torch.tensor([1, 3, corpus.END, *file, *file, 1, corpus.END])  # two are long enough
    monkeypatch.setattr(corpus, "corpus", lambda: (None, text))
    assert generator.ends(Ender([0.0] * 4)) == pytest.approx([0.75, 0.25])


def test_bytes_are_shown_as_plain_text():
    assert show(b"def f():\n    return 1") == "def f():\n    return 1"
    shown = show(bytes(range(256)))
    assert len(shown) == 256
    assert all(char in "·\n" or (char.isascii() and char.isprintable()) for char in shown)
    assert shown.count("·") == 256 - 95 - 1


def test_the_table_ends_where_training_does():
    assert generator.byte_decoder("learned", 1).encoding.add.table.shape == (TRAIN_LENGTH, models.DIM)


@pytest.mark.parametrize("method", ["learned", "ALiBi"])
def test_a_small_run_gives_all_that_is_kept(method, monkeypatch):
    monkeypatch.setattr(generator, "EVAL_LENGTH", 2 * TRAIN_LENGTH)
    monkeypatch.setattr(generator, "TEMPERATURES", (0.8,))
    made = generator.run(method, 0, "cpu", updates=20, count=1, rows=2)
    length = TRAIN_LENGTH if method == "learned" else 2 * TRAIN_LENGTH
    assert len(made["loss_by_position"]) == length // generator.BIN
    assert max(made["loss_by_position"]) < math.log(corpus.VOCABULARY), "it has learned something"
    assert made["refused"] == (method == "learned")
    assert len(made["texts"]["0.8"]) == length and made["texts"]["0.8"].startswith("def ")
    assert len(made["words"]["0.8"]) == length // TRAIN_LENGTH
    assert len(made["lines"]) == 6 and all(line.startswith("import ") for line in made["lines"])
    assert all(0 < each < 1 for each in made["ends"])
    assert min(made["words"]["held out"]) > 2 > max(made["words"]["shuffled"])


# --- what came of it


@pytest.fixture(scope="module")
def results():
    return load("generator")


BINS = TRAIN_LENGTH // generator.BIN


def within(run):
    """The loss within the training length."""
    return sum(run["loss_by_position"][:BINS]) / BINS


def at_last(run):
    """The loss in the last stretch of the same length."""
    assert len(run["loss_by_position"]) == generator.EVAL_LENGTH // generator.BIN
    return sum(run["loss_by_position"][-BINS:]) / BINS


def every_seed(results, one, other):
    return zip(results[one], results[other], strict=True)


@pytest.mark.claim(
    "generator-positions-help",
    "In the committed runs of the generator, each positional encoding predicts unseen text within the "
    "training length better than no encoding, in every seed.",
)
def test_within_the_training_length_every_encoding_is_better_than_none(results):
    for name in set(results) - {"none"}:
        for run, without in every_seed(results, name, "none"):
            assert within(run) < within(without), name


@pytest.mark.claim(
    "generator-positions-make-words",
    "In the committed runs the generator with RoPE writes at least three times as many different known words "
    "within the training length as the one without positions, in every seed, at temperature 0.8.",
)
def test_with_positions_it_writes_words(results):
    for run, without in every_seed(results, "RoPE", "none"):
        assert run["words"]["0.8"][0] > 3 * without["words"]["0.8"][0]


@pytest.mark.claim(
    "generator-breaks-beyond-its-length",
    "In the committed runs, the generators with sinusoidal positions and with RoPE, trained at length "
    "128, predict unseen text at positions 384 to 511 worse than the one without positions, in every "
    "seed. The generator with ALiBi predicts it better than the one without positions, in every seed by a "
    "larger margin than within the training length.",
)
def test_beyond_the_training_length_waves_and_rotations_break_and_alibi_does_not(results):
    for name in ("sinusoidal", "RoPE"):
        for run, without in every_seed(results, name, "none"):
            assert at_last(run) > at_last(without), name
    for run, without in every_seed(results, "ALiBi", "none"):
        assert at_last(without) - at_last(run) > within(without) - within(run) > 0


def test_rope_keeps_its_lead_over_alibi_for_some_positions_past_the_band_and_no_longer(results):
    until = (generator.TRAIN_LENGTH + shown._lead(results)) // generator.BIN
    for run, alibi in every_seed(results, "RoPE", "ALiBi"):
        losses = zip(run["loss_by_position"], alibi["loss_by_position"], strict=True)
        lead = [one < other for one, other in losses]
        assert all(lead[:until]) and not any(lead[until:]) and until > generator.TRAIN_LENGTH // generator.BIN


@pytest.mark.claim(
    "generator-loses-words-beyond-its-length",
    "In the committed runs, at temperature 0.8, the generator with RoPE writes fewer than half as many "
    "different known words at positions 384 to 511 as at the first 128, in every seed. On average over "
    "the seeds, the generator with ALiBi writes more of them at positions 384 to 511 than the one with "
    "RoPE.",
)
def test_beyond_the_training_length_rope_loses_its_words(results):
    def last(name):
        return [run["words"]["0.8"][-1] for run in results[name]]

    for run in results["RoPE"]:
        assert run["words"]["0.8"][-1] < run["words"]["0.8"][0] / 2
    assert sum(last("ALiBi")) > sum(last("RoPE"))


@pytest.mark.claim(
    "generator-greedy-repeats-itself",
    "In the committed runs, no model's greedy text contains more than two different known words in any "
    "stretch of 128 bytes.",
)
def test_greedy_text_repeats_itself(results):
    assert max(max(run["words"]["0.0"]) for runs in results.values() for run in runs) <= 2


@pytest.mark.claim(
    "generator-counts-words-fairly",
    "In counts of different known words in stretches of 128 bytes, one of three words repeated forever "
    "scores at most two (a stretch may begin or end within it), and on average over texts, shuffled bytes "
    "of real text score less than a fifth and real text more than seven.",
)
def test_neither_repetition_nor_noise_is_worth_much(results):
    for word in (b"return ", b"self.", b"    def "):
        assert max(words([word * 60])) <= 2
    for runs in results.values():
        for run in runs:
            assert max(run["words"]["shuffled"]) < 0.2
            assert min(run["words"]["held out"]) > 7


def test_only_the_table_refuses(results):
    for name, runs in results.items():
        for run in runs:
            assert run["refused"] == (name == "learned")
