"""How long the site takes to build, cold, warm and after an edit, and what its pages weigh."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "docs",
    "exhibits",
    "experiments",
    "labs",
    "overrides",
    "snippets",
    "tests",
    "weave",
    "mkdocs.yml",
    "pyproject.toml",
    "requirements-test.txt",
    "requirements.txt",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules")
CONSTANT = "base: float = 10000.0"


def copy(folder):
    """The project without its caches, so that this folder's own stay as they are."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copy(source, folder / name)


def build(project):
    """Build the copy; the seconds it took and what it said of its exhibits."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "weave.build"], cwd=project, check=True, capture_output=True, text=True
    )
    said = [line for line in done.stderr.splitlines() if "cached" in line]
    return time.perf_counter() - start, said[-1] if said else "every exhibit cached"


def build_times(project):
    snippet = project / "snippets" / "sinusoidal.py"
    text = snippet.read_text(encoding="utf-8")
    yield "cold", *build(project)
    yield "warm", *build(project)
    snippet.write_text(text.replace(CONSTANT, "base: float = 5000.0"), encoding="utf-8")
    yield "a constant of sinusoidal.py changed", *build(project)
    snippet.write_text(text, encoding="utf-8")
    yield "changed back", *build(project)
    (project / "tests" / "unrelated.py").write_text("", encoding="utf-8")
    yield "a file changed that no exhibit uses", *build(project)


def page_weights(site):
    from built import BuiltSite
    from playwright.sync_api import sync_playwright
    from server import serve
    from visits import Visit, launch

    with serve(site, "/") as origin, sync_playwright() as playwright:
        browser = launch(playwright)
        for path in BuiltSite(site).pages:
            with Visit(browser, f"{origin}/") as visit:
                visit.go(path)
                visit.ask("scrollToEnd")
                visit.settle()
                yield path or "home", visit.bytes_received(), len(visit.requests), visit.ask("elements")
        browser.close()


def bench():
    with tempfile.TemporaryDirectory(prefix="bench ") as folder:
        project = Path(folder)
        copy(project)
        print("build                                  seconds")
        for name, seconds, said in build_times(project):
            print(f"{name:<38}{seconds:>8.1f}  {said}", flush=True)
        print("\npage, scrolled to its end                 kB  requests  elements")
        for path, size, requests, elements in page_weights(project / "site"):
            print(f"{path:<38}{size / 1000:>8.1f}{requests:>10}{elements:>10}", flush=True)
