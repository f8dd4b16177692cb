"""Runs, and where their results are kept: one small file for each, with all that it was made with.

An experiment is a module of this folder with METHODS, SEEDS and run(method, seed, device, **sizes),
which returns numbers. METHODS names, for each method, the snippets that its encoding uses.

A result is current as long as the code behind it is: the experiment, what it imports of ours, and what
METHODS names; but not every snippet that encodings.py imports for some other method. Comments, docstrings
and layout are no code.
"""

import ast
import hashlib
import importlib
import json
import os
import platform
import re
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("experiments", "snippets")
SWITCH = "experiments.encodings"


@dataclass(frozen=True)
class Run:
    experiment: str
    method: str
    seed: int

    @property
    def module(self):
        return importlib.import_module(f"experiments.{self.experiment}")

    @property
    def name(self):
        slug = re.sub(r"[^a-z0-9]+", "-", self.method.lower()).strip("-")
        return f"{self.experiment}/{slug}-{self.seed}"

    def path(self, folder):
        return folder / f"{self.name}.json"

    def fingerprint(self):
        """SHA-256 of the code that this run depends on."""
        own = {module.__name__ for module in self.module.METHODS[self.method]}
        names = sorted(imported(f"experiments.{self.experiment}") | own)
        return hashlib.sha256("".join(map(bare_code, names)).encode()).hexdigest()

    def is_current(self, folder, sizes):
        """Whether there is a whole result of these sizes and of the code as it is now."""
        try:
            made_with = json.loads(self.path(folder).read_text(encoding="utf-8"))["made_with"]
            return made_with["code"] == self.fingerprint() and made_with["sizes"] == sizes
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def carry_out(self, device, sizes):
        """Run; what is to be kept of it."""
        torch.set_num_threads(1)
        module = self.module
        remember_sources()
        code = self.fingerprint()
        start = time.perf_counter()
        result = module.run(self.method, self.seed, device, **sizes)
        made_with = {
            "code": code,
            "sizes": sizes,
            "seconds": round(time.perf_counter() - start),
            "device": device,
            "machine": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "torch": torch.__version__,
        }
        made_with |= getattr(module, "provenance", dict)()
        return {"method": self.method, "seed": self.seed, "made_with": made_with, "result": result}

    def keep(self, folder, made):
        """Write what carry_out gave. The file appears whole or not at all."""
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        aside.replace(path)


def runs(experiment):
    """Every run of an experiment."""
    module = importlib.import_module(f"experiments.{experiment}")
    return [Run(experiment, method, seed) for seed in module.SEEDS for method in module.METHODS]


def kept(run, folder):
    try:
        return json.loads(run.path(folder).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no result {run.name}: make experiments makes it") from error


def load(experiment, folder=RESULTS):
    """The kept results: a dictionary from method to what each seed gave, in the order of METHODS."""
    found = {}
    for run in runs(experiment):  # seed by seed
        found.setdefault(run.method, []).append(kept(run, folder)["result"])
    return found


def made_with(experiment, folder=RESULTS):
    """What the kept results were made with: a list, one entry for each run."""
    return [kept(run, folder)["made_with"] for run in runs(experiment)]


@cache
def imported(module):
    """The module and all of ours that it imports, by name, directly or through another.

    Of the snippets that encodings.py imports only the one that every method needs.
    """
    found = {module}
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if module == SWITCH and name.startswith("snippets.") and name != "snippets.block":
                continue
            if name.partition(".")[0] in PACKAGES and "." in name and is_module(name):
                found |= imported(name)
    return frozenset(found)


def remember_sources():
    """Read the text of every module of ours that this process has imported.

    It is what this process runs, whatever is edited from now on.
    """
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES and is_module(name):
            source(name)


def is_module(name):
    return file_of(name).is_file()


def file_of(module):
    return ROOT / f"{module.replace('.', '/')}.py"


@cache
def source(module):
    """The text of a module, as it was when it was first asked for."""
    return file_of(module).read_text(encoding="utf-8")


@cache
def bare_code(module):
    """What a module does, as text: without comments, docstrings and layout, the same under every Python."""
    return json.dumps(bare(ast.parse(source(module))))


def bare(node):
    """A syntax tree as lists, without docstrings and without what is empty."""
    if isinstance(node, list):
        return [bare(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
        del node.body[0]
    fields = [(name, bare(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return [type(node).__name__, *fields]
