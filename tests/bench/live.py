"""Every live figure of the built site: its operations and bytes, a frame's time, how far it is from torch."""

import gzip
import json

from built import SITE
from playwright.sync_api import sync_playwright
from server import serve
from visits import Visits, launch

from test_live import READY, SLOWER, apart, exhibited, frame, live_figures, seen


def bench():
    print(f"Frames with the processor slowed {SLOWER} times; bytes compressed; differences over all stops.\n")
    with sync_playwright() as playwright, serve(SITE.root, SITE.base) as origin:
        visits = Visits(launch(playwright))
        for where, name in live_figures():
            with visits.lend(origin + SITE.base) as visit:
                page = visit.go(where).page
                page.wait_for_function(READY)
                far = max(
                    apart(data, expected[key])
                    for _, expected, shown in seen(page.evaluate, name)
                    for key, _, data in shown["made"]
                )
                milliseconds = frame(page, name)
            text = SITE.soup(where).select_one(f'[data-live="{name}"] script').string
            operations = {node[0] for graph in json.loads(text)["graphs"].values() for node in graph["nodes"]}
            size = len(gzip.compress(text.encode()))
            print(f"{name}: {size:,} bytes, {milliseconds:.1f} ms a frame, ", end="")
            print(f"{far:.1g} from torch (may be {exhibited(name).tolerance:g})")
            print("  ", *sorted(operations))
