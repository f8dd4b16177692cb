"""A page opened in the Firefox that readers have, by its own protocol: Marionette, JSON over a socket.

Playwright knows only a Firefox that it builds and downloads itself.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("firefox", "firefox-esr")
SECONDS = 60  # that it may take to start, and that a page may take for an answer
ANSWER = "const [argument, done] = arguments; Promise.resolve((%s)(argument)).then(done);"


class Firefox:
    """Use as a context manager. A command that it refuses is an error with its words."""

    def __enter__(self):
        found = os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, NAMES)), None)
        if not found:
            raise FileNotFoundError(f"no Firefox: set $FIREFOX or install one of {', '.join(NAMES)}")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._profile.name)
        (folder / "user.js").write_text('user_pref("marionette.port", 0);\n', encoding="utf-8")
        self._process = subprocess.Popen(
            [found, "--headless", "--marionette", "--no-remote", "--profile", folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._socket = socket.create_connection(("127.0.0.1", _port(folder)), SECONDS)
        self._answers = self._socket.makefile("rb")
        self._read()  # it says what it is
        self._ask("WebDriver:NewSession", timeouts={"script": SECONDS * 1000})
        return self

    def __exit__(self, *_):
        self._ask("Marionette:Quit", flags=["eForceQuit"])
        self._socket.close()
        self._process.wait(SECONDS)
        self._profile.cleanup()

    def open(self, address):
        self._ask("WebDriver:Navigate", url=address)

    def evaluate(self, function, argument=None):
        """What a function of JavaScript gives for an argument, or what its promise does."""
        script = ANSWER % function
        return self._ask("WebDriver:ExecuteAsyncScript", script=script, args=[argument])["value"]

    def _ask(self, command, **parameters):
        message = json.dumps([0, 0, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['error']}: {error['message']}")
        return result

    def _read(self):
        length = b""
        while (byte := self._answers.read(1)) != b":":
            length += byte
        return json.loads(self._answers.read(int(length)))


def _port(profile):
    """It takes a free one and writes it down."""
    file, until = profile / "MarionetteActivePort", time.monotonic() + SECONDS
    while time.monotonic() < until:
        if file.exists() and (port := file.read_text(encoding="utf-8")):
            return int(port)
        time.sleep(0.05)
    raise TimeoutError(f"Firefox did not start within {SECONDS} seconds")
