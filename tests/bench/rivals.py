"""Our first build, and the same exhibits by others: mkdocs-jupyter as notebooks, sphinx-gallery as scripts.

Each has a document a chapter, as its users would write it: a cell that prepares, then one for each exhibit.
What a build here does besides is left out: labs, prose, claims, diagrams. Notebooks run one after another:
mkdocs-jupyter knows no other way. Scripts run on all cores. Each round times all three, so that what else the
machine does meets all alike. If chapters are named, the rivals run only their exhibits, in one round, and our
build is not timed.
"""

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from builds import BUILD, ROOT, copy, head, run, show

from executable_prose.execution.results import exhibit_names

LOCK = Path(__file__).with_name("requirements.lock")  # of requirements.txt beside this file
HOME = ROOT / ".cache" / "rivals"

CHAPTER = '''"""
{chapter}
{line}
"""

# %%
import random

import numpy
import torch

from exhibits import {chapter}
from executable_prose.figures import svg

svg.prepare()
torch.set_num_threads(1)
'''
EXHIBIT = """
# %%
random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
torch.set_default_dtype(torch.float32)  # another exhibit of this process may have set it
{exhibit}()
"""
MKDOCS = """
site_name: Exhibits
theme: material
plugins:
  - search
  - mkdocs-jupyter:
      execute: true
      allow_errors: false
"""
SPHINX = """
project = "Exhibits"
extensions = ["sphinx_gallery.gen_gallery"]
exclude_patterns = ["docs", "gallery"]
suppress_warnings = ["sphinx_gallery.space_in_filename"]  # of the folder in which this project lies
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "made",
    "filename_pattern": "",
    "abort_on_example_error": True,
    "parallel": os.cpu_count(),
}
"""
RIVALS = {
    "sphinx-gallery": ["sphinx", "-b", "html", "-W", ".", "html"],
    # Not mkdocs.yml, by which the engine would take the rival's folder for its project.
    "mkdocs-jupyter": ["mkdocs", "build", "--strict", "--config-file", "rival.yml"],
}
GOALS = {"sphinx-gallery": 1, "mkdocs-jupyter": 0.25}  # what our first build may take of theirs
ROUNDS = 3


def python():
    """The Python of their environment, which borrows from ours all that they do not bring themselves."""
    folder = HOME / ("Scripts" if os.name == "nt" else "bin")
    mark = HOME / LOCK.name
    if not mark.exists() or mark.read_bytes() != LOCK.read_bytes():
        venv.create(HOME, with_pip=True, clear=True)
        libraries = Path(sysconfig.get_path("purelib", vars={"base": str(HOME)}))
        (libraries / "ours.pth").write_text(sysconfig.get_path("purelib"))
        install = [
            "pip",
            "install",
            "--disable-pip-version-check",
            "--quiet",
            "--no-deps",
            "--require-hashes",
        ]
        subprocess.run([folder / "python", "-m", *install, "--requirement", LOCK], check=True)
        mark.write_bytes(LOCK.read_bytes())
    return folder / "python"


def write(folder, only=()):
    """A document for each chapter, or for some, once for each rival, and the configurations of both."""
    chapters = {}
    for name in exhibit_names():
        chapter = name.partition(".")[0]
        if not only or chapter in only:
            chapters.setdefault(chapter, []).append(EXHIBIT.format(exhibit=name))
    if unknown := set(only) - set(chapters):
        sys.exit(f"expected chapters with exhibits, got {', '.join(sorted(unknown))}")
    for room in ("docs", "gallery"):
        (folder / room).mkdir()
        for chapter, exhibits in chapters.items():
            text = CHAPTER.format(chapter=chapter, line="=" * len(chapter)) + "".join(exhibits)
            (folder / room / f"{chapter}.py").write_text(text)
    (folder / "rival.yml").write_text(MKDOCS)
    (folder / "conf.py").write_text(f"import os\n{SPHINX}")
    (folder / "gallery" / "README.rst").write_text("Exhibits\n========\n")
    (folder / "index.rst").write_text("Exhibits\n========\n\n.. toctree::\n\n   made/index\n")


def theirs(name, only=()):
    """Seconds of one rival."""
    jupyter = Path(sys.prefix) / "share" / "jupyter"  # the templates of nbconvert, which is ours
    # The engine is a package of its own; how it is installed in our environment does not reach theirs.
    path = os.pathsep.join(map(str, (ROOT, ROOT / "packages" / "executable-prose" / "src")))
    environment = os.environ | {"PYTHONPATH": path, "JUPYTER_PATH": str(jupyter)}
    # In this project, so that the engine finds it from there.
    with tempfile.TemporaryDirectory(prefix="rival-", dir=HOME.parent) as folder:
        write(Path(folder), only)
        return run([python(), "-m", *RIVALS[name]], folder, environment).seconds


def ours():
    with tempfile.TemporaryDirectory(prefix="bench ", ignore_cleanup_errors=True) as folder:
        copy(Path(folder))
        return run(BUILD, folder).seconds


def bench(*only):
    python()  # installed before the clock runs
    head()
    if only:
        for name in RIVALS:
            show(f"{name}, the same exhibits", theirs(name, only))
        return
    rounds = [(ours(), {name: theirs(name) for name in RIVALS}) for _ in range(ROUNDS)]
    show(f"our first build, median of {ROUNDS}", statistics.median(our for our, _ in rounds))
    for name in RIVALS:
        show(f"{name}, the same exhibits", statistics.median(their[name] for _, their in rounds))
        beside = statistics.median(our / their[name] for our, their in rounds)
        show(f"our first build beside {name}", beside, "×", GOALS[name])
