"""Small projects for the engine to work on: a copy of it, a few exhibits and pages, in a temporary folder."""

import contextlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from executable_prose import project

PACKAGE = Path(__file__).resolve().parents[2]
ENGINE = "executable_prose"  # as it lies in each project
SETTINGS = """[tool.executable_prose]
examples = "exhibits"
sources = ["snippets", "experiments"]
libraries = ["torch", "numpy"]
additions = "{additions}"
notebooks = {{ needs = ["torch", "matplotlib"], brings = ["snippets", "labs"], oldest = "2.5.0" }}
"""
ADDRESSES = ("SITE_URL", "REPOSITORY_URL", "EDIT_URI")  # of the guide, where it is built as published
CONFIGURATION = """site_name: Trial
site_dir: !ENV [SITE_DIR, site]
site_url: !ENV [SITE_URL, ""]
repo_url: !ENV [REPOSITORY_URL, ""]
edit_uri: !ENV [EDIT_URI, ""]
markdown_extensions:
  - abbr
  - admonition
  - attr_list
  - def_list
  - footnotes
  - md_in_html
  - tables
  - toc:
      permalink: true
      permalink_title: Link to this section
  - pymdownx.arithmatex:
      generic: true
  - pymdownx.blocks.caption
  - pymdownx.details
  - pymdownx.highlight:
      anchor_linenums: false
  - pymdownx.inlinehilite
  - pymdownx.superfences
  - executable_prose:
      repository: !ENV [REPOSITORY_URL, ""]
      site: !ENV [SITE_URL, "http://127.0.0.1:8000/"]
      data: !ENV [FIGURE_DATA, false]
{after}validation:
  omitted_files: warn
  absolute_links: warn
  unrecognized_links: warn
  anchors: warn
watch:
  - snippets
  - exhibits
  - experiments
  - labs
  - tests
plugins: []
{theme}"""
BARE = "theme:\n  name: null\n  custom_dir: theme\n"
MATERIAL = "theme:\n  name: material\n  font: false\n"

# Importing torch takes seconds. Where it does not matter what torch computes, this stands for it.
TORCH = """
def manual_seed(seed): pass
def set_num_threads(count): pass
"""

FILES = {
    "snippets/__init__.py": "",
    "snippets/scale.py": '''
        """Scaling."""

        SCALE = 2.0


        def scaled(x):
            """x, scaled."""
            return SCALE * x


        class Scale:
            def __init__(self, by):
                self.by = by

            def __call__(self, x):
                return self.by * x
        ''',
    "snippets/lonely.py": "NOBODY = 'imports this'\n",
    "exhibits/__init__.py": "",
    "exhibits/lines.py": '''
        import matplotlib.pyplot as plt

        from snippets.scale import scaled


        def rising():
            """A line that rises."""
            figure, axes = plt.subplots()
            axes.plot([0, 1], [0, scaled(1.0)])
            axes.set_ylabel(f"up to {scaled(1.0)}")
            return figure, {"end": scaled(1.0), "tiny": -2.5e-7}
        ''',
    "exhibits/words.py": """
        def spoken():
            print("seven < eight")
            return {"method": "one-three"}
        """,
    "tests/test_scale.py": '''
        import pytest


        @pytest.mark.claim("scaling-scales", "Scaling doubles.")
        def test_scaling():
            """It does."""
        ''',
    "docs/index.md": """
        ---
        title: Home
        ---

        # Scaling

        The line ends at `#!val lines.rising.end .2f`. It doubles `#!claim scaling-scales`,
        as [a test](claims.md#scaling-scales) and [a picture](#lines-rising) show.

        ??? note "The line"

            ```exhibit lines.rising
            The **line** of $x^2$.
            ```

        ```exhibit words.spoken
        ```

        --8<-- "snippets/scale.py@scaled"

        ```mermaid
        flowchart LR
          accTitle: Two boxes
          accDescr: An arrow leads from one box to the other.
          A[one] --> B["two (2)"]
        ```
        """,
    "docs/claims.md": "# Claims\n\n```claims\n```\n",
    "docs/reference/scale.md": '# Scale\n\n--8<-- "snippets/scale.py"\n',
    "theme/main.html": "<!doctype html><title>{{ page.title }}</title>{{ page.content }}\n",
}

