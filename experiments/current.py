"""Carry a run out and note which code made its result; say whether that is still the code.

A run without chance depends on the code that it executes and on the data that it reads. So a result belongs
to our functions that ran, and to what importing their modules executes, distinguished as for exhibits.
What an error says is no part of it.
"""

import contextlib
import importlib
import platform
import sys
import time

import torch

from executable_prose import project
from executable_prose.execution.provenance import changed, code_of, watching
from executable_prose.execution.recorder import FromSource
from experiments.measure import keep_memory
from experiments.runs import kept

PACKAGES = ("experiments", "snippets")
# Functions that were rewritten without changing a bit of results, as tests/experiments/test_rewritten.py
# shows: the digest of what a run executed, and of what stands in its place.
REWRITTEN = {
    "8cb749f19a4f6829": "40f65733e74c4ea2",  # apply_rope of rope.py
}


def is_current(run, folder, sizes):
    """Whether there is a whole result of these sizes, made by the code as it is now or with the same bits."""
    try:
        made_with = kept(run, folder)["made_with"]
        code = {
            file: {name: REWRITTEN.get(digest, digest) for name, digest in known.items()}
            for file, known in made_with["code"].items()
        }
        return made_with["sizes"] == sizes and not changed(code)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def carry_out(run, device, sizes, watched=None):
    """Run; what is to be kept of it.

    The code is seen in a run of the sizes `watched` first, if given: a measurement of time is not watched.
    """
    torch.set_num_threads(1)
    keep_memory()
    with afresh() as texts:
        start = time.perf_counter()
        with watching() as ran:
            module = importlib.import_module(f"experiments.{run.experiment}")
            result = module.run(run.method, run.seed, device, **(watched or sizes))
        if watched:
            result = module.run(run.method, run.seed, device, **sizes)
        made_with = {
            "code": code_of({file: {"", *ran.get(file, ())} for file in texts}, texts),
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
    """As if no earlier run had imported or cached anything of ours: yields the texts imported."""
    texts = {}
    finder = FromSource(lambda path, data: texts.setdefault(project.relative(path), data.decode()))
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
