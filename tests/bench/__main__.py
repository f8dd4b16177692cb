"""Build times, page weights and the speed of the snippets, measured now on this machine.

make bench                              everything
python tests/bench speed rope alibi     only the speed of these snippets

The speed of all snippets goes to tests/snippets/goldens/speed.json, which the pages show.
"""

import argparse
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "site")]
WHAT = ["builds", "speed"]
# What is freed stays with the process, as the allocators of other devices do it: a large tensor would
# otherwise cost a page fault for every 4 kB in one round and nothing in the next. glibc reads these
# when a process starts.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "MALLOC_TOP_PAD_": str(2**28),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=WHAT, help="both if not given")
    parser.add_argument("snippets", nargs="*", help="with speed: only these")
    arguments = parser.parse_args()
    what = [arguments.what] if arguments.what else WHAT
    if "speed" in what and any(os.environ.get(name) != size for name, size in KEEP_MEMORY.items()):
        again = [sys.executable, str(Path(__file__).parent), *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, **KEEP_MEMORY})
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n", flush=True)
    if "builds" in what:
        import builds

        builds.bench()
    if "speed" in what:
        import speed

        speed.bench(arguments.snippets)


if __name__ == "__main__":
    main()
