"""Build times, page weights and the speed of the snippets, measured now on this machine.

make bench                              everything
python tools/bench builds               what building takes, beside its goals and beside others
python tools/bench tests                what `make test` takes, whole and after edits, of the last commit
python tools/bench light guide/rope/     what Lighthouse says of the built site, or of these pages
python tools/bench speed rope alibi     only the speed of these snippets, kept if the machine is the same
python tools/bench screens              how long each chapter is at Intermediate on a wide screen
python tools/bench live                 live figures: operations, bytes, frames, how far from torch

The speed of all snippets goes to measurements/speed.json, which the pages show.
"""

import argparse
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "site")]
WHAT = ["builds", "light", "live", "screens", "speed", "tests"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=WHAT, help="builds and speed if not given")
    parser.add_argument("these", nargs="*", help="light: only these pages; speed: only these snippets")
    arguments = parser.parse_args()
    what = [arguments.what] if arguments.what else ["builds", "speed"]
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n", flush=True)
    if "builds" in what:
        import builds

        builds.bench()
    if "tests" in what:
        import builds

        builds.bench_tests()
    if "light" in what:
        import light

        light.bench(arguments.these)
    if "live" in what:
        import live

        live.bench()
    if "screens" in what:
        import screens

        screens.bench()
    if "speed" in what:
        import speed

        speed.bench(arguments.these)


if __name__ == "__main__":
    main()
