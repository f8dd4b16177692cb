"""How fast each snippet is beside its peers, and how far from copying what it makes.

Work that has something to make is told twice: anew, as if nobody kept anything, and held, as it is used,
where the caller keeps it. A ratio above 1 says that the snippet is slower.
"""

import datetime
import json
import logging
import os
import platform

import torch
import torch._dynamo
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler

from executable_prose.execution.provenance import code_of, watching
from executable_prose.project import ROOT
from experiments.measure import keep_memory, peak_bytes, processor, seconds
from experiments.runs import written
from tests.peers import outputs
from tests.peers.cases import LARGE, SIZES, cases

ROUNDS = 11
COMPILED = ("rope", "xpos", "sinusoidal", "alibi", "t5_bias")
RESULTS = ROOT / "experiments" / "results" / "speed.json"
METHOD = (
    f"One thread. All ways to do the same work take turns in each of {ROUNDS} rounds, in an order drawn for "
    "that round. Counted is the time of the thread on its processor, which others may share: what they do to "
    "it can only add to a time, so the shortest of each way counts. A ratio is the snippet's time divided by "
    "the peer's. Forward is without gradients, backward alone. The floor is the time to copy once as many "
    "bytes as come out. Memory is kept by the allocator. Outputs were compared before."
)


def check_same(case, runs):
    """AssertionError unless the peers' numbers are the snippet's."""
    with torch.no_grad():
        ours, *others = ((name, outputs(run())) for name, run in runs.items())
    for name, theirs in others:
        for expected, made in zip(ours[1], theirs, strict=True):
            assert made.shape == expected.shape, (case.what, name)
            seen = expected > -1e29  # some hide a key by -inf, some by a large number
            far = (made.double() - expected.double())[seen].abs().max().item()
            assert far <= case.close, f"{case.what}, {name}: {far}"


def backward(run):
    """What differentiates the outputs by all that is learned; None if nothing is, or gradients only pass."""
    made = outputs(run())
    if not (leaves := reached(made)):
        return None
    gradients = [torch.randn_like(each) for each in made]
    given = {each.data_ptr() for each in gradients}

    def differentiate():
        return torch.autograd.grad(made, leaves, gradients, retain_graph=True)

    return None if all(each.data_ptr() in given for each in differentiate()) else differentiate


def reached(made):
    """The tensors that gradients of what was made go to."""
    found, seen, todo = [], set(), [each.grad_fn for each in made]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            found += [node.variable] if hasattr(node, "variable") else []
            todo += [function for function, _ in node.next_functions]
    return found


def compiler():
    """The C++ compiler that torch.compile needs, or None."""
    try:
        return get_cpp_compiler()
    except InvalidCxxCompiler:
        return None


def columns(case, runs, compiled):
    """For each column of the table: each way's function without arguments."""
    yield "forward", {name: torch.no_grad()(run) for name, run in runs.items()}
    if case.layers == 1 and (ours := backward(runs[""])):
        yield "backward", {name: ours if name == "" else backward(run) for name, run in runs.items()}
    if compiled:
        yield "compiled", {name: torch.no_grad()(torch.compile(run)) for name, run in runs.items()}


def measure(case, story, runs, less, compiled=False):
    """The row of one story of one piece of work."""
    check_same(case, runs)
    timed = {
        (column, name): way for column, ways in columns(case, runs, compiled) for name, way in ways.items()
    }
    made = [each.detach() for each in outputs(runs[""]())]
    timed["copy", ""] = lambda: [each.clone() for each in made]
    for way in timed.values():
        way()
    took = {key: least for key, (least,) in seconds(timed, ROUNDS, 1, seed=0).items()}
    space = {name: peak_bytes(torch.no_grad()(run)) for name, run in runs.items()}
    torch._dynamo.reset()
    ours = {column: time for (column, name), time in took.items() if not name and column != "copy"}
    return {
        "snippet": case.snippet,
        "what": case.what,
        "size": case.size,
        "layers": case.layers,
        "story": story,
        "microseconds": {column: rounded(1e6 * time) for column, time in ours.items()},
        "copies": {column: rounded(time / took["copy", ""]) for column, time in ours.items()},
        "peers": [
            {"name": name, "less": less.get(name)}
            | {column: rounded(time / took[column, name]) for column, time in ours.items()}
            | {"memory": rounded(space[""] / space[name])}
            for name in runs
            if name
        ],
    }


def rounded(value):
    """Three digits: more is noise."""
    return float(f"{value:.3g}")


def code(build, size):
    """The functions of ours that a piece of work runs, with digests; "" is the rest of a snippet."""
    with watching() as ran:
        for _, runs, _ in build(*size).stories():
            runs[""]()
    rest = {"snippets": {""}, "tests/peers": set()}
    return code_of(
        {
            file: names | rest[folder]
            for file, names in ran.items()
            if (folder := file.rpartition("/")[0]) in rest
        }
    )


def machine():
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "compiler": compiler(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "method": METHOD,
    }


def show(row):
    times = row["microseconds"]
    print(f"{row['what']}, {row['size']}, {row['story']}")
    print(
        "    "
        + ", ".join(f"{name} {time:.0f} µs, {row['copies'][name]:.1f} copies" for name, time in times.items())
    )
    for peer in row["peers"]:
        ratios = ", ".join(f"{column} {peer[column]:.2f}" for column in times)
        print(f"    {ratios}, beside {peer['name']}{' (does less)' if peer['less'] else ''}", flush=True)


def bench(*only):
    keep_memory()
    torch.set_num_threads(1)
    for name in (
        "torch._dynamo",
        "transformers",
    ):  # they would tell where peers break a graph, and of configs
        logging.getLogger(name).setLevel(logging.ERROR)
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._inductor.config.compile_threads = 1  # and no other process beside the measurement
    made_by, rows = {}, []
    for build, size in cases():
        torch.manual_seed(0)
        case = build(*size)
        if not only or case.snippet in only:
            made_by[case.what] = code(build, size)
            compiled = bool(compiler()) and size in (SIZES[-1], LARGE) and case.snippet in COMPILED
            for story in case.stories():
                rows.append(measure(case, *story, compiled))
                show(rows[-1])
    for row in rows:
        for peer in filter(is_slow, row["peers"]):
            print(f"slower than 1.1 times {peer['name']}: {row['what']}, {row['size']}, {row['story']}")
    made = {"machine": machine(), "code": made_by, "rows": rows}
    if only:
        made = beside_others(made, json.loads(RESULTS.read_text(encoding="utf-8")))
    if made:
        RESULTS.write_text(written(made) + "\n", encoding="utf-8")
        print(f"written to {RESULTS}")


def beside_others(made, kept):
    """What is kept, with the rows of some snippets made anew; None if another machine made the rest."""
    if made["machine"] | {"date": ""} != kept["machine"] | {"date": ""}:
        print("not written: the others were timed on another machine; time all")
        return None
    new = {row["snippet"] for row in made["rows"]}
    gone = {row["what"] for row in kept["rows"] if row["snippet"] in new}
    code = {what: parts for what, parts in kept["code"].items() if what not in gone}
    rows = [row for row in kept["rows"] if row["snippet"] not in new]
    return {"machine": made["machine"], "code": code | made["code"], "rows": rows + made["rows"]}


def is_slow(peer):
    columns = ("forward", "backward", "compiled")
    return not peer["less"] and any(peer.get(column, 0) > 1.1 for column in columns)
