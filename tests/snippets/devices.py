"""What is checked of each case of families/ on a real device; test_cuda.py runs it where there is one.

values, gradients, bfloat16    as on the CPU, or refused there and here
autocast      the same bits, of the same dtype, as without it
compile       by Inductor, one graph for all sizes
no sync       in the mode of torch.cuda that makes what waits an error
graph         captured in a CUDA graph, which gives the same when it is replayed

A gap is allowed that is a small part of the largest number: a device adds in another order.
"""

import copy

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

from snippets.graph_positions import random_signs
from tests.snippets.fitness import SIZES, called, words

FLOAT32, BFLOAT16 = 1e-4, 2e-2


def prepared(case, device, dtype=None):
    """The call and its inputs on the CPU, and the same on the device."""
    call, given = called(case), tree_map(lambda each: narrow(each, dtype), case.make(*SIZES[0]))
    if case.of is random_signs:  # each device draws its own
        call = magnitude(call)
    if not isinstance(call, torch.nn.Module):
        return call, given, call, there(given, device)
    call = call.to(dtype)
    return call, given, copy.deepcopy(call).to(device), there(given, device)


def magnitude(call):
    return lambda *given: call(*given).abs()


def narrow(tensor, dtype):
    return tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor


def there(tensors, device):
    return tree_map(lambda each: each.to(device), tensors)


def same(made, expected, share):
    """Compare on the CPU: each gap is at most this share of the largest finite number, or of 1."""
    for one, other in zip(tree_leaves(made), tree_leaves(expected), strict=True):
        finite = torch.view_as_real(other) if other.is_complex() else other.double()
        largest = finite[finite.isfinite()].abs().max().item() if finite.isfinite().any() else 0.0
        gap = share * max(1.0, largest)
        assert_close(one.cpu(), other.cpu(), rtol=0, atol=gap, equal_nan=True)


def values(case, device):
    call, given, moved, inputs = prepared(case, device)
    same(moved(*inputs), call(*given), FLOAT32)


def gradients(case, device):
    call, given, moved, inputs = prepared(case, device)
    same(squares(moved, inputs), squares(call, given), FLOAT32)


def squares(call, given):
    """The gradients of the sum of the squares of what a call returns, with regard to all that has one."""
    given = [each.clone().requires_grad_() if each.is_floating_point() else each for each in given]
    made = [each for each in tree_leaves(call(*given)) if each.requires_grad]
    asked = [each for each in given if each.requires_grad]
    asked += call.parameters() if isinstance(call, torch.nn.Module) else []
    if not made or not asked:
        return []
    loss = sum(each.abs().double().square().sum() for each in made)
    found = torch.autograd.grad(loss, asked, allow_unused=True)
    return [each for each in found if each is not None]


def bfloat16(case, device):
    """Where the CPU refuses it, the device does, in the same words."""
    call, given, moved, inputs = prepared(case, device, torch.bfloat16)
    made, expected = made_or_refused(moved, inputs), made_or_refused(call, given)
    if isinstance(expected, str) or isinstance(made, str):
        assert made == expected
    else:
        same(made, expected, BFLOAT16)


def made_or_refused(call, given):
    try:
        return call(*given)
    except ValueError as error:
        return str(error)


def autocast(case, device):
    *_, call, given = prepared(case, device)
    with torch.autocast(torch.device(device).type, torch.bfloat16):
        made = call(*given)
    assert_close(made, call(*given), rtol=0, atol=0, equal_nan=True)


def compiles(case, device):
    torch.compiler.reset()
    call = prepared(case, device)[2]
    compiled = torch.compile(call, fullgraph=True, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in SIZES:
            given = there(case.make(*sizes), device)
            same(compiled(*given), call(*given), FLOAT32)


def no_sync(case, device):
    *_, call, given = prepared(case, device)
    call(*given)  # what is set up once may wait
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call(*given)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def graph(case, device):
    *_, call, given = prepared(case, device)
    expected = call(*given)
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        call(*given)
    torch.cuda.current_stream().wait_stream(beside)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        made = call(*given)
    captured.replay()
    torch.cuda.synchronize()
    same(made, expected, FLOAT32)


# What is checked of every case, and what where a docstring says the word.
ALL = values, gradients, bfloat16
SAID = {"autocast": [autocast], "compile": [compiles], "no sync": [no_sync, graph]}


def checks(case):
    """The checks that apply to a case."""
    return [*ALL, *(check for word in words(case.of) for check in SAID.get(word, ()))]
