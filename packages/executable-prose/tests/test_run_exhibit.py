"""One exhibit in its own process: what it gives, what goes wrong, and which files it used."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy
import pytest
import torch
from matplotlib.figure import Figure

from executable_prose.execution import process_pool, run_exhibit
from executable_prose.execution.exhibit_process import FORKS
from executable_prose.execution.process_pool import Outcome
from executable_prose.execution.recorder import Listener
from prose_testing.projects import PACKAGE, Project, is_running, until

EXHIBITS = {
    "snippets/__init__.py": "",
    "snippets/scale.py": "SCALE = 2\n\n\ndef fail():\n    raise ValueError('the base\\n  is odd')\n",
    "snippets/broken.py": "x = 1\ndef f(:\n",
    "snippets/late.py": "LATE = 1\n",
    "snippets/data.txt": "data\n",
    "snippets/unused.py": "",
    "exhibits/__init__.py": "",
    "exhibits/kinds.py": '''
        import sys

        import matplotlib.pyplot as plt


        def both():
            """Only a
            figure.

            Not this.
            """
            return plt.subplots()[0], {"a": 1}


        def printed():
            print("1 < 2", end="")


        def begun():
            return {"begun": "executable_prose.execution.preload" in sys.modules}
        ''',
    "exhibits/chance.py": '''
        import random
        import sys

        import matplotlib.pyplot as plt
        import numpy
        import torch


        def numbers():
            """Chance."""
            figure, axes = plt.subplots()
            axes.plot(torch.randn(5))
            print(random.random(), numpy.random.rand(), torch.rand(2), {"a", "b", "c", "d"}, hash("a"))
            return figure, {
                "threads": torch.get_num_threads(),
                "dtype": str(torch.get_default_dtype()),
                "seed": torch.initial_seed(),
                "random-hashes": sys.flags.hash_randomization,
            }


        def spoil():
            torch.set_default_dtype(torch.float64)
            random.seed = numpy.random.seed = torch.manual_seed = None
            plt.rcParams["lines.linewidth"] = 9
        ''',
    "exhibits/entropy.py": """
        import os
        import secrets
        import uuid

        import numpy


        def system():
            print(os.urandom(8), secrets.token_hex(8), uuid.uuid4(), numpy.random.default_rng().random())
            numpy.random.seed()
            print(numpy.random.rand())
        """,
    "exhibits/noise.py": """
        import ctypes
        import os
        import sys

        print("while importing")


        def everywhere():
            print("first")
            os.write(1, b"a system call\\n")
            ctypes.CDLL(None).puts(b"a C library")
            ctypes.CDLL(None).fflush(None)
            sys.stderr.write("an error\\n")
            print("last")
        """,
    "exhibits/wrong.py": '''
        import os
        import signal
        import sys

        import matplotlib.pyplot as plt

        from snippets.scale import fail


        def raising():
            number = 0
            return {"a": 1 / number}


        def raising_in_a_snippet():
            fail()


        def a_list():
            return [1, 2]


        def red():
            """Red."""
            figure, axes = plt.subplots()
            axes.plot([0, 1], color="red")
            return figure


        def leaving():
            sys.exit(3)


        def dying():
            os.kill(os.getpid(), signal.SIGKILL)


        def a_process():
            os.system("true")


        def another_process():
            import subprocess

            subprocess.run(["true"])


        def a_fork():
            os.fork()


        def a_thread():
            import threading

            threading.Thread(target=print, name="aside").start()


        def too_large():
            import torch

            torch.zeros(5 << 30, dtype=torch.int8)
        ''',
    "exhibits/unreadable.py": "from snippets import broken\n\n\ndef a():\n    pass\n",
    "exhibits/lost.py": "import os\nfrom snippets import gone\n\n\ndef a():\n    pass\n",
    "exhibits/own.py": """
        import os
        import tempfile
        from pathlib import Path


        def a():
            Path(tempfile.gettempdir(), "seven").write_text("7")
            print(os.listdir(tempfile.gettempdir()), Path(tempfile.gettempdir(), "seven").read_text())
            print(Path(tempfile.gettempdir(), "eight").exists(), Path(tempfile.gettempdir()).exists())
        """,
    "exhibits/reading.py": """
        from pathlib import Path

        from snippets import scale

        HERE = Path(__file__).parent
        SNIPPETS = HERE.parent / "snippets"


        def nothing_else():
            return {"a": scale.SCALE}


        def a_file():
            print((SNIPPETS / "data.txt").read_text())


        def a_late_import():
            from snippets import late
        """,
    "exhibits/calling.py": """
        class Thing:
            def __init__(self):
                pass

            def done(self):
                pass

            def left(self):
                pass


        def called():
            pass


        def left():
            pass


        def nested():
            def inner():
                return [n for n in range(2)]

            return inner


        def steps():
            yield 1


        def all_kinds():
            called()
            Thing().done()
            nested()()
            list(steps())
        """,
    "exhibits/compiled.py": """
        import torch


        def helped(x):
            return x + 1


        def by_dynamo():
            torch.compile(lambda x: helped(x), backend="eager")(torch.ones(2))
        """,
    "exhibits/profiled.py": """
        import sys


        def after():
            'Nothing but this.'


        def by_its_own_profiler():
            sys.setprofile(None)
            after()
        """,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("exhibits"), light=False, files=EXHIBITS)


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """A project whose worker starts soon, as it loads no torch."""
    return Project(tmp_path_factory.mktemp("light"), files={"exhibits/__init__.py": ""})


@pytest.fixture(scope="module")
def answers(project):
    """What the worker answers to all exhibits, then to some of them again; and its standard error."""
    names = [
        f"{file.removeprefix('exhibits/').removesuffix('.py')}.{line[4:].partition('(')[0]}"
        for file, text in EXHIBITS.items()
        if file.startswith("exhibits/")
        for line in map(str.strip, text.split("\n"))
        if line.startswith("def ")
    ]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(names),
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rounds = json.loads(done.stdout)
    first, second = ({name: Outcome(**each) for name, each in answers.items()} for answers in rounds)
    assert first.keys() == set(names)
    return first, second, done.stderr


# Asks the worker as results.py does, and does not close its input before all answers are there.
DRIVER = """
import json, sys
from executable_prose.execution.process_pool import Worker
names, worker = json.load(sys.stdin), Worker().process
again = ["chance.numbers", "entropy.system", "kinds.both"]
rounds = []
for names in names, again:
    print(json.dumps(names), file=worker.stdin, flush=True)
    answers = [json.loads(worker.stdout.readline()) for _ in names]
    rounds.append({answer["name"]: answer for answer in answers})
