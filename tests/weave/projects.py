"""Small projects for weave to work on: a copy of weave, a few exhibits and pages, in a temporary folder."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

REAL = Path(__file__).resolve().parents[2]
ADDRESSES = ("SITE_URL", "REPOSITORY_URL", "EDIT_URI")  # of the guide, where it is built as published
# What a trial leaves out.
OURS = ("extra", "extra_css", "extra_javascript", "hooks", "nav", "plugins", "theme")
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
        as [a test](claims.md#scaling-scales) and [a picture](#scaling-basic) show.

        ??? level-basic "Basic: the line"

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


def configuration(theme):
    """The project's own mkdocs.yml, with another theme and without what names pages of the guide."""
    text = (REAL / "mkdocs.yml").read_text(encoding="utf-8")
    blocks_ = re.split(r"^(?=\w)", text, flags=re.M)
    return "".join(block for block in blocks_ if block.split(":")[0] not in OURS) + f"plugins: []\n{theme}"


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

    def configure(self, theme):
        self.write({"mkdocs.yml": configuration(theme)})
        for watched in re.findall(r"^  - (\S+)$", configuration(theme).partition("\nwatch:")[2], re.M):
            path = self.root / watched
            path.touch() if path.suffix else path.mkdir(exist_ok=True)


class Project(Folder):
    """A project that `weave` builds, in a folder of its own."""

    def __init__(self, root, theme=BARE, light=True, files=FILES):
        super().__init__(root)
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REAL / "weave", self.root / "weave", ignore=unwanted)
        self.configure(theme)
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
        return self.run("weave.build", *arguments)

    def page(self, name="index.html", site="site"):
        return (self.root / site / name).read_text(encoding="utf-8")

    def site(self, site="site"):
        """Every file of the built site with its bytes."""
        folder = self.root / site
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def left_by_an_exhibit(self, name):
        """What is in a file of this name in the own folder of an exhibit that runs."""
        return next((path.read_text() for path in self.temporary.glob(f"*/*/{name}")), "")

    def entries(self):
        return sorted((self.root / ".cache" / "weave").glob("*.json"))


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
