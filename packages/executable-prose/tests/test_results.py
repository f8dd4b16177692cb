"""A result is used again exactly while all that its exhibit used is the same."""

import json
import os
import re
import shutil
import threading
import time

import pytest

from executable_prose import libraries, project, syntax
from executable_prose.execution import process_pool, recorder, results, store
from prose_testing.projects import FILES

STORED = "lines.rising"


PROJECT = FILES | {
    "exhibits/reader.py": """
        from pathlib import Path

        HERE = Path(__file__).parent / "data"


        def a_file():
            return {"text": (HERE / "note.txt").read_text()}


        def a_folder():
            return {"count": len(list(HERE.glob("*.txt")))}


        def perhaps():
            try:
                return {"text": (HERE / "maybe.txt").read_text()}
            except FileNotFoundError:
                return {"text": "none"}
        """,
    "exhibits/more.py": """
        import os
        from pathlib import Path

        HERE = Path(__file__).parent


        def elsewhere():
            try:
                return {"text": (HERE.parent.parent / "outside.txt").read_text()}
            except FileNotFoundError:
                return {"text": "none"}


        def whether():
            path = HERE / "it.csv"
            return {"found": f"{path.exists()} {path.is_file()} {os.path.isdir(path)}"}

        """,
    "exhibits/data/note.txt": "one",
}


def value(known, name):
    exhibit, _, key = name.rpartition(".")
    return known.get(exhibit)["values"][key]


def test_nothing_runs_twice(ask):
    assert ask() == set()


def test_the_files_are_looked_at_once_a_build(known, ask, files, capfd):
    for page in ("one.md", "two.md"):
        known.visit(page, "")
    files.edit("exhibits/words.py", "seven", "eight")
    known.visit("three.md", "```exhibit words.spoken\n```")
    assert known.get("words.spoken")["output"] == "seven < eight\n"
    known.visit("one.md", "")
    assert known.get("words.spoken")["output"] == "eight < eight\n"
    capfd.readouterr()


def test_page_by_page_only_what_a_page_shows_runs(known, ask, files, capfd):
    files.edit("exhibits/words.py", "seven", "nine")
    files.edit("snippets/scale.py", "2.0", "7.0")
    lazy = results.Results(lazy=True)
    lazy._worker, lazy._environment = known._worker, known._environment
    capfd.readouterr()
    lazy.visit("one.md", "In `#!val\n words.spoken.method`.")
    assert "1 exhibits ran, 0 cached" in capfd.readouterr().err
    assert lazy.get("words.spoken")["output"] == "nine < eight\n"
    assert value(lazy, "lines.rising.end") == 7.0
    assert "1 exhibits ran, 0 cached" in capfd.readouterr().err
    assert ask() == set(), "and what it stored is found by others"


def test_what_a_page_shows_is_known_by_its_text():
    text = "```exhibit a.b show=code\n```\n`#!val c.d.e .2f`\n```lab f\n```\n"
    assert syntax.named(text) == {"a.b", "c.d", "lab-f"}


def test_another_server_finds_what_this_one_stored(known, ask, capfd):
    capfd.readouterr()
    assert results.Results().get(STORED) == known.get(STORED)
    assert "ran" not in capfd.readouterr().err


def test_an_edited_snippet_runs_exactly_the_exhibits_that_import_it(known, ask, files):
    files.edit("snippets/scale.py", "2.0", "3.0")
    assert ask() == {"lines.rising"}
    assert value(known, "lines.rising.end") == 3.0
    files.edit("snippets/scale.py", "3.0", "2.0")
    assert ask() == set()
    assert value(known, "lines.rising.end") == 2.0