worker.stdin.close()
assert worker.wait(20) == 0
assert not worker.stdout.read()
print(json.dumps(rounds))
"""


@pytest.fixture(scope="module")
def outcome(answers):
    return answers[0].__getitem__


@pytest.fixture(scope="module")
def result(outcome):
    return lambda name: outcome(name).result


@pytest.fixture(scope="module")
def files(outcome, project):
    """The files that an exhibit used besides itself, the packages and the engine."""

    def used(name):
        always = {f"exhibits/{name.partition('.')[0]}.py", "exhibits/__init__.py", "snippets/__init__.py"}
        found = outcome(name).files | outcome(name).modules
        return {f for f in found if not f.startswith("executable_prose/") and "//" not in f} - always

    return used


def run_python(project, code):
    """Run Python in a project, as its worker would be run."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_figure_is_drawn_without_the_words_that_stand_for_it(result):
    """They are joined on the page, so that they can be edited without running anything."""
    shown = result("kinds.both")
    assert shown["figure"].startswith("<svg ")
    assert "Only a figure." not in shown["figure"]
    assert (shown["output"], shown["values"]) == ("", {"a": 1})


def test_printed_text_is_the_output(result):
    assert result("kinds.printed") == {"figure": None, "output": "1 < 2", "values": {}}


@pytest.mark.skipif(not FORKS, reason="there is no fork")
def test_an_exhibit_begins_with_all_that_is_done_ahead(result):
    """Python says nothing of a preload that cannot be imported."""
    assert result("kinds.begun")["values"] == {"begun": True}


def test_an_exhibit_gives_a_figure_and_values_in_either_order_or_nothing():
    figure, values = Figure(), {"a": 1}
    assert (
        run_exhibit._sort((figure, values)) == run_exhibit._sort((values, figure)) == (figure, values, None)
    )
    assert run_exhibit._sort(None) == (None, {}, None)


def test_values_of_classes_of_ones_own_are_plain():
    kinds = {kind: type(f"A {kind.__name__}", (kind,), {}) for kind in (int, float, str)}
    for kind, own in kinds.items():
        (value,) = run_exhibit._plain({"a": own(3)}).values()
        assert type(value) is kind and value == kind(3)


