"""Ten times the pages take ten times as long, and a server that rebuilds all day does not grow."""

import os
import signal
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from prose_testing.projects import FILES, Project, running_in, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's account of memory"
    ),
]
EXHIBIT = """
def shown():
    print("exhibit {number}")
    return {{"number": {number}}}
"""
PAGE = "# Page {number}\n\nIt is `#!val many{number}.shown.number`.\n\n```exhibit many{number}.shown\n```\n"
MOST = 2 * 1024**3  # bytes
REBUILDS, SETTLED = 500, 50


def memory(folder):
    """Bytes that all processes which run in a folder hold, what they share counted once."""
    total = 0
    for pid in running_in(folder):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        total += next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
    return total


def built(folder, pages):
    """Seconds and the most memory that a first build of so many pages takes.

    Seconds on the wall: the processor's, of a process that its parent did not wait for, are lost.
    """
    numbers = range(pages)
    files = {f"exhibits/many{n}.py": EXHIBIT.format(number=n) for n in numbers}
    files |= {f"docs/page{n}.md": PAGE.format(number=n) for n in numbers}
    project = Project(folder.resolve(), files=FILES | files)
    peaks, ended, start = [], threading.Event(), time.perf_counter()

    def watch():
        while not ended.wait(0.1):
            peaks.append(memory(project.root))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        done = project.build()
        seconds = time.perf_counter() - start
    finally:
        ended.set()
        watcher.join()
    assert done.code == 0 and len(done.ran()) == pages + 2, done.output
    return seconds, max(peaks)


def test_ten_times_the_pages_take_about_ten_times_as_long_and_two_gigabytes_at_most(tmp_path_factory):
    folders = tmp_path_factory.mktemp("pages")  # short: sockets have addresses of a hundred letters
    for folder in "few", "some", "many":
        (folders / folder).mkdir()
    built(folders / "few", 1)  # so that bytecode of libraries is there for both
    some, _ = built(folders / "some", 40)
    many, most = built(folders / "many", 400)
    print(f"40 pages {some:.1f} s, 400 pages {many:.1f} s and {most / 2**20:.0f} MiB")
    assert many < 12 * some
    assert most < MOST


def held(pid):
    """What a process holds: bytes of memory, open files, threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident, threads = (
        int(status.partition(f"{name}:")[2].split(maxsplit=1)[0]) for name in ("VmRSS", "Threads")
    )
    return resident * 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())), threads


def test_a_server_that_rebuilds_all_day_does_not_grow(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("day").resolve())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = project.root / "log"
    with log.open("w") as output:
        server = project.start("executable_prose", "serve", "--dev-addr", address, output=output)

    def fetch():
        try:
            with urllib.request.urlopen(f"http://{address}/", timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            assert server.poll() is None, log.read_text()
            return ""

    try:
        until(lambda: "Scaling" in fetch())
        started = time.monotonic()
        for number in range(REBUILDS):
            if number == SETTLED:
                memory_then, files_then, threads_then = held(server.pid)
            text = (project.root / "docs/index.md").read_text()
            (project.root / "docs/index.md").write_text(f"{text.partition('<!--')[0]}<!-- {number} -->\n")
            until(lambda: f"<!-- {number} -->" in fetch())  # noqa: B023
        memory_now, files_now, threads_now = held(server.pid)
        print(f"{REBUILDS} rebuilds in {time.monotonic() - started:.0f} s: {memory_then / 2**20:.0f}", end="")
        print(f" to {memory_now / 2**20:.0f} MiB, {files_then} to {files_now} files", end="")
        print(f", {threads_then} to {threads_now} threads")
        assert memory_now < memory_then + 20 * 2**20
        assert files_now <= files_then + 2 and threads_now <= threads_then + 1
    finally:
        os.killpg(server.pid, signal.SIGINT)
        server.wait(30)