def test_an_edited_function_runs_exactly_the_exhibits_that_ran_it(known, ask, files):
    files.write({"exhibits/doubled.py": DOUBLED})
    assert ask() == {"doubled.function", "doubled.constant", "doubled.method"}
    files.edit("snippets/scale.py", "return SCALE * x", "return x * SCALE")
    assert ask() == {"lines.rising", "doubled.function"}
    files.edit("snippets/scale.py", "return self.by * x", "return x * self.by")
    assert ask() == {"doubled.method"}
    files.edit("exhibits/doubled.py", "scaled(1.0)", "scaled(3.0)")
    assert ask() == {"doubled.function"}
    assert value(known, "doubled.function.end") == 6.0


DOUBLED = """
    from snippets.scale import SCALE, Scale, scaled


    def function():
        return {"end": scaled(1.0)}


    def constant():
        return {"end": SCALE}


    def method():
        return {"end": Scale(2)(1.0)}
    """


SCALE, WORDS = "snippets/scale.py", "exhibits/words.py"
# An edit, and the exhibits that run for it. What importing a module executes counts for all who import it.
EDITS = {
    "a docstring": (SCALE, '"""x, scaled."""', '"""Another sentence."""', set()),
    "layout and a comment": (SCALE, "return SCALE * x", "return (SCALE *  x)  # a comment", set()),
    "lines above": (SCALE, "SCALE = 2.0", "# a comment\n\n\nSCALE = 2.0", set()),
    "a file that no exhibit uses": ("snippets/lonely.py", "imports", "reads", set()),
    "an exhibit": (WORDS, "seven", "six", {"words.spoken"}),
    "a parameter": (SCALE, "def scaled(x):", "def scaled(x, y=1):", {"lines.rising"}),
    "a call in a module": (SCALE, "SCALE = 2.0", "SCALE = 2.0\nprint()", {"lines.rising"}),
    "a method's parameter": (
        SCALE,
        "def __init__(self, by):",
        "def __init__(self, by, other=None):",
        {"lines.rising"},
    ),
    "a class": (SCALE, "class Scale:", "class Scale:\n    new = 1", {"lines.rising"}),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_runs_the_exhibits_that_it_concerns(ask, files, name):
    *edit, ran = EDITS[name]
    files.edit(*edit)
    assert ask() == ran


def test_an_edit_of_the_same_size_at_the_same_moment_is_an_edit(known, ask, files):
    path = files.root / "snippets" / "scale.py"
    before = path.stat()
    for number in ("4.0", "5.0"):
        path.write_text(re.sub(r"\d\.0", number, path.read_text()))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        assert ask() == {"lines.rising"}
        assert value(known, "lines.rising.end") == float(number)


def test_new_files_that_no_exhibit_uses_run_nothing(ask, files):
    files.write({"snippets/new.py": "x = 1\n", "exhibits/new.md": ""})
    files.write({"executable_prose/rendering/extension.py": "# other\n"})
    assert ask() == set()


def test_edited_settings_run_nothing(ask, files):
    files.edit("pyproject.toml", 'oldest = "2.5.0"', 'oldest = "2.6.0"')
    files.edit("exhibits/words.py", "seven", "five")
    assert ask() == {"words.spoken"}
    files.edit("pyproject.toml", 'oldest = "2.6.0"', 'oldest = "2.5.0"')
    assert ask() == set(), "what runs looks up where things are, and does not depend on it"


def test_what_draws_is_used_by_all(known, ask, files):
    files.edit("executable_prose/figures/svg.py", "font.size", "font.size")
    assert ask() == set()
    files.edit("executable_prose/figures/svg.py", '"class": "figure"', '"class": "drawing"')
    assert ask() == set(results.exhibit_names())
    assert 'class="drawing"' in known.get("lines.rising")["figure"]


def test_a_folder_that_an_exhibit_lists_is_used(known, ask, files):
    files.write({"exhibits/data/more.txt": ""})
    assert ask() == {"reader.a_folder"}
    assert value(known, "reader.a_folder.count") == 2
    (files.root / "exhibits" / "data" / "more.txt").unlink()
    assert ask() == set()
    assert value(known, "reader.a_folder.count") == 1


@pytest.mark.parametrize(
    ("file", "exhibit", "before", "others"),
    [("note", "reader.a_file", "one", set()), ("maybe", "reader.perhaps", "none", {"reader.a_folder"})],
    ids=["a file that it opens", "a file that was not there"],
)
def test_a_file_that_an_exhibit_asks_for_is_used(known, ask, files, file, exhibit, before, others):
    assert value(known, f"{exhibit}.text") == before
    files.write({f"exhibits/data/{file}.txt": "some"})
    assert ask() == {exhibit, *others}
    assert value(known, f"{exhibit}.text") == "some"


def test_a_file_outside_the_project_is_used(known, ask, files):
    outside = files.root.parent / "outside.txt"
    outside.write_text("one")
    assert ask() == {"more.elsewhere"}
    assert value(known, "more.elsewhere.text") == "one"
    outside.write_text("two")
    assert ask() == {"more.elsewhere"}
    outside.unlink()
    assert ask() == set(), "this result is known"
    assert value(known, "more.elsewhere.text") == "none"


def test_whether_a_file_exists_is_used(known, ask, files):
    assert value(known, "more.whether.found") == "False False False"
    files.write({"exhibits/it.csv": "one"})
    assert ask() == {"more.whether"}
    files.write({"exhibits/it.csv": "two"})
    assert ask() == set()
    (files.root / "exhibits/it.csv").unlink()
    (files.root / "exhibits/it.csv").mkdir()
    assert ask() == {"more.whether"}
    assert value(known, "more.whether.found") == "True False True"
    (files.root / "exhibits/it.csv").rmdir()


def test_a_snippet_that_is_gone_fails_its_exhibits_and_no_others(known, ask, files):
    (files.root / "snippets" / "scale.py").unlink()
    known.invalidate()
    assert known.get("words.spoken")
    with pytest.raises(results.Unavailable, match=r"No module named 'snippets.scale' \(at exhibits/lines.py"):
        known.get("lines.rising")


def test_a_new_exhibit_runs_and_a_removed_one_is_unknown(known, ask, files):
    files.write({"exhibits/fresh.py": "def one():\n    print(1)\n\n\ndef _helper():\n    pass\n"})
    assert ask() == {"fresh.one"}
    (files.root / "exhibits" / "fresh.py").unlink()
    known.invalidate()
    with pytest.raises(results.Unavailable, match=r"no file exhibits/fresh\.py"):
        known.get("fresh.one")


@pytest.mark.parametrize("library", ["torch", "numpy", *libraries.DRAW])
def test_another_version_of_a_library_runs_all(ask, monkeypatch, library):
    version = store.importlib.metadata.version
    monkeypatch.setattr(
        store.importlib.metadata, "version", lambda name: "0" if name == library else version(name)
    )
    assert stored(STORED) is None
    monkeypatch.undo()


def test_another_python_runs_all(monkeypatch, known):
    assert "python" in store.environment()
    now = store.Snapshot()
    assert stored(STORED, now)
    now.environment = now.environment | {"python": "3.0"}
    assert stored(STORED, now) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"[]",
        lambda data: b"null",
        lambda data: b"{}",
        lambda data: b"\xff\xfe",
        lambda data: edited(data, values={"end": 666.0, "tiny": 0.0}),
        lambda data: edited(data, figure="<script>x()</script>"),
        lambda data: data.replace(b'"result": {', b'"result": [], "why": "", "code": {}, "more": {'),
        lambda data: data.replace(b"2.0", b"6.0"),
    ],
    ids=["empty", "half", "list", "null", "bare", "no text", "value", "figure", "no result", "digit"],
)
def test_an_entry_that_cannot_be_read_is_made_again_without_a_word(lively, ask, known, damage, capfd):
    before = known.get(STORED)
    (path,) = [p for p in lively.entries() if is_entry(p)]
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    fresh = results.Results()
    fresh._worker, fresh._environment = known._worker, known._environment
    capfd.readouterr()
    assert fresh.get(STORED) == before
    said = capfd.readouterr().err
    assert [line for line in said.split("\n") if line.strip()][1:] == [f"1 exhibits ran, {COUNT - 1} cached"]
    assert path.read_bytes() == whole


