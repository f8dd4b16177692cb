"""A model that hangs, eats, prints, writes or connects does so behind a fence."""

import socket
import sys
import time
from pathlib import Path

from experiments.census.fenced import fenced
from tests.rows import each_of

MEMORY = 8 * 2**30


def sleeps(_):
    time.sleep(60)


def turns(_):
    while True:
        pass


def eats(_):
    return len(bytearray(2 * MEMORY))


def connects(_):
    socket.create_connection(("127.0.0.1", 9))


def leaves(_):
    sys.exit(3)


@each_of(
    ("function", "told"),
    [
        (sleeps, "it took more than 1 seconds"),
        (turns, "it took more than 1 seconds"),
        (eats, "MemoryError"),
        (connects, "OSError: a model must be built without a network"),
        (leaves, "SystemExit: 3"),
    ],
)
def test_what_goes_wrong_is_told(function, told):
    assert fenced(function, None, 1, MEMORY).startswith(told)


def test_what_it_prints_and_writes_is_lost(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def noisy(word):
        sys.stdout.write(word)
        sys.stderr.write(word)
        Path("left").write_text(word)
        return {word: 1}

    assert fenced(noisy, "said", 10, MEMORY) == {"said": 1}
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
