"""The example projects run as their users run them: with pytest, as an action and as a pre-commit hook."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from executable_prose.project import ROOT

PACKAGE = ROOT / "packages" / "check-positions"
EXAMPLES = PACKAGE / "examples"
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TAG = f"check-positions-v{PROJECT['version']}"
ACTION = yaml.safe_load((PACKAGE / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
RIGHT = json.loads((EXAMPLES / "action" / "config.json").read_text(encoding="utf-8"))
WRONG = RIGHT | {"rope_parameters": {"rope_type": "default", "rope_theta": 0.5}}
FAULT = "rope_theta must be a number above 1"
CALLS = "rope_frequencies(16, base=10000.0)"


# --- pytest


@pytest.mark.parametrize(
    ("file", "was", "now", "words"),
    [
        ("model.py", "", "", []),
        (
            "model.py",
            "base=10_000.0",
            "base=500_000.0",
            [
                "positional code: ",
                ">       assert_positions(check_rotation(",
                "E         - expected: rope_type default, rope_theta 10000.0",
            ],
        ),
        ("config.json", '"default"', '"yarn"', ["config.json could not be checked: "]),
    ],
)
def test_the_suite_passes_and_fails_on_a_fault(file, was, now, words, installed, tmp_path):
    shutil.copytree(EXAMPLES / "pytest", tmp_path, dirs_exist_ok=True)
    text = (tmp_path / file).read_text()
    assert was in text
    (tmp_path / file).write_text(text.replace(was, now))
    done = installed.run("python", "-m", "pytest", "--strict-markers", "-p", "no:cacheprovider", cwd=tmp_path)
    assert done.returncode == bool(words), done.stdout + done.stderr
    assert [each for each in words if each not in done.stdout] == []
    assert "check_positions/" not in done.stdout, "no frames of the package"


# --- the action


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder, files):
    """Write each file, or remove it if it is None, and return the commit."""
    for name, config in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(config)) if config else path.unlink()
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Change")
    return git(folder, "rev-parse", "HEAD")


def run_step(name, runner, folder, env=None, **inputs):
    """Run a step of the action in the shell that GitHub gives it."""
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == name]
    assert "${{" not in step["run"] and inputs.keys() <= ACTION["inputs"].keys()
    known = {f"inputs.{name}": "" for name in ACTION["inputs"]}
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {"github.action_path": str(PACKAGE), "runner.temp": str(runner)}
    known |= {"steps.python.outputs.python-path": sys.executable}
    given = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], value)
        for name, value in step["env"].items()
    }
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=own | {"RUNNER_TEMP": str(runner)} | given | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )


# As the action installs, but with the hatchling of this environment.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """The temporary folder of a runner, after the first steps of the action."""
    folder = tmp_path_factory.mktemp("runner")
    done = run_step("Install check-positions", folder, folder, env=OFFLINE)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_action_installs_a_version_that_is_asked_for(installed, tmp_path):
    env = OFFLINE | {"PIP_FIND_LINKS": str(installed.wheel.parent)}
    done = run_step("Install check-positions", tmp_path, tmp_path, env, version=PROJECT["version"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "check-positions" / "check_positions" / "config.py").is_file()
    done = run_step("Install check-positions", tmp_path, tmp_path, env, version="0.0.1")
    assert done.returncode == 1 and "check-positions==0.0.1" in done.stderr


@pytest.fixture
def repository(tmp_path):
    """A repository with a right configuration and a wrong one."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path, {"config.json": RIGHT, "old/config.json": WRONG, "old/other.json": WRONG})
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "inputs", "code", "words", "not_words"),
    [
        ({"new model/config.json": RIGHT}, {}, 0, CALLS, FAULT),
        ({"config.json": RIGHT | {"vocab_size": 8}}, {}, 0, CALLS, FAULT),
        ({"config.json": WRONG}, {}, 123, FAULT, CALLS),
        ({"config.json": None, "other.json": WRONG}, {}, 0, "There is no config.json to read.", FAULT),
        ({"other.json": WRONG}, {"base": "0" * 40}, 123, FAULT, "no config.json"),
        ({"other.json": WRONG}, {"base": ""}, 123, FAULT, "no config.json"),
        ({"config.json": WRONG}, {"files": "new.json\n\nold/o*.json"}, 123, FAULT, CALLS),
        ({"new.json": RIGHT}, {"files": "new.json\nold/no*.json"}, 0, CALLS, FAULT),
        (
            {"config.json": WRONG},
            {"files": "no*.json"},
            2,
            "at least one file that git tracks, got: no*.json",
            FAULT,
        ),
    ],
)
def test_the_action_reads_what_has_changed(changes, inputs, code, words, not_words, repository, runner):
    inputs = {"base": git(repository, "rev-parse", "HEAD")} | inputs
    commit(repository, changes)
    done = run_step("Read the config.json files", runner, repository, **inputs)
    told = done.stdout + done.stderr
    assert (done.returncode, words in told, not_words in told) == (code, True, False), told


def test_the_action_fetches_the_base_of_a_shallow_checkout(repository, runner, tmp_path_factory):
    base = git(repository, "rev-parse", "HEAD")
    commit(repository, {"config.json": RIGHT | {"vocab_size": 8}})
    checkout = tmp_path_factory.mktemp("checkout")
    git(checkout, "clone", "--quiet", "--depth", "1", repository.as_uri(), ".")
    done = run_step("Read the config.json files", runner, checkout, base=base)
    assert done.returncode == 0 and CALLS in done.stdout and FAULT not in done.stdout, (
        done.stdout + done.stderr
    )


def test_the_workflow_uses_the_action_of_this_version():
    workflow = (EXAMPLES / "action/.github/workflows/positions.yml").read_text(encoding="utf-8")
    (folder, ref), *_ = re.findall(r"uses: example/guide/(\S+)@(\S+)", workflow)
    assert (ROOT / folder / "action.yml").is_file() and ref == TAG


# --- the hook


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ({"config.json": RIGHT, "models/config.json": RIGHT, "myconfig.json": WRONG}, 0, CALLS),
        ({"config.json": RIGHT, "models/config.json": WRONG}, 1, FAULT),
    ],
)
def test_the_hook_reads_the_files_of_its_pattern(files, code, words, installed, tmp_path):
    changed = [name for name in files if re.search(HOOK["files"], name)]
    for name, config in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(config))
    command = [*shlex.split(HOOK["entry"]), *changed]
    done = installed.run(*command, cwd=tmp_path, dependencies=False)
    assert done.returncode == code and words in done.stdout, done.stdout + done.stderr


def test_pre_commit_installs_the_package_from_this_repository_and_nothing_else():
    """It runs `pip install . ARGUMENTS` in the root, so the root must not need packages either."""
    assert (HOOK["language"], HOOK["additional_dependencies"][0]) == ("python", "--no-deps")
    (folder,) = HOOK["additional_dependencies"][1:]
    assert ROOT / folder == PACKAGE
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "dependencies" not in root["project"]


def test_the_configuration_of_pre_commit_has_the_hook_of_this_version():
    config = yaml.safe_load((EXAMPLES / "pre-commit/.pre-commit-config.yaml").read_text(encoding="utf-8"))
    ((repository,),) = config.values()
    assert [each["id"] for each in repository["hooks"]] == [HOOK["id"]]
    assert repository["rev"] == TAG