def edited(data, **changes):
    """An entry as somebody may edit it."""
    entry = json.loads(data)
    return json.dumps(entry | {"result": entry["result"] | changes}).encode()


COUNT = 7  # exhibits of the project


def is_entry(path):
    """Is this the entry of STORED for the files as they are?"""
    if not path.name.startswith(f"{STORED}."):
        return False
    return store.Snapshot().is_current(store.Entry(**project.stored(path)))


def stored(name, now=None):
    """The entry of an exhibit that is on disk and current."""
    return store.load(store.stored().get(name, ()), now or store.Snapshot())


def keep(name, files, result):
    store.store(name, store.Entry(store.environment(), files, {}, result))


def test_a_damaged_entry_can_hide_no_other(here):
    here.write({"snippets/a.py": "x = 1\n"})
    files = {"snippets/a.py": project.digest("snippets/a.py")}
    keep("a.b", files, {"values": {}})
    for number in range(3):
        here.write({f".cache/executable_prose/a.b.{number}.json": "{"})
    assert stored("a.b").result == {"values": {}}


def test_an_exhibit_keeps_its_last_results_and_no_more(here):
    for number in range(store.ENTRIES + 3):
        here.write({"snippets/a.py": f"x = {number}\n"})
        keep("a.b", {"snippets/a.py": project.digest("snippets/a.py")}, number)
    keep("a.bc", {}, "another exhibit's")
    found = []
    for number in range(store.ENTRIES + 3):
        here.write({"snippets/a.py": f"x = {number}\n"})
        entry = stored("a.b")
        found.append(entry and entry.result)
    assert found == [None] * 3 + list(range(3, store.ENTRIES + 3))
    assert stored("a.bc")


