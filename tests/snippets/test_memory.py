"""The memory that functions take at most, for each number of what they make, as their docstrings state it."""

from functools import partial

import pytest
import torch

from experiments.measure import peak_bytes
from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.kerple import kerple_log_bias, kerple_power_bias
from snippets.path_attention import path_scores
from snippets.relative_logits import relative_logits
from snippets.sinks import sink_softmax
from snippets.t5_bias import t5_bias, t5_by_offset

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
            by_offset = t5_by_offset(torch.randn(32, heads), bidirectional=both)
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