# Without a build: what exhibits gave, and the files that pages of them need.
RESULTS = {
    "lines__rising": {
        "figure": '<svg class="figure" role="img"><text>up</text></svg>',
        "values": {"end": 0.61803, "tiny": -2.5e-7, "big": 1.5e12, "count": 12, "share": 0.25, "yes": True},
        "data": "panel\n1\n",
    },
    "words__spoken": {"output": "one < two\n  three\n", "values": {"method": "one-three", "name": "e"}},
    "lines__both": {"figure": '<svg class="figure" role="img"></svg>', "output": "also printed\n"},
    "lines__dumb": {"figure": '<svg class="figure" role="img"></svg>'},
    "words__given": {"output": "1\n"},
    "words__table": {"output": "| a | b |\n|---|---|\n| *one* | 2 |\n"},
}

EXHIBITS = {
    "exhibits/lines.py": "def rising():\n    'It rises.'\n\n\n"
    "def both():\n    'Both.'\n\n\ndef dumb():\n    pass\n",
    "exhibits/words.py": "def spoken():\n    print('one < two')\n\n\ndef table():\n    pass\n"
    "\n\ndef given():\n    print(1)\n    return {}\n",
    "snippets/scale.py": "BASE = 2\n\n\ndef scaled(x):\n    return BASE * x\n",
    "docs/reference/scale.md": "# Scale\n",
    "tests/test_scale.py": '@pytest.mark.claim("it-doubles", "It \\"doubles\\" & more.")\n'
    "def test_a(): pass\n",
}


def configuration(theme, additions=""):
    """A small site's mkdocs.yml; `additions` is a module that adds to what its pages can say.

    If it lies in a package, that is a Markdown extension.
    """
    package, inner, _ = additions.partition(".")
    return CONFIGURATION.format(theme=theme, after=f"  - {package}\n" * bool(inner))


def dedent(text):
    """The text without the indentation of its first line and, if there is any, the line break before it."""
    if not (indented := re.match(r"\n( +)", text)):
        return text
    text = text.removeprefix("\n")
    return re.sub(rf"^(?:{indented[1]}| +$)", "", text, flags=re.M)


class Folder:
    """A folder of small text files."""

    def __init__(self, root):
        self.root = Path(root)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def configure(self, theme, additions=""):
        told = configuration(theme, additions)
        self.write({"pyproject.toml": SETTINGS.format(additions=additions)})
        self.write({"mkdocs.yml": told})
        for watched in re.findall(r"^  - (\S+)$", told.partition("\nwatch:")[2], re.M):
            path = self.root / watched
            path.touch() if path.suffix else path.mkdir(exist_ok=True)


class Project(Folder):
    """A project that the engine builds, in a folder of its own."""

    def __init__(self, root, theme=BARE, light=True, files=FILES, additions=""):
        super().__init__(root)
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(project.ENGINE, self.root / ENGINE, ignore=unwanted)
        self.configure(theme, additions)
        if additions:
            package = additions.partition(".")[0]
            source = Path(importlib.import_module(package).__file__).parent
            shutil.copytree(source, self.root / package, ignore=unwanted)
        self.write(files)
        if light:
            self.write({"torch.py": TORCH})
        self.environment = os.environ | {"PYTHONPATH": str(self.root), "NO_MKDOCS_2_WARNING": "1"}
        for name in ("SOURCE_DATE_EPOCH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", *ADDRESSES):
            self.environment.pop(name, None)
        self.temporary = self.root / "tmp"  # short, as a socket lies below
        self.temporary.mkdir(parents=True)
        self.environment["TMPDIR"] = str(self.temporary)

    def start(self, *command, output=subprocess.PIPE):
        """Start `python -m …` in a process group of its own."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env=self.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command):
        process = self.start(*command)
        try:
            output, _ = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return Done(process.returncode, output)

    def build(self, *arguments):
        return self.run(ENGINE, "build", *arguments)

    def page(self, name="index.html", site="site"):
        return (self.root / site / name).read_text(encoding="utf-8")

    def site(self, site="site"):
        """Every file of the built site with its bytes."""
        folder = self.root / site
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def left_by_an_exhibit(self, name):
        """What is in a file of this name in the own folder of an exhibit that runs."""
        with contextlib.suppress(FileNotFoundError):  # another has just ended
            return next((path.read_text() for path in self.temporary.rglob(name)), "")
        return ""

    def entries(self):
        return sorted((self.root / ".cache" / ENGINE).glob("*.json"))


class Done:
    """How a command ended."""

    def __init__(self, code, output):
        self.code = code
        self.output = output

    def ran(self):
        """The exhibits that this build ran."""
        return set(re.findall(r"^ +ran +[\d.]+ s +(\S+)", self.output, re.M))


def until(condition, seconds=60):
    """Wait until a condition holds; what it gave."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.05)
    return found


def is_running(pid):
    """Is there a process with this number, and is it more than the remains of one?"""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def running_in(folder):
    """The processes that run in a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has just ended
            found += [place.parent.name] if place.readlink() == folder else []
    return found