def test_what_is_stored_is_stored_whole(here, monkeypatch):
    """A process that dies while it writes leaves no entry, and the name of no entry."""
    monkeypatch.setattr(project.Path, "replace", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        keep("a.b", {}, {})
    assert not list((here.root / ".cache" / "executable_prose").glob("*.json"))
    assert stored("a.b") is None


def test_all_failures_are_told_at_once_and_again_without_running_until_the_code_changes(
    known, ask, files, capfd
):
    raising = "def {}():\n    raise RuntimeError('no')\n"
    files.write({"exhibits/bad.py": raising.format("one") + raising.format("two")})
    for _ in range(2):
        known.invalidate()
        with pytest.raises(results.Unavailable) as error:
            known.get("bad.one")
        assert str(error.value) == "exhibit 'bad.one' failed: RuntimeError: no (at exhibits/bad.py:2)"
    said = capfd.readouterr().err
    failed = re.findall(r"^failed +\d+\.\d\d s  (bad\.\w+): RuntimeError: no \(at .*\)$", said, re.M)
    assert sorted(failed) == ["bad.one", "bad.two"]
    assert f"0 exhibits ran, {COUNT} cached, 2 failed" in said
    files.edit("exhibits/bad.py", "raise RuntimeError('no')", "print('yes')")
    known.invalidate()
    assert known.get("bad.one")["output"] == "yes\n"


def test_a_failure_does_not_outlive_a_file_that_is_no_code(known, ask, files):
    files.write(
        {
            "exhibits/bad.py": """
                from pathlib import Path


                def one():
                    print(Path("data/words.txt").read_text())
                """
        }
    )
    for words in (None, "yes"):
        known.invalidate()
        if words:
            files.write({"data/words.txt": words})
            assert known.get("bad.one")["output"] == "yes\n"
        else:
            with pytest.raises(results.Unavailable, match="FileNotFoundError"):
                known.get("bad.one")
    shutil.rmtree(files.root / "data")


def test_a_failure_does_not_outlive_a_library(known, ask, files, monkeypatch, capfd):
    files.write({"exhibits/bad.py": "def one():\n    raise RuntimeError('no')\n"})
    for version in ("1", "2", "2"):
        upgrade(monkeypatch, version)
        known.invalidate()
        with pytest.raises(results.Unavailable, match="no"):
            known.get("bad.one")
    assert capfd.readouterr().err.count("failed") == 2 + 2  # a line for it, and one with the counts


def upgrade(monkeypatch, version):
    """Let a library have this version from now on."""
    real = store.importlib.metadata.version
    monkeypatch.setattr(
        store.importlib.metadata,
        "version",
        lambda name: version if name == "matplotlib" else real(name),
    )


def test_another_library_is_loaded_by_another_worker(known, ask, files, monkeypatch):
    before = known._worker
    upgrade(monkeypatch, "0")
    assert ask() == set(results.exhibit_names())
    assert before.process.poll() == 0 and known._worker is not before
    assert known._entries[STORED].environment == store.environment()


def test_a_result_bears_the_libraries_that_its_worker_has_loaded(known, ask, files, monkeypatch):
    """They are upgraded while it runs."""
    before, stores = store.environment(), results.store

    def late(name, entry):
        upgrade(monkeypatch, "0")
        return stores(name, entry)

    monkeypatch.setattr(results, "store", late)
    files.edit("exhibits/words.py", "seven", "ten")
    assert ask() == {"words.spoken"}
    assert known._entries["words.spoken"].environment == before != store.environment()


def test_answers_that_nobody_took_are_not_for_the_next_question(known, ask):
    first = next(known.run(["lines.rising", "words.spoken"]))
    for name in ("words.spoken", "lines.rising"):
        assert [each.name for each in known.run([name])] == [name]
    assert first.name in ("lines.rising", "words.spoken")


def test_an_error_between_answers_leaves_no_answer_behind(known, ask, files, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    files.edit("exhibits/reader.py", "HERE = ", "MORE = 1\nHERE = ")
    with monkeypatch.context() as context, pytest.raises(OSError, match="no space left"):
        context.setattr(results, "store", full)
        ask()
    ask()
    assert value(known, "reader.a_file.text") == "one"
    assert value(known, "reader.perhaps.text") == "none"


def test_what_a_link_leads_to_is_used(known, ask, files, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("one")
    (files.root / "exhibits" / "data" / "maybe.txt").symlink_to(outside)
    assert ask() == {"reader.perhaps", "reader.a_folder"}
    outside.write_text("two")
    assert ask() == {"reader.perhaps"}
    assert value(known, "reader.perhaps.text") == "two"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "lines.risin",
            "unknown exhibit 'lines.risin': no function 'risin' in exhibits/lines.py;"
            " did you mean 'lines.rising'?",
        ),
        ("lines", "unknown exhibit 'lines': no function '' in exhibits/lines.py"),
        ("lines.plt", "unknown exhibit 'lines.plt': no function 'plt' in exhibits/lines.py"),
        ("nowhere.at_all", "exhibit 'nowhere.at_all' failed: no file exhibits/nowhere.py"),
    ],
)
def test_an_unknown_exhibit_is_named(known, ask, name, message):
    with pytest.raises(results.Unavailable) as error:
        known.get(name)
    assert str(error.value).startswith(message)


