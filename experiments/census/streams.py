"""Whether something is added to a stream before its first layer, and from which table."""

import re

import torch
from torch import nn


class _Arrived(BaseException):
    """The first layer was reached: nothing after it needs to run."""


def added(model, run):
    """What distinguishes positions before the first layer: learned, fixed, convolution, no or unknown."""
    first = _first_layer(model, run)
    if first is None:
        return "unknown"
    before = _arriving(first, run, 3)
    if before is None:
        return "unknown"
    if not _varies(before):
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


def is_attention(module):
    name = type(module).__name__
    return "Attention" in name or "Attn" in name


def _first_layer(model, run):
    """The first layer of the stack with the first attention that runs, or that attention; None: none runs."""
    order, hooks = [], []
    for path, module in model.named_modules():
        if is_attention(module):
            hooks.append(module.register_forward_pre_hook(lambda *_, path=path: order.append(path)))
    try:
        with torch.no_grad():
            run(3)
    finally:
        for each in hooks:
            each.remove()
    if not order:
        return None
    layers = re.match(r"(.+?)\.\d+\.", f"{order[0]}.")
    first = model.get_submodule(layers[1] if layers else order[0])
    while isinstance(first, nn.ModuleList):
        first = first[0]
    return first


def _arriving(layer, run, token):
    """What enters the layer, (tokens, width); None: it takes no vectors."""
    arrived = []

    def keep(module, args, kwargs):
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.ndim > 1]
        arrived.extend(x for x in given if x.is_floating_point())
        raise _Arrived

    hook = layer.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            run(token)
    except _Arrived:
        pass
    finally:
        hook.remove()
    if not arrived:
        return None
    return arrived[0].flatten(0, -2).double()


def _varies(stream):
    """Between the quarters: beside the ends stand tokens of a class, and what was padded."""
    middle = stream[len(stream) // 4 : max(3 * len(stream) // 4, 2)]
    return float((middle - middle[0]).abs().max()) > 1e-5 * float(stream.abs().max())


def _tells_places(table, layer, run):
    """Whether all positions become equal without this table, while tokens still differ."""
    kept = table.detach().clone()
    with torch.no_grad():
        table.zero_()
        a, b = (_arriving(layer, run, token) for token in (3, 5))
        table.copy_(kept)
    return not _varies(a) and float((a - b).abs().max()) > 1e-5 * float(a.abs().max().clamp(min=1e-9))
