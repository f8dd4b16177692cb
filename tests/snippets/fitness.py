"""What a docstring may list after «Supports», and the check of each word; test_fitness.py runs them.

autocast    the same bits, of the same dtype, as without it
compile     one graph for all sizes of a batch, of any number of tokens
export      torch.export, with dynamic sizes
vmap        as a loop over its inputs
per-sample gradients    by vmap over grad
mps         no float64 off the CPU: by a stand-in, never run on one
no host-device sync    with all inputs on the device the host waits for no number and for no copy: by a
            stand-in, which fails at each operation that makes the host wait for CUDA
"""

import importlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from guide.reference import features

# of batches and tokens, unlike all other sizes, which torch would otherwise take for the same
SIZES = (5, 7), (6, 11)


class Case(NamedTuple):
    """A way to call what a snippet has. Of a module, its parameters are what it has learned.

    Nothing of a snippet runs before a test does: of a class, `call` makes what is called.
    """

    of: Callable  # the function or class whose docstring lists what it supports
    call: Callable  # takes tensors only, or nothing
    make: Callable  # from a size of the batch and a number of tokens to these tensors
    on_cpu: tuple[int, ...] = ()  # which of them stay there when the device has no float64


def all_cases():
    """The cases of all families."""
    files = sorted(Path(__file__).with_name("families").glob("*.py"))
    families = [importlib.import_module(f"tests.snippets.families.{file.stem}") for file in files]
    return [case for family in families for case in family.CASES]


def called(case):
    return case.call() if isinstance(case.of, type) else case.call


def words(of):
    """Return what a docstring says that it supports; None if it lists nothing."""
    return features(inspect.cleandoc(of.__doc__))


def autocast(call, make, on_cpu):
    inputs = make(*SIZES[0])
    with torch.autocast("cpu", torch.bfloat16):
        made = call(*inputs)
    assert_close(made, call(*inputs), rtol=0, atol=0)


def compiles(call, make, on_cpu):
    torch.compiler.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in SIZES:
            inputs = make(*sizes)
            assert_close(compiled(*inputs), call(*inputs))


class Whole(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *inputs):
        return self.call(*inputs)


def exports(call, make, on_cpu):
    inputs, others = (make(*sizes) for sizes in SIZES)
    sizes = [
        {axis: torch.export.Dim.DYNAMIC for axis, n in enumerate(one.shape) if n != other.shape[axis]}
        for one, other in zip(inputs, others, strict=True)
    ]
    program = torch.export.export(Whole(call), inputs, dynamic_shapes=(tuple(sizes),))
    assert_close(program.module()(*others), call(*others))


def vmaps(call, make, on_cpu):
    samples = [make(*SIZES[0]) for _ in range(3)]
    made = torch.vmap(call)(*map(torch.stack, zip(*samples, strict=True)))
    for n, inputs in enumerate(samples):
        assert_close(tree_map(lambda all, n=n: all[n], made), call(*inputs))


def gradients(call, make, on_cpu):
    samples = [make(*SIZES[0]) for _ in range(3)]
    learned = dict(call.named_parameters())

    def loss(parameters, *inputs):
        return torch.func.functional_call(call, parameters, inputs).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, *[0] * len(samples[0])))
    made = each(learned, *map(torch.stack, zip(*samples, strict=True)))
    for n, inputs in enumerate(samples):
        expected = torch.autograd.grad(loss(learned, *inputs), learned.values())
        assert_close([made[name][n] for name in learned], list(expected), rtol=1e-5, atol=1e-5)


class NoFloat64(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
                assert tensor.dtype not in (torch.float64, torch.complex128), function
        return made


# Read by the host, which meta does not show.
READ = "aten::_linalg_check_errors", "aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_eig"
UNKNOWN = DataDependentOutputException, DynamicOutputShapeException


class Waits(TorchDispatchMode):
    """Collects the operations that make the host wait for a CUDA device, for which meta stands."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, function.name()
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        on = {each.device.type for each in given}
        if name == "aten::_to_copy" and kwargs.get("device"):
            on.add(torch.device(kwargs["device"]).type)
        picks = tree_leaves(args[1]) if name.startswith(("aten::index.", "aten::index_put")) else []
        counted = any(each.dtype in (torch.bool, torch.uint8) for each in picks if each is not None)
        copied = len(on) > 1 and (picks or name in ("aten::_to_copy", "aten::copy_"))
        if copied or (on - {"cpu"} and (counted or name in READ)):
            self.found.append(name)
        try:
            return function(*args, **kwargs)
        except UNKNOWN:
            self.found += [name] if on - {"cpu"} else []
            raise


def on_a_device(mode, call, inputs, on_cpu=()):
    """What a call returns under a mode, its parameters and inputs on a device, for which meta stands.

    Inputs at the indices in on_cpu stay on the CPU.
    """
    with FakeTensorMode() as fake:

        def move(tensor):
            return fake.from_tensor(tensor).to("meta")

        given = tuple(
            fake.from_tensor(tensor) if index in on_cpu else move(tensor)
            for index, tensor in enumerate(inputs)
        )
        if isinstance(call, torch.nn.Module):
            state = {name: move(each) for name, each in (*call.named_parameters(), *call.named_buffers())}
            call = partial(torch.func.functional_call, call, state, given)
        else:
            call = partial(call, *given)
        with mode:
            made = call()
    # torch.tensor(numbers, device="meta") passes no mode; fake tensors take nothing else beside them
    assert all(isinstance(each, FakeTensor) for each in tree_leaves(made)), "the host copies numbers"
    return made


def mps(call, make, on_cpu):
    on_a_device(NoFloat64(), call, make(*SIZES[0]), on_cpu)


def no_sync(call, make, on_cpu):
    mode, made = Waits(), None
    with suppress(*UNKNOWN):  # what could not be read is found
        made = on_a_device(mode, call, make(*SIZES[0]))
    assert not mode.found, f"the host waits for {', '.join(mode.found)}"
    assert {tensor.device.type for tensor in tree_leaves(made)} == {"meta"}


CHECKS = {
    "autocast": autocast,
    "compile": compiles,
    "export": exports,
    "vmap": vmaps,
    "per-sample gradients": gradients,
    "mps": mps,
    "no host-device sync": no_sync,
}
