"""What a run uses of the project: functions that run, modules that it imports, files that it opens."""

import ast
import builtins
import contextlib
import functools
import hashlib
import importlib.machinery
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from executable_prose import project, reading
from executable_prose.execution.sandbox import Refused, forbidden
from executable_prose.project import KIND, NAMES, STATUS, STATUSES, Digests, digest, outside, relative

LIBRARY = str(Path(os.__file__).parent)  # Python's own
# Functions of it that ask what is at a path, and nothing of its size, times and rights.
ASK_KIND = re.compile(r"_?l?exists|is_?\w+|resolve|\w*realpath|checkcache|updatecache|mtime|_?f?walk")
# Functions of os of which Python tells nobody, or too little.
LOOKS = ("stat", "lstat", "fstat", "access", "readlink", "open")
COMPILED: dict[tuple[str, bytes], CodeType] = {}  # what was compiled ahead, by path and source
RAN: set[tuple[str, str]] = set()  # the functions that have run, each as its file and its qualified name
MARK = "__ran__"  # the built-in name by which code finds that set
FUNCTIONS = (ast.AsyncFunctionDef, ast.FunctionDef)
Imported = Callable[[str, bytes], None]  # is told of each module its path and its source
READING: set[str] = set()  # files of modules that a SourceLoader reads now
Asked = Callable[[str], None]  # is told of files, as `digest` names them
NOTING = threading.local()  # `now`: whether this thread takes a digest, for whichever listener


@contextlib.contextmanager
def noting() -> Iterator[bool]:
    """Whether this is the outermost note in this thread: what taking a digest opens is for no listener."""
    first = not getattr(NOTING, "now", False)
    NOTING.now = True
    try:
        yield first
    finally:
        NOTING.now = not first


def compile_ahead() -> None:
    """Compile what exhibits import of the project, for the forks of this process."""
    settings = project.settings()
    for room in (settings.examples, *settings.sources):
        for path in (project.ROOT / room).glob("[!.]*.py"):
            source = path.read_bytes()
            with contextlib.suppress(SyntaxError, ValueError):  # whose exhibit tells
                COMPILED[str(path), source] = marked(source, str(path))


def marked(source: bytes, path: str) -> CodeType:
    """Compile a module so that each of its functions and methods notes in RAN that it runs.

    What is defined within a function belongs to it. A profiler would note the same, and takes half as long
    again as what runs, most of it for functions of libraries.
    """
    tree = ast.parse(source, path)
    _mark(tree, relative(path), "")
    return compile(tree, path, "exec", dont_inherit=True)


