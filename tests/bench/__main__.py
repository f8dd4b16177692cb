"""Build times, page weights and the speed of the snippets, measured now on this machine.

make bench                              builds and speed
python tests/bench builds               what building takes, beside its goals and beside plain MkDocs
python tests/bench rivals               our first build beside those of others, once a release
python tests/bench rivals order         only the rivals, with the exhibits of these chapters
python tests/bench light guide/rope/     what Lighthouse says of the built site, or of these pages
python tests/bench speed rope alibi     only the speed of these snippets, kept if the machine is the same
python tests/bench screens              how long each chapter is at Intermediate on a wide screen
python tests/bench live                 live figures: operations, bytes, frames, how far from torch

The speed of all snippets goes to experiments/results/speed.json, which the pages show.
"""

import argparse
import importlib
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "site")]

from executable_prose.command import run  # noqa: E402
from experiments.arguments import check  # noqa: E402

WHAT = ("builds", "light", "live", "rivals", "screens", "speed")
KNOWN = (("speed", "snippet", "snippets/[!_]*.py"), ("rivals", "chapter", "exhibits/[!_]*.py"))
OF_THESE = ("light", "rivals", "speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=WHAT, help="builds and speed if not given")
    parser.add_argument("these", nargs="*", help="pages (light), chapters (rivals) or snippets (speed)")
    arguments = parser.parse_args()
    if arguments.these and arguments.what not in OF_THESE:
        parser.error(f"expected no more than {arguments.what}, got {' '.join(arguments.these)}")
    for name, kind, known in KNOWN:
        if arguments.what == name:
            check(parser, kind, arguments.these, sorted(path.stem for path in ROOT.glob(known)))
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n", flush=True)
    for name in [arguments.what] if arguments.what else ["builds", "speed"]:
        importlib.import_module(name).bench(*arguments.these)


if __name__ == "__main__":
    run(main)
