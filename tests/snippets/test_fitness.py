"""Each word that a docstring lists after «Supports», for each file of a family."""

import inspect
import re
import sys
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock, call

import pytest
import torch

from snippets.swin_bias import log_spaced_offsets
from snippets.vit_table import _shares
from tests.snippets import devices
from tests.snippets.fitness import CHECKS, SIZES, Case, Waits, all_cases, called, on_a_device, words

CASES = all_cases()
FILES = sorted({case.of.__module__ for case in CASES})
SLOW = {"compile": pytest.mark.slow, "export": pytest.mark.slow}
CLAIMED = [
    pytest.param(case, word, id=f"{case.of.__name__}-{word}", marks=SLOW.get(word, ()))
    for case in CASES
    for word in words(case.of)
]


def takes_tensors(of):
    taken = inspect.signature(getattr(of, "forward", of)).parameters.values()
    return any(parameter.annotation is torch.Tensor for parameter in taken)


def test_no_file_says_what_no_family_checks():
    files = (Path(__file__).parents[2] / "snippets").glob("*.py")
    told = [file.stem for file in files if "    Supports " in file.read_text(encoding="utf-8")]
    lacking = [name for name in told if f"snippets.{name}" not in FILES]
    assert not lacking, f"Supports: no case in tests/snippets/families/ checks what {lacking} say"


@pytest.mark.parametrize("file", FILES)
def test_every_docstring_says_what_it_is_fit_for(file):
    mine = vars(sys.modules[file]).values()
    public = {of for of in mine if inspect.isroutine(of) or inspect.isclass(of)}
    public = {of for of in public if of.__module__ == file and not of.__name__.startswith("_")}
    assert {case.of for case in CASES if case.of.__module__ == file} == set(filter(takes_tensors, public))
    for of in public:
        assert bool(words(of)) == takes_tensors(of), of.__name__
        assert set(words(of) or ()) <= set(CHECKS), of.__name__


# torch's own errors must do for these: trained results are bound to their code.
UNCHECKED = "additive_mask", "Block", "document_positions"
CHECKED = [case for case in CASES if case.of.__name__ not in UNCHECKED]


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case.of.__name__)
def test_too_few_axes_are_refused_in_its_own_words(case):
    """Each tensor, with fewer and fewer of its first axes: it may fit, or a ValueError says what would."""
    call, given = called(case), case.make(*SIZES[0])
    for place, tensor in enumerate(given):
        for axes in range(tensor.ndim):
            fewer = tensor[(0,) * (tensor.ndim - axes)]
            try:
                call(*given[:place], fewer, *given[place + 1 :])
            except ValueError as error:
                assert re.search(r" must .*, got (torch\.\w+ )?(\(|\d)", str(error)), error


@pytest.mark.parametrize(("case", "word"), CLAIMED)
def test_it_is_fit_for_what_it_says(case, word):
    CHECKS[word](called(case), *case[2:])


# --- a check of "no host-device sync" that can fail, and what positions on the CPU cost

WAITS = {
    "a number": lambda x: x.sum().item(),
    "numbers": lambda x: x.tolist(),
    "a condition": lambda x: x if (x > 0).any() else -x,
    "a number whose absence is excused": lambda x: excused(x),
    "a comparison": lambda x: torch.equal(x, x),
    "indices of a mask": lambda x: (x > 0).nonzero(),
    "what a mask picks": lambda x: x[x > 0],
    "what a mask writes": lambda x: x.clone().index_put_((x > 0,), x.new_zeros(())),
    "a selection": lambda x: x.masked_select(x > 0),
    "repeats": lambda x: x.repeat_interleave(torch.arange(3, device=x.device), 0),
    "a check of a factorization": lambda x: torch.linalg.inv(x[:, :3]),
    "an eigendecomposition": lambda x: torch.linalg.eigh(x[:, :3]),
    "singular values": lambda x: torch.linalg.svd(x)[1],
    "an eigendecomposition of any matrix": lambda x: torch.linalg.eig(x[:, :3])[0],
    "different numbers": lambda x: x.unique(),
    "a copy to the device": lambda x: x * torch.arange(4).to(x),
    "a copy to the host": lambda x: x.cpu(),
    "a copy to the host for which nothing waits yet": lambda x: x.to("cpu", non_blocking=True),
    "a copy in place": lambda x: x.clone().copy_(torch.ones(3, 4)),
    "an assignment from the host": lambda x: assigned(x.clone()),
    "indices on the host": lambda x: x[torch.arange(2)],
    "a list of indices": lambda x: x[[0, 1]],
    "numbers of a list": lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device),
    "numbers of a list beside x": lambda x: x * x.new_tensor([1.0, 2.0, 3.0, 4.0]),
}
WAITS_FOR_NOTHING = {
    "arithmetic": lambda x: (x * torch.tensor(2.0)).softmax(-1) @ x.mT,
    "a mask": lambda x: x.masked_fill(x > 0, 3.0),
    "a range on the device": lambda x: x[torch.arange(2, device=x.device)],
    "a slice": lambda x: x[..., None, 1:].flip(0),
}


