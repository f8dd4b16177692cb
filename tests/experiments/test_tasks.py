"""The three tasks ask what they say they ask, and each is learned to a criterion."""

from collections import Counter

import pytest
import torch

from experiments import tasks
from experiments.runs import plan
from experiments.tasks import (
    ASK,
    ASK_OTHER,
    DIGITS,
    LETTERS,
    MARK,
    NOTHING,
    OTHER,
    PAUSE,
    REPEAT,
    RESET,
    TICK,
    TICKS,
)
from tests.rows import each_of

LETTER = range(LETTERS)
ASKS_FOR = {ASK: MARK, ASK_OTHER: OTHER}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(task, rows, length):
    tokens, answers = task(rows, length, generator())
    return zip(tokens.tolist(), answers.tolist(), strict=True)


@each_of("length", [8, 9, 32])
def test_copying_asks_for_the_text_again(length):
    half = length // 2
    for row, said in drawn(tasks.copying, 20, length):
        text = row[:half]
        assert row == [*text, REPEAT, *text[:-1]] and set(text) <= {*LETTER}
        assert said == [NOTHING] * half + text


@each_of("length", [8, 9, 16, 17, 32])
def test_recall_asks_for_the_value_of_one_of_two_marks(length):
    places, asked, last = Counter(), Counter(), Counter()
    for row, said in drawn(tasks.recall, 600, length):
        assert (row.count(MARK), row.count(OTHER)) == (1, 1)
        marks = {mark: row.index(mark) for mark in (MARK, OTHER)}
        assert all(row[place + 1] in LETTER for place in marks.values())
        for place, (token, answer) in enumerate(zip(row, said, strict=True)):
            mark = ASKS_FOR.get(token)
            assert token in LETTER or token in marks or mark, "noise, a mark, or who asks"
            assert answer == (row[marks[mark] + 1] if mark else NOTHING), place
            assert mark is None or place > marks[mark] + 1, "no ask before its value"
        assert row[-1] in ASKS_FOR
        places[tuple(marks.values())] += 1
        asked.update(token for token in row[:-1] if token in ASKS_FOR)
        last[row[-1]] += 1
    even = range(0, 2 * ((length - 1) // 2), 2)
    assert {*places} >= {(even[0], even[-1]), (even[-1], even[0])}
    assert {place for pair in places for place in pair} == {*even}
    assert length > 9 or {*places} == {(one, other) for one in even for other in even if one != other}
    assert all(last[ask] > 150 and asked[ask] for ask in ASKS_FOR)


def test_who_takes_the_value_of_the_wrong_mark_in_recall_is_right_no_oftener_than_a_guess():
    rows = [row for row, _ in drawn(tasks.recall, 4000, 32)]
    alike = sum(row[row.index(MARK) + 1] == row[row.index(OTHER) + 1] for row in rows)
    assert alike / len(rows) == pytest.approx(1 / LETTERS, abs=0.02)


@each_of("length", [8, 24, 256])
def test_counting_asks_for_the_ticks_since_the_reset(length):
    last, resets, earlier = Counter(), Counter(), 0
    for row, said in drawn(tasks.counting, 3000, length):
        assert row.count(RESET) == 1 and {*row} <= {RESET, TICK, PAUSE}
        reset, count = row.index(RESET), 0
        assert said[:reset] == [NOTHING] * reset
        for token, answer in zip(row[reset:], said[reset:], strict=True):
            count += token == TICK
            assert answer == DIGITS + count
        last[count] += 1
        resets[reset] += 1
        earlier += row[:reset].count(TICK)
    assert {*resets} == {*range(length - 1)} and max(resets.values()) < 3000 / (length - 1) * 2 + 20
    assert {*last} == {*range(min(TICKS, length - 1) + 1)}
    assert earlier / sum(reset * many for reset, many in resets.items()) == pytest.approx(0.2, abs=0.02)


def test_ticks_come_anywhere_after_the_reset():
    rows = [row for row, _ in drawn(tasks.counting, 20_000, 12)]
    first = torch.tensor([row[1:] for row in rows if row[0] == RESET])
    shares = (first == TICK).double().mean(0)
    assert torch.allclose(shares, shares.mean(), atol=0.06) and shares.mean().item() == pytest.approx(
        TICKS / 2 / 11, abs=0.03
    )


def test_no_token_has_two_meanings():
    answers = range(DIGITS, DIGITS + TICKS + 1)
    words = [*LETTER, *answers, REPEAT, TICK, RESET, PAUSE, MARK, OTHER, ASK, ASK_OTHER]
    assert sorted(words) == list(range(tasks.VOCABULARY))


class Says(torch.nn.Module):
    """Answers what a function makes of the tokens."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, tokens, positions, documents):
        return torch.nn.functional.one_hot(self.answer(tokens), tasks.VOCABULARY).float(), None


def share(answer, task, rows=300):
    return tasks.right(Says(answer), task, 12, rows, "cpu", generator())


def test_of_copying_all_letters_are_judged():
    def half(tokens):
        said = torch.zeros_like(tokens)
        said[:, 6:9] = tokens[:, :3]
        return said

    assert share(half, tasks.copying) == pytest.approx(0.5 + 0.5 / LETTERS, abs=0.03)


def test_of_recall_and_counting_the_last_answer_is_judged_and_no_other():
    def counted(tokens):
        after = (tokens == RESET).cumsum(-1)
        return DIGITS + ((tokens == TICK) * after).cumsum(-1)

    def recalled(tokens):
        said = torch.zeros_like(tokens)
        for ask, mark in ASKS_FOR.items():
            value = tokens.gather(1, (tokens == mark).int().argmax(-1, keepdim=True) + 1)
            said = torch.where(tokens == ask, value, said)
        return said

    at_last = torch.arange(12) == 11
    for task, answer in ((tasks.counting, counted), (tasks.recall, recalled)):
        assert share(answer, task) == 1
        assert share(lambda tokens, answer=answer: answer(tokens) * at_last, task) == 1
        assert share(lambda tokens, answer=answer: answer(tokens) * ~at_last, task) < 0.25


def test_training_stops_once_enough_is_right_at_the_trained_length(monkeypatch):
    shares, asked, read, real = [0.5, 0.985, 0.99, 1.0], [], [], tasks.scores
    monkeypatch.setattr(tasks, "scores", lambda model, t: read.append(t.shape[1]) or real(model, t))
    monkeypatch.setattr(tasks, "BATCH", 2)
    monkeypatch.setattr(tasks, "EVERY", 10)

    def right(model, *given):
        asked.append(given[:3])
        return shares[len(asked) - 1]

    monkeypatch.setattr(tasks, "right", right)
    assert tasks.train(tasks.decoder("none", 0), tasks.recall, 0, "cpu", updates=60) == 30
    assert len(read) == 30 and asked == [(tasks.recall, 32, 128)] * 3
    assert {8 <= length <= 32 for length in read} == {True} and len({*read}) > 10


def test_training_ends_with_what_is_not_learned(monkeypatch):
    read, real = [], tasks.scores
    monkeypatch.setattr(tasks, "scores", lambda model, t: read.append(t) or real(model, t))
    monkeypatch.setattr(tasks, "BATCH", 2)
    monkeypatch.setattr(tasks, "EVERY", 10)
    monkeypatch.setattr(tasks, "right", lambda *given: 0.98)
    assert tasks.train(tasks.decoder("none", 0), tasks.counting, 0, "cpu", updates=40) is None
    assert len(read) == 40


def test_each_task_has_a_decoder_of_its_own_and_is_asked_at_every_length(monkeypatch):
    trained, asked = {}, []

    def train(model, task, seed, device, updates):
        trained[task.__name__] = model
        assert (seed, updates) == (5, 7)
        return {"copying": None, "recall": 300, "counting": 100}[task.__name__]

    def right(model, task, length, rows, device, generator):
        assert model is trained[task.__name__] and not model.training and rows == 9
        asked.append((task.__name__, length, generator.initial_seed()))
        return length / 1000 + 1e-6

    monkeypatch.setattr(tasks, "train", train)
    monkeypatch.setattr(tasks, "right", right)
    found = tasks.run("RoPE", 5, "cpu", updates=7, rows=9)
    assert found["learned"] == {"copying": None, "recall": 300, "counting": 100}
    assert found["accuracy"] == {name: [0.032, 0.064, 0.128, 0.256] for name in tasks.TASKS}
    assert asked == [(name, length, length) for name in tasks.TASKS for length in tasks.LENGTHS]
    one, *others = (model.state_dict() for model in trained.values())
    assert len({id(model) for model in trained.values()}) == 3
    assert all(torch.equal(one[key], other[key]) for other in others for key in one)


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code and on chains every encoding meets the same initial weights outside the encoding and the "
    "same data in the same order; in the tasks the same as far as its training goes, which ends when the "
    "task is learned",
)
def test_every_encoding_starts_from_the_same_weights_and_meets_the_same_tasks(monkeypatch):
    monkeypatch.setattr(tasks, "BATCH", 2)
    monkeypatch.setattr(tasks, "ROWS", 2)
    monkeypatch.setattr(tasks, "EVERY", 2)  # so that one asks in between, which draws, too
    monkeypatch.setattr(tasks, "ENOUGH", 2)
    seen, real = {}, tasks.scores
    for name in plan()["tasks"]["methods"]:
        met = []
        monkeypatch.setattr(tasks, "scores", lambda model, t, met=met: (met.append(t), real(model, t))[1])
        model = tasks.decoder(name, 1)
        outside = {k: v.clone() for k, v in model.state_dict().items() if not k.startswith("encoding")}
        for task in tasks.TASKS.values():
            tasks.train(model, task, 1, "cpu", updates=3)
        seen[name] = outside, met
    first = seen.pop("none")
    assert len(seen) == 14 and len(first[0]) > 10 and len(first[1]) == 3 * (3 + 1)
    for weights, texts in seen.values():
        assert weights.keys() == first[0].keys()
        assert all(torch.equal(weights[key], first[0][key]) for key in weights)
        assert all(torch.equal(one, other) for one, other in zip(texts, first[1], strict=True))
    other = tasks.decoder("none", 2).state_dict()
    assert not torch.equal(other["tokens.weight"], first[0]["tokens.weight"])


@pytest.mark.slow
def test_a_few_updates_teach_something():
    torch.set_num_threads(1)
    model = tasks.decoder("ALiBi", 0)
    before = tasks.right(model, tasks.counting, 32, 128, "cpu", generator())
    tasks.train(model, tasks.counting, 0, "cpu", updates=300)
    assert tasks.right(model.eval(), tasks.counting, 32, 128, "cpu", generator()) > before + 0.2
