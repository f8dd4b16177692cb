"""What is installed is what requirements ask for, to the last file."""

import json
import re
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE, TESTS = "requirements.lock", "requirements-test.lock"
RIVALS, TOOLS = "tests/bench/requirements.lock", ".github/requirements.lock"


def pinned(file):
    """Version by name, of names as indexes write them; where Pythons differ, the last."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    found = [line.split() for line in lines if re.match(r"[\w.-]+==", line)]
    return {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in (pin[0].split("==") for pin in found)
    }


ASKED = [
    ("requirements.txt", SITE),
    ("requirements-test.txt", TESTS),
    ("tests/bench/requirements.txt", RIVALS),
]


@pytest.mark.parametrize("asked, lock", ASKED)
def test_what_is_asked_for_is_locked(asked, lock):
    expected = pinned(asked)
    expected.pop("torch", None)
    locked = pinned(SITE) | pinned(lock)
    assert expected.items() <= locked.items(), "a requirement changed: make lock"


def test_the_tools_that_are_asked_for_are_locked():
    asked = re.findall(r"([\w-]+==[\d.]+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert asked and {tuple(each.split("==")) for each in asked} <= set(pinned(TOOLS).items())


@pytest.mark.parametrize("lock", [TESTS, RIVALS])
def test_the_tests_run_on_the_packages_of_the_site(lock):
    """Their lock names only what they have besides, or on more systems; that of rivals names all."""
    site, tests = pinned(SITE), pinned(lock)
    assert {name: tests[name] for name in site.keys() & tests} == {
        name: site[name] for name in site.keys() & tests
    }, "make lock"


@pytest.mark.parametrize("lock", [SITE, TESTS, RIVALS, TOOLS])
def test_every_package_is_held_to_its_files(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    packages = re.split(r"\n(?=\S)", text.strip())
    assert len(packages) > 20 and "torch==" not in [each[:7] for each in packages]
    assert [each for each in packages if not re.search(r"--hash=sha256:[0-9a-f]{64}", each)] == []


def test_nothing_is_installed_or_run_but_what_is_locked():
    """But for torch, the guide itself, the newest of all, and the transformers of `make versions`."""
    recipes = re.findall(r"^\t(.+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    installs = [line for line in recipes if re.search(r"pip install|\(INSTALL\)", line)]
    free = [line for line in installs if "--require-hashes" not in line]
    assert len(installs) > len(free) == 4
    assert all(
        re.search(r"--no-build-isolation|--upgrade|'\^torch==' requirements", line) for line in free
    ), free
    assert [line for line in recipes if re.search(r"\buv (tool|run)\b|\b(uvx|pipx|npx)\b", line)] == []


def test_torch_is_locked_with_what_its_build_for_processors_needs():
    """`make lock` is told, since a build for another kind of accelerator would bring its libraries along."""
    told = re.search(
        r'name = "torch"\nversion = "(.+)"\nrequires-dist = (.+)', (ROOT / "pyproject.toml").read_text()
    )
    assert told[1] == pinned("requirements.txt")["torch"]
    needed = {re.match(r"[\w-]+", each)[0] for each in requires("torch") if "extra ==" not in each}
    assert needed - set(json.loads(told[2])) == {
        each for each in needed if each.startswith(("cuda", "nvidia", "triton"))
    }
