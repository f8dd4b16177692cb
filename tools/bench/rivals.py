"""Our first build, and the same exhibits by others: mkdocs-jupyter as notebooks, sphinx-gallery as scripts.

Each has a document a chapter, as its users would write it: a cell that prepares, then one for each exhibit.
What a build here does besides is left out: labs, prose, claims, diagrams. Notebooks run one after another:
mkdocs-jupyter knows no other way. Scripts run on all cores.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from builds import BUILD, ROOT, copy, run, show

from executable_prose.execution.results import exhibit_names

LOCK = ROOT / "locks" / "rivals.txt"  # of requirements.txt beside this file
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
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "made",
    "filename_pattern": "",
    "abort_on_example_error": True,
    "parallel": os.cpu_count(),
}
"""
RIVALS = {
    "mkdocs-jupyter": ["mkdocs", "build", "--strict"],
    "sphinx-gallery": ["sphinx", "-b", "html", "-W", ".", "html"],
}


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


def write(folder):
    """A document for each chapter, once for each of them, and their configurations."""
    chapters = {}
    for name in exhibit_names():
        chapters.setdefault(name.partition(".")[0], []).append(EXHIBIT.format(exhibit=name))
    for room in ("docs", "gallery"):
        (folder / room).mkdir()
        for chapter, exhibits in chapters.items():
            text = CHAPTER.format(chapter=chapter, line="=" * len(chapter)) + "".join(exhibits)
            (folder / room / f"{chapter}.py").write_text(text)
    (folder / "mkdocs.yml").write_text(MKDOCS)
    (folder / "conf.py").write_text(f"import os\n{SPHINX}")
    (folder / "gallery" / "README.rst").write_text("Exhibits\n========\n")
    (folder / "index.rst").write_text("Exhibits\n========\n\n.. toctree::\n\n   made/index\n")


def times():
    """Seconds of each rival, one after the other."""
    jupyter = Path(sys.prefix) / "share" / "jupyter"  # the templates of nbconvert, which is ours
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(jupyter)}
    for name, command in RIVALS.items():
        with tempfile.TemporaryDirectory(prefix="rival-") as folder:
            write(Path(folder))
            done = run([python(), "-m", *command], folder, environment)
        show(f"{name}, the same exhibits", done.seconds)
        yield done.seconds


def bench():
    with tempfile.TemporaryDirectory(prefix="bench ", ignore_cleanup_errors=True) as folder:
        copy(Path(folder))
        ours = run(BUILD, folder).seconds
    show("our first build", ours)
    show("the same, as a share of the faster rival's", ours / min(times()), 0.25)
