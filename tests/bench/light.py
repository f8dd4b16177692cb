"""What Lighthouse says of pages on a phone, beside a bare page of the theme in the same run.

Performance is a simulation from what the machine did, so it wavers with all else that the machine does; the
bare page says by how much. It is the median of the rounds, the other categories the lowest.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from built import SITE
from server import serve
from tqdm import tqdm
from visits import find_chromium

ROUNDS = 5
GOAL = 95
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
NPX = ["npx", "--yes", "lighthouse@12.8.2"]
OPTIONS = ["--quiet", "--output=json", "--chrome-flags=--headless=new --no-sandbox --disable-gpu"]
BARE = {
    "mkdocs.yml": "site_name: Bare\nsite_description: A page\ntheme:\n  name: material\n  font: false\n",
    "docs/index.md": "# A page\n\nA paragraph.\n",
}


def report(url):
    command = [*NPX, url, *OPTIONS, f"--only-categories={','.join(CATEGORIES)}"]
    environment = os.environ | {"CHROME_PATH": find_chromium()}
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def line(name, reports):
    """Scores, the time that the main thread was blocked, and how fast Lighthouse found the machine."""
    scores = {each: [round(100 * one["categories"][each]["score"]) for one in reports] for each in CATEGORIES}
    performance = statistics.median(scores.pop("performance"))
    blocked = statistics.median(one["audits"]["total-blocking-time"]["numericValue"] for one in reports)
    speed = statistics.median(one["environment"]["benchmarkIndex"] for one in reports)
    others = [min(each) for each in scores.values()]
    reached = performance >= GOAL and min(others) == 100
    return (
        f"{name:<38}{performance:>11.0f}{others[0]:>8}{others[1]:>8}{others[2]:>8}{blocked:>9.0f}{speed:>9.0f}"
        f"  {'reached' if reached else 'missed'}"
    )


def bench(*paths):
    if unknown := [path for path in paths if path not in SITE.pages]:
        raise SystemExit(f"pages must be pages of the built site, such as guide/rope/, got {unknown[0]!r}")
    with tempfile.TemporaryDirectory(prefix="bare-") as folder:
        (Path(folder) / "docs").mkdir()
        for name, text in BARE.items():
            (Path(folder) / name).write_text(text)
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=folder, check=True)
        with serve(Path(folder) / "site", "/") as bare, serve(SITE.root, "/") as ours:
            pages = {"a bare page": f"{bare}/"}
            pages |= {path or "home": f"{ours}/{path}" for path in paths or SITE.pages}
            found = {name: [] for name in pages}
            for name, url in tqdm([*pages.items()] * ROUNDS, unit="page", disable=None):
                found[name].append(report(url))
    print(f"{'page, Lighthouse mobile':<38}performance    a11y    best     seo  blocked    speed")
    for name, reports in found.items():
        print(line(name, reports))
