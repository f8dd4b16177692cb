"""The biases: one line for each function and module that makes (heads, queries, keys) of positions."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.clipped_bias import ClippedBias, clipped_bias, clipped_bias_consecutive
from snippets.fire import FireBias
from snippets.kerple import KerpleLog, KerplePower, kerple_log_bias, kerple_power_bias
from snippets.sandwich import sandwich_bias
from snippets.swin_bias import SwinBias, SwinV2Bias, relative_position_index, swin_bias, swin_bias_consecutive
from snippets.t5_bias import T5Bias, t5_bias, t5_bias_by_offset, t5_bias_consecutive, t5_buckets
from tests.snippets.fitness import Case

HEADS = 3


class Bias(NamedTuple):
    snippet: str
    make: Callable  # of heads and dtype: what makes the bias of query and key positions
    learned: bool = False
    causal: bool = False  # hides later keys itself
    near: dict = {"rtol": 0, "atol": 1e-12}  # how close a row made alone is


def learned(kind, **options):
    """A module with numbers of its own that are not those it starts with, where these are zero."""

    def make(heads, dtype):
        module = kind(heads, **options)
        if hasattr(module, "table"):
            torch.nn.init.normal_(module.table)
        return module.to(dtype)

    return make


def alibi(function):
    return lambda heads, dtype: partial(function, slopes=alibi_slopes(heads), dtype=dtype)


def sandwich(heads, dtype):
    return partial(sandwich_bias, heads=heads, dtype=dtype)


BIASES = {
    "alibi": Bias("alibi", alibi(alibi_bias), causal=True),
    "alibi symmetric": Bias("alibi", alibi(alibi_bias_symmetric)),
    "t5": Bias("t5_bias", learned(T5Bias), learned=True),
    "t5 looking back": Bias("t5_bias", learned(T5Bias, bidirectional=False), learned=True),
    "clipped": Bias("clipped_bias", learned(ClippedBias, max_distance=4), learned=True),
    "kerple log": Bias("kerple", learned(KerpleLog), learned=True),
    "kerple power": Bias("kerple", learned(KerplePower), learned=True),
    "fire": Bias("fire", learned(FireBias, init_L=4.0), learned=True, causal=True),
    "sandwich": Bias("sandwich", sandwich, near={"rtol": 0, "atol": 2e-5}),  # sums in float32
}


# --- what each supports, as test_fitness.py asks


def pair(batch, tokens):
    return torch.randint(0, 300, (batch, tokens)), torch.randint(0, 300, (batch, tokens + 2))


def rows(batch, tokens):
    return torch.randint(0, 300, (tokens,)), torch.randint(0, 300, (tokens + 2,))


def beside(*shapes, make=pair):
    """Positions and, after them, tensors of these shapes."""
    return lambda batch, tokens: (*make(batch, tokens), *(torch.rand(shape) for shape in shapes))


def offsets(batch, tokens):
    return (torch.randint(-200, 200, (batch, tokens)),)


def tables_of(rows):
    return lambda batch, tokens: (torch.randn(rows, HEADS),)


def modules(make):
    return [
        Case(kind, partial(learned(kind, **options), HEADS, torch.float32), make)
        for kind, options in (
            (T5Bias, {}),
            (ClippedBias, {"max_distance": 4}),
            (KerpleLog, {}),
            (KerplePower, {}),
            (FireBias, {"init_L": 20.0}),
        )
    ]


def consecutive(function, shape):
    """Of as many queries as a tensor has numbers, two more keys, and a table."""
    return Case(
        function,
        lambda tokens, table: function(tokens.numel(), tokens.numel() + 2, table),
        lambda batch, tokens: (torch.rand(tokens), torch.randn(shape)),
    )


WINDOW = (4, 3)


def places(batch, tokens):
    """Within a window."""
    return tuple(torch.randint(0, 3, (batch, count, 2)) for count in (tokens, tokens + 2))


CASES = [
    Case(relative_position_index, partial(relative_position_index, window_size=WINDOW), places),
    Case(
        swin_bias,
        partial(swin_bias, window_size=WINDOW),
        lambda *sizes: (*places(*sizes), torch.randn(35, HEADS)),
    ),
    Case(swin_bias_consecutive, partial(swin_bias_consecutive, window_size=WINDOW), tables_of(35)),
    Case(SwinBias, partial(SwinBias, HEADS, WINDOW), places),
    Case(SwinV2Bias, partial(SwinV2Bias, HEADS, WINDOW, hidden=9), places),
    Case(SwinV2Bias, partial(SwinV2Bias, HEADS, WINDOW, pretrained_window_size=(3, 3), hidden=9), places),
    Case(t5_buckets, t5_buckets, offsets),
    Case(t5_buckets, partial(t5_buckets, bidirectional=False), offsets),
    Case(t5_bias_by_offset, t5_bias_by_offset, tables_of(32)),
    *(
        Case(function, call, beside(*shapes, make=make), (0, 1) if function is sandwich_bias else ())
        for make in (pair, rows)
        for function, call, *shapes in (
            (alibi_bias, alibi_bias, (HEADS,)),
            (alibi_bias_symmetric, alibi_bias_symmetric, (HEADS,)),
            (t5_bias, t5_bias, (HEADS, 257)),
            (clipped_bias, clipped_bias, (17, HEADS)),
            (kerple_log_bias, kerple_log_bias, (HEADS,), (HEADS,)),
            (kerple_power_bias, kerple_power_bias, (HEADS,), (HEADS,)),
            (sandwich_bias, partial(sandwich_bias, heads=HEADS)),
        )
    ),
    *(consecutive(t5_bias_consecutive, (HEADS, most)) for most in (5, 257)),
    *(consecutive(clipped_bias_consecutive, (most, HEADS)) for most in (1, 17)),
    *modules(pair),
    *modules(rows),
]
