"""check.py as a user runs it: alone in a folder, with copies of every kind, and with what is none."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

import pytest

from executable_prose.project import ROOT
from guide import check, copies, heads

SITE = "https://someone.github.io/guide/"
OLD, MIDDLE, NEW = (f"def half(x):\n    return x / {n}\n" for n in (4, 3, 2))


def version(code, date):
    return {"digest": check.digest(code), "date": date}


LISTED = {
    "half.py": {
        "path": "snippets/half.py",
        "versions": [
            version(NEW, "2026-03-03"),
            version(MIDDLE, "2026-02-02"),
            version(OLD, "2026-01-01"),
        ],
        "fixed": [{"date": "2026-02-02", "words": "it gave a quarter."}],
    },
    "busy.py": {
        "path": "snippets/busy.py",
        "versions": [
            version("B = 4\n", "2026-03-03"),
            version("B = 3\n", "2026-02-02"),
            version("B = 2\n", "2026-02-02"),
            version("B = 1\n", "2026-01-01"),
        ],
        "fixed": [{"date": "2026-02-02", "words": "it gave one."}],
    },
    "late.py": {
        "path": "snippets/late.py",
        "versions": [version("L = 2\n", "2026-03-03"), version("L = 1\n", "2026-03-03")],
        "fixed": [
            {"date": "2026-03-03", "words": "it gave one."},
            {"date": "2026-02-02", "words": "it gave none."},
        ],
    },
    "more.py": {
        "path": "snippets/more.py",
        "versions": [
            version("M = 3\n", "2026-03-03"),
            version("M = 2\n", "2026-02-02"),
            version("M = 1\n", "2026-02-02"),
        ],
        "fixed": [
            {"date": "2026-03-03", "words": "it gave two."},
            {"date": "2026-02-02", "words": "it gave one."},
        ],
    },
    "calm.py": {
        "path": "snippets/calm.py",
        "versions": [version("X = 2\n", "2026-02-02"), version("X = 1\n", "2026-01-01")],
        "fixed": [],
    },
}


def head(date, origin=SITE):
    return f"# SPDX-License-Identifier: 0BSD\n# From {origin}, {date}\n"


@pytest.fixture
def folder(tmp_path):
    """A user's folder, with a space in its name, that has check.py and the list."""
    folder = tmp_path / "my own models"
    folder.mkdir()
    shutil.copy(ROOT / heads.CHECK, folder)
    (folder / "snippets.json").write_text(json.dumps({"files": LISTED}), encoding="utf-8")
    return folder


