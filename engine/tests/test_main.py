"""The commands, as who types them meets them."""

import importlib

import pytest

from engine.tests.projects import ENGINE, Project
from executable_prose import __main__ as commands

FILES = {
    "docs/index.md": "# Home\n\nIt doubles `#!claim it-doubles`.\n",
    "tests/test_it.py": '@pytest.mark.claim("it-doubles", "It doubles.")\ndef test_a(): pass\n',
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("commands"), files=FILES)


@pytest.mark.parametrize(
    ("typed", "code"), [((), 2), (("",), 2), (("-h",), 0), (("--help",), 0), (("build", "--help"), 0)]
)
def test_without_a_command_and_for_help_all_are_listed(project, typed, code):
    done = project.run(ENGINE, *typed)
    assert done.code == code
    for name in commands.COMMANDS:
        assert f"python -m executable_prose {name} " in done.output


def test_a_command_that_is_none_is_told(project):
    done = project.run(ENGINE, "biuld")
    said = "expected one of serve, build, results, claims, got 'biuld'\n"
    assert (done.code, done.output) == (1, said)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_each_command_has_its_module(name):
    assert callable(importlib.import_module(f"executable_prose.{commands.COMMANDS[name]}").main)


def test_claims_lists_each_with_its_tests_and_its_pages(project):
    done = project.run(ENGINE, "claims")
    listed = "it-doubles: It doubles.\n    held by tests/test_it.py:2\n    stated on index.md\n"
    assert (done.code, done.output) == (0, listed)


@pytest.mark.parametrize(
    ("page", "lacks"),
    [
        ("# Home\n", "no page states the claim 'it-doubles'"),
        (FILES["docs/index.md"] + "`#!claim it-is`\n", "no test holds the claim 'it-is' of docs/index.md"),
        ("# Home\n\n```text\n", "docs/index.md:3: the block that begins here is never closed"),
    ],
)
def test_claims_fails_if_a_claim_lacks_its_test_or_its_page(project, page, lacks):
    project.write({"docs/index.md": page})
    done = project.run(ENGINE, "claims")
    project.write(FILES)
    assert done.code == 1
    assert done.output.splitlines()[-1] == lacks


def test_claims_that_contradict_themselves_are_told(project):
    project.write({"tests/test_other.py": FILES["tests/test_it.py"].replace("doubles.", "trebles.")})
    done = project.run(ENGINE, "claims")
    (project.root / "tests/test_other.py").unlink()
    assert done.code == 1
    said = "tests/test_other.py:2 states claim 'it-doubles' in other words than tests/test_it.py:2"
    assert done.output.strip() == said


@pytest.mark.parametrize("typed", [("claims", "x"), ("build", "a", "b", "c")])
def test_what_a_command_does_not_take_is_told(project, typed):
    done = project.run(ENGINE, *typed)
    assert (done.code, done.output) == (1, f"{typed[0]} takes no such arguments: {' '.join(typed[1:])}\n")
