"""Carry a run out and note which code made its result; say whether that is still the code.

A run without chance depends on the code that it executes and on the data that it reads. So a result belongs
to the functions of ours that ran, and to what importing their modules executes, told apart as for exhibits.
What an error says is no part of it.
"""

import contextlib
import cProfile
import hashlib
import importlib
import json
import platform
import sys
import time

import torch

from executable_prose import project
from executable_prose.execution.provenance import measured_parts, parts_now
from executable_prose.execution.recorder import FromSource
from experiments.measure import keep_memory
from experiments.runs import kept

PACKAGES = ("experiments", "snippets")


def is_current(run, folder, sizes):
    """Whether there is a whole result of these sizes, made by the code as it is now."""
    try:
        made_with = kept(run, folder)["made_with"]
        return made_with["sizes"] == sizes and not older(made_with["code"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def older(code):
    """The files of which something that ran for a result is different now."""
    return [file for file, line in code.items() if line != described(parts_now(file), line.split()[1:])]


def carry_out(run, device, sizes, watched=None):
    """Run; what is to be kept of it.

    The code is seen in a run of the sizes `watched` first, if given: a measurement of time is not watched.
    """
    torch.set_num_threads(1)
    keep_memory()
    with afresh() as texts:
        start = time.perf_counter()
        with cProfile.Profile(subcalls=False, builtins=False) as profile:
            module = importlib.import_module(f"experiments.{run.experiment}")
            result = module.run(run.method, run.seed, device, **(watched or sizes))
        if watched:
            result = module.run(run.method, run.seed, device, **sizes)
        made_with = {
            "code": code(profile, texts),
            "sizes": sizes,
            "seconds": round(time.perf_counter() - start),
            "device": device,
            "machine": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "torch": torch.__version__,
        }
        made_with |= getattr(module, "provenance", dict)()
    return {"method": run.method, "seed": run.seed, "made_with": made_with, "result": result}


@contextlib.contextmanager
def afresh():
    """As if nothing of ours had been imported, or cached, by an earlier run: yields the texts of what is."""
    texts = {}
    finder = FromSource(lambda path, data: texts.setdefault(path, data.decode()))
    ours = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    aside = {name: sys.modules.pop(name) for name in ours}
    sys.meta_path.insert(0, finder)
    try:
        yield texts
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
            del sys.modules[name]
        sys.modules.update(aside)


def code(profile, texts):
    """For each file of ours that was imported the digest of what ran of it, and the names of that."""
    ran = {path: set() for path in texts}
    for entry in profile.getstats():
        if getattr(entry.code, "co_filename", None) in ran:
            ran[entry.code.co_filename].add(entry.code.co_qualname.partition(".<locals>")[0])
    return {
        project.relative(path): described(measured_parts(text), ran[path])
        for path, text in sorted(texts.items())
    }


def described(parts, names):
    """A digest of these functions of a module and of what importing it executes; then their names."""
    found = {name: parts[name] for name in sorted({"", *names} & parts.keys())}
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]
    return " ".join([digest, *filter(None, found)])