@pytest.mark.parametrize("number", [2**4096 - 1, 1 - 2**4096])
def test_the_longest_numbers_can_be_written(number):
    assert json.loads(json.dumps(run_exhibit._plain({"a": number}))) == {"a": number}
    with pytest.raises(run_exhibit.ExhibitError, match=re.escape("at most 4,096 bits, it has 4,097")):
        run_exhibit._plain({"a": 2 * number})


def test_whatever_happens_while_an_exhibit_is_run_is_its_answer(monkeypatch):
    def run(name):
        return Outcome(name, {"values": {"a": 10**5000}})

    answers = io.StringIO()
    process_pool.answer("a.b", run, answers, contextlib.nullcontext())
    (line,) = answers.getvalue().splitlines()
    assert json.loads(line)["failure"].startswith("ValueError: Exceeds the limit")


def test_the_limit_of_time_holds_while_an_answer_is_written(light):
    """It has sent the first bytes of its answer, and stops."""
    light.write(
        {
            "exhibits/stops.py": """
                import os
                import signal
                from multiprocessing.connection import Connection


                def midway():
                    def send(self, data):
                        os.write(self.fileno(), b"\\0\\0\\0\\x09{")
                        os.kill(os.getpid(), signal.SIGSTOP)

                    Connection.send_bytes = send
                """
        }
    )
    driver = "from executable_prose.execution import exhibit_process as one; one.LIMIT = one.REST = 1; "
    driver += "print(one.run_one('stops.midway').failure)"
    done = run_python(light, driver)
    assert done.stdout == "it did not end within 1 seconds (at exhibits/stops.py:6)\n", done


def test_values_are_plain_numbers_and_text():
    values = {
        "tensor": torch.tensor(0.5, dtype=torch.float64),
        "one": torch.ones(1, 1),
        "array": numpy.float32(0.25),
        "count": numpy.int64(3),
        "yes": torch.tensor(True),
        "text": "rotate-half",
        "number": 7,
    }
    plain = run_exhibit._plain(values)
    assert list(plain.values()) == [0.5, 1.0, 0.25, 3, True, "rotate-half", 7]
    assert [type(value) for value in plain.values()] == [float, float, float, int, bool, str, int]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((Figure(), Figure()), "both as a pair, or nothing; it returned Figure, Figure"),
        ((Figure(), numpy.ones(2)), "both as a pair, or nothing; it returned Figure, ndarray"),
        ({"a": 1.0, "b": float("nan")}, "value 'b' must be finite, it is nan"),
        ({"a": torch.tensor(float("inf"))}, "value 'a' must be finite, it is inf"),
        ({"a": torch.ones(2, 3)}, "value 'a' must be one number, it has the shape (2, 3)"),
        ({"a": 1j}, "value 'a' must be a number or text, it is a complex"),
        ({"a b": 1}, "the name of a value must be a word, it is 'a b'"),
        ({1: 1}, "the name of a value must be a word, it is 1"),
    ],
)
def test_what_cannot_be_shown_is_refused(returned, message):
    with pytest.raises(run_exhibit.ExhibitError, match=re.escape(message)):
        run_exhibit._plain(run_exhibit._sort(returned)[1])


def test_the_same_exhibit_gives_the_same_again(answers):
    first, second, _ = answers
    assert {"chance.numbers", "entropy.system", "kinds.both"} <= second.keys()
    for name, answer in second.items():
        assert replace(answer, seconds=0) == replace(first[name], seconds=0)
    assert "tensor" in first["chance.numbers"].result["output"]


def test_each_exhibit_starts_afresh(answers):
    """chance.spoil changes what chance.numbers relies on, before the second round."""
    first, second, _ = answers
    assert not first["chance.spoil"].failure
    assert second["chance.numbers"].result["values"] == {
        "threads": 1,
        "dtype": "torch.float32",
        "seed": 0,
        "random-hashes": 0,
    }
    assert first["chance.numbers"].result == second["chance.numbers"].result


