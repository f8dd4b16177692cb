"""What goes wrong around a build: damaged caches, a full disk, kills, interrupts, a poor machine."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from prose_testing.faults import LATIN
from prose_testing.lab import PROJECT
from prose_testing.projects import Project, running_in, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals, limits and mounts are POSIX's"),
]

WAIT = "import tempfile, time; open(tempfile.gettempdir() + '/waiting', 'w').write('yes'); time.sleep({})"
RAN = "3 exhibits ran, 0 cached"
DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "emptied": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(b"\x89PNG\r\n\0\xff"),
    "of another version": lambda path: path.write_text('{"version": 1}'),
    "a list": lambda path: path.write_text("[[1], null]"),
    "edited": lambda path: path.write_text(path.read_text().replace("e", "E").replace("2.", "6.")),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "gone": lambda path: path.unlink(),
    "from a clock that has jumped back since": lambda path: os.utime(path, (2**33, 2**33)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project in a folder whose name has a blank, quotes, and letters beyond ASCII; and its site."""
    folder = tmp_path_factory.mktemp(
        "a 'b' \"c\" \N{LATIN SMALL LETTER U WITH DIAERESIS}\N{CJK UNIFIED IDEOGRAPH-4F4D}"
    )
    project = Project(folder.resolve(), files=PROJECT)
    done = project.build()
    assert done.code == 0 and RAN in done.output, done.output
    return project, project.site()


@pytest.fixture
def project(made):
    """After each fault a build, with nothing in its way, makes the same site."""
    project, site = made
    yield project
    done = project.build()
    assert (done.code, project.site()) == (0, site), done.output
    assert not running_in(project.root)


def limited(project, kind, most):
    """Build with a limit of the system on each process."""
    code = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_{kind}, ({most}, {most})); "
    code += "import sys; sys.argv = ['', 'build']; runpy.run_module('executable_prose', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
    )


def apart(project, *prepare):
    """Build in a mount and network namespace of its own, after some commands."""
    script = " && ".join([*prepare, 'exec "$0" -m executable_prose build'])
    command = ["unshare", "--map-root-user", "--mount", "--net", "sh", "-c", script, sys.executable]
    done = subprocess.run(
        command, cwd=project.root, env=project.environment, capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr)
    return done


def read_only(folder):
    return f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_caches_are_made_again(made, project, damage):
    for cache in ("executable_prose/*.json", "pages/*.json", "texts.json"):
        files = list(project.root.joinpath(".cache").glob(cache))
        assert files
        for path in files:
            DAMAGE[damage](path)
    done = project.build()
    assert done.code == 0 and "Traceback" not in done.output, done.output
    assert project.site() == made[1]
    assert (RAN in done.output) == ("clock" not in damage)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (
            ["mount -t tmpfs -o size=16k none .cache/executable_prose && rm -rf .cache/pages"],
            "No space left on device",
        ),
        (["rm -rf .cache/executable_prose/*", read_only(".cache")], "Read-only file system"),
        ([read_only(".")], "Read-only file system"),
    ],
    ids=["full disk", "caches that cannot be written", "a folder that cannot be written"],
)
def test_a_disk_that_takes_nothing_is_told(made, project, prepare, words):
    done = apart(project, *prepare)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert project.site() == made[1]


def test_a_file_that_may_not_grow_is_told(made, project):
    for path in project.entries():
        path.unlink()
    done = limited(project, "FSIZE", 2000)
    assert done.returncode == 1 and "File too large" in done.stderr and "Traceback" not in done.stderr, (
        done.stderr
    )
    assert project.site() == made[1]


@pytest.mark.parametrize(("kind", "most"), [("NOFILE", 256), ("DATA", 1 << 30)])
def test_a_poor_machine_is_enough(made, project, kind, most):
    for path in project.entries():
        path.unlink()
    done = limited(project, kind, most)
    assert done.returncode == 0, done.stderr
    assert project.site() == made[1]


def test_a_gigabyte_is_enough_for_the_real_torch(tmp_path_factory):
    attempt = "import torch\n\n\ndef one():\n    print(torch.ones(2) @ torch.ones(2))\n"
    files = PROJECT | {
        "exhibits/attempt.py": attempt,
        "docs/attempt.md": "# Sum\n\n```exhibit attempt.one\n```\n",
    }
    project = Project(tmp_path_factory.mktemp("real").resolve(), files=files, light=False)
    done = limited(project, "DATA", 1 << 30)
    assert done.returncode == 0, done.stderr
    assert "tensor(2.)" in project.page("attempt/index.html")