def run(folder, *arguments):
    """What it says, and its exit code; it may never end in a traceback."""
    command = [sys.executable, "-I", "-B", "check.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.returncode


FIX = "    2026-02-02: it gave a quarter.\n"
ONE, TWO = "    2026-02-02: it gave one.\n", "    2026-03-03: it gave two.\n"
LATE = "    2026-03-03: it gave one.\n"
MAY = "fixed on that day, which it may lack:\n"
OUTCOMES = {
    "current": ("half.py", NEW, "current, half.py of 2026-03-03\n", 0),
    "current, with other comments": ("half.py", f"# mine\n{NEW}", "current, half.py of 2026-03-03\n", 0),
    "current, under another name": ("mine.py", NEW, "current, half.py of 2026-03-03\n", 0),
    "older": (
        "calm.py",
        "X = 1\n",
        "older, calm.py of 2026-01-01: changed since (2026-02-02), not fixed\n",
        0,
    ),
    "older, with the fix": (
        "half.py",
        MIDDLE,
        "older, half.py of 2026-02-02: changed since (2026-03-03), not fixed\n",
        0,
    ),
    "fixed": ("half.py", OLD, f"older, half.py of 2026-01-01: fixed since:\n{FIX}", 1),
    "fixed, under another name": ("mine.py", OLD, f"older, half.py of 2026-01-01: fixed since:\n{FIX}", 1),
    "changed": (
        "half.py",
        head("2026-03-03") + "Y = 9\n",
        "changed by you, from half.py of 2026-03-03, the newest\n",
        0,
    ),
    "changed, older": (
        "half.py",
        head("2026-02-02") + "Y = 9\n",
        "changed by you, from half.py of 2026-02-02: changed since (2026-03-03), not fixed\n",
        0,
    ),
    "changed, fixed": (
        "half.py",
        head("2026-01-01", heads.GUIDE) + "Y = 9\n",
        f"changed by you, from half.py of 2026-01-01: fixed since:\n{FIX}",
        1,
    ),
    "changed, without a head": (
        "half.py",
        "Y = 9\n",
        f"changed by you, from half.py of a day not known: fixed since:\n{FIX}",
        1,
    ),
    "changed, of the day of a fix that is its newest": (
        "late.py",
        head("2026-03-03") + "Y = 9\n",
        f"changed by you, from late.py of 2026-03-03: {MAY}{LATE}",
        1,
    ),
    "changed, of the day of a fix": (
        "busy.py",
        head("2026-02-02") + "Y = 9\n",
        f"changed by you, from busy.py of 2026-02-02: {MAY}{ONE}",
        1,
    ),
    "changed, of the day of a fix and before another": (
        "more.py",
        head("2026-02-02") + "Y = 9\n",
        "changed by you, from more.py of 2026-02-02: fixed since, or on that day, which it may lack:\n"
        f"{TWO}{ONE}",
        1,
    ),
    "older, the first of the day of a fix": (
        "busy.py",
        "B = 2\n",
        f"older, busy.py of 2026-02-02: {MAY}{ONE}",
        1,
    ),
    "older, the last of the day of a fix": (
        "busy.py",
        "B = 3\n",
        "older, busy.py of 2026-02-02: changed since (2026-03-03), not fixed\n",
        0,
    ),
    "older, the first of the newest day": (
        "late.py",
        "L = 1\n",
        f"older, late.py of 2026-03-03: {MAY}{LATE}",
        1,
    ),
    "of nobody": ("other.py", "Y = 9\n", "cannot be told: no file of the guide has its code or its", 2),
    "empty": ("half.py", "", "cannot be told: it has no code\n", 2),
    "no Python": ("half.py", "def half(:\n", "cannot be told: it is no Python that can be read: invalid", 2),
    "with a null": ("half.py", "X = 1\0\n", "cannot be told: it is no Python that can be read: ", 2),
    "too deep": ("half.py", "(" * 9000 + ")" * 9000, "cannot be told: it is no Python that can be read: ", 2),
}


@pytest.mark.parametrize(("name", "text", "says", "code"), OUTCOMES.values(), ids=OUTCOMES)
def test_each_outcome_has_its_words_and_its_code(folder, name, text, says, code):
    (folder / name).write_text(text, encoding="utf-8")
    said, ended = run(folder, name, "--against", "snippets.json")
    assert ended == code and said.startswith(f"{name}: {says}"), said
    assert not says.endswith("\n") or said == f"{name}: {says}"


def test_ends_of_lines_and_a_byte_order_mark_are_no_change(folder):
    (folder / "half.py").write_bytes(
        b"\xef\xbb\xbf" + (head("2026-03-03") + NEW).replace("\n", "\r\n").encode()
    )
    assert run(folder, "half.py", "--against", "snippets.json") == (
        "half.py: current, half.py of 2026-03-03\n",
        0,
    )


def test_what_cannot_be_read_is_said_of_each_file_and_the_rest_is_told(folder):
    (folder / "half.py").write_text(NEW, encoding="utf-8")
    (folder / "picture.py").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    (folder / "inside").mkdir()
    said, ended = run(folder, "none.py", "inside", "picture.py", "half.py", "--against", "snippets.json")
    assert ended == 2
    starts = ["none.py: cannot be told: it cannot be read: ", "inside: cannot be told: it cannot be read: "]
    starts += ["picture.py: cannot be told: it is no text in UTF-8", "half.py: current"]
    lines = said.splitlines()
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), said


