"""The three tasks ask what they say they ask, and each encoding is trained on the same texts."""

import hashlib
from collections import Counter

import pytest
import torch

from experiments import models, tasks
from experiments.runs import plan
from experiments.tasks import (
    ASK,
    ASK_OTHER,
    DIGITS,
    LETTERS,
    MARK,
    NO_ANSWER,
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


def sampled(task, rows, length):
    tokens, answers = task(rows, length, generator())
    return zip(tokens.tolist(), answers.tolist(), strict=True)


@each_of("length", [8, 9, 32])
def test_copying_asks_for_the_text_again(length):
    half = length // 2
    for row, said in sampled(tasks.copying, 20, length):
        text = row[:half]
        assert row == [*text, REPEAT, *text[:-1]] and set(text) <= {*LETTER}
        assert said == [NO_ANSWER] * half + text


@each_of("length", [8, 9, 16, 17, 32])
def test_recall_asks_for_the_value_of_one_of_two_marks(length):
    marked, asked, last = Counter(), Counter(), Counter()
    for row, said in sampled(tasks.recall, 600, length):
        assert (row.count(MARK), row.count(OTHER)) == (1, 1)
        marks = {mark: row.index(mark) for mark in (MARK, OTHER)}
        assert all(row[position + 1] in LETTER for position in marks.values())
        for position, (token, answer) in enumerate(zip(row, said, strict=True)):
            mark = ASKS_FOR.get(token)
            assert token in LETTER or token in marks or mark, "noise, a mark, or who asks"
            assert answer == (row[marks[mark] + 1] if mark else NO_ANSWER), position
            assert mark is None or position > marks[mark] + 1, "no ask before its value"
        assert row[-1] in ASKS_FOR
        marked[tuple(marks.values())] += 1
        asked.update(token for token in row[:-1] if token in ASKS_FOR)
        last[row[-1]] += 1
    even = range(0, 2 * ((length - 1) // 2), 2)
    assert {*marked} >= {(even[0], even[-1]), (even[-1], even[0])}
    assert {position for pair in marked for position in pair} == {*even}
    assert length > 9 or {*marked} == {(one, other) for one in even for other in even if one != other}
    assert all(last[ask] > 150 and asked[ask] for ask in ASKS_FOR)


def test_who_takes_the_value_of_the_wrong_mark_in_recall_is_right_no_oftener_than_a_guess():
    rows = [row for row, _ in sampled(tasks.recall, 4000, 32)]
    alike = sum(row[row.index(MARK) + 1] == row[row.index(OTHER) + 1] for row in rows)
    assert alike / len(rows) == pytest.approx(1 / LETTERS, abs=0.02)


@each_of("length", [8, 24, 256])
def test_counting_asks_for_the_ticks_since_the_reset(length):
    last, resets, earlier = Counter(), Counter(), 0
    for row, said in sampled(tasks.counting, 3000, length):
        assert row.count(RESET) == 1 and {*row} <= {RESET, TICK, PAUSE}
        reset, count = row.index(RESET), 0
        assert said[:reset] == [NO_ANSWER] * reset
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
    rows = [row for row, _ in sampled(tasks.counting, 20_000, 12)]
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


def right(answer, task):
    return tasks.accuracy(Says(answer), task, 12, 300, "cpu")


def test_of_copying_all_letters_are_judged():
    def half(tokens):
        said = torch.zeros_like(tokens)
        said[:, 6:9] = tokens[:, :3]
        return said

    assert right(half, tasks.copying) == pytest.approx(0.5 + 0.5 / LETTERS, abs=0.03)


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
        assert right(answer, task) == 1
        assert right(lambda tokens, answer=answer: answer(tokens) * at_last, task) == 1
        assert right(lambda tokens, answer=answer: answer(tokens) * ~at_last, task) < 0.25


def test_the_texts_of_training_are_new_and_of_all_lengths_up_to_the_longest():
    texts = [tokens for tokens, _ in tasks.batches(tasks.recall, 0, 100)]
    lengths = {each.shape[1] for each in texts}
    assert lengths == {*range(tasks.SHORTEST, tasks.LONGEST + 1)} and len(texts) == 100
    assert len({row for each in texts for row in map(tuple, each.tolist())}) == 100 * tasks.BATCH_SIZE


def test_the_loss_is_the_mean_over_the_answers_alone():
    tokens, answers = tasks.recall(3, 12, generator())
    model = Says(lambda tokens: tokens % 5)
    scored = (answers != NO_ANSWER).nonzero().tolist()
    log_probabilities = models.logits(model, tokens).log_softmax(-1)
    losses = [-log_probabilities[row, position, answers[row, position]].item() for row, position in scored]
    found = tasks.answer_loss(model, tokens, answers).item()
    assert found == pytest.approx(sum(losses) / len(losses)) and len({*losses}) > 1


@pytest.mark.claim(
    "evidence-same-start-and-data",
    "On source code, on Markov chains and in the tasks, every encoding starts from the same weights "
    "outside the encoding and is trained on the same data in the same order, for the same number of "
    "updates.",
)
def test_every_encoding_gets_the_same_weights_batches_updates_and_evaluation_texts(monkeypatch):
    def digest(tensors):
        return [hashlib.sha256(each.numpy().tobytes()).digest() for each in tensors]

    def train(model, batches, device, updates, learning_rate, loss):
        outside = {key: value for key, value in model.state_dict().items() if "encoding" not in key}
        batches = [*batches]
        trained.append(
            ([*outside], digest(outside.values()), [*map(digest, batches)], updates, learning_rate)
        )
        assert len(batches) == updates and loss is tasks.answer_loss

    def logits(model, tokens):
        evaluated.append(tokens)
        return torch.zeros(*tokens.shape, tasks.VOCABULARY)

    monkeypatch.setattr(tasks, "train", train)
    monkeypatch.setattr(tasks, "logits", logits)
    first = None
    for name in plan()["tasks"]["methods"]:
        trained, evaluated = [], []
        found = tasks.run(name, 1, "cpu", updates=11)["accuracy"]
        assert {task: len(each) for task, each in found.items()} == dict.fromkeys(tasks.TASKS, 4)
        assert Counter(each.shape[1] for each in evaluated for _ in each) == dict.fromkeys(
            tasks.EVAL_LENGTHS, 3 * 2000
        )
        first = first or (trained, digest(evaluated))
        assert (trained, digest(evaluated)) == first
    assert [(updates, rate) for *_, updates, rate in trained] == 3 * [(11, tasks.LEARNING_RATE)]


@pytest.mark.slow
def test_a_few_updates_teach_something():
    torch.set_num_threads(1)
    model = models.decoder("ALiBi", tasks.VOCABULARY, 0, max(tasks.EVAL_LENGTHS))
    before = tasks.accuracy(model, tasks.counting, 32, 128, "cpu")
    batches = tasks.batches(tasks.counting, 0, 300)
    tasks.train(model, batches, "cpu", 300, tasks.LEARNING_RATE, tasks.answer_loss)
    assert tasks.accuracy(model, tasks.counting, 32, 128, "cpu") > before + 0.2
