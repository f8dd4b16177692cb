"""The bench compares before it times, tells two stories, and knows which of our functions ran."""

import pytest
import torch

from tests.bench import speed
from tests.peers import Case, Way, learnable, outputs
from tests.peers.turned import rope
from tests.rows import each_of


def case(*ways, layers=1):
    return Case("rope", "work", "small", list(ways), layers=layers)


def told(case):
    return {story: (runs, less) for story, runs, less in case.stories()}


class Making:
    """Something to make, which counts how often it was made and used."""

    def __init__(self):
        self.made = self.used = 0

    def make(self):
        self.made += 1
        return (torch.ones(2),)

    def use(self, made):
        self.used += 1
        return made + 1


@each_of(
    ("story", "layers", "made", "used"),
    [("anew", 1, 2, 2), ("anew", 3, 6, 6), ("held", 1, 1, 2), ("held", 3, 2, 6)],
)
def test_what_is_made_is_made_as_often_as_the_story_says(story, layers, made, used):
    work = Making()
    stories = case(Way("", work.use, work.make), layers=layers).stories()
    run = next(runs[""] for told, runs, _ in stories if told == story)
    run(), run()
    assert (work.made, work.used) == (made, used)


def test_a_gradient_that_only_passes_is_no_work():
    x = learnable(3)
    assert speed.backward(lambda: x + 1) is None
    assert len(speed.backward(lambda: 2 * x)()) == 1


def test_what_has_nothing_to_keep_is_told_once():
    assert list(told(case(Way("", lambda: torch.ones(1))))) == ["anew"]


def test_a_way_may_belong_to_one_story_and_what_is_held_leaves_nothing_out():
    work = Making()
    ways = [
        Way("", work.use, work.make),
        Way("coarse tables", work.use, work.make, less="digits"),
        Way("coarse", lambda: torch.ones(2), less="digits"),
        Way("exact", work.use, work.make, only="anew"),
    ]
    (anew, coarse), (held, still) = told(case(*ways)).values()
    assert list(anew) == ["", "coarse tables", "coarse", "exact"]
    assert list(held) == ["", "coarse tables", "coarse"]
    assert coarse == {"coarse tables": "digits", "coarse": "digits"} and still == {"coarse": "digits"}


@each_of(
    ("theirs", "message"),
    [
        (torch.tensor([1.0, 2.1]), "work, other: 0.0"),
        (torch.ones(1, 2), "('work', 'other')"),
    ],
)
def test_peers_that_give_something_else_are_not_timed(theirs, message):
    runs = {"": lambda: torch.tensor([1.0, 2.0]), "other": lambda: theirs}
    with pytest.raises(AssertionError) as raised:
        speed.check_same(case(), runs)
    assert message in str(raised.value)


def test_keys_may_be_hidden_by_infinity_or_by_a_large_number():
    ours, theirs = torch.tensor([1.0, -torch.inf]), torch.tensor([1.0, -1e30])
    speed.check_same(case(), {"": lambda: ours, "other": lambda: [theirs]})


def test_backward_differentiates_by_all_that_is_learned_and_may_be_called_again():
    a, b, c = (torch.ones(3, requires_grad=True) for _ in range(3))
    layer, fixed = torch.nn.Linear(3, 3), torch.ones(3)
    made = [layer(a * b) + fixed, (b * c.detach())[:1]]
    found = speed.reached(made)
    assert {id(each) for each in found} == {id(each) for each in (a, b, layer.weight, layer.bias)}
    back = speed.backward(lambda: made)
    assert (
        [each.shape for each in back()] == [each.shape for each in found] == [each.shape for each in back()]
    )
    assert speed.backward(lambda: fixed + 1) is None


def test_outputs_are_found_however_they_are_nested():
    a, b, c = torch.ones(3)
    assert outputs([(a, [b]), c]) == [a, b, c]


def test_a_row_has_the_ratio_to_each_peer_and_to_a_copy(monkeypatch):
    took = {"forward": {"": 4e-6, "other": 8e-6}, "backward": {"": 3e-6, "other": 2e-6}, "copy": {"": 1e-6}}
    monkeypatch.setattr(speed, "seconds", lambda timed, *_, **__: {(c, n): [took[c][n]] for c, n in timed})
    monkeypatch.setattr(speed, "peak_bytes", lambda run: run() and 8)
    x = torch.ones(2, requires_grad=True)
    runs = {"": lambda: [2 * x], "other": lambda: [2 * x]}
    row = speed.measure(case(), "anew", runs, {"other": "digits"})
    assert row["microseconds"] == {"forward": 4.0, "backward": 3.0}
    assert row["copies"] == {"forward": 4.0, "backward": 3.0}
    ratios = {"forward": 0.5, "backward": 1.5, "memory": 1.0}
    assert row["peers"] == [{"name": "other", "less": "digits", **ratios}]
    assert not speed.is_slow(row["peers"][0]) and speed.is_slow(row["peers"][0] | {"less": None})


@pytest.mark.peer
@pytest.mark.slow
def test_the_code_of_a_piece_of_work_is_what_ran_of_it():
    ran = speed.code(rope("half"), (1, 2, 4))
    assert {"apply_rope", "rope_tables", "rope_frequencies", ""} <= set(ran["snippets/rope.py"])
    assert "interleaved_to_half" not in ran["snippets/rope.py"]
    assert {"rope", "halves"} <= set(ran["tests/peers/turned.py"]) and "" not in ran["tests/peers/turned.py"]
    assert "gptj" not in ran["tests/peers/turned.py"]


def test_without_a_compiler_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("no-such-c++",))
    assert speed.compiler() is None


def test_some_snippets_timed_anew_take_the_place_of_their_rows_on_the_same_machine():
    def row(snippet, what, date):
        return {"snippet": snippet, "what": what, "made": date}

    machine = {"cpu": "one", "date": "2026-11-23"}
    kept = {
        "machine": machine | {"date": "2026-11-22"},
        "code": {"a1": 1, "a2": 1, "b": 1},
        "rows": [row("a", "a1", 1), row("a", "a2", 1), row("b", "b", 1)],
    }
    made = {"machine": machine, "code": {"a1": 2}, "rows": [row("a", "a1", 2)]}
    merged = speed.beside_others(made, kept)
    assert merged["rows"] == [row("b", "b", 1), row("a", "a1", 2)]
    assert merged["code"] == {"a1": 2, "b": 1} and merged["machine"] == machine
    kept["machine"]["cpu"] = "another"
    assert speed.beside_others(made, kept) is None
