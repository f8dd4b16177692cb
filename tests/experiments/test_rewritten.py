"""What was rewritten in a file that stored results ran gives the bits that it gave."""

import inspect
from itertools import product

import pytest
import torch
from torch import Tensor

from executable_prose.execution.provenance import measured_parts, parts_now
from experiments.current import REWRITTEN
from snippets import rope
from snippets.rope import _check, _complex

# Each function as the stored results ran it.


def apply_rope(
    x: Tensor,  # (..., dim)
    cos: Tensor,  # (..., tokens, pairs)
    sin: Tensor,  # (..., tokens, pairs)
    layout: str,
    heads_axis: int = -3,
) -> Tensor:
    _check(x, cos, sin, layout, heads_axis)
    width, dim = 2 * cos.shape[-1], x.shape[-1]
    if width < dim:
        first, rest = x.split((width, dim - width), dim=-1)
        first = apply_rope(first, cos, sin, layout, heads_axis)
        return torch.cat((first, rest), dim=-1)  # (..., dim)
    dtype = torch.promote_types(x.dtype, torch.float32)
    cos, sin = cos.to(x.device, dtype), sin.to(x.device, dtype)
    if cos.ndim == 3 or heads_axis == -2:
        cos, sin = cos.unsqueeze(heads_axis), sin.unsqueeze(heads_axis)
    if layout == "half":
        a, b = x.to(cos).chunk(2, dim=-1)  # (..., pairs)
    elif torch.compiler.is_compiling():
        a, b = x.to(cos).unflatten(-1, (-1, 2)).unbind(-1)  # (..., pairs)
    else:
        # the same, and much faster, but compilers have no complex numbers
        turned = _complex(x.to(cos)) * torch.complex(cos, sin)  # (..., pairs)
        return torch.view_as_real(turned).flatten(-2).to(x)  # (..., dim)
    first = torch.addcmul(a * cos, b, sin, value=-1)  # (..., pairs)
    second = torch.addcmul(a * sin, b, cos)  # (..., pairs)
    if layout == "half":
        return torch.cat((first, second), dim=-1).to(x)  # (..., dim)
    return torch.stack((first, second), dim=-1).flatten(-2).to(x)  # (..., dim)


FORMER = {("snippets/rope.py", "apply_rope"): apply_rope}


def test_each_rewritten_function_is_one_of_these():
    found = {}
    for (file, name), former in FORMER.items():
        digest = measured_parts(inspect.getsource(former))[name]
        found[digest] = parts_now(file)[name]
    assert found == REWRITTEN


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_the_rotation_and_its_gradients_have_the_bits_that_they_had(dtype):
    wide = torch.promote_types(dtype, torch.float32)
    options = product(("half", "interleaved"), (-3, -2), ((2, 3, 5, 16), (3, 7, 33, 130)), (None, 6))
    for layout, heads_axis, shape, width in options:
        tokens = shape[1 if heads_axis == -2 else 2]
        frequencies = rope.rope_frequencies(width or shape[-1], base=10000)
        for positions in (torch.arange(tokens), torch.randint(100_000, (shape[0], tokens))):
            x, weights = torch.randn(2, *shape).to(dtype)
            given = [x, *rope.rope_tables(positions, frequencies, wide)]
            given = [each.requires_grad_() for each in given]
            made = [turn(*given, layout, heads_axis) for turn in (apply_rope, rope.apply_rope)]
            assert torch.equal(*made) and made[0].stride() == made[1].stride()
            gradients = [torch.autograd.grad(each, given, weights) for each in made]
            assert all(map(torch.equal, *gradients))
