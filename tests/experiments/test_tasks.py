"""The three tasks ask what they say they ask."""

import pytest
import torch

from experiments import tasks
from experiments.runs import plan
from experiments.tasks import ASK, DIGITS, MARK, MOST, NOTHING, PAUSE, REPEAT, RESET, TICK


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("length", [8, 9, 32])
def test_copying_asks_for_the_text_again(length):
    tokens, answers = tasks.copying(20, length, generator())
    half = length // 2
    assert tokens.shape == answers.shape == (20, 2 * half)
    for row, said in zip(tokens.tolist(), answers.tolist(), strict=True):
        text = row[:half]
        assert row == [*text, REPEAT, *text[:-1]]
        assert said == [NOTHING] * half + text


@pytest.mark.parametrize("first", [None, 0])
def test_recall_asks_for_the_value_after_the_mark(first):
    tokens, answers = tasks.recall(50, 16, generator(), first)
    places = set()
    for row, said in zip(tokens.tolist(), answers.tolist(), strict=True):
        mark = row.index(MARK)
        places.add(mark)
        assert row.count(MARK) == 1 and row[-1] == ASK and row[mark + 1] < tasks.LETTERS
        for place, (token, answer) in enumerate(zip(row, said, strict=True)):
            assert answer == (row[mark + 1] if token == ASK else NOTHING), place
            assert token != ASK or place > mark + 1
    assert places == ({0} if first == 0 else set(range(14)))


@pytest.mark.parametrize("first", [None, 0])
def test_counting_asks_for_the_ticks_since_the_reset(first):
    tokens, answers = tasks.counting(200, 24, generator(), first)
    last = set()
    for row, said in zip(tokens.tolist(), answers.tolist(), strict=True):
        assert row.count(RESET) == 1
        reset, count = row.index(RESET), 0
        assert first is None or reset == first
        for place, (token, answer) in enumerate(zip(row, said, strict=True)):
            assert token in (TICK, PAUSE, RESET)
            if place < reset:
                assert answer == NOTHING
                continue
            count += token == TICK
            assert answer == DIGITS + count
        last.add(count)
    assert last == set(range(MOST + 1))


def test_no_token_has_two_meanings():
    words = [*range(tasks.LETTERS), *range(DIGITS, DIGITS + MOST + 1), REPEAT, MARK, ASK, TICK, RESET, PAUSE]
    assert sorted(words) == list(range(tasks.VOCABULARY))


def test_accuracy_counts_the_answers_that_are_asked_for():
    class Knows(torch.nn.Module):
        """Answers copying rightly up to a place, recall always with letter 0."""

        def forward(self, tokens, positions, documents):
            half = tokens.shape[1] // 2
            said = torch.zeros_like(tokens)
            said[:, half : half + 3] = tokens[:, :3]
            return torch.nn.functional.one_hot(said, tasks.VOCABULARY).float(), None

    found = tasks.accuracy(Knows(), tasks.copying, 12, 300, "cpu")
    assert found == pytest.approx(0.5 + 0.5 / tasks.LETTERS, abs=0.03)
    assert tasks.accuracy(Knows(), tasks.recall, 12, 300, "cpu") == pytest.approx(1 / tasks.LETTERS, abs=0.05)


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "In the experiments every encoding meets the same initial weights outside the encoding "
    "and the same data in the same order",
)
def test_every_encoding_starts_from_the_same_weights_and_meets_the_same_tasks(monkeypatch):
    monkeypatch.setattr(tasks, "BATCH", 2)
    seen, real = {}, tasks.scores
    for name in plan()["tasks"]["methods"]:
        met = []
        monkeypatch.setattr(tasks, "scores", lambda model, t, met=met: (met.append(t), real(model, t))[1])
        model = tasks.decoder(name, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        tasks.train(model, 1, "cpu", updates=3)
        seen[name] = outside, met
    first = seen.pop("none")
    assert len(first[0]) > 10 and len(first[1]) == 3
    for weights, texts in seen.values():
        assert weights.keys() == first[0].keys()
        assert all(torch.equal(weights[key], first[0][key]) for key in weights)
        assert all(torch.equal(one, other) for one, other in zip(texts, first[1], strict=True))
    other = tasks.decoder("none", 2).state_dict()
    assert not torch.equal(other["tokens.weight"], first[0]["tokens.weight"])


@pytest.mark.slow
def test_a_few_updates_teach_something():
    torch.set_num_threads(1)
    before = tasks.run("ALiBi", 0, "cpu", updates=11, rows=16)["accuracy"]["counting"][0]
    after = tasks.run("ALiBi", 0, "cpu", updates=400, rows=16)["accuracy"]["counting"][0]
    assert after > before + 0.1 or after > 0.3
