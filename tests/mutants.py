"""Would a test notice? Each small change to a snippet has to make one of its tests fail.

make mutants                         every snippet
python tests/mutants.py rope alibi   some, with --jobs 1 to leave a processor to others
python tests/mutants.py --accept     what survives is known from now on

mutmut makes the mutants: for each operator, number, name, argument, assignment and condition of
a snippet one or several copies of the file in which just that is changed. (mutmut runs them
through a wrapper around every function. That would be what torch.compile, doctest and the checked
shape comments see, so here each mutant is a whole file of its own, imported as a test imports the
snippet.) It mutates no docstring and no annotation. One rule more: the wording of an error
message is no mutant; that a message has a test is.

A mutant meets the tests of its snippet and the examples in its docstrings, the quickest
first, until one fails. The process that runs them is a fork of one that has imported torch and
the peers. It fails if a mutant survives that is neither of a kind in RULES, which no test can notice,
nor in experiments/results/surviving_mutants.txt, or if less than 95 % are killed. Most lines there
name an axis from the other end of a tensor that always has so many, leave out a cast that torch makes
itself or a device that no test has, fill rows that the next line empties, or move a bound at which both
sides agree.

Outcomes are kept in .cache/mutants/ while this file, and every one of ours that the tests have imported or
opened, stays as it is. Only where there is fork: Linux, macOS.
"""

import argparse
import ast
import contextlib
import dataclasses
import gc
import hashlib
import importlib
import itertools
import json
import operator
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import libcst
from mutmut.mutation.file_mutation import create_mutations

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from executable_prose.execution.recorder import Listener  # noqa: E402
from executable_prose.project import digest, relative  # noqa: E402
from experiments.arguments import check  # noqa: E402
from guide.copies import SOURCES  # noqa: E402

CACHE = ROOT / ".cache" / "mutants"
SURVIVORS = ROOT / "experiments" / "results" / "surviving_mutants.txt"
EXAMPLES = "tests/snippets/test_every_snippet.py::test_the_examples_in_docstrings_give_what_they_show"
ENOUGH = 0.95
RULES = {  # changes that no test can notice, and why not
    r"\[False → None\]": "Who only asks whether a setting is true takes None for False.",
    r"\bzip\(.*, \[strict=False → \]\)": "zip takes False if strict is not given.",
    r"\b(dim|width) \[// → /\] 2": "What is halved is even: only a whole number becomes a float.",
    r"\b(arange|tensor)\(\[0 → 1\]\)": "Nobody uses what is made of no position: it is to refuse the rest.",
    r'"\[none → NONE\]"': "matplotlib reads such names in capitals too.",
}
SURVIVED, KILLED = 0, (1, 2)  # how pytest exits: passed; failed, or could not be imported


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str  # "rope.apply_rope"
    change: str  # "return a [+ → -] b"
    number: int  # 1, unless the same change can be made again further down the function
    source: str

    @property
    def key(self):
        return hashlib.sha256(repr((self.name, self.change, self.number)).encode()).hexdigest()[:16]

    @property
    def line(self):
        """The same, wherever the change stands in its function."""
        return f"{self.name}: {self.change}"


def difference(before, after):
    """The words that differ, in brackets within their line; comments are left out."""
    texts = (re.sub(r"  #.*", "", text) for text in (before, after))
    was, now = (re.findall(r"[\w.]+|[<>=!*/]+|\W", text) for text in texts)
    start = common_length(was, now)
    end = common_length(was[start:][::-1], now[start:][::-1])
    head, tail = "".join(was[:start]).rpartition("\n")[2], "".join(was[len(was) - end :]).partition("\n")[0]
    was, now = (" ".join("".join(words[start : len(words) - end]).split()) for words in (was, now))
    return f"{head}[{was} → {now}]{tail}".strip()


def common_length(some, others):
    """How many words are the same until one is not."""
    return sum(itertools.takewhile(bool, map(operator.eq, some, others)))


def mutants_of(stem, source):
    """Every mutant of a snippet, in the order of its lines."""
    module, mutations, _, _ = create_mutations(f"snippets/{stem}.py", source)
    wording = Wording()
    module.visit(wording)
    seen, times = {source}, Counter()
    for mutation in mutations:
        if mutation.original_node in wording.strings:
            continue
        text = module.deep_replace(mutation.original_node, mutation.mutated_node).code
        function = mutation.contained_by_top_level_function
        name = f"{stem}.{function.name.value}" if isinstance(function, libcst.FunctionDef) else stem
        if text in seen or not parses(text):
            continue
        seen.add(text)
        change = (name, difference(source, text))
        times[change] += 1
        yield Mutant(*change, times[change], text)


class Wording(libcst.CSTVisitor):
    """Collects the string literals inside raise statements."""

    def __init__(self):
        super().__init__()
        self.depth = 0
        self.strings = set()

    def visit_Raise(self, node):
        self.depth += 1

    def leave_Raise(self, original_node):
        self.depth -= 1

    def visit_SimpleString(self, node):
        if self.depth:
            self.strings.add(node)


def parses(source):
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


# --- one run of the tests of a snippet, in a fork


