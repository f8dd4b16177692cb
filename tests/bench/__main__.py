"""Build times, page weights and the speed of the snippets, measured now on this machine.

make bench                              everything
python tests/bench speed rope alibi     only the speed of these snippets

The speed of all snippets goes to tests/snippets/goldens/speed.json, which the pages show.
"""

import argparse
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "site")]
WHAT = ["builds", "speed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=WHAT, help="both if not given")
    parser.add_argument("snippets", nargs="*", help="with speed: only these")
    arguments = parser.parse_args()
    what = [arguments.what] if arguments.what else WHAT
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n", flush=True)
    if "builds" in what:
        import builds

        builds.bench()
    if "speed" in what:
        import speed

        speed.bench(arguments.snippets)


if __name__ == "__main__":
    main()
