"""The built site under load: many readers at once, and no answer that is wrong."""

import gzip
import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from urllib.parse import urlsplit

import brotli
import pytest

from conftest import BASE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
REQUESTS, READERS, SECONDS = 10_000, 50, 120


def test_many_readers_at_once_get_every_page(built, origin):
    """Each with a connection of its own that stays open; pages are asked for in turn."""
    whole = {path: built.file(path).read_bytes() for path in built.pages}
    held = threading.local()

    def ask(path):
        if not hasattr(held, "connection"):
            held.connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=30)
        held.connection.request("GET", BASE + path, headers={"Accept-Encoding": "gzip"})
        answer = held.connection.getresponse()
        return answer.status == 200 and gzip.decompress(answer.read()) == whole[path]

    started = time.monotonic()
    with ThreadPoolExecutor(READERS) as readers:
        right = sum(readers.map(ask, islice(cycle(whole), REQUESTS)))
    took = time.monotonic() - started
    print(f"{right:,} of {REQUESTS:,} answers right in {took:.1f} s")
    for name, compress in (("gzip", lambda data: gzip.compress(data, 6)), ("brotli", brotli.compress)):
        sizes = sorted(len(compress(data)) for data in whole.values())
        print(f"{name}: {sizes[0]:,} to {sizes[-1]:,} bytes a page, {sum(sizes):,} in all")
    assert right == REQUESTS
    assert took < SECONDS