def _mark(scope, file, prefix):
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            _mark(node, file, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            statement = ast.parse(f"{MARK}.add({(file, prefix + node.name)!r})").body[0]
            first = ast.get_docstring(node, clean=False) is not None
            for each in ast.walk(statement):
                ast.copy_location(each, node.body[min(first, len(node.body) - 1)])
            node.body.insert(first, statement)


@functools.cache  # in a fork, to look at thousands of modules is to copy them
def loaded() -> Digests:
    """The engine's files that this process has loaded, with their digests, if they are the project's own."""
    modules = list(sys.modules.items())
    own = [module.__file__ for name, module in modules if name.partition(".")[0] == project.ENGINE.name]
    return {file: digest(file) for file in map(relative, filter(None, own)) if file}


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Neither reads nor writes bytecode: it hides which source was read, and may be older than an edit."""

    def __init__(self, name: str, path: str, imported: Imported, asked: Asked, marks: bool) -> None:
        super().__init__(name, path)
        self._imported, self._asked, self._marks = imported, asked, marks

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("no bytecode")

    def source_to_code(self, data: bytes, path: str, **settings: Any) -> CodeType:  # type: ignore[override]
        if not self._marks:
            return super().source_to_code(data, path, **settings)
        return COMPILED.get((path, data)) or marked(data, path)

    def get_data(self, path: str) -> bytes:
        READING.add(path)
        try:
            data = super().get_data(path)
        finally:
            READING.discard(path)
        if sys._getframe(1).f_code.co_name == "get_code":
            self._imported(path, data)
        elif name := relative(path):  # it is read as text
            self._asked(name)
        return data


class FromSource:
    """Import the project's own modules by their source, and tell `imported` of each.

    `asked` is told of what else imports depend on: files that would be the module if they were there, and
    sources that are read as text. If it `marks` modules, RAN has which of their functions run.
    """

    def __init__(self, imported: Imported, asked: Asked = lambda name: None, marks: bool = False) -> None:
        self._imported, self._asked, self._marks = imported, asked, marks

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        own = spec is not None and spec.origin is not None and relative(spec.origin) is not None
        self._note_others(name.rpartition(".")[2], path, spec.origin if own else None)
        if not own or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        how = self._imported, self._asked, self._marks
        spec.loader = SourceLoader(spec.loader.name, spec.loader.path, *how)
        return spec

    def _note_others(self, name, folders, found):
        """Whether there are files of the project that would be the module instead."""
        for folder in [project.ROOT] if folders is None else folders:
            package, module = Path(folder, name, "__init__.py"), Path(folder, f"{name}.py")
            others = {package, module} if found is None else {package} - {Path(found)}
            for file in filter(None, map(relative, others)):
                self._asked(file + KIND)


class Listener:
    """Notes every file that this thread opens or asks about, and every folder that it lists.

    `files` holds their digests at that moment; None while nobody listens. A file that could not be opened
    because it is missing has no digest: it is a dependency all the same. Installed files are none.
    `ran_program` says whether a program was started or a host was asked: nobody hears of what these read.
    """

    HEARD = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
    PROGRAMS = (
        "subprocess.Popen",
        "os.system",
        "os.posix_spawn",
        "os.fork",
        "socket.connect",
        "socket.getaddrinfo",
    )

    def __init__(self) -> None:
        self.files: Digests | None = None
        self.ran_program = False
        self._thread: int | None = threading.get_ident()  # None: all threads
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
        self.files, self.ran_program, self._thread = {}, False, threading.get_ident()
        try:
            with self._looking():
                yield self.files
        finally:
            self.files = None

    @contextlib.contextmanager
    def apart(self) -> Iterator[Digests]:
        """The files noted within, which count for what is around it, too."""
        around, self.files = self.files, {}
        try:
            yield self.files
        finally:
            around.update(self.files)
            self.files = around

    @contextlib.contextmanager
    def _looking(self):
        """Hear also of what Python tells nobody."""
        known = self.look()
        try:
            yield
        finally:
            for module, name, look in known:
                setattr(module, name, look)

    def look(self) -> list[tuple[ModuleType, str, Callable]]:
        """Replace functions of os by some that are heard; return the originals."""
        modules = [os, sys.modules[os.name]]  # os has its functions from posix or nt
        known = [(module, name, getattr(module, name)) for module in modules for name in LOOKS]
        for module, name, look in known:
            setattr(module, name, self._heard(look))
        return known

    def _heard(self, look):
        @functools.wraps(look)
        def heard(*arguments, **more):
            path = arguments[0] if arguments else more.get("path", more.get("fd"))
            if look.__name__ != "open":
                self._hear("os.stat", (path, more.get("dir_fd")), sys._getframe(1))
            elif more.get("dir_fd") is not None:  # of which the event says nothing
                self._hear("os.open", (path, more["dir_fd"], arguments[1]), sys._getframe(1))
            return look(*arguments, **more)

        return heard

    def _note(self, name):
        if name not in self.files:
            self.files[name] = digest(name)

    def _on_audit(self, event, arguments):
        if event in self.HEARD:
            self._hear(event, arguments, sys._getframe(1))
        elif event in self.PROGRAMS and self._thread in (None, threading.get_ident()):
            self._on_program(sys._getframe(1))

    def _hear(self, event, arguments, frame):
        """Something of a file was asked in this frame."""
        here = self._thread in (None, threading.get_ident())
        if self.files is not None and here:
            with noting() as first:
                if first:
                    self._on_file(event, arguments, frame)

    def _on_program(self, frame):
        self.ran_program = True

    def _on_file(self, event, arguments, frame):
        path = "." if arguments[0] is None else arguments[0]
        if event in ("os.stat", "os.open"):
            path = _path(*arguments[:2])
        elif event == "sqlite3.connect":
            path = _database(path)
        elif isinstance(path, int) and event != "open":
            path = _opened(path)
        if not isinstance(path, (str, bytes, os.PathLike)) or (name := self._name(path)) is None:
            return
        if _is_import(event, path, name, frame) or _keeps_where_seeds_are_set(frame):
            return
        if event == "os.stat" and frame.f_code.co_filename.startswith("<frozen importlib"):
            self._note(name)
        elif event == "os.stat":
            self._note_look(name, frame)
        elif event == "sqlite3.connect":
            for file in (name, f"{name}-wal", f"{name}-journal"):
                self._note(file)
        elif event not in ("open", "os.open"):
            lists_names = event == "os.listdir" or is_library(frame)
            self._note((name or ".") + (NAMES if lists_names else STATUSES))
        elif not arguments[2] & os.O_WRONLY and not (project.ROOT / name).is_dir():
            self._note(name)

    def _note_look(self, name, frame):
        asks_kind = False
        while frame and is_library(frame):
            asks_kind |= bool(ASK_KIND.fullmatch(frame.f_code.co_name))
            frame = frame.f_back
        asker = frame.f_globals.get("__name__", "") if frame else ""
        if asker == reading.__name__ or (asker.startswith(f"{project.ENGINE.name}.") and not asks_kind):
            return  # whether what it has parsed is that of the file, which it opens, or says that it would
        around = filter(None, (project.ROOT, sys.prefix, tempfile.tempdir))
        if not (asks_kind and any(Path(each).is_relative_to(project.ROOT / name) for each in around)):
            self._note(name + (KIND if asks_kind else STATUS))  # those are folders, whoever asks

    @staticmethod
    def _name(path):
        name = relative(path)
        return outside(path) if name is None else name


class Recorder(Listener):
    """Records what one run uses, from now on; within `watching()` also which functions run.

    `modules`: every project module imported, with the digest of its source. `functions`: the names of those
    that ran, by file; None if code was read in ways other than running it, so that every module counts whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hear()
        self.files: Digests = dict(loaded())
        self.modules: dict[str, str] = {}
        self.functions: dict[str, set[str]] | None = {}
        self._watching = False
        self._kept = self.files
        setattr(builtins, MARK, RAN)
        sys.meta_path.insert(0, FromSource(self._on_import, self._note, marks=True))
        sys.addaudithook(self._refuse)

    def pause(self) -> None:
        """Note nothing until `resume`, in a fork: what this process opens in the meantime is for no run."""
        self._kept, self.files = self.files, {}

    def resume(self) -> None:
        """Note again; what was noted before `pause` counts."""
        self.files = self._kept

    @staticmethod
    def _name(path):
        own = tempfile.tempdir  # the folder of the run, which may lie in the project
        return None if own and Path(os.fsdecode(path)).is_relative_to(own) else Listener._name(path)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note which functions run; refuse other threads and processes."""
        start, threading.Thread.start = threading.Thread.start, _refuse_thread
        with self._looking():
            self._watching = True
            try:
                yield
            finally:
                self._watching = False
                threading.Thread.start = start
                self._note_functions()

    def _note_functions(self):
        if _dynamo_read_code():
            self.functions = None
        for file, name in RAN if self.functions is not None else ():
            self.functions.setdefault(file, set()).add(name)

    def _on_import(self, path, data):
        name = relative(path)
        if name in self.modules or project.ours(path) is None:  # read as text, or run unwatched
            self._note(name)
        self.modules[name] = hashlib.sha256(data).hexdigest()

    def _refuse(self, event, arguments):
        """Nobody would notice what another process uses, or what was left for another run."""
        if self._watching:
            with noting() as first:  # what the sandbox itself looks up decides nothing
                why = forbidden(event, arguments) if first else None
            if why:
                raise Refused(why)


def _refuse_thread(thread):
    raise Refused(f"expected work in one thread, got {thread.name}")


def _path(path, folder):
    """The file that a function of os was called with: a path, from an open folder or not, or a number."""
    if isinstance(path, int):
        return _opened(path)
    return Path(_opened(folder) or ".", os.fsdecode(path)) if folder is not None else path


def _database(name):
    """The file of a SQLite database, which may be named by an address."""
    address = os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""
    return unquote(urlsplit(address).path) if address.startswith("file:") else address


def _is_import(event, path, name, frame):
    """Whether Python looks for a module, or a SourceLoader reads one, which it tells."""
    if not frame.f_code.co_filename.startswith("<frozen importlib"):
        return False
    if event == "open":
        return os.fsdecode(path) in READING
    # Of a module that lies elsewhere, Python may read the bytecode alone.
    return not (event == "os.stat" and name.startswith("/") and name.endswith(".py"))


def _opened(number):
    """The path of an open file or folder, where the system tells; else None."""
    with contextlib.suppress(OSError):
        path = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        return path if path.startswith("/") else None  # else a pipe or the like
    return None


def is_library(frame: FrameType) -> bool:
    """Whether the frame is of a function of Python's library."""
    file = frame.f_code.co_filename
    return file.startswith(("<frozen ", LIBRARY)) and "-packages" not in file


def _keeps_where_seeds_are_set(frame):
    """Whether torch reads the lines that set a seed, for a message that it shows if CUDA fails later."""
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
