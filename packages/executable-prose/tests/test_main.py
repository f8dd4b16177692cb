"""The commands, as who types them meets them."""

import importlib
import os
import shlex
import subprocess
import sys

import pytest

from executable_prose import __main__ as commands
from prose_testing.projects import ENGINE, Project

FILES = {
    "theme/main.html": "{{ page.content }}",
    "docs/index.md": "# Home\n\nIt doubles `#!claim it-doubles`.\n",
    "tests/test_it.py": '@pytest.mark.claim("it-doubles", "It doubles.")\ndef test_a(): pass\n',
}


LISTED = "it-doubles: It doubles.\n    held by tests/test_it.py:2\n    stated on index.md\n"
posix = pytest.mark.skipif(os.name != "posix", reason="signals and shells are POSIX's")


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
    assert (done.code, done.output) == (0, LISTED)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tests/test_it.py", b"# \xfc\n", "tests/test_it.py:1: the file holds the byte 0xfc"),
        ("docs/index.md", b"# \xfc\n", "docs/index.md:1: the file holds the byte 0xfc"),
        ("pyproject.toml", b"[tool\n", "pyproject.toml: "),
        ("pyproject.toml", b"[tool.executable_prose]\nnone = 1\n", "got none"),
    ],
)
def test_claims_tells_what_it_cannot_read(project, file, content, words):
    path = project.root / file
    before = path.read_bytes()
    path.write_bytes(content)
    done = project.run(ENGINE, "claims")
    path.write_bytes(before)
    assert done.code == 1 and words in done.output and len(done.output.splitlines()) == 1, done.output


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


STRANGE = {
    "claims x": "claims takes no such arguments: x",
    "build a b c": "build takes no such arguments: a b c",
    "build a zensicle": "expected 'zensical' or nothing after the folder, got 'zensicle'",
    "build --strict": "expected a folder to build into, got '--strict'",
    "results lines.rising": "expected --background or nothing, got 'lines.rising'",
    "results --backgroun": "expected --background or nothing, got '--backgroun'",
    "results --background --force": "results takes no such arguments: --background --force",
}


@pytest.mark.parametrize("typed", STRANGE)
def test_what_a_command_does_not_take_is_told(project, typed):
    done = project.run(ENGINE, *typed.split())
    assert done.code == 1 and len(done.output.splitlines()) == 1, done.output
    assert done.output.startswith(STRANGE[typed])
    assert not (project.root / "a").exists()


@pytest.mark.parametrize("typed", ["build -h", "build a --help", "results --help", "claims -h"])
def test_help_is_help_wherever_it_stands(project, typed):
    done = project.run(ENGINE, *typed.split())
    assert done.code == 0 and f"python -m executable_prose {typed.split()[0]}" in done.output, done.output


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:-1", "192.0.2.1:8000"])
def test_an_address_that_cannot_be_served_is_told(project, address):
    done = project.run(ENGINE, "serve", "-a", address)
    assert done.code == 1 and "Traceback" not in done.output, done.output
    assert f"cannot serve at http://{address}/: " in done.output, done.output


# What a shell does with a command: its exit code, and what it says.
SHELL = {
    "$run claims | true": (141, ""),
    "$run claims > /dev/full": (1, "cannot write: [Errno 28] No space left on device: make room"),
    "$run claims >&-": (0, ""),
    "$run claims <&-": (0, LISTED),
    "$run claims <&- >&- 2>&-": (0, ""),
    "$run --help > /dev/full": (1, "cannot write: [Errno 28] No space left on device: make room"),
    "$run biuld 2> /dev/full": (1, ""),
    "cd docs; $run claims": (0, LISTED),
    "mkdir gone; cd gone; rmdir ../gone; $run claims": (1, "cannot read: [Errno 2] No such file"),
    "touch json.py; $run claims; code=$?; rm json.py; exit $code": (
        1,
        "json.py:1: this hides the module 'json', which Python or the engine needs: rename it\n",
    ),
    "mkdir yaml; touch yaml/__init__.py; cd docs; $run claims; code=$?; rm -r ../yaml; exit $code": (
        1,
        "yaml:1: this hides the module 'yaml'",
    ),
    "mkdir -p site; touch queue.txt site/a.py; $run claims; code=$?; rm -r site queue.txt; exit $code": (
        0,
        LISTED,
    ),
}


@posix
@pytest.mark.parametrize("line", SHELL)
def test_whatever_a_shell_does_with_a_command_ends_in_a_line_at_most(project, line):
    code, said = SHELL[line]
    command = f'run() {{ {shlex.quote(sys.executable)} -m {ENGINE} "$@"; }}'
    run = f"{command}; set -o pipefail; {line.replace('$run', 'run')}"
    done = subprocess.run(
        ["bash", "-c", run], cwd=project.root, env=project.environment, capture_output=True, text=True
    )
    assert done.returncode == code, done
    assert (done.stdout + done.stderr).startswith(said) and bool(said) == bool(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1, done.stderr
