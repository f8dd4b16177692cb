"""The memory that functions take at most, for each number of what they make, as their docstrings state it."""

from functools import partial

import pytest
import torch
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb

from experiments.measure import peak_bytes
from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.axial_rope import apply_axial_rope, axial_frequencies, axial_rope_tables
from snippets.kerple import kerple_log_bias, kerple_power_bias
from snippets.path_attention import path_scores
from snippets.relative_logits import relative_logits
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinks import sink_softmax
from snippets.t5_bias import t5_bias, t5_bias_by_offset

QUERIES, KEYS = 256, 320
AT = torch.arange(QUERIES), torch.arange(KEYS)


def learned(heads):
    return tuple(torch.rand(2, heads).requires_grad_().unbind())


def gradients(function, heads):
    r, given = learned(heads), torch.ones(heads, QUERIES, KEYS)
    return lambda: torch.autograd.grad(function(*AT, *r), r, given)


def rows():
    """(name, call, the least and the most bytes for each pair of a query and a key)."""
    for heads in (3, 8):
        slopes, least = alibi_slopes(heads), 4 * heads
        for function in (alibi_bias, alibi_bias_symmetric):
            for dtype, more in ((torch.float32, 13), (torch.bfloat16, 13 + 2 * heads)):
                most = 1.02 * (least + more)
                yield f"alibi {heads} {dtype}", partial(function, *AT, slopes, dtype), least, most
    for heads in (4, 8):
        fixed = tuple(torch.rand(2, heads))
        for name, call, each in (
            ("log", partial(kerple_log_bias, *AT, *fixed), 4 * heads + 4),
            ("log, learned", partial(kerple_log_bias, *AT, *learned(heads)), 12 * heads + 4),
            ("log, gradients", gradients(kerple_log_bias, heads), 20 * heads + 4),
            ("power", partial(kerple_power_bias, *AT, *fixed), 8 * heads + 4),
            ("power, learned", partial(kerple_power_bias, *AT, *learned(heads)), 8 * heads + 4),
            ("power, gradients", gradients(kerple_power_bias, heads), 25 * heads + 8),
        ):
            yield f"kerple {name} {heads}", call, each - 1, 1.02 * each
    for heads in (2, 8):
        for both in (True, False):
            by_offset = t5_bias_by_offset(torch.randn(32, heads), bidirectional=both)
            call, most = partial(t5_bias, *AT, by_offset), 1.02 * (4 * heads + 8)
            yield f"t5 {heads} {both}", call, 4 * heads, most
        for extent in (3, 64):
            states, bank = torch.randn(heads, QUERIES, 5), torch.randn(5, extent)
            stated = 4 * heads + 8 + 4 * heads * (extent + 1) / KEYS
            call = partial(relative_logits, states, bank, *AT)
            yield f"relative logits {heads} {extent}", call, 0.9 * stated, 1.02 * stated
    scores = torch.randn(4, QUERIES, KEYS)
    yield "sinks", partial(sink_softmax, scores, torch.randn(4)), 4 * 7.9, 4 * 8.3
    for heads, tokens, dim in ((4, 512, 32), (8, 768, 64)):
        given = *torch.randn(3, heads, tokens, dim), torch.rand(heads, tokens)
        pairs = heads * tokens**2 / (QUERIES * KEYS)
        yield f"path {heads}", partial(path_scores, *given), 8 * pairs, 10 * pairs


@pytest.mark.parametrize(("call", "least", "most"), [pytest.param(*row, id=name) for name, *row in rows()])
def test_the_memory_it_takes_is_the_one_it_states(call, least, most):
    assert least < peak_bytes(call) / (QUERIES * KEYS) <= most


def cast_after_joining(x, cos, sin):
    a, b = x.to(cos).chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("width", [32, 12])
def test_a_rotation_of_halves_takes_no_more_memory_than_that_of_transformers(width, dtype, gradients):
    """At most three times that of q, as its docstring states; one that is cast last takes more than both."""
    q = torch.randn(2, 4, QUERIES, 32).to(dtype).requires_grad_(gradients)
    k, frequencies = q[:, :1].detach(), rope_frequencies(width, base=10000)
    tables = rope_tables(AT[0], frequencies)
    theirs = [torch.cat((each, each), -1)[None].to(dtype) for each in tables]
    most = peak_bytes(lambda: apply_rotary_pos_emb(q, k, *theirs))
    assert peak_bytes(lambda: apply_rope(q, *tables, "half")) <= min(most, 3 * q.nbytes)
    if width == 32 and dtype != torch.float32:
        assert peak_bytes(lambda: cast_after_joining(q, *tables)) > max(most, 3 * q.nbytes)


@pytest.mark.parametrize("layout", ["half", "half_by_axis"])
def test_a_rotation_of_halves_by_axes_takes_four_times_its_input_at_most(layout):
    """In bfloat16, of which a float32 copy, its rotated halves and all of them joined take more."""
    x = torch.randn(2, 4, QUERIES, 32).bfloat16()
    tables = axial_rope_tables(torch.randint(9, (QUERIES, 2)), axial_frequencies(32, "each", base=100))
    assert peak_bytes(lambda: apply_axial_rope(x, *tables, layout)) <= 4 * x.nbytes
