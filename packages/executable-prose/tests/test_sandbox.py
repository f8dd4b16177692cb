"""What an exhibit may not do, and what is said of it with its line."""

import contextlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prose_testing.projects import SETTINGS, Project

SECONDS = 3  # instead of ten minutes
REST = 3  # seconds until a process that ignores its limit is killed, instead of ten
OUTSIDE = "expected no writing outside of tempfile.gettempdir(), got"
LATE = f"it did not end within {SECONDS} seconds"
MEMORY = "expected at most 4 GiB of memory, got "

IMPORTS = """
import contextlib, ctypes, mmap, os, socket, subprocess, tempfile, time, urllib.request
from pathlib import Path
import numpy
kept = "snippets/kept.txt"
"""

# What a function does in its last line, and what is said of it. `own` is its folder, `kept` a file of ours.
REFUSED = {
    "Path('x').write_text('')": f"{OUTSIDE} open of 'x'",
    "open(kept, 'a')": f"{OUTSIDE} open of 'snippets/kept.txt'",
    "open(kept, 'r+')": f"{OUTSIDE} open of 'snippets/kept.txt'",
    "os.open(kept, os.O_WRONLY)": f"{OUTSIDE} open of 'snippets/kept.txt'",
    "Path(own, '..', 'x').write_text('')": f"{OUTSIDE} open of '",
    "os.symlink(os.getcwd(), own + '/a'); Path(own, 'a', 'x').write_text('')": f"{OUTSIDE} open of '",
    "os.remove(kept)": f"{OUTSIDE} os.remove of 'snippets/kept.txt'",
    "os.rename(kept, own + '/kept')": f"{OUTSIDE} os.rename of 'snippets/kept.txt'",
    "Path(own, 'a').touch(); os.replace(own + '/a', kept)": f"{OUTSIDE} os.rename of 'snippets/kept.txt'",
    "os.link(kept, 'link')": f"{OUTSIDE} os.link of 'link'",
    "os.symlink(kept, 'link')": f"{OUTSIDE} os.symlink of 'link'",
    "os.mkdir('folder')": f"{OUTSIDE} os.mkdir of 'folder'",
    "os.rmdir('snippets')": f"{OUTSIDE} os.rmdir of 'snippets'",
    "os.truncate(kept, 0)": f"{OUTSIDE} os.truncate of 'snippets/kept.txt'",
    "os.chmod(kept, 0)": f"{OUTSIDE} os.chmod of 'snippets/kept.txt'",
    "os.utime(kept, (0, 0))": f"{OUTSIDE} os.utime of 'snippets/kept.txt'",
    "urllib.request.urlopen('http://127.0.0.1:9')": "expected no network, got urllib.Request",
    "socket.create_connection(('127.0.0.1', 9))": "expected no network, got socket.getaddrinfo",
    "socket.socket(type=socket.SOCK_DGRAM)": "expected no network, got socket.__new__",
    "subprocess.run(['true'])": "expected work in one process, got subprocess.Popen",
    "caught(socket.socket)": "expected no network, got socket.__new__",
    "print('x' * 1_000_001)": "expected at most 1,000,000 characters of output",
    "caught(lambda: [print('x' * 99) for _ in range(99_999)])": "expected at most 1,000,000 characters",
    "deep()": "RecursionError: maximum recursion depth exceeded",
}
DIED = {
    "while True: pass": LATE,
    "while True: caught(lambda: time.sleep(0.2) or 1 / 0)": LATE,
    "ctypes.CDLL(None).pause()": LATE,
    "ctypes.string_at(0)": "its process died with exit code -11",
    "os.abort()": "its process died with exit code -6",
}
COUNTED = {
    "mmap.mmap(-1, 5 << 30)": f"{MEMORY}OSError: [Errno 12] Cannot allocate memory",
    "fill(own)": "expected at most 256 MiB in the files before this one, got 400 MiB",
    "grow(own)": "expected at most 256 MiB in the files before this one, got 320 MiB",
    "bytearray(5 << 30)": f"{MEMORY}MemoryError:",
    "numpy.ones(5 << 30, dtype='int8')": f"{MEMORY}MemoryError: Unable to allocate 5.00 GiB",
    "open(own + '/x', 'wb').truncate(1 << 29)": "OSError: [Errno 27] File too large",
}
ALLOWED = {
    "Path(own, 'x').write_text('7'); print(Path(own, 'x').read_text())": "7\n",
    "[Path(own, str(n)).touch() for n in range(300)]": "",
    "[Path(own, 'x').write_text('y') for n in range(200)]": "",
    "[(Path(own, 'x').write_bytes(bytes(9 << 20)), os.remove(own + '/x')) for n in range(32)]": "",
    "print(tempfile.mkdtemp().startswith(own))": "True\n",
    "print('quiet', file=open(os.devnull, 'w')); print('loud')": "loud\n",
    "print(Path(kept).read_text())": "kept\n",
    "print('x' * 999_999)": "x" * 999_999 + "\n",
    "tempfile.TemporaryDirectory().cleanup(); print(socket.gethostname() != '')": "True\n",
}


