"""Nothing goes stale in silence: a site that is built again is the site that is built from nothing.

A case is what an exhibit or a page says, and an edit. All edits are made at once; then what is stored has to
be what a cold run gives, and to differ from what it was: an edit without a consequence would test nothing.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from executable_prose.execution import results, store
from prose_testing.fixtures import move
from prose_testing.projects import FILES, SETTINGS, Project, until

SCALE = '''
"""Scaling."""
SCALE = 2.0
MADE = []


def scaled(x):
    """x, scaled."""
    return SCALE * x


class Scale:
    def by(self, x):
        return x


def warn():
    import warnings

    warnings.warn("careful")


DATA = __file__.replace(".py", ".txt")
'''
MORE = SCALE.replace("class", "def more():\n    pass\n\n\nclass")
DEFAULT = SCALE.replace("scaled(x)", "scaled(x, y=1)")
WORDS = SCALE.replace("x, scaled.", "Other words.")
LINES = SCALE.replace("SCALE = 2.0", "# A comment.\nSCALE = 2.0")


def grown(root, name):
    root.joinpath(f"snippets/{name}.txt").write_text("longer")


def gone(root, name):
    root.joinpath(f"snippets/{name}.txt").unlink()


def turned_into_a_link(root, name):
    path = root / f"snippets/{name}.txt"
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def older(root, name):
    os.utime(root / f"snippets/{name}.txt", (1e9, 1e9))


def unreadable(root, name):
    root.joinpath(f"snippets/{name}.txt").chmod(0o700)


def another_file(root, name):
    root.joinpath(f"snippets/{name}_more.py").write_text("")


def another_folder(root, name):
    root.joinpath(f"snippets/{name}_more").mkdir()
    root.joinpath(f"snippets/{name}_more/__init__.py").write_text("")


def hidden_file(root, name):
    root.joinpath(f"snippets/{name}").mkdir(exist_ok=True)
    root.joinpath(f"snippets/{name}/.more").write_text("")


def beside(root, name):
    root.parent.joinpath(f"lib/lib_{name}.py").write_text("WORD = 'two'")


def package_beside(root, name):
    root.joinpath(f"snippets/{name}").mkdir()
    root.joinpath(f"snippets/{name}/__init__.py").write_text(SCALE)


def folder_in_place(root, name):
    path = root / f"snippets/{name}/a"
    path.unlink()
    path.mkdir()


def another_row(root, name):
    database(root, name, 2)


def database(root, name, number):
    with sqlite3.connect(root / f"snippets/{name}.db") as connection:
        connection.execute("create table if not exists t (x)")
        connection.execute(f"insert into t values ({number})")
    connection.close()


# What an exhibit prints of a snippet `m` and of the file m.DATA, and the edit, often a text of the snippet.
EXHIBITS = {
    "the size of a file": ("os.stat(m.DATA).st_size", grown),
    "its size by another name": ("os.path.getsize(m.DATA)", grown),
    "its size by pathlib": ("Path(m.DATA).stat().st_size", grown),
    "its size in a listing": (
        "[e.stat().st_size for e in os.scandir('snippets') if e.path in m.DATA]",
        grown,
    ),
    "its size by a number": ("os.fstat(os.open(m.DATA, os.O_RDONLY)).st_size", grown),
    "its size from a folder": (
        "os.stat(os.path.basename(m.DATA), dir_fd=os.open('snippets', os.O_RDONLY)).st_size",
        grown,
    ),
    "its size by the system's module": ("__import__('posix').stat(m.DATA).st_size", grown),
    "its time": ("os.path.getmtime(m.DATA)", older),
    "its rights": ("os.access(m.DATA, os.X_OK), oct(os.lstat(m.DATA).st_mode)", unreadable),
    "whether it can be read": ("os.access(m.DATA, os.R_OK)", gone),
    "whether a path leads to it": ("os.path.lexists(m.DATA)", gone),
    "whether it is a link": ("os.path.islink(m.DATA)", turned_into_a_link),
    "where it leads": ("os.path.realpath(m.DATA)[-6:]", turned_into_a_link),
    "a pattern without a wildcard": ("len(glob.glob(m.DATA))", gone),
    "hidden names": ("os.path.isdir(d := m.DATA[:-4]) and len(os.listdir(d))", hidden_file),
    "a database": (
        "sqlite3.connect(m.DATA[:-3] + 'db').execute('select sum(x) from t').fetchall()",
        another_row,
    ),
    "a signature": ("inspect.signature(m.scaled)", DEFAULT),
    "a signature by an alias": ("signature(scaled)", DEFAULT),
    "a signature in a text": ("eval('inspect.signature(m.sca' + 'led)')", DEFAULT),
    "defaults": ("m.scaled.__defaults__", DEFAULT),
    "the count of arguments": ("m.scaled.__code__.co_argcount", DEFAULT),
    "annotations": (
        "typing.get_type_hints(m.scaled)",
        SCALE.replace("scaled(x)", "scaled(x: int)"),
    ),
    "names of a module": ("len(vars(m))", MORE),
    "names of a module by dir": ("len(dir(m))", MORE),
    "names of a module by its dictionary": ("len(m.__dict__)", MORE),
    "names of a module by its entry": ("len(sys.modules[m.__name__].__dict__)", MORE),
    "functions of a module": ("len(inspect.getmembers(m, inspect.isfunction))", MORE),
    "whether a name is there": ("hasattr(m, 'more')", MORE),
    "a name that may be there": ("getattr(m, 'more', None) is None", MORE),
    "a name asked for by an operator": ("operator.attrgetter('scaled.__defaults__')(m)", DEFAULT),
    "a method of a class": (
        "hasattr(m.Scale, 'more')",
        SCALE.replace("def by", "def more(self): pass\n\n    def by"),
    ),
    "a name that an import may lack": ("lacking()", MORE),
    "a name whose lack is caught": ("absent()", MORE),
    "the order of names": (
        "[n for n in vars(m) if n in ('scaled', 'last')]",
        SCALE.replace("def scaled", "def last():\n    pass\n\n\ndef scaled").replace(
            "\n\n\ndef last():\n    pass\n\n\nclass", "\n\n\nclass"
        ),
    ),
    "a module by its location": (
        "located(m.DATA[:-3] + 'py').scaled(1)",
        SCALE.replace("SCALE * x", "7 * x"),
    ),
    "a module from elsewhere on the path": ("elsewhere(m.__name__[9:])", beside),
    "a package that hides a module": ("m.__file__[-11:]", package_beside),
    "a database by its address": (
        "sqlite3.connect(f'file:{m.DATA[:-3]}db?mode=ro', uri=True).execute('select * from t').fetchall()",
        another_row,
    ),
    "a file from an open folder": (
        "os.read(os.open(os.path.basename(m.DATA), os.O_RDONLY, dir_fd=os.open('snippets', os.O_RDONLY)), 9)",
        grown,
    ),
    "names in an open folder": (
        "sum(n[:-8] in m.DATA for n in os.listdir(os.open('snippets', os.O_RDONLY)) if '_more' in n)",
        another_file,
    ),
    "a file that becomes a folder": ("sum(len(d) for _, d, _ in os.walk(m.DATA[:-4]))", folder_in_place),
    "the line of a warning": ("warned(m)", LINES),
    "a docstring": ("m.scaled.__doc__", WORDS),
    "a docstring as help": ("pydoc.render_doc(m.scaled)", WORDS),
    "a docstring by inspect": ("inspect.getdoc(m.scaled)", WORDS),
    "bytecode": ("len(list(dis.get_instructions(m.scaled)))", SCALE.replace("SCALE * x", "x + SCALE * x")),
    "constants in bytecode": ("m.scaled.__code__.co_consts", SCALE.replace("SCALE * x", "7 * x")),
    "the line of a function": ("m.scaled.__code__.co_firstlineno", LINES),
    "source": ("inspect.getsource(m.scaled)", WORDS),
    "examples that are tested": (
        "doctest.testmod(m).attempted",
        SCALE.replace("x, scaled.", "x, scaled.\n\n    >>> scaled(1)\n    2.0\n    "),
    ),
    "the text of a module": ("pkgutil.get_data('snippets', m.__name__[9:] + '.py')", LINES),
    "the text of a module by its loader": ("m.__loader__.get_source(m.__name__)", LINES),
    "a module that may be there": ("importlib.util.find_spec(m.__name__ + '_more') is None", another_file),
    "a package that may be there": ("importlib.util.find_spec(m.__name__ + '_more') is None", another_folder),
    "an import that may fail": ("imported(m.__name__ + '_more')", another_file),
    "modules in a package": (
        "sum(each.name in m.__name__ + '_more' for each in pkgutil.iter_modules(['snippets']))",
        another_file,
    ),
    "what formats a figure": (
        "FIGURE",
        SCALE.replace("SCALE * x", "x + 1"),
    ),
    "a call in a head": ("m.MADE", SCALE.replace("scaled(x)", "scaled(x, y=MADE.append(1))")),
}
HEAD = """{imports}