def test_only_what_python_prints_in_the_exhibit_is_its_output(answers, result):
    assert result("noise.everywhere")["output"] == "first\nlast\n"
    for noise in ("while importing", "a system call", "a C library", "an error"):
        assert noise in answers[2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raising", "ZeroDivisionError: division by zero (at exhibits/wrong.py:12)"),
        ("raising_in_a_snippet", "ValueError: the base is odd (at snippets/scale.py:5)"),
        (
            "a_list",
            "expected a figure, a dictionary, both as a pair, or nothing; it returned list"
            " (at exhibits/wrong.py:19)",
        ),
        (
            "red",
            "the figure uses the colour #ff0000, which has no place in both themes; expected black, white,"
            " gray, C0 to C5, or the colour maps 'amount' and 'signed' (at exhibits/wrong.py:23)",
        ),
        ("a_process", "expected work in one process, got os.system (at exhibits/wrong.py:39)"),
        ("another_process", "expected work in one process, got subprocess.Popen (at exhibits/wrong.py:45)"),
        ("a_fork", "expected work in one process, got os.fork (at exhibits/wrong.py:49)"),
        ("a_thread", "expected work in one thread, got aside (at exhibits/wrong.py:55)"),
        ("leaving", "expected it to return, got SystemExit: 3 (at exhibits/wrong.py:31)"),
        (
            "dying",
            "its process died with exit code -9: was it killed because there was too little memory?"
            " (at exhibits/wrong.py:34)",
        ),
    ],
)
def test_what_went_wrong_is_one_line_that_names_a_file_and_a_line(outcome, name, message):
    assert outcome(f"wrong.{name}").failure == message
    assert outcome(f"wrong.{name}").result is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process holds")
def test_memory_that_torch_takes_in_c_is_counted_too(outcome):
    message = r"expected at most 4 GiB of memory, got RuntimeError: .*\(at exhibits/wrong.py:61\)"
    assert re.fullmatch(message, outcome("wrong.too_large").failure)


def test_its_own_folder_decides_nothing(outcome):
    assert "7" in outcome("own.a").result["output"]
    assert not [name for name in outcome("own.a").files if "exhibit-" in name]


def test_an_import_that_fails_names_where(outcome):
    assert outcome("unreadable.a").failure == (
        "SyntaxError: invalid syntax (broken.py, line 2) (at snippets/broken.py:2)"
    )
    assert "cannot import name 'gone'" in outcome("lost.a").failure
    assert outcome("lost.a").failure.endswith("(at exhibits/lost.py:2)")


def test_the_files_imported_are_recorded_and_no_others(outcome, files):
    assert files("reading.nothing_else") == {"snippets/scale.py"}
    imported = {"exhibits/reading.py", "exhibits/__init__.py", "snippets/__init__.py", "snippets/scale.py"}
    assert set(outcome("reading.nothing_else").modules) == imported


def test_what_makes_figures_is_recorded_and_what_makes_pages_is_not(outcome):
    used = {name for name in outcome("reading.nothing_else").files if name.startswith("executable_prose/")}
    assert {"executable_prose/execution/run_exhibit.py", "executable_prose/figures/svg.py"} <= used
    assert (
        not {"executable_prose/rendering/extension.py", "executable_prose/rendering/directives/code.py"}
        & used
    )


def test_the_functions_that_ran_are_recorded_and_no_others(outcome):
    ran = {"called", "Thing.__init__", "Thing.done", "nested", "steps", "all_kinds"}
    assert set(outcome("calling.all_kinds").functions["exhibits/calling.py"]) == ran


def test_functions_are_recorded_while_a_profiler_runs(outcome):
    ran = outcome("profiled.by_its_own_profiler").functions["exhibits/profiled.py"]
    assert set(ran) == {"by_its_own_profiler", "after"}


def test_code_that_is_read_and_not_run_counts_whole(outcome):
    assert outcome("compiled.by_dynamo").functions is None


@pytest.mark.parametrize(
    ("name", "used"), [("a_file", {"snippets/data.txt"}), ("a_late_import", {"snippets/late.py"})]
)
def test_files_opened_and_imported_late_are_recorded_with_their_digests(files, outcome, project, name, used):
    assert files(f"reading.{name}") == {"snippets/scale.py"} | used
    recorded = outcome(f"reading.{name}").files | outcome(f"reading.{name}").modules
    for file, found in recorded.items():
        assert "//" in file or found == sha256((project.root / file).read_bytes()).hexdigest()


DATA = {"snippets/data.txt": sha256(b"data").hexdigest()}
LISTED = {"snippets//": sha256(b"data.txt").hexdigest()}
SEEN = {"snippets//?": "folder"}
DEEP = {
    "data//": sha256(b"deep/").hexdigest(),
    "data/deep//": sha256(b"a.txt").hexdigest(),
    "data//?": "folder",
}