def test_an_exhibit_file_that_python_cannot_read_is_named_with_the_line(known, ask, files):
    files.write({"exhibits/torn.py": "x = 1\ndef one(:\n"})
    known.invalidate()
    with pytest.raises(results.Unavailable) as error:
        known.get("torn.one")
    assert str(error.value) == "exhibit 'torn.one' failed: invalid syntax (at exhibits/torn.py:2)"
    assert known.get(STORED)


def test_a_worker_that_dies_is_told_and_replaced(known, ask, files):
    known._worker.process.kill()
    known._worker.process.wait()
    files.edit("exhibits/words.py", "seven", "nine")
    assert ask() == {"words.spoken"}

    files.edit("exhibits/words.py", "def spoken():", "def spoken():\n    import time; time.sleep(4)")
    known.invalidate()
    threading.Timer(1, known._worker.process.kill).start()
    with pytest.raises(results.Unavailable, match="the process that runs exhibits ended with exit code -9"):
        known.get("words.spoken")
    files.edit("exhibits/words.py", "time.sleep(4)", "pass")
    known.invalidate()
    assert known.get("words.spoken")["output"] == "nine < eight\n"


def test_a_library_that_is_missing_is_named(here):
    here.edit("pyproject.toml", '["torch", "numpy"]', '["numpy", "no-such-library"]')
    with pytest.raises(results.Unavailable, match="no-such-library is not installed here"):
        results.Results().get("a.b")