import snippets.{name} as m
from snippets.{name} import scaled


def imported(name):
    try:
        return bool(importlib.import_module(name))
    except ImportError:
        return False


def lacking():
    try:
        from snippets.{name} import more
    except ImportError:
        return "none"
    return "some"


def absent():
    try:
        m.more
    except AttributeError:
        return "none"
    return "some"


def located(path):
    spec = importlib.util.spec_from_file_location("located", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elsewhere(name):
    import sys

    sys.path.insert(0, "../lib")
    return importlib.import_module("lib_" + name).WORD


def warned(module):
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.warn()
    return caught[0].lineno


def one():
    print({body})
"""
LIBRARY = (
    *("dis", "doctest", "glob", "importlib", "inspect", "operator", "os", "pkgutil", "pydoc"),
    *("sqlite3", "sys", "typing"),
)


FIGURE = """
import matplotlib.pyplot as plt

from snippets.{name} import scaled


def one():
    'A line.'
    figure, axes = plt.subplots()
    axes.plot([0, 1])
    axes.xaxis.set_major_formatter(lambda x, place: f"{scaled(x)}")
    return figure
"""


def exhibit(name, body):
    """Its file, which imports what it uses."""
    if body == "FIGURE":
        return FIGURE.replace("{name}", name)
    used = [f"import {each}" for each in LIBRARY if re.search(rf"\b{each}\b", body + "importlib")]
    used += ["from inspect import signature"] * body.startswith("signature")
    used += ["from pathlib import Path"] * ("Path" in body)
    return HEAD.format(imports="\n".join(used), name=name, body=body)


def place(number):
    return f"case{number}"


def exhibits_of(cases):
    files = {}
    for number, (body, _) in enumerate(cases.values()):
        name = place(number)
        files[f"exhibits/{name}.py"] = exhibit(name, body)
        files[f"snippets/{name}.py"] = SCALE
        files[f"snippets/{name}.txt"] = "text"
        files[f"../lib/lib_{name}.py"] = "WORD = 'one'"
        if body.startswith("sum(len(d)"):
            files[f"snippets/{name}/a"] = ""
    return files


def edit(root, number, change):
    name = place(number)
    if callable(change):
        change(root, name)
    else:
        (root / "snippets" / f"{name}.py").write_text(change)


BY_DAY = (
    "the size of a file",
    "whether a path leads to it",
    "defaults",
    "whether a name is there",
    "a docstring by inspect",
    "the text of a module",
    "an import that may fail",
    "what formats a figure",
)


def cases():
    return [pytest.param(case, marks=[] if case in BY_DAY else pytest.mark.slow) for case in EXHIBITS]


@pytest.fixture(scope="module")
def drift(tmp_path_factory, request):
    """What each exhibit gave before the edits, what is stored after them, and what a cold run gives."""
    wanted = {item.callspec.params["case"] for item in request.session.items if "drift" in item.fixturenames}
    project = Project(tmp_path_factory.mktemp("drift").resolve() / "in", files=FILES | exhibits_of(EXHIBITS))
    for case in ("a database", "a database by its address"):
        database(project.root, place([*EXHIBITS].index(case)), 1)
    numbers = {number: case for number, case in enumerate(EXHIBITS) if case in wanted}
    with pytest.MonkeyPatch.context() as patch:
        move(patch, project.root)
        patch.setenv("TMPDIR", str(project.temporary))
        known = results.Results(lazy=True)

        def stored():
            known.invalidate()
            return {case: shown(known.get(f"{place(number)}.one")) for number, case in numbers.items()}

        before = stored()
        for number, case in numbers.items():
            edit(project.root, number, EXHIBITS[case][1])
        after = stored()
        ran = {outcome.name: outcome.result for outcome in known.run([f"{place(n)}.one" for n in numbers])}
        cold = {case: shown(ran[f"{place(number)}.one"]) for number, case in numbers.items()}
        yield before, after, cold
        known.close()


def shown(result):
    return result["output"], result["figure"]


@pytest.mark.parametrize("case", cases())
def test_what_an_exhibit_learns_of_code_and_files_decides_its_result(drift, case):
    before, after, cold = (given[case] for given in drift)
    assert after == cold
    assert before != cold, "the edit changes nothing"


CLOCK = """
    import time


    def one():
        print(time.time())
    """
READS = """
    def test_one(gives):
        assert gives("clock.one")
    """


@pytest.mark.slow
def test_a_cold_run_names_each_stored_result_that_differs(tmp_path_factory):
    """The clock stands for whatever nobody records."""
    files = FILES | {"exhibits/clock.py": CLOCK, "tests/test_clock.py": READS}
    project = Project(tmp_path_factory.mktemp("clock").resolve(), files=files)
    tests = ("tests/test_clock.py", "-q")
    first = project.run("pytest", *tests)
    assert first.code == 0, first.output
    assert project.run("pytest", *tests).code == 0
    done = project.run("pytest", *tests, "--cold")
    assert done.code == 1
    assert "the result of clock.one in the store differs from this cold run" in done.output


SURROUNDINGS = """
    import locale
    import os
    import shutil
    import sys
    import time
    import warnings


    def one():
        print(time.localtime(0).tm_hour, __debug__, locale.getpreferredencoding(), sys.flags)
        print(len(warnings.filters), shutil.get_terminal_size(), sorted(os.environ))


    def drawn():
        'Days.'
        import datetime
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        axes.plot([datetime.datetime.fromtimestamp(hour * 3600, datetime.UTC) for hour in range(9)], range(9))
        return figure
    """
OTHERS = {
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C",
    "LANG": "de_DE.UTF-8",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONOPTIMIZE": "1",
    "PYTHONDEVMODE": "1",
    "PYTHONWARNINGS": "error::UserWarning",
    "PYTHONHASHSEED": "7",
    "COLUMNS": "40",
    "NEWS": "none",
    "OMP_NUM_THREADS": "2",
}
FONTS = "timezone: Asia/Tokyo\ndate.epoch: 2000-01-01T00:00:00\nlines.linewidth: 9\n"


def test_the_environment_of_whoever_builds_decides_nothing(tmp_path_factory, monkeypatch):
    files = FILES | {"exhibits/around.py": SURROUNDINGS}
    project = Project(tmp_path_factory.mktemp("around").resolve(), files=files)
    move(monkeypatch, project.root)

    def given():
        known = results.Results()
        outcomes = {outcome.name: outcome for outcome in known.run(["around.one", "around.drawn"])}
        known.close()
        assert not any(outcome.failure for outcome in outcomes.values()), outcomes
        return {name: shown(outcome.result) for name, outcome in outcomes.items()}

    before = given()
    project.write({"matplotlibrc": FONTS, "elsewhere/matplotlibrc": FONTS})
    for name, value in (OTHERS | {"MATPLOTLIBRC": str(project.root / "elsewhere")}).items():
        monkeypatch.setenv(name, value)
    assert given() == before


def test_a_result_belongs_to_the_kernels_that_somebody_has_chosen(monkeypatch):
    plain = store.environment()
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "other")
    assert store.environment() == plain | {"ATEN_CPU_CAPABILITY": "other"}


OWN = """
    import functools
    import os
    import pkgutil
    import subprocess
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from elsewhere.words import WORDS
    from executable_prose.registry import directive

    ROOT = Path(__file__).parent
    AT_IMPORT = (ROOT / "data/at_import.txt").read_text()
    VARIABLE_AT_IMPORT = os.environ.get("AT_IMPORT", "none")
    EXISTS_AT_IMPORT = str((ROOT / "data/maybe.txt").exists())
    HOME_AT_IMPORT = os.path.expandvars("$NEWS")
    read = functools.cache(Path.read_text)
    known = {}


    def by_hand():
        if "text" not in known:
            known["text"] = (ROOT / "data/by_hand.txt").read_text()
        return known["text"]


    def in_a_thread():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit((ROOT / "data/thread.txt").read_text).result()


    @functools.cache
    def kept():
        return (ROOT / "data/kept.txt").read_text()


    SAY = {
        "module": lambda: WORDS,
        "outside": lambda: (ROOT.parent / "outside.txt").read_text(),
        "hidden": lambda: (ROOT / ".ci/hidden.txt").read_text(),
        "variable": lambda: os.environ.get("NEWS", "none"),
        "variable at import": lambda: VARIABLE_AT_IMPORT,
        "file at import": lambda: AT_IMPORT,
        "kept": kept,
        "kept again": kept,
        "size": lambda: str((ROOT / "data/size.txt").stat().st_size),
        "existence": lambda: str((ROOT / "data/maybe.txt").exists()),
        "names": lambda: str(len(list((ROOT / "data").iterdir()))),
        "program": lambda: subprocess.check_output(["cat", ROOT / "data/program.txt"], text=True),
        "bytecode": lambda: "one",
        "existence at import": lambda: EXISTS_AT_IMPORT,
        "library at import": lambda: HOME_AT_IMPORT,
        "wrapped": lambda: read(ROOT / "data/wrapped.txt"),
        "wrapped again": lambda: read(ROOT / "data/wrapped.txt"),
        "by hand": by_hand,
        "by hand again": by_hand,
        "thread": in_a_thread,
        "bytes": lambda: os.environb.get(b"NEWS", b"none").decode(),
        "package data": lambda: pkgutil.get_data("elsewhere", "words.txt").decode(),
    }


    @directive("said")
    def said(page, argument, body):
        return [f"<p>{SAY[argument]()}</p>"]
    """
SAID = (
    *(
        "module",
        "outside",
        "hidden",
        "variable",
        "variable at import",
        "file at import",
        "kept",
        "kept again",
    ),
    *("size", "existence", "names", "program", "bytecode", "existence at import", "library at import"),
    *("wrapped", "wrapped again", "by hand", "by hand again", "thread", "bytes", "package data"),
)
DATA = (
    *("data/at_import.txt", "data/kept.txt", "data/size.txt", "data/program.txt", ".ci/hidden.txt"),
    *("data/wrapped.txt", "data/by_hand.txt", "data/thread.txt", "elsewhere/words.txt"),
)


OTHER_PAGES = ("extension", "hook", "handed-on")
HOOK = """
    from pathlib import Path

    read = {}


    def on_pre_build(**_):
        read["text"] = Path("data/hook.txt").read_text()


    def on_page_markdown(markdown, page, **_):
        return markdown + (read["text"] if page.file.name == "handed-on" else "first")
    """


def test_what_makes_a_page_decides_it(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("own").resolve() / "project", files=FILES)
    pages = {f"docs/{each.replace(' ', '-')}.md": f"# Said\n\n```said {each}\n```\n" for each in SAID}
    project.write(
        pages
        | {
            "pyproject.toml": SETTINGS.format(additions="own"),
            "own.py": OWN,
            "elsewhere/words.py": "WORDS = 'one'\n",
        }
        | {"hook.py": HOOK, "data/hook.txt": "one"}
        | {"docs/extension.md": "# Said\n\nTerm\n:   Meaning.\n", "docs/hook.md": "# Said\n"}
        | {"docs/handed-on.md": "# Said\n", "elsewhere/__init__.py": ""}
        | dict.fromkeys((*DATA, "../outside.txt"), "one")
    )
    project.edit("mkdocs.yml", "  - def_list\n", "  - !ENV [EXTENSION, abbr]\n")
    project.edit("mkdocs.yml", "plugins: []", "plugins: []\nhooks: [hook.py]")

    def built():
        done = project.build()
        assert done.code == 0, done.output
        return {page: project.page(f"{Path(page).stem}/index.html") for page in (*pages, *OTHER_PAGES)}

    before = built()
    project.environment |= {"NEWS": "two", "AT_IMPORT": "two", "EXTENSION": "def_list"}
    project.write(dict.fromkeys((*DATA, "../outside.txt", "data/maybe.txt", "data/hook.txt"), "another"))
    project.write({"elsewhere/words.py": "WORDS = 'two'\n"})
    for file, old, new in (("own.py", '"one"', '"two"'), ("hook.py", "first", "other")):
        with same_time(project.root / file):
            project.edit(file, old, new)
    after = built()
    shutil.rmtree(project.root / ".cache")
    assert after == built()
    assert [page for page in before if before[page] == after[page]] == []


WARNS = """
    import logging

    from executable_prose.registry import directive


    @directive("warn")
    def warn(page, argument, body):
        logging.getLogger("mkdocs.plugins.own").warning("careful")
        return []
    """


@pytest.mark.slow
def test_a_page_that_stops_a_build_stops_the_next_one(tmp_path_factory):
    files = FILES | {"own.py": WARNS, "docs/warns.md": "# Warns\n\n```warn\n```\n"}
    project = Project(tmp_path_factory.mktemp("warns").resolve(), files=files)
    project.write({"pyproject.toml": SETTINGS.format(additions="own")})
    assert [project.build().code for _ in range(2)] == [1, 1]


@pytest.mark.slow
def test_two_pages_whose_names_are_alike_are_two(tmp_path_factory):
    text = "# Alike\n\n[Home](%sindex.md)\n"
    files = FILES | {"docs/a/b.md": text % "../", "docs/a.b.md": text % ""}
    project = Project(tmp_path_factory.mktemp("alike").resolve(), files=files)
    for _ in range(2):
        assert project.build().code == 0
        assert 'href="../../"' in project.page("a/b/index.html") and 'href="../"' in project.page(
            "a.b/index.html"
        )


@contextlib.contextmanager
def same_time(path):
    """An edit of the same length that leaves the time of the file as it was, as a backup restored does."""
    state = path.stat()
    yield
    assert path.stat().st_size == state.st_size
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


SLOW = """
    import tempfile
    import time
    from pathlib import Path

    from snippets.scale import scaled


    def one():
        value = scaled(1.0)
        (Path(tempfile.gettempdir()) / "ran").write_text("ran")
        time.sleep(2)
        return {"value": value}
    """
PAUSE = """
    import time
    from pathlib import Path
    from executable_prose import project
    from executable_prose.registry import built, directive


    @directive("pause")
    def pause(page, argument, body):
        (project.ROOT / ".paused").touch()
        time.sleep(2)
        return []


    @built
    def write(site):
        (site / "extra").mkdir()
        assert not [*(site / "extra").iterdir()]
        (site / "extra" / "a.txt").touch()  # a change in the folder that is being made, which is no input
        if (project.DOCS / "written.md").exists():
            (project.DOCS / "written.md").write_text(f"# {time.time()}")
    """
BOTH = '# Both\n\n`#!val slow.one.value .2f`\n\n--8<-- "snippets/scale.py@SCALE"\n'


@pytest.fixture
def slow(tmp_path_factory):
    files = FILES | {"exhibits/slow.py": SLOW, "docs/both.md": BOTH, "own.py": PAUSE}
    project = Project(tmp_path_factory.mktemp("slow").resolve(), files=files)
    project.write({"pyproject.toml": SETTINGS.format(additions="own")})
    return project


def built_while(project, began, edit):
    """Build, and edit once something has begun; the exit code and what was said."""
    process = project.start("executable_prose", "build")
    until(began)
    edit()
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


def shows_three(page):
    return ">3.00<" in page and ">3.0<" in page


def test_a_snippet_edited_while_its_exhibit_runs_is_new_everywhere(slow):
    code, said = built_while(
        slow,
        lambda: slow.left_by_an_exhibit("ran"),
        lambda: slow.edit("snippets/scale.py", "SCALE = 2.0", "SCALE = 3.0"),
    )
    assert code == 0, said
    assert "snippets/scale.py changed during the build; building again" in said
    assert shows_three(slow.page("both/index.html"))


@pytest.mark.slow
def test_a_snippet_edited_while_pages_are_made_is_new_everywhere(slow):
    done = slow.build()
    assert done.code == 0, done.output
    slow.write({"docs/a-pause.md": "# Pause\n\n```pause\n```\n"})
    slow.edit("docs/both.md", "# Both", "# Both of them")
    code, said = built_while(
        slow,
        lambda: (slow.root / ".paused").exists(),
        lambda: slow.edit("snippets/scale.py", "SCALE = 2.0", "SCALE = 3.0"),
    )
    assert code == 0 and "snippets/scale.py changed during the build" in said, said
    assert shows_three(slow.page("both/index.html"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edited", "words"),
    [
        ("own.py", "own.py, which the site's own code is or reads, changed during the build"),
        ("docs/written.md", "docs/written.md changed during each of 3 builds"),
    ],
)
def test_a_build_without_one_state_of_the_project_ends_red(slow, edited, words):
    slow.write({"docs/a-pause.md": "# Pause\n\n```pause\n```\n"})
    code, said = built_while(
        slow,
        lambda: (slow.root / ".paused").exists(),
        lambda: (slow.root / edited).open("a").write("\n"),
    )
    assert code == 1 and words in said, said
    assert not (slow.root / "site").exists()


@contextlib.contextmanager
def served(project):
    """Serve a project; yields a function that gets a page, or "" while there is none."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"

    def page(name):
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{address}/{name}/", timeout=60) as answer,
        ):
            return answer.read().decode()
        return ""

    with (project.root / "log").open("w") as log:
        server = project.start("executable_prose", "serve", "--dev-addr", address, output=log)
    try:
        yield page
    finally:
        os.killpg(server.pid, signal.SIGINT)
        server.wait(30)