def caught(function):
    with contextlib.suppress(Exception):
        function()


def fill(own):
    for number in range(9):
        with Path(own, str(number)).open("wb") as file:
            file.truncate(200 << 20)


def grow(own):
    """One file after another that was opened before all others."""
    files = [Path(own, str(number)).open("wb") for number in range(20)]  # noqa: SIM115
    for file in files:
        file.truncate(16 << 20)
    for number in range(40):
        Path(own, f"{number}.txt").touch()


def deep():
    deep()


HELPERS = "\n\n".join(map(inspect.getsource, (caught, deep, fill, grow)))
ALL = [*REFUSED, *DIED, *COUNTED, *ALLOWED]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = "".join(
        f"\n\ndef exhibit_{number}():\n    own = tempfile.gettempdir()\n    {line}\n"
        for number, line in enumerate(ALL)
    )
    files = {
        "exhibits/a.py": f"{IMPORTS}\n{HELPERS}{made}",
        "exhibits/__init__.py": "",
        "snippets/kept.txt": "kept",
        # What is named here is imported once, and not by each exhibit anew.
        "pyproject.toml": SETTINGS.format(additions="").replace('"numpy"', '"numpy", "urllib.request"'),
    }
    return Project(tmp_path_factory.mktemp("held").resolve(), files=files)


@pytest.fixture(scope="module")
def said(project):
    """A function that gives the outcome of each line, as the process says that runs exhibits."""
    before = {path.name for path in project.root.iterdir()}
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from executable_prose.execution import exhibit_process, process_pool; "
            f"exhibit_process.LIMIT, exhibit_process.REST = {SECONDS}, {REST}; process_pool.main()",
        ],
        cwd=project.root,
        env=project.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    names = [f"a.exhibit_{number}" for number in range(len(ALL))]
    print(json.dumps(names), file=worker.stdin, flush=True)
    outcomes = {made["name"]: made for made in (json.loads(worker.stdout.readline()) for _ in names)}
    worker.communicate()
    left = {path.name for path in project.root.iterdir()} - before
    assert left <= {"__pycache__"}, left
    return lambda line: outcomes[f"a.exhibit_{ALL.index(line)}"]


def place(project, line):
    lines = (project.root / "exhibits" / "a.py").read_text().splitlines()
    return f"(at exhibits/a.py:{lines.index(f'    {line}') + 1})"


@pytest.mark.parametrize("line", [*REFUSED, *DIED])
def test_what_an_exhibit_may_not_do_is_told_with_its_line(project, said, line):
    outcome = said(line)
    assert outcome["result"] is None
    assert outcome["failure"].startswith((REFUSED | DIED)[line])
    inside = re.search(r"\b(caught|deep)\(", line)  # the last line of ours that it was at
    assert outcome["failure"].endswith(place(project, line)) or inside, outcome["failure"]
    assert re.search(r"\(at exhibits/a\.py:\d+\)$", outcome["failure"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process holds")
@pytest.mark.parametrize("line", COUNTED)
def test_memory_and_files_have_a_limit(project, said, line):
    assert said(line)["failure"].startswith(COUNTED[line])
    assert said(line)["failure"].endswith(place(project, line)) or "own)" in line


@pytest.mark.parametrize("line", ALLOWED)
def test_an_exhibit_may_write_into_its_own_folder(said, line):
    assert said(line)["failure"] == ""
    assert said(line)["result"]["output"] == ALLOWED[line]


def test_nothing_is_left_behind(project, said):
    assert (project.root / "snippets/kept.txt").read_text() == "kept"
    assert not list(project.temporary.iterdir())
