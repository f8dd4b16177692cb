"""What runs the graphs of live figures gives what torch gives, one operation after the other. Needs Node."""

import json
import math
import subprocess

import pytest
import torch

from executable_prose import project
from executable_prose.figures import live_graph

pytestmark = pytest.mark.browser

RUN = """
import { run } from %s;
import { readFileSync } from "node:fs";
const all = JSON.parse(readFileSync(0, "utf8")).map(([graph, values]) => Object.values(run(graph, values)));
console.log(JSON.stringify(all.map(([{ shape, data }]) => ({ shape, data: [...data].map(String) }))));
"""
FLOAT = torch.tensor([[-1.5, 0.25, 3.0], [0.5, -2.0, 7.25]])
WHOLE = torch.tensor([[2, 1, 2], [0, 2, 1]])
YES = torch.tensor([[True, False, True], [False, False, True]])
MANY = torch.linspace(-1, 1, 24).view(2, 3, 4)


def by(names, make):
    """A case for each of these functions of torch."""
    return {name: make(getattr(torch, name)) for name in names.split()}


def in_place(a):
    """Numbers written into a tensor of nothing yet: empty, copy and slice_scatter."""
    made = (FLOAT * a).new_empty(3, 6)
    made[:, 1::2] = torch.cat((FLOAT.T, FLOAT.T[:, :1]), 1) * a
    made[:, 0::2] = a
    return made


# Functions of one float64 number, which the graph must take; each names the operation that it is for.
CASES = {
    **by(
        "abs ceil cos exp floor neg reciprocal relu sigmoid sign sin tanh",
        lambda f: lambda a: f(FLOAT.double() * a),
    ),
    **by("log log1p log2 log10 sqrt", lambda f: lambda a: f(FLOAT.abs() * a)),
    **by("eq ne lt le gt ge", lambda f: lambda a: f(FLOAT * a, 0.25 * a) + a),
    **by(
        "logical_and logical_or bitwise_and bitwise_or",
        lambda f: lambda a: f(YES, FLOAT * a > 0.2) + a,
    ),
    **by("logical_not bitwise_not", lambda f: lambda a: f(FLOAT * a > 0.2) + a),
    **by("maximum minimum", lambda f: lambda a: f(FLOAT.double(), a)),
    "atan2": lambda a: torch.atan2(FLOAT * a, FLOAT.flip(0)),
    "add": lambda a: torch.add(FLOAT, FLOAT[:1] * a, alpha=3),
    "sub": lambda a: torch.sub(FLOAT, FLOAT[:, :1] * a, alpha=3),
    "mul": lambda a: FLOAT * a.float(),
    "pow": lambda a: FLOAT.abs() ** a,
    "fmod": lambda a: torch.fmod(FLOAT.double(), a + 0.3),
    "remainder": lambda a: FLOAT.double() % (a + 0.3),
    "div": lambda a: torch.stack(
        [torch.div(FLOAT, a, rounding_mode=mode) for mode in (None, "floor", "trunc")]
    ),
    "clamp": lambda a: torch.stack(
        [(FLOAT * a).clamp(*ends) for ends in ((-1, 2), (0.5, None), (None, 0.5))]
    ),
    "where": lambda a: torch.where(YES, FLOAT * a, 9.0),
    "_to_copy": lambda a: (FLOAT * a).to(torch.int64) + a,
    "clone": lambda a: (FLOAT * a).T.clone(memory_format=torch.contiguous_format),
    "alias": lambda a: torch.ops.aten.alias(FLOAT * a),
    "lift_fresh_copy": lambda a: torch.tensor([1.5, 2.0]) * a,
    "constant": lambda a: FLOAT + a,
    "empty": in_place,
    "copy": in_place,
    "slice_scatter": in_place,
    "full": lambda a: torch.full((2, 3), 4.5) * a,
    "scalar_tensor": lambda a: torch.scalar_tensor(2.5) * a,
    "full_like": lambda a: torch.full_like(FLOAT * a, 3.5) + a,
    "arange": lambda a: torch.arange(1, 8, 3) * a + torch.arange(0.5, 3.4, dtype=torch.float64),
    "view": lambda a: (FLOAT * a).view(3, -1),
    "expand": lambda a: (FLOAT[:, :1] * a).expand(4, -1, 3) + FLOAT,
    "slice": lambda a: torch.cat(((MANY * a)[:, ::2, 1:], (MANY * a)[:, -1:, -3:]), 1),
    "unsqueeze": lambda a: (FLOAT * a)[:, None, :, None],
    "squeeze": lambda a: (FLOAT[:, :1] * a).squeeze(-1),
    "permute": lambda a: (MANY * a).permute(2, 0, -2),
    "select": lambda a: torch.stack(((MANY * a)[:, 1, -1], (MANY * a)[:, -1, 0])),
    "cat": lambda a: torch.cat((FLOAT * a, WHOLE, FLOAT), -1),
    "split_with_sizes": lambda a: torch.cat((MANY * a).split((1, 3), -1)[::-1], -1),
    "getitem": lambda a: (FLOAT * a).split(1, 0)[1],
    "flip": lambda a: (MANY * a).flip(0, -1),
    "cumsum": lambda a: (MANY.double() * a).cumsum(1) + (MANY.double() * a).cumsum(-1),
    "cummax": lambda a: (MANY * a).flip(0).cummax(1).values,
    "sum": lambda a: sum((MANY.double() * a).sum(axes, keepdim=True) for axes in (None, (0, 2), 1)),
    "amax": lambda a: (MANY * a).amax((0, -1)),
    "amin": lambda a: (MANY * a).amin(1, keepdim=True),
    "any": lambda a: (FLOAT * a > 5).any(-1) + (FLOAT * a > 99).any() + a,
    "mean": lambda a: (MANY.double() * a).mean(-1) + (MANY.double() * a).mean(),
    "linalg_vector_norm": lambda a: (MANY.double() * a).norm(dim=(0, 2)) + (MANY.double() * a).norm(p=1),
    "mm": lambda a: (FLOAT.double() * a) @ FLOAT.double().T,
    "addmm": lambda a: torch.addmm(FLOAT[:, :2], FLOAT * a, FLOAT.T, beta=3, alpha=2),
    "bmm": lambda a: (MANY.double() * a) @ MANY.double().mT,
    "_softmax": lambda a: (MANY.double() * a).softmax(1),
    "gather": lambda a: (FLOAT * a).gather(1, WHOLE) + (FLOAT * a).gather(0, WHOLE.clamp(max=1)),
    "index_select": lambda a: (MANY * a).index_select(1, torch.tensor([2, 0])),
    "embedding": lambda a: torch.nn.functional.embedding(WHOLE, MANY.flatten(0, 1) * a.float()),
    "index": lambda a: (MANY * a)[:, torch.tensor([[-1, 0]])] + (MANY * a)[[1, 0]][:, :1, None],
}
VALUES = (0.7, 1.0, 3.25)