def _lazy_call(read):
    """Ours, as torch calls what keeps the lines that set a seed."""
    return read()


@pytest.mark.parametrize(
    ("use", "noted"),
    [
        ("Path('snippets/data.txt').read_text()", DATA),
        ("open(b'snippets/data.txt', 'rb').close()", DATA),
        ("open('snippets/missing.txt').close()", {"snippets/missing.txt": None}),
        ("list(Path('snippets').glob('*.txt'))", LISTED | SEEN),
        ("os.path.lexists('snippets/missing.txt')", {"snippets/missing.txt//?": "nothing"}),
        ("os.listdir('snippets')", LISTED),
        ("list(Path('data').rglob('*'))", DEEP),
        ("Path('written.txt').write_text('x')", {}),
        ("Path(os.__file__).read_text()", {}),
        ("exec(compile('torch.manual_seed(0)', 'snippets/data.txt', 'exec'))", {}),
        (
            "exec(compile('traceback.format_stack()', './snippets/data.txt', 'exec'))",
            DATA | {"snippets/data.txt//?": "file"},
        ),
        ("_lazy_call(lambda: Path('snippets/data.txt').read_text())", DATA),
        ("list(Path(os.__file__).parent.glob('os*'))", {}),
    ],
)
def test_files_read_and_folders_listed_are_noted(here, monkeypatch, use, noted):
    here.write({"snippets/data.txt": "data", "data/deep/a.txt": ""})
    monkeypatch.chdir(here.root)
    with Listener().listening() as files, contextlib.suppress(FileNotFoundError):
        eval(use, {"os": os, "Path": Path, "torch": torch, "traceback": traceback, "_lazy_call": _lazy_call})
    assert {name: found for name, found in files.items() if not name.startswith(str(PACKAGE))} == noted


def test_no_bytecode_is_read_or_written_for_the_projects_code(project, answers):
    assert not list((project.root / "exhibits").rglob("*.pyc"))
    assert not list((project.root / "snippets").rglob("*.pyc"))


def test_an_exhibit_whose_process_does_not_end_is_ended_and_told(light):
    light.write(
        {
            "exhibits/thread.py": """
                import time
                from multiprocessing.util import Finalize


                def left():
                    Finalize(None, time.sleep, args=(300,), exitpriority=1)
                """
        }
    )
    driver = "from executable_prose.execution import exhibit_process as one; one.REST = 1; "
    driver += "print(one.run_one('thread.left').failure)"
    done = run_python(light, driver)
    why = "its process still ran 1 seconds after its answer: does it leave a thread?"
    assert done.stdout == f"{why} (at exhibits/thread.py:5)\n", done


def test_what_an_exhibit_gives_crosses_as_data_and_runs_nothing(light):
    light.write(
        {
            "exhibits/pickled.py": """
                import os

                OUTSIDE = os.path.abspath("ran")


                class Text(str):
                    def __reduce__(self):
                        return open, (OUTSIDE, "w")


                def text():
                    return {"a": Text("b")}
                """
        }
    )
    driver = "from executable_prose.execution.exhibit_process import run_one; "
    driver += "print(run_one('pickled.text').result['values'])"
    done = run_python(light, driver)
    assert done.stdout == "{'a': 'b'}\n", done
    assert not (light.root / "ran").exists()


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
@pytest.mark.parametrize("names", [["endless.a"], ["endless.a", "endless.short"]], ids=["alone", "of two"])
def test_the_worker_ends_with_its_input_and_takes_its_exhibits_along(light, names):
    """Also the reason why an interrupted build leaves no process behind."""
    light.write(
        {
            "exhibits/endless.py": """
                import os
                import tempfile
                import time
                from pathlib import Path


                def a():
                    Path(tempfile.gettempdir(), "pid").write_text(str(os.getpid()))
                    time.sleep(300)


                def short():
                    pass
                """
        }
    )
    driver = (
        "import sys; from executable_prose.execution.process_pool import Worker; worker = Worker().process;"
    )
    driver += (
        f"print({json.dumps(names)!r}, file=worker.stdin, flush=True); print(worker.pid, flush=True); input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", driver],
        cwd=light.root,
        env=light.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    worker = int(parent.stdout.readline())
    exhibit = int(until(lambda: light.left_by_an_exhibit("pid")))
    assert is_running(worker)
    assert is_running(exhibit)
    parent.kill()
    until(lambda: not is_running(exhibit) and not is_running(worker), 20)