class TestsFail(Exception):
    """The tests of a snippet fail as it is."""


class Mutated:
    """A pytest plugin: the snippet is this source, and its tests run in this order."""

    def __init__(self, stem, source, order):
        file = f"snippets/{stem}.py"
        self.stem = stem
        self.paths = {
            ROOT / each for each in (file, SOURCES.get(file, file))
        }  # a copy, and what it is copied from
        self.source = source
        self.order = order
        self.failed = ""
        self.seconds = {}

    def pytest_sessionstart(self):
        loader = sys.modules["shape_comments"].Loader
        read = loader.get_data

        def get_data(this, path):
            return self.source.encode() if Path(path) in self.paths else read(this, path)

        loader.get_data = get_data
        from hypothesis import Phase, settings

        found_is_enough = [Phase.explicit, Phase.generate]  # no smaller example, no explanation
        settings.register_profile("mutants", settings.get_profile("guide"), phases=found_is_enough)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if snippet_of(item) in (None, self.stem)]
        items.sort(key=lambda item: self.order.get(item.nodeid, 0))

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed = self.failed or "import"

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed = self.failed or report.nodeid


def snippet_of(item):
    """Which snippet a test of a family is about; None of other tests."""
    for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
        if hasattr(value, "snippet"):
            return value.snippet
        if hasattr(value, "of"):  # a case of fitness.py
            return value.of.__module__.rpartition(".")[2]
    return None


def fork(stem, source, order, answer, limit):
    """Start the tests of a snippet with this source; the process id. What it says goes to a file."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    code = 70
    try:
        import resource

        with contextlib.suppress(OSError), Path(os.devnull).open("r+b") as nothing:
            for stream in (0, 1, 2):
                os.dup2(nothing.fileno(), stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
        signal.alarm(int(60 + 10 * limit))  # others may have the processor: time on the wall is no measure
        import pytest
        import torch

        torch.set_num_threads(1)
        plugin = Mutated(stem, source, order)
        what = [*map(str, tests_of(stem)), f"{EXAMPLES}[{stem}]"]
        options = ["-x", "-q", "--tb=no"]
        for unused in ("cacheprovider", "faulthandler", "unraisableexception", "xdist"):
            options += ["-p", f"no:{unused}"]
        with Opened().listening() as opened:
            code = pytest.main([*options, *what], plugins=[plugin])
        ours, others = loaded_modules()
        used = opened | {file: digest(file) for file in ours}
        said = {"failed": plugin.failed, "seconds": plugin.seconds, "loaded": others, "used": used}
        answer.write_text(json.dumps(said))
    finally:
        os._exit(code)


class Opened(Listener):
    """The files of ours that tests open, without the folders that pytest lists on its way to them."""

    HEARD = ("open",)


def loaded_modules():
    """What is imported: the files of ours, and the names of all other modules."""
    modules = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    ours = {file for path in modules.values() if path and (file := relative(path))}
    return ours, [name for name, path in modules.items() if path and relative(path) is None]


def baseline(stem, source, folder):
    """The tests with the snippet as it is: the seconds each one takes, the files used. They have to pass."""
    answer = folder / f"{stem}.json"
    _, status = os.waitpid(fork(stem, source, {}, answer, 600), 0)
    said = json.loads(answer.read_text()) if answer.exists() else {"failed": f"status {status}"}
    if status != 0:
        raise TestsFail(f"{stem}: its tests have to pass before mutants can fail: {said['failed']}")
    for name in said["loaded"]:  # what the forks would import again and again
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.freeze()  # nor need they look at all that for garbage
    return said["seconds"], said["used"]


def find_killers(stem, mutants, seconds, earlier, folder, jobs, tell):
    """For each mutant what killed it: a test, "import", "time", a signal, or "" if it lives."""
    limit = 30 + 5 * sum(seconds.values())
    running, outcomes, waiting = {}, {}, list(reversed(mutants))
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            order = dict(seconds)
            order[earlier.get(mutant.key, "")] = -1  # what killed it before kills it again, mostly
            child = fork(stem, mutant.source, order, folder / mutant.key, limit)
            running[child] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        if os.WIFSIGNALED(status):
            by = os.WTERMSIG(status)
            late = by in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
            outcomes[mutant.key] = "time" if late else signal.Signals(by).name
        elif (code := os.WEXITSTATUS(status)) in (SURVIVED, *KILLED):
            failed = json.loads((folder / mutant.key).read_text())["failed"]
            outcomes[mutant.key] = failed if code != SURVIVED else ""
        else:
            raise SystemExit(f"pytest exits with {code} for {mutant.line}")
        tell(outcomes)
    return outcomes


# --- what is known already


def imported(file):
    """The snippets that a file imports."""
    return set(re.findall(r"(?<![.\w])snippets\.(\w+)", file.read_text(encoding="utf-8")))


def tests_of(stem):
    """The test file of that name, or all that import the snippet if there is none; and of its family."""
    folder = ROOT / "tests" / "snippets"
    if f"snippets/{stem}.py" in SOURCES:
        return sorted((ROOT / "packages" / "check-positions" / "tests").glob("test_*.py"))
    files = sorted(folder.glob("test_*.py"))
    own = [path for path in files if path.stem == f"test_{stem}"]
    own = own or [path for path in files if stem in imported(path)]
    others = {f"test_{path.stem}" for path in (ROOT / "snippets").glob("*.py")}
    nobodys = [path for path in files if path.stem not in others]
    common = [path for path in nobodys if stem in imported(path)]
    families = "".join(path.read_text(encoding="utf-8") for path in folder.glob("families/*.py"))
    shared = [path for path in nobodys if "families" in path.read_text(encoding="utf-8")]
    shared = shared if re.search(rf"\b{stem}\b", families) else []
    return list(dict.fromkeys([*own, *common, *shared]))


def is_current(stem, used):
    """Whether the files that decided the outcomes of a snippet's mutants are the same, and no test is new."""
    tests = {relative(path) for path in tests_of(stem)}
    return tests <= used.keys() and all(digest(file) == known for file, known in used.items())