def test_a_worker_that_cannot_start_is_told(here, monkeypatch):
    here.write({"exhibits/a.py": "def b(): pass\n"})
    monkeypatch.setattr(process_pool.sys, "executable", str(here.root / "python"))
    with pytest.raises(
        results.Unavailable, match=r"the process that runs exhibits cannot start: .*No such file"
    ):
        results.Results().get("a.b")


def test_a_worker_that_ends_at_once_is_told(here, capfd):
    """The engine that it imports is the one in the folder of the project, if there is one."""
    here.write({"exhibits/a.py": "def b(): pass\n", "executable_prose/__init__.py": "raise SystemExit(5)\n"})
    with pytest.raises(results.Unavailable, match="the process that runs exhibits ended with exit code 5"):
        results.Results().get("a.b")


def test_what_took_longest_runs_first(here, monkeypatch):
    """So that no core waits at the end for a long one that began last; what never ran may be long."""
    here.write({"exhibits/a.py": "def b(): pass\n\n\ndef c(): pass\n\n\ndef d(): pass\n"})
    took, asked = {"a.b": 0.2, "a.c": 3.0, "a.d": 1.0}, []

    def run(self, names):
        asked.append(list(names))
        for name in names:
            modules = {"exhibits/a.py": project.digest("exhibits/a.py")}
            functions = {"exhibits/a.py": [name[2:]]}
            yield process_pool.Outcome(name, {}, "", {}, modules, functions, took[name])

    monkeypatch.setattr(results.Results, "run", run)
    known = results.Results()
    known.get("a.b")
    here.edit("exhibits/a.py", "def d", "# new\ndef e(): pass\n\n\ndef d")
    took["a.e"] = 0.1
    known.invalidate()
    known.get("a.b")
    assert asked == [["a.b", "a.c", "a.d"], ["a.e", "a.c", "a.d", "a.b"]]


def test_what_is_compiled_ahead_is_imported_as_long_as_its_source_is_the_same(here, monkeypatch):
    monkeypatch.setattr(recorder, "COMPILED", {})
    here.write({"snippets/one.py": "x = 1\n", "exhibits/torn.py": "x = (\n"})
    recorder.compile_ahead()
    file = str(here.root / "snippets" / "one.py")
    loader = recorder.SourceLoader("snippets.one", file, lambda *_: None, None, marks=True)
    assert list(recorder.COMPILED) == [(file, b"x = 1\n")]
    assert loader.get_code("snippets.one") is recorder.COMPILED[file, b"x = 1\n"]
    here.write({"snippets/one.py": "x = 2\n"})
    assert loader.get_code("snippets.one").co_consts[0] == 2


def test_diagrams_are_drawn_one_by_one_and_who_stops_waits_for_one_alone(monkeypatch):
    begun, drawn = threading.Event(), []

    def draw(source):
        begun.set()
        time.sleep(0.1)
        drawn.append(source)

    monkeypatch.setattr(results.mermaid, "draw", draw)
    with pytest.raises(KeyboardInterrupt), results._drawing(["a", "b"]):
        begun.wait()
        raise KeyboardInterrupt
    assert drawn == ["a"]
    with results._drawing(["b", "c"]) as drawings:
        assert [drawing.exception() for drawing in drawings] == [None, None]
    assert drawn == ["a", "b", "c"]