@pytest.mark.slow
def test_a_snippet_edited_while_a_page_is_served_is_new_everywhere(slow):
    with served(slow) as page, ThreadPoolExecutor(1) as reader:
        first = reader.submit(until, lambda: page("both"))
        until(lambda: slow.left_by_an_exhibit("ran"))
        slow.edit("snippets/scale.py", "SCALE = 2.0", "SCALE = 3.0")
        first.result()
        until(lambda: shows_three(page("both")))


@pytest.mark.slow
def test_the_server_starts_again_when_the_sites_own_code_has_changed(tmp_path_factory):
    said = """
        from pathlib import Path
        from executable_prose.registry import directive

        WORDS = Path(__file__).with_name("words.txt").read_text()


        @directive("said")
        def said(page, argument, body):
            later = Path(__file__).with_name("later.txt").read_text()
            return [f"<p>one {WORDS} {later}</p>"]
        """
    files = FILES | {
        "own.py": said,
        "words.txt": "a",
        "later.txt": "x",
        "docs/said.md": "# S\n\n```said\n```\n",
    }
    project = Project(tmp_path_factory.mktemp("own").resolve(), files=files)
    project.write({"pyproject.toml": SETTINGS.format(additions="own")})
    with served(project) as page:
        until(lambda: "<p>one a x</p>" in page("said"))
        for file, old, new, words in (
            ("own.py", "<p>one", "<p>two", "two a x"),
            ("words.txt", "a", "b", "two b x"),
            ("later.txt", "x", "y", "two b y"),
        ):
            project.edit(file, old, new)
            until(lambda words=words: words in page("said"))
    assert "Traceback" not in (project.root / "log").read_text()
