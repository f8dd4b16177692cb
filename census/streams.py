"""Whether something is added to a stream before its first attention, and from which table."""

import re

import torch
from torch import nn


class _Arrived(BaseException):
    """The first attention was reached: nothing after it needs to run."""


def added(model, run):
    """What tells places apart before the first attention: learned, fixed, convolution, no or unknown."""
    first = _first_attention(model, run)
    if first is None:
        return "unknown"
    before = [_arriving(first, run, token) for token in (3, 5)]
    if not _varies(before[0]):
        return "no"
    for name, table in [*model.named_parameters(), *model.named_buffers()]:
        numbered = re.search(r"\.\d+\.", name)  # of one layer among many: nothing is added there
        if not numbered and table.is_floating_point() and table.ndim > 1 and _tells_places(table, first, run):
            return _kind(model, name, table)
    return "unknown"


def _kind(model, name, table):
    owner = model.get_submodule(name.rpartition(".")[0])
    if isinstance(owner, (nn.Conv1d, nn.Conv2d)) or "parametrizations" in name:
        return "convolution"
    return "learned" if table.requires_grad and not is_sinusoids(table.detach()) else "fixed"


def is_sinusoids(table):
    """Is each column of (..., rows, width) a sinusoid of its row: x[n+1] + x[n-1] = 2 cos(w) x[n]?"""
    x = table.double().flatten(0, -2)[-8:]  # early rows may be for padding
    if len(x) < 8:
        return False
    sides, middle = x[2:] + x[:-2], x[1:-1]
    cosines = (sides * middle).sum(0) / middle.square().sum(0).clamp(min=1e-30)
    off = (sides - cosines * middle).abs().max()
    return bool(off <= 1e-4 * x.abs().max()) and bool((x != x[0]).any())


def _first_attention(model, run):
    """The outermost module with an attention's name that runs first, None where none does."""
    order, hooks = [], []
    for module in model.modules():
        name = type(module).__name__
        if "Attention" in name or "Attn" in name:
            hooks.append(module.register_forward_pre_hook(lambda module, _: order.append(module)))
    try:
        with torch.no_grad():
            run(3)
    finally:
        for each in hooks:
            each.remove()
    return order[0] if order else None


def _arriving(attention, run, token):
    """What enters the attention, (tokens, width)."""
    arrived = []

    def keep(module, args, kwargs):
        arrived.extend(x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.ndim > 2)
        raise _Arrived

    hook = attention.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            run(token)
    except _Arrived:
        pass
    finally:
        hook.remove()
    return arrived[0].flatten(1, -2)[0].double()


def _varies(stream):
    """Between the quarters: beside the ends stand tokens of a class, and what was padded."""
    middle = stream[len(stream) // 4 : max(3 * len(stream) // 4, 2)]
    return float((middle - middle[0]).abs().max()) > 1e-5 * float(stream.abs().max())


def _tells_places(table, attention, run):
    """Are all places the same without this table, and tokens still not?"""
    kept = table.detach().clone()
    with torch.no_grad():
        table.zero_()
        a, b = (_arriving(attention, run, token) for token in (3, 5))
        table.copy_(kept)
    return not _varies(a) and float((a - b).abs().max()) > 1e-5 * float(a.abs().max().clamp(min=1e-9))
