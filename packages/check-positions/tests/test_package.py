"""The package as its users install it, and the copies that the guide hands out."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from executable_prose.project import ROOT
from guide.copies import SOURCES
from guide.heads import HEAD
from snippets.rope import apply_rope, rope_frequencies, rope_tables

SLOW = pytest.mark.slow
PACKAGE = Path(__file__).resolve().parents[1]
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 10000.0}


@pytest.mark.parametrize("copy", SOURCES)
def test_the_file_to_copy_is_the_module_of_the_package(copy):
    text = (ROOT / copy).read_text(encoding="utf-8")
    assert HEAD.sub("", text) == (ROOT / SOURCES[copy]).read_text(encoding="utf-8"), "`make dates` copies it"


def test_the_example_of_the_readme_runs():
    def rotate(x, positions):
        return apply_rope(x, *rope_tables(positions, rope_frequencies(64, base=10_000.0)), "half")

    (example,) = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.S)
    exec(example, {"rotate": rotate})
    with pytest.raises(AssertionError, match="Most common cause"):
        exec(example, {"rotate": lambda x, positions: rotate(x, 2 * positions)})


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installation of the package alone: its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", folder, PACKAGE], check=True)
    return folder


@pytest.mark.parametrize(
    ("script", "arguments", "code", "words"),
    [
        ("read-positions", ["config.json"], 0, "rope_frequencies(16, base=10000.0)"),
        ("check-positions", ["config.json"], 2, "model must begin with transformers:"),
        pytest.param("read-positions", ["nonesuch.json"], 2, "nonesuch.json cannot be read", marks=SLOW),
        pytest.param("check-positions", ["transformers:nonesuch.json"], 2, "nonesuch.json", marks=SLOW),
    ],
)
def test_the_commands_are_installed_and_run(installed, tmp_path, script, arguments, code, words):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    done = subprocess.run(
        [sys.executable, installed / "bin" / script, *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