def test_a_fix_counts_more_than_a_file_that_cannot_be_told(folder):
    (folder / "half.py").write_text(OLD, encoding="utf-8")
    assert run(folder, "half.py", "none.py", "--against", "snippets.json")[1] == 1


BAD = {
    "no file": ("none.json", None, "none.json cannot be read: "),
    "a folder": (".", None, ". cannot be read: "),
    "no JSON": ("bad.json", "{", "bad.json is no snippets.json of the guide"),
    "binary": ("bad.json", "\xff\xfe\x00", "bad.json is no snippets.json of the guide"),
    "empty": ("bad.json", "", "bad.json is no snippets.json of the guide"),
    "another's": ("bad.json", "[1]", "bad.json is no snippets.json of the guide"),
    "nothing in it": ("bad.json", '{"files": {}}', "bad.json is no snippets.json of the guide"),
    "half of it": ("bad.json", '{"files": {"a": {"versions": []}}}', "bad.json is no snippets.json"),
    "no versions": ("bad.json", '{"files": {"a": {"versions": [], "fixed": []}}}', "is no snippets.json"),
    "not https": ("http://someone.github.io/snippets.json", None, "only https addresses are asked"),
    "a file's address": ("file:///etc/passwd", None, "only https addresses are asked"),
    "nobody there": ("https://127.0.0.1:1/snippets.json", None, "snippets.json cannot be read: "),
    "no address": ("https://", None, "https:// cannot be read: "),
}


@pytest.mark.parametrize(("against", "text", "says"), BAD.values(), ids=BAD)
def test_a_list_that_cannot_be_read_is_named(folder, against, text, says):
    (folder / "half.py").write_text(NEW, encoding="utf-8")
    if text is not None:
        (folder / against).write_text(text, encoding="latin-1")
    said, ended = run(folder, "half.py", "--against", against)
    assert ended == 2 and said.startswith("half.py: cannot be told: ") and says in said, said