def graph(case):
    return live_graph.traced(lambda a: {"made": case(a)}, [1.5])[1]


@pytest.fixture(scope="module")
def both():
    """For each case, the operations of its graph, what torch gives and what the page's script gives."""
    graphs, asked, expected = {}, [], {}
    for name, case in CASES.items():
        graphs[name] = graph(case)
        asked += [[graphs[name], [value]] for value in VALUES]
        expected[name] = [case(torch.tensor(value, dtype=torch.float64)) for value in VALUES]
    script = RUN % json.dumps((project.ENGINE / "assets" / live_graph.EVALUATOR).as_uri())
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps(asked).replace("Infinity", "1e999"),
        capture_output=True,
        text=True,
        check=True,
    )
    given = iter(json.loads(done.stdout))
    return graphs, expected, {name: [next(given) for _ in VALUES] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_gives_what_torch_gives(both, name):
    graphs, expected, given = both
    assert name in [node[0] for node in graphs[name]["nodes"]]
    for tensor, made in zip(expected[name], given[name], strict=True):
        assert made["shape"] == list(tensor.shape)
        numbers = torch.tensor([float(each) for each in made["data"]], dtype=torch.float64).view(tensor.shape)
        room = 1e-6 if tensor.dtype == torch.float32 else 1e-14
        torch.testing.assert_close(numbers, tensor.double(), rtol=room, atol=room)


def test_every_operation_has_a_case():
    assert live_graph.operations() == set(CASES)


def test_float32_is_rounded_at_each_step():
    third = graph(lambda a: torch.tensor(1.0) / 3 * a.float() * 3)
    assert [node[2] for node in third["nodes"]].count("f4") >= 4
    assert not math.isclose(float(torch.tensor(1.0) / 3), 1 / 3, rel_tol=1e-9)
