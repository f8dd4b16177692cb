"""Which timings are older than the code that they were taken of?

Only a quiet machine can make them again, so no test fails for it. Pages say so beside them, and `make fresh`,
which is called before the site is published, refuses.
"""

import argparse
import json
import sys

from executable_prose import command, project
from executable_prose.execution.provenance import changed
from experiments.runs import made_with

SPEED = "experiments/results/speed.json"


def cost():
    """The files that have changed since the costs of encodings were measured."""
    return changed(made_with("cost")[0]["code"])


def speed():
    """By piece of work what has changed since it was timed beside its peers; only where something has."""
    code = json.loads((project.ROOT / SPEED).read_text(encoding="utf-8"))["code"]
    return {what: names for what, ran in code.items() if (names := changed(ran, "snippets"))}


def main():
    stale = [f"{what} ({SPEED}; make bench): {', '.join(names)}" for what, names in speed().items()]
    if names := cost():
        stale.append(f"cost (make experiments): {', '.join(names)}")
    if stale:
        sys.exit("\n".join(["These timings are older than their code. Since then has changed:", *stale]))
    print("every timing belongs to the code as it is")


if __name__ == "__main__":
    argparse.ArgumentParser("python -m experiments.fresh", description=__doc__).parse_args()
    command.run(main)