def test_without_a_network_and_without_git_the_site_is_the_same(made, project, monkeypatch):
    assert apart(project).returncode == 0
    assert project.site() == made[1]
    monkeypatch.setitem(project.environment, "PATH", "")
    assert project.build().code == 0
    assert project.site() == made[1]


def test_what_an_exhibit_warns_of_is_said_with_its_line(made, project):
    project.edit(
        "exhibits/words.py", "def spoken():", "def spoken():\n    import warnings; warnings.warn('old')"
    )
    done = project.build()
    project.edit("exhibits/words.py", "\n    import warnings; warnings.warn('old')", "")
    assert done.code == 0 and "exhibits/words.py:2: UserWarning: old" in done.output, done.output


def test_a_repository_whose_date_cannot_be_asked_for_is_told(made, project, monkeypatch):
    monkeypatch.setitem(project.environment, "PATH", "")
    (project.root / ".git").mkdir()
    done = project.build()
    (project.root / ".git").rmdir()
    assert done.code == 0 and "the site bears the date 1970-01-01" in done.output, done.output
    assert "the site bears" not in project.build().output


def in_the_way(project, path, make):
    """Build with something else in the place of a file or a folder; then it is as it was."""
    aside = project.root / "aside"
    path.rename(aside)
    make(path)
    try:
        return project.build()
    finally:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        aside.rename(path)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        (".cache", lambda path: path.touch()),
        (".cache/executable_prose", lambda path: path.touch()),
        (".cache/executable_prose", lambda path: path.symlink_to("none")),
        (".cache/pages", lambda path: path.symlink_to("none")),
    ],
)
def test_what_is_in_the_way_of_a_cache_is_told(made, project, name, make):
    done = in_the_way(project, project.root / name, make)
    assert done.code == 1 and "Traceback" not in done.output, done.output
    assert f"/{name}" in done.output and "something is in the way there: remove it" in done.output
    assert project.site() == made[1]


def test_a_folder_in_the_place_of_an_entry_is_told(made, project):
    for path in project.entries():  # also of code that other tests have edited
        path.unlink()
    assert project.build().code == 0
    (entry,) = (path for path in project.entries() if path.name.startswith("words."))
    done = in_the_way(project, entry, lambda path: path.mkdir())
    assert done.code == 1 and "Traceback" not in done.output, done.output
    assert (
        "Is a directory: " in done.output and f"{entry.name}': something is in the way there" in done.output
    )
    assert project.site() == made[1]


@pytest.mark.parametrize("command", ["build", "results"])
@pytest.mark.parametrize("date", ["abc", "", "1.5", "99999999999999", "-99999999999999"])
def test_a_date_that_is_none_is_told(made, project, monkeypatch, command, date):
    monkeypatch.setitem(project.environment, "SOURCE_DATE_EPOCH", date)
    done = project.run("executable_prose", command)
    assert done.code == 1 and len(done.output.splitlines()) == 1, done.output
    assert (
        f"expected whole seconds since 1970 in SOURCE_DATE_EPOCH, as of a commit, got {date!r}" in done.output
    )


@pytest.mark.parametrize("target", ["docs", "snippets", "executable_prose", ".", "..", "link", "mkdocs.yml"])
def test_a_build_replaces_nothing_but_a_site(made, project, target):
    (project.root / "link").symlink_to("docs")
    before = every_file(project.root.parent)
    done = project.build(target)
    assert done.code == 1 and len(done.output.splitlines()) == 1, done.output
    assert done.output.startswith(f"cannot build into '{target}': it ")
    assert every_file(project.root.parent) == before
    (project.root / "link").unlink()


def every_file(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path: path.read_bytes() for path in files}


def test_another_torch_runs_everything_again(made, project):
    other = project.root / "torch-0.0.dist-info"
    project.write({"torch-0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 0.0\n"})
    done = project.build()
    shutil.rmtree(other)
    assert done.code == 0 and RAN in done.output, done.output
    assert project.site() == made[1]