def read_cache(stem):
    with contextlib.suppress(OSError, ValueError):
        return json.loads((CACHE / f"{stem}.json").read_text())
    return {"used": {}, "outcomes": {}, "earlier": {}}


def write_cache(stem, used, outcomes, earlier):
    CACHE.mkdir(parents=True, exist_ok=True)
    said = {"used": used, "outcomes": outcomes, "earlier": {**earlier, **outcomes}}
    part = CACHE / f"{stem}.part"
    part.write_text(json.dumps(said, indent=0))
    part.replace(CACHE / f"{stem}.json")


def outcomes_of(stem, folder, jobs):
    """Every mutant of a snippet and what killed it."""
    source = (ROOT / "snippets" / f"{stem}.py").read_text(encoding="utf-8")
    mutants = list(mutants_of(stem, source))
    cached = read_cache(stem)
    known, earlier = cached["outcomes"] if is_current(stem, cached["used"]) else {}, cached["earlier"]
    unknown = [mutant for mutant in mutants if mutant.key not in known]
    if unknown:
        seconds, used = baseline(stem, source, folder)

        def tell(outcomes):
            write_cache(stem, used, {**known, **outcomes}, earlier)
            if sys.stderr.isatty():
                print(f"\r{stem} {len(outcomes)} of {len(unknown)}\033[K", end="\r", file=sys.stderr)

        known = {**known, **find_killers(stem, unknown, seconds, earlier, folder, jobs, tell)}
    return [(mutant, known[mutant.key]) for mutant in mutants]


# --- the verdict


def survivors(outcomes):
    """The lines of those that live and are of no kind that a rule knows."""
    alive = (mutant.line for mutant, killer in outcomes if not killer)
    return Counter(line for line in alive if not any(re.search(rule, line) for rule in RULES))


def verdict(outcomes, known):
    """What is wrong, line by line, given [(mutant, what killed it)] and a Counter of known survivors."""
    for line in sorted((survivors(outcomes) - known).elements()):
        yield f"survives, and is not in {SURVIVORS.name}: {line}"
    alive = sum(not killer for _, killer in outcomes)
    if alive > (1 - ENOUGH) * len(outcomes):
        yield f"{alive} of {len(outcomes)} survive, more than {1 - ENOUGH:.0%}"


def read_survivors():
    return Counter(SURVIVORS.read_text(encoding="utf-8").splitlines())


def updated_lines(known, found, stems):
    """The lines of the stored list in which the survivors of these snippets are those found."""
    others = [line for line in known.elements() if re.match(r"\w+", line)[0] not in stems]
    return sorted([*others, *found.elements()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("snippets", nargs="*", help="all of them if none is named")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--accept", action="store_true", help=f"write what survives into {SURVIVORS.name}")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {arguments.jobs}")
    os.chdir(ROOT)
    os.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")  # threads do not survive a fork
    files = sorted((ROOT / "snippets").glob("[!_]*.py"), key=lambda path: path.stat().st_size)
    known = [path.stem for path in files]
    check(parser, "snippet", arguments.snippets, known)
    stems = arguments.snippets or known
    outcomes, wrong = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for stem in stems:
            start = time.perf_counter()
            try:
                tested = outcomes[stem] = outcomes_of(stem, Path(folder), arguments.jobs)
            except TestsFail as error:
                print(error, flush=True)
                wrong.append(str(error))
                continue
            print(f"{stem:<16}{share(tested)}{time.perf_counter() - start:>8.0f} s", flush=True)
    tested = [*itertools.chain(*outcomes.values())]
    print(f"\n{'all':<16}{share(tested)}\n")
    lines = updated_lines(read_survivors(), survivors(tested), outcomes)
    if arguments.accept:
        SURVIVORS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    for line in (read_survivors() - Counter(lines)).elements():
        print(f"survives no more, which --accept notes: {line}")
    wrong += verdict(tested, read_survivors())
    print("\n".join(wrong))
    raise SystemExit(bool(wrong))


def share(tested):
    killed = sum(bool(killer) for _, killer in tested)
    return f"{killed:>5} of {len(tested):>4} killed{killed / max(len(tested), 1):>8.1%}"


if __name__ == "__main__":
    main()
