"""What a run uses of the project: functions that run, modules that it imports, files that it opens."""

import contextlib
import cProfile
import functools
import hashlib
import importlib.machinery
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any, NoReturn

from executable_prose import project
from executable_prose.execution.sandbox import Refused, forbidden
from executable_prose.project import Digests, digest, outside, relative

# Code that asks for these learns of code that need not run.
REFLECTIVE = re.compile(rb"\b(__doc__|getdoc|co_code|co_consts|co_firstlineno|f_lineno|tb_lineno|lineno)\b")
COMPILED: dict[tuple[str, bytes], CodeType] = {}  # what was compiled ahead, by path and source
Imported = Callable[[str, bytes], None]  # is told of each module its path and its source


def compile_ahead() -> None:
    """Compile what exhibits import of the project, for the forks of this process."""
    settings = project.settings()
    for room in (settings.examples, *settings.sources):
        for path in (project.ROOT / room).glob("*.py"):
            source = path.read_bytes()
            with contextlib.suppress(SyntaxError, ValueError):  # whose exhibit tells
                COMPILED[str(path), source] = compile(source, str(path), "exec", dont_inherit=True)


@functools.cache  # in a fork, to look at thousands of modules is to copy them
def loaded() -> Digests:
    """The engine's files that this process has loaded, with their digests, if they are the project's own."""
    modules = list(sys.modules.items())
    own = [module.__file__ for name, module in modules if name.partition(".")[0] == project.ENGINE.name]
    return {file: digest(file) for file in map(relative, filter(None, own)) if file}


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Neither reads nor writes bytecode: it hides which source was read, and may be older than an edit."""

    def __init__(self, name: str, path: str, imported: Imported) -> None:
        super().__init__(name, path)
        self._imported = imported

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("no bytecode")

    def source_to_code(self, data: bytes, path: str, **settings: Any) -> CodeType:  # type: ignore[override]
        return COMPILED.get((path, data)) or super().source_to_code(data, path, **settings)

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        self._imported(path, data)
        return data


class FromSource:
    """Import the project's own modules by their source, and tell `imported` of each."""

    def __init__(self, imported: Imported) -> None:
        self._imported = imported

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin or relative(spec.origin) is None:
            return None
        spec.loader = SourceLoader(spec.loader.name, spec.loader.path, self._imported)
        return spec


class Listener:
    """Notes every project file that this thread opens and every folder that it lists.

    `files` holds their digests at that moment; None while nobody listens. A file that could not be opened
    because it is missing has no digest: it is a dependency all the same. Python says nothing of other ways to
    learn of a file: whether it exists (a Recorder hears that), and an import that finds none and is caught.
    """

    HEARD: tuple[str, ...] = ("open", "os.listdir", "os.scandir")
    _name = staticmethod(relative)  # of a file that is noted

    def __init__(self) -> None:
        self.files: Digests | None = None
        self._busy = False
        self._thread = threading.get_ident()
        self._hears = False

    def hear(self) -> None:
        """Begin to hear of files: once, for Python forgets no hook."""
        if not self._hears:
            sys.addaudithook(self._on_audit)
        self._hears = True

    @contextlib.contextmanager
    def listening(self) -> Iterator[Digests]:
        """The files noted from now on in this thread."""
        self.hear()
        self.files, self._thread = {}, threading.get_ident()
        try:
            yield self.files
        finally:
            self.files = None

    def _note(self, name):
        if name not in self.files:
            self.files[name] = digest(name)

    def _on_audit(self, event, arguments):
        heard = event in self.HEARD and self.files is not None
        if heard and not self._busy and threading.get_ident() == self._thread:
            self._busy = True  # what follows opens files itself
            try:
                self._on_file(event, arguments)
            finally:
                self._busy = False

    def _on_file(self, event, arguments):
        path = "." if arguments[0] is None else arguments[0]
        if not isinstance(path, (str, bytes, os.PathLike)) or (name := self._name(path)) is None:
            return
        if _caller().startswith("<frozen importlib") or _keeps_where_seeds_are_set():
            return
        if event == "os.stat":
            self._note(f"{name}?")
        elif event != "open":
            self._note(f"{name or '.'}/")
        elif not arguments[2] & os.O_WRONLY and not (project.ROOT / name).is_dir():
            self._note(name)


class Recorder(Listener):
    """Records what one run uses, from now on; within `watching()` also which functions run.

    Of files outside the project it notes those that are not installed, too.

    `modules`: every project module imported, with the digest of its source. `functions`: the names of those
    that ran, by file; None if code was read in ways other than running it, so that every module counts whole.
    """

    HEARD = (*Listener.HEARD, "os.stat")

    def __init__(self) -> None:
        super().__init__()
        self.hear()
        self.files: Digests = dict(loaded())
        self.modules: dict[str, str] = {}
        self.functions: dict[str, set[str]] | None = {}
        self._paths: dict[str, str] = {}  # of modules, as their code objects name them
        self._watching = False
        sys.meta_path.insert(0, FromSource(self._on_import))
        sys.addaudithook(self._refuse)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note which functions run in this thread; refuse other threads and processes."""
        profile = cProfile.Profile(subcalls=False, builtins=False)
        start, threading.Thread.start = threading.Thread.start, _refuse_thread
        look, os.stat = os.stat, self._looks(os.stat)
        profile.enable()
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            profile.disable()
            threading.Thread.start, os.stat = start, look
            self._note_functions(profile)

    def _looks(self, look):
        """os.stat, by which Python asks whether a file exists."""

        def stat(path, *how, **more):
            self._on_audit("os.stat", (path,))
            return look(path, *how, **more)

        return stat

    @staticmethod
    def _name(path):
        name = relative(path)
        return outside(path) if name is None else name

    def _note_functions(self, profile):
        """By file and qualified name; what is defined within a function belongs to that."""
        if _dynamo_read_code():
            self.functions = None
        for entry in profile.getstats() if self.functions is not None else ():
            file = self._paths.get(getattr(entry.code, "co_filename", None))
            if file:
                name = entry.code.co_qualname.partition(".<locals>")[0]
                self.functions.setdefault(file, set()).add(name)

    def _on_import(self, path, data):
        name = self._paths[path] = relative(path)
        if name in self.modules or project.ours(path) is None:  # read as text, or run unwatched
            self._note(name)
        self.modules[name] = hashlib.sha256(data).hexdigest()
        if REFLECTIVE.search(data):
            self.functions = None

    def _refuse(self, event, arguments):
        """Nobody would notice what another process uses, or what was left for another run."""
        if self._watching and (why := forbidden(event, arguments)):
            raise Refused(why)
        if self._watching and event == "sys.setprofile":  # from here on, ours may see nothing
            self.functions = None


def _refuse_thread(thread):
    raise Refused(f"expected work in one thread, got {thread.name}")


def _caller():
    """The file of the code that opens or lists something: the frame below the audit hook's own."""
    return sys._getframe(3).f_code.co_filename


def _keeps_where_seeds_are_set():
    """Whether torch reads the lines that set a seed, for a message that it shows if CUDA fails later."""
    frame = sys._getframe(3)
    while frame:
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "_lazy_call" and module.startswith("torch."):
            return True
        frame = frame.f_back
    return False


def _dynamo_read_code():
    """Whether torch.compile, or what uses it, has read the bytecode of functions instead of running them."""
    utils = sys.modules.get("torch._dynamo.utils")
    return bool(utils) and any(utils.counters.values())