def test_three_builds_at_once_succeed(made, project):
    for path in project.entries():
        path.unlink()
    builds = [project.start("executable_prose", "build") for _ in range(3)]
    for process in builds:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    assert project.site() == made[1]
    assert not list(project.root.glob(".site-*"))


@pytest.fixture(scope="module")
def seconds(made):
    """How long a build takes that runs everything."""
    project, _ = made
    for path in project.entries():
        path.unlink()
    start = time.monotonic()
    assert project.build().code == 0
    return time.monotonic() - start


@pytest.mark.parametrize("moment", [random.Random(number).random() for number in range(20)])
def test_a_kill_at_any_moment_harms_nothing(made, project, seconds, moment):
    for path in project.entries():
        path.unlink()
    process = project.start("executable_prose", "build")
    time.sleep(seconds * moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    until(lambda: not running_in(project.root), 20)
    assert not project.root.joinpath("site").exists() or project.site() == made[1]
    for left in project.root.glob(".site-*"):
        os.utime(left, (0, 0))


PHASES = ("Building documentation", "ran ", "exhibits ran", "Documentation built")
INTERRUPTS = [
    *((signal.SIGINT, os.killpg, phase) for phase in PHASES),
    *((signal.SIGTERM, os.killpg, phase) for phase in PHASES),
    (signal.SIGHUP, os.killpg, "ran "),
    (signal.SIGQUIT, os.killpg, "ran "),
    (signal.SIGTERM, os.kill, "ran "),
    (signal.SIGINT, os.kill, "exhibits ran"),
]


@pytest.mark.parametrize(("number", "send", "phase"), INTERRUPTS)
def test_a_signal_in_any_phase_ends_the_build_and_leaves_nothing(made, project, number, send, phase):
    """Or comes too late."""
    for path in project.entries():
        path.unlink()
    before = set(project.temporary.iterdir())
    process = project.start("executable_prose", "build")
    said = ""
    while phase not in said:
        said += process.stdout.readline()
    send(process.pid, number)
    send(process.pid, number)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode in (128 + number, 0) and "Traceback" not in said + rest, said + rest
    assert project.site() == made[1]
    assert not list(project.root.glob(".site-*"))
    until(lambda: set(project.temporary.iterdir()) <= before, 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_ends_the_server_and_leaves_nothing(project, free, number, send):
    log, before = project.root / "log", set(project.temporary.iterdir())
    with log.open("w") as output:
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        server = project.start("executable_prose", "serve", "--dev-addr", address, output=output)
    until(lambda: "Serving on" in log.read_text())
    send(server.pid, number)
    assert server.wait(30) == 128 + number
    until(lambda: set(project.temporary.iterdir()) <= before, 5)
    assert "Traceback" not in log.read_text(), log.read_text()
    log.unlink()


def test_a_build_that_outlives_its_terminal_goes_on(made, project):
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "executable_prose", "build"],
        cwd=project.root,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert "INFO" in process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def test_a_page_that_is_renamed_while_the_site_is_built_is_told(made, project):
    """Exhibits run when all pages are known, and before this one is read."""
    path, wait = project.root / "docs/reference/scale.md", WAIT.format(2)
    project.edit("exhibits/words.py", "def spoken():", f"def spoken():\n    {wait}")
    process = project.start("executable_prose", "build")
    until(lambda: project.left_by_an_exhibit("waiting"))
    path.rename(path.with_name("other.md"))
    said, _ = process.communicate(timeout=60)
    path.with_name("other.md").rename(path)
    project.edit("exhibits/words.py", f"\n    {wait}", "")
    assert process.returncode == 1 and "Traceback" not in said, said
    assert "reference/scale.md" in said and "if it has been renamed or removed just now, start again" in said


def test_a_build_without_standard_files_is_the_same(made, project):
    line = f'exec "{sys.executable}" -m executable_prose build <&- >&- 2>&-'
    for path in project.entries():
        path.unlink()
    done = subprocess.run(["sh", "-c", line], cwd=project.root, env=project.environment)
    assert done.returncode == 0 and project.site() == made[1]


@pytest.fixture
def free():
    """A port that nobody uses, held until the test closes it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held


def test_a_port_that_is_taken_is_told(project, free):
    free.listen()
    done = project.run("executable_prose", "serve", "--dev-addr", f"127.0.0.1:{free.getsockname()[1]}")
    assert done.code == 1 and "Traceback" not in done.output, done.output
    assert "Address already in use" in done.output and "--dev-addr 127.0.0.1:8001" in done.output


def test_temporary_files_in_a_folder_with_a_long_name_do_no_harm(made, project, monkeypatch):
    long = project.temporary / "/".join(3 * [60 * "x"])
    long.mkdir(parents=True)
    for path in project.entries():
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setitem(project.environment, "TMPDIR", str(long))
        done = project.build()
    assert done.code == 0 and RAN in done.output, done.output
    assert not list(long.iterdir())


def test_the_death_of_the_process_that_starts_exhibits_is_told(made, project):
    wait = WAIT.format(60)
    project.edit("exhibits/words.py", "def spoken():", f"def spoken():\n    {wait}")
    process = project.start("executable_prose", "build")
    until(lambda: project.left_by_an_exhibit("waiting"))
    for pid in running_in(project.root):
        if "forkserver" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(int(pid), signal.SIGKILL)
    said, _ = process.communicate(timeout=30)
    project.edit("exhibits/words.py", f"\n    {wait}", "")
    assert process.returncode == 1 and "Traceback" not in said, said
    assert "the process that starts exhibits was killed, or ended itself" in said, said


def test_the_death_of_the_process_that_runs_exhibits_does_no_harm(made, project):
    wait = WAIT.format(2)
    project.edit("exhibits/words.py", "def spoken():", f"def spoken():\n    {wait}")
    process = project.start("executable_prose", "build")
    until(lambda: project.left_by_an_exhibit("waiting"))
    for pid in running_in(project.root):
        if "process_pool import main" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(int(pid), signal.SIGKILL)
    said, _ = process.communicate(timeout=30)
    project.edit("exhibits/words.py", f"\n    {wait}", "")
    assert process.returncode == 0 and "Traceback" not in said, said
    until(lambda: not running_in(project.root), 10)
    for left in project.temporary.iterdir():
        shutil.rmtree(left)


def test_a_library_that_cannot_be_imported_is_told_where_it_is_used(made, project):
    before = (project.root / "torch.py").read_text()
    for path in project.entries():
        path.unlink()
    project.write({"torch.py": "\n1 / 0\n"})
    done = project.build()
    project.write({"torch.py": before})
    assert done.code == 1 and "Traceback" not in done.output, done.output
    assert "exhibit 'lines.rising' failed: ZeroDivisionError: division by zero (at torch.py:2)" in done.output


BROKEN = {
    "page": ("docs/index.md", "# S", "`#!val none.x`\n\n# S", "index.md:5: exhibit 'none' failed"),
    "page that is no UTF-8": ("docs/index.md", "# Scaling", LATIN, "save it as UTF-8"),
    "snippet": ("snippets/scale.py", "SCALE * x", "SCALE * y", "(at snippets/scale.py:8)"),
    "configuration": ("mkdocs.yml", "plugins: []", "plugins: [none]", 'The "none" plugin is not installed'),
    "configuration that is no YAML": ("mkdocs.yml", "plugins: []", "plugins: [a: b: c", 'mkdocs.yml", line'),
}  # fmt: skip


@pytest.mark.parametrize(("file", "good", "bad", "words"), BROKEN.values(), ids=BROKEN)
def test_the_server_tells_what_is_broken_and_goes_on_when_it_is_mended(project, free, file, good, bad, words):
    address, path = f"127.0.0.1:{free.getsockname()[1]}", project.root / file
    free.close()
    log = project.root / "log"

    def page():
        try:
            with urllib.request.urlopen(f"http://{address}/", timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    before = path.read_bytes()
    with log.open("w") as output:
        server = project.start("executable_prose", "serve", "--dev-addr", address, output=output)
    try:
        until(lambda: ">2.00<" in page())
        path.write_bytes(bad if isinstance(bad, bytes) else before.replace(good.encode(), bad.encode()))
        until(lambda: words in log.read_text())
        path.write_bytes(before)
        until(lambda: ">2.00<" in page())
    finally:
        path.write_bytes(before)
        os.killpg(server.pid, signal.SIGINT)
        assert server.wait(30) == 0
        until(lambda: not running_in(project.root), 20)
        said = log.read_text()
        log.unlink()
    assert "Traceback" not in said, said
