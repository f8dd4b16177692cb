"""The package as it is published and installed, and the copies that the guide hands out."""

import json
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.metadata import Metadata

from executable_prose.project import ROOT
from guide.copies import SOURCES
from guide.heads import HEAD
from snippets.rope import apply_rope, rope_frequencies, rope_tables

PACKAGE = Path(__file__).resolve().parents[1]
README = (PACKAGE / "README.md").read_text(encoding="utf-8")
VERSION = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 10000.0}


@pytest.mark.parametrize("copy", SOURCES)
def test_the_file_to_copy_is_the_module_of_the_package(copy):
    text = (ROOT / copy).read_text(encoding="utf-8")
    assert HEAD.sub("", text) == (ROOT / SOURCES[copy]).read_text(encoding="utf-8"), "`make dates` copies it"


def test_the_example_of_the_readme_runs():
    def rotate(x, positions):
        return apply_rope(x, *rope_tables(positions, rope_frequencies(64, base=10_000.0)), "half")

    example = re.findall(r"```python\n(.*?)```", README, re.S)[0]
    exec(example, {"rotate": rotate})
    with pytest.raises(AssertionError, match="Most common cause"):
        exec(example, {"rotate": lambda x, positions: rotate(x, 2 * positions)})


def test_the_suite_of_the_readme_fails_before_its_tests_run(installed, tmp_path):
    """Its file does not exist, so that nothing is built."""
    plugin = re.findall(r"```python\n(.*?)```", README, re.S)[1]
    (tmp_path / "test_readme.py").write_text(f"import pytest\n\n\n{plugin}")
    done = installed.run("python", "-m", "pytest", "--strict-markers", cwd=tmp_path)
    assert done.stdout.count("path/to/config.json could not be checked: ") >= 2, done.stdout + done.stderr
    assert "2 failed" in done.stdout


def packed(path):
    """Return the contents of the files of a wheel by name."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def test_the_wheel_has_the_modules_their_types_and_the_licence(installed):
    files = packed(installed.wheel)
    info = f"check_positions-{VERSION}.dist-info"
    own = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    modules = {
        path.relative_to(PACKAGE / "src").as_posix(): path.read_bytes()
        for path in (PACKAGE / "src" / "check_positions").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert "check_positions/py.typed" in modules
    licence = {f"{info}/licenses/LICENSE": (PACKAGE / "LICENSE").read_bytes()}
    assert {name: text for name, text in files.items() if name not in own} == modules | licence
    assert licence[f"{info}/licenses/LICENSE"] in (ROOT / "LICENSE").read_bytes()


def test_the_sdist_has_no_tests(installed):
    with tarfile.open(installed.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    beside = {name for name in names if not name.startswith("src/check_positions/")}
    # hatchling adds the .gitignore to each sdist.
    assert beside == {".gitignore", "CHANGES.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


def test_the_metadata_are_valid_and_the_readme_needs_no_file_beside_it(installed):
    text = packed(installed.wheel)[f"check_positions-{VERSION}.dist-info/METADATA"]
    read = Metadata.from_email(text, validate=True)
    assert (read.name, str(read.version), read.license_expression) == ("check-positions", VERSION, "0BSD")
    assert read.description_content_type == "text/markdown"
    page = MarkdownIt().enable("table").render(read.description)
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_newest_changes_are_those_of_the_version():
    headings = re.findall("^## (.+)", (PACKAGE / "CHANGES.md").read_text(encoding="utf-8"), re.M)
    assert next(each for each in headings if each != "Unreleased") == VERSION
    assert set(re.findall("check-positions-v([0-9.]+)", README)) == {VERSION}


@pytest.mark.parametrize(
    ("command", "arguments", "code", "words"),
    [
        ("config", ["config.json"], 0, "rope_frequencies(16, base=10000.0)"),
        ("explain", ["."], 0, "llama: RoPE in every layer"),
        ("compare", ["config.json", "."], 0, "the same rotation, windows and lengths"),
        ("census", ["Llama 3.1"], 0, "llama (Llama 2"),
        ("check", ["nonesuch.json"], 2, "nonesuch.json does not exist"),
    ],
)
def test_the_command_is_installed_and_runs(installed, tmp_path, command, arguments, code, words):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    done = installed.run("positions", command, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr


def test_a_configuration_is_read_without_torch(installed, tmp_path):
    """So that the action and the hook install no more than this package."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    done = installed.run("positions", "config", "config.json", cwd=tmp_path, dependencies=False)
    assert done.returncode == 0, done.stderr
    assert "rope_frequencies(16, base=10000.0)" in done.stdout
