"""How fast each snippet is beside its peers, and how far from copying what it makes.

One thread. Every way to do the same work has its turn in each round, and each round begins with
another one, so that whatever else the machine does meets all of them alike. What is counted is the
time of the thread on its processor, not the time on the wall. What others do to the processor's
caches can only add to it, so the shortest of all rounds counts. A ratio above 1 says that the
snippet is slower.
"""

import datetime
import gc
import json
import os
import platform
import time
from pathlib import Path

import torch

from experiments.measure import keep_memory, processor
from experiments.peers import CASES, SIZES, check_same, outputs

ROUNDS, FEWEST = 31, 9
SECONDS = 3.0  # for all rounds of one comparison, if that leaves enough of them
TURN = 0.005  # seconds at least, by calling again
RESULTS = Path(__file__).resolve().parents[1] / "snippets" / "goldens" / "speed.json"
METHOD = (
    "One thread. All ways to do the same work take turns in each of {fewest} to {most} rounds, and begin "
    "each round with another one. Counted is the time of the thread on its processor, which others may "
    "share: what they do to it can only add to a time, so the shortest of each way counts. A ratio is the "
    "snippet's time divided by the peer's. Forward is without gradients, backward alone. The floor is the "
    "time to copy once as many bytes as come out. Memory is kept by the allocator. Outputs were compared "
    "before."
)


def forward(way):
    def once():
        start = time.thread_time_ns()
        with torch.no_grad():
            way.run()
        return time.thread_time_ns() - start

    return once


def backward(way):
    with torch.no_grad():
        gradients = [torch.randn_like(made) for made in outputs(way)]

    def once():
        made = outputs(way)
        start = time.thread_time_ns()
        torch.autograd.grad(made, way.leaves, gradients, allow_unused=True)
        return time.thread_time_ns() - start

    return once


def copying(tensors):
    tensors = [tensor.detach() for tensor in tensors]

    def once():
        start = time.thread_time_ns()
        for tensor in tensors:
            tensor.clone()
        return time.thread_time_ns() - start

    return once


def interleaved(ways):
    """{name: [seconds a call in each round]}, all ways taking turns."""
    calls, a_round = {}, 0.0
    for name, once in ways.items():
        start = time.perf_counter()
        least = max(min(once() for _ in range(3)), 1000) / 1e9
        calls[name] = max(1, round(TURN / least))
        a_round += calls[name] * (time.perf_counter() - start) / 3
    rounds = min(max(int(SECONDS / a_round), FEWEST), ROUNDS)
    seconds = {name: [] for name in ways}
    names = list(ways)
    gc.collect()
    gc.disable()
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            total = sum(ways[name]() for _ in range(calls[name]))
            seconds[name].append(total / calls[name] / 1e9)
    gc.enable()
    return seconds


def ratio(ours, theirs):
    return min(ours) / min(theirs)


def measure(case):
    """A row for each peer, or one if there is none."""
    check_same(case)
    ways = {"ours": case.ours, **{peer.name: peer for peer in case.peers}}
    timed = {name: forward(way) for name, way in ways.items()}
    if case.floor:
        timed["copy"] = copying(case.floor)
    there = interleaved(timed)
    back = interleaved({n: backward(w) for n, w in ways.items()}) if case.ours.leaves else None
    for peer in case.peers or [None]:
        row = {
            "snippet": case.snippet,
            "what": case.what,
            "size": case.size,
            "peer": peer and peer.name,
            "peer_does_less": (peer and peer.less) or None,
            "microseconds": 1e6 * min(there["ours"]),
            "backward_microseconds": back and 1e6 * min(back["ours"]),
            "forward_ratio": peer and ratio(there["ours"], there[peer.name]),
            "backward_ratio": peer and back and ratio(back["ours"], back[peer.name]),
            "floor_multiple": ratio(there["ours"], there["copy"]) if case.floor else None,
        }
        yield {name: rounded(value) for name, value in row.items()}


def rounded(value):
    """Three digits: more is noise."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def machine():
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "method": METHOD.format(fewest=FEWEST, most=ROUNDS),
    }


def show(row):
    def number(value, form):
        return "-" if value is None else format(value, form)

    print(
        f"{row['what'][:38]:<39}{row['size'][:26]:<27}{number(row['microseconds'], '.0f'):>8}"
        f"{number(row['floor_multiple'], '.1f'):>7}{number(row['forward_ratio'], '.2f'):>7}"
        f"{number(row['backward_ratio'], '.2f'):>7}  {row['peer'] or ''}"
        f"{' (does less)' if row['peer_does_less'] else ''}",
        flush=True,
    )


def bench(only=()):
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    heading = f"{'snippet':<39}{'size':<27}{'us':>8}{'floor':>7}{'there':>7}{'back':>7}  beside"
    print(heading)
    rows = []
    for case in CASES:
        for size in SIZES:
            made = case(*size)
            if not only or made.snippet in only:
                for row in measure(made):
                    show(row)
                    rows.append(row)
    slow = [row for row in rows if not row["peer_does_less"] and is_slow(row)]
    for row in slow:
        print(f"slower than 1.1 times {row['peer']}: {row['what']}, {row['size']}")
    if not only:
        RESULTS.parent.mkdir(exist_ok=True)
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        print(f"written to {RESULTS}")


def is_slow(row):
    return any((row[name] or 0) > 1.1 for name in ("forward_ratio", "backward_ratio"))