def excused(x):
    try:
        return x[: int(x.sum())]
    except RuntimeError:
        return x


def assigned(x):
    x[0] = torch.ones(4)
    return x


@pytest.mark.parametrize("call", WAITS.values(), ids=WAITS)
def test_a_call_that_makes_the_host_wait_is_refused(call):
    with pytest.raises(AssertionError, match=r"the host|convert all Tensors to FakeTensors"):
        CHECKS["no host-device sync"](call, lambda *sizes: (torch.randn(3, 4),), ())


@pytest.mark.parametrize("call", WAITS_FOR_NOTHING.values(), ids=WAITS_FOR_NOTHING)
def test_a_call_that_makes_the_host_wait_for_nothing_passes(call):
    CHECKS["no host-device sync"](call, lambda *sizes: (torch.randn(3, 4),), ())


def offsets_of_the_host(grid, trained, dtype=torch.float64, device="cpu"):
    return log_spaced_offsets(grid, trained, dtype).to(device)


def weights_of_the_host(old, new, convention, count):
    device = count.keywords["device"]
    return _shares(old, new, convention, partial(torch.arange, dtype=torch.float64)).to(device)


def drawn_by_the_host(low, high, size, generator, device, randint=torch.randint):
    return randint(low, high, size, generator=generator)


# Four functions that copied from the CPU in each call: where what is copied is made, and how it was made.
PUT_BACK = {
    "SwinV2Bias": ("snippets.swin_bias.log_spaced_offsets", offsets_of_the_host),
    "random_signs": ("torch.randint", drawn_by_the_host),
    "resize_table": ("snippets.vit_table._shares", weights_of_the_host),
    "AddGridTable": ("snippets.vit_table._shares", weights_of_the_host),
}


@pytest.mark.parametrize("name", PUT_BACK)
def test_a_copy_from_the_cpu_that_is_put_back_is_found(name, monkeypatch):
    *_, last = (case for case in CASES if case.of.__name__ == name)  # the first AddGridTable resizes nothing
    CHECKS["no host-device sync"](called(last), *last[2:])
    monkeypatch.setattr(*PUT_BACK[name])
    with pytest.raises(AssertionError, match="the host waits for aten::_to_copy"):
        CHECKS["no host-device sync"](called(last), *last[2:])


NO_SYNC = [case for case in CASES if "no host-device sync" in words(case.of)]


@pytest.mark.parametrize("case", NO_SYNC, ids=lambda case: case.of.__name__)
def test_a_docstring_says_where_positions_on_the_cpu_make_the_host_wait(case):
    inputs = case.make(*SIZES[0])
    whole = [index for index, each in enumerate(inputs) if not each.is_floating_point()]
    for on_cpu in {(*whole,), case.on_cpu}:
        mode = Waits()
        try:
            on_a_device(mode, called(case), inputs, on_cpu)
        except RuntimeError:  # such devices are refused
            continue
        assert not mode.found or "the host waits" in " ".join(case.of.__doc__.split())


# --- the checks for a real device, with the CPU in its place

ON_A_DEVICE = {
    f"{case.of.__name__}-{check.__name__}": (case, check)
    for case in CASES
    if case.of.__name__ in ("apply_rope", "T5Bias", "random_signs", "kerple_power_bias")
    for check in devices.checks(case)
    if check is not devices.compiles
}


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(torch, "cuda", MagicMock())
    return torch.cuda


@pytest.mark.parametrize(("case", "check"), ON_A_DEVICE.values(), ids=ON_A_DEVICE)
def test_a_check_for_a_device_passes_on_the_cpu(case, check, cuda):
    check(case, "cpu")


@pytest.mark.slow
def test_a_compiled_case_passes_on_the_cpu():
    devices.compiles(ON_A_DEVICE["apply_rope-values"][0], "cpu")


def waits(x):
    """An error while torch.cuda treats what waits as one, as a copy to the device is there."""
    if torch.cuda.set_sync_debug_mode.call_args == call("error"):
        raise RuntimeError("called a synchronizing CUDA operation")
    return x


FAILING = {
    devices.values: lambda x: x + torch.rand(()),
    devices.gradients: lambda x: x * torch.rand(()),
    devices.bfloat16: lambda x: x + torch.rand(()),
    devices.autocast: lambda x: x @ x.mT,
    devices.compiles: lambda x: x if x.sum() > 0 else -x,
    devices.no_sync: waits,
    devices.graph: lambda x: x + torch.rand(()),
}


@pytest.mark.parametrize(("check", "function"), FAILING.items(), ids=lambda each: each.__name__)
def test_a_check_for_a_device_can_fail(check, function, request):
    cuda = check is not devices.compiles and request.getfixturevalue("cuda")
    with pytest.raises((AssertionError, RuntimeError)):
        check(Case(function, function, lambda *sizes: (torch.randn(sizes),)), "cpu")
    if check is devices.no_sync:
        assert cuda.set_sync_debug_mode.call_args == call("default")
    if check is devices.graph:
        assert cuda.graph.called and cuda.CUDAGraph().replay.called