def test_words_that_a_terminal_would_obey_are_refused(folder):
    listed = json.loads((folder / "snippets.json").read_text("utf-8"))
    listed["files"]["half.py"]["fixed"][0]["words"] = "\x1b[2J"
    (folder / "snippets.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "half.py").write_text(OLD, encoding="utf-8")
    said, ended = run(folder, "half.py", "--against", "snippets.json")
    assert ended == 2 and "is no snippets.json of the guide" in said


def test_without_a_site_in_the_head_it_asks_for_the_list(folder):
    for text in (NEW, head("2026-03-03", heads.GUIDE) + NEW, head("2026-03-03", "http://a.b/") + NEW):
        (folder / "half.py").write_text(text, encoding="utf-8")
        said, ended = run(folder, "half.py")
        assert ended == 2 and "its head names no site: add --against" in said


def test_without_files_it_says_how_it_is_called(folder):
    said, ended = run(folder, "--help")
    assert ended == 0 and "python check.py rope.py decoding.py" in said
    assert run(folder)[1] == 2


# Online


@pytest.fixture
def site(monkeypatch):
    """A server that stands for the site that heads name; what it answers, and what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    asked, answers, real = [], {}, urllib.request.urlopen

    def opened(address, timeout):
        assert address.startswith(SITE) and timeout > 0
        answer = real(f"http://127.0.0.1:{server.server_port}/{address.removeprefix(SITE)}", timeout=timeout)
        answer.url = answers.get("url", address)
        return answer

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    check._bytes.cache_clear()
    yield answers, asked
    check._bytes.cache_clear()
    server.shutdown()
    server.server_close()


def test_it_asks_the_site_that_the_head_names_once(folder, site, capsys, monkeypatch):
    answers, asked = site
    answers["/snippets.json"] = 200, (folder / "snippets.json").read_bytes()
    monkeypatch.chdir(folder)
    for name, code in (("half.py", NEW), ("old.py", OLD), ("calm.py", "X = 2\n")):
        (folder / name).write_text(head("2026-01-01") + code, encoding="utf-8")
    assert check.main(["half.py", "old.py", "calm.py"]) == 1
    told = [line.partition(": ")[2].partition(",")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == ["current", "older", "it gave a quarter.", "current"]
    assert asked == ["/snippets.json"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, f"{SITE}snippets.json cannot be read: HTTP Error 404"),
        ({"/snippets.json": (200, b"<html>")}, f"{SITE}snippets.json is no snippets.json of the guide"),
        (
            {"/snippets.json": (200, b"{}"), "url": "http://a.b/"},
            "it leads to http://a.b/, which is not https",
        ),
    ],
)
def test_what_the_site_does_not_answer_is_said(folder, site, capsys, answer, says):
    answers, asked = site
    answers.update(answer)
    for name in ("half.py", "calm.py"):
        (folder / name).write_text(head("2026-01-01") + NEW, encoding="utf-8")
    assert check.main([str(folder / "half.py"), str(folder / "calm.py")]) == 2
    assert capsys.readouterr().out.count(says) == 2
    assert len(asked) == 1


def test_what_may_have_no_end_is_not_read(folder, capsys):
    (folder / "zero.py").symlink_to("/dev/zero")
    assert check.main([str(folder / "zero.py"), "--against", str(folder / "snippets.json")]) == 2
    assert check.main([str(folder / "rope.py"), "--against", "/dev/zero"]) == 2
    assert check.main([f"{'x' * 5000}.py", "--against", f"{'x' * 5000}"]) == 2
    assert "zero.py: cannot be told: it cannot be read: it must be a regular file" in capsys.readouterr().out


OUTPUT = {"> /dev/full": (2, "cannot write: No space left on device"), "| true": (141, ""), ">&-": (2, "")}


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
@pytest.mark.parametrize("output", OUTPUT)
def test_output_that_nobody_takes_is_told_in_a_line(folder, output):
    code, said = OUTPUT[output]
    line = f"'{sys.executable}' '{check.__file__}' '{folder}/none.py' {output}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and said in done.stderr, done
    assert len(done.stderr.splitlines()) == bool(said), done.stderr


# The real files


def test_the_real_files_are_current_and_so_is_check_itself(tmp_path):
    copies.write(tmp_path)
    for file in heads.files():
        text = heads.handed_out(heads.read(file), SITE)
        (tmp_path / file.rpartition("/")[2]).write_text(text, encoding="utf-8")
    names = [file.rpartition("/")[2] for file in heads.files()]
    said, ended = run(tmp_path, *names, "--against", "snippets.json")
    assert ended == 0
    assert [re.match(r"(\S+): current, \1 of ", line)[1] for line in said.splitlines()] == names


def test_the_first_versions_of_real_files_are_told_by_what_was_fixed_since(tmp_path):
    copies.write(tmp_path)
    (tmp_path / "check.py").write_text(heads.read(heads.CHECK), encoding="utf-8")
    for name, least in (("fire.py", 2), ("attention.py", 1), ("alibi.py", 0)):
        first = ["git", "log", "--reverse", "--format=%H", "--", f"snippets/{name}"]
        commit = subprocess.check_output(first, cwd=ROOT, text=True).split()[0]
        text = subprocess.check_output(["git", "show", f"{commit}:snippets/{name}"], cwd=ROOT)
        (tmp_path / name).write_bytes(text)
        said, ended = run(tmp_path, name, "--against", "snippets.json")
        assert said.startswith(f"{name}: older, {name} of 2026-11-21: ")
        assert said.count("\n") - 1 >= least and ended == min(least, 1)


def test_it_fits_a_page_and_needs_the_standard_library_alone():
    text = heads.read(heads.CHECK)
    assert max(map(len, text.splitlines())) <= 80
    imported = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    assert set(imported) <= sys.stdlib_module_names
