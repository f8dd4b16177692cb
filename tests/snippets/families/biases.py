"""The biases: one line for each function and module that makes (heads, queries, keys) of positions."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.clipped_bias import ClippedBias
from snippets.fire import FireBias
from snippets.kerple import KerpleLog, KerplePower
from snippets.sandwich import sandwich_bias
from snippets.t5_bias import T5Bias

HEADS = 3


class Bias(NamedTuple):
    snippet: str
    make: Callable  # of heads and dtype: what makes the bias of query and key positions
    learned: dict = {}  # shapes by name, as a checkpoint has them
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


FIRE = {
    "c": (),
    "L_multiplier": (),
    "mlp.0.weight": (32, 1),
    "mlp.0.bias": (32,),
    "mlp.2.weight": (HEADS, 32),
    "mlp.2.bias": (HEADS,),
}
PAIR = {"r1": (HEADS,), "r2": (HEADS,)}

BIASES = {
    "alibi": Bias("alibi", alibi(alibi_bias), causal=True),
    "alibi symmetric": Bias("alibi", alibi(alibi_bias_symmetric)),
    "t5": Bias("t5_bias", learned(T5Bias), {"table": (32, HEADS)}),
    "t5 looking back": Bias("t5_bias", learned(T5Bias, bidirectional=False), {"table": (32, HEADS)}),
    "clipped": Bias("clipped_bias", learned(ClippedBias, max_distance=4), {"table": (9, HEADS)}),
    "kerple log": Bias("kerple", learned(KerpleLog), PAIR),
    "kerple power": Bias("kerple", learned(KerplePower), PAIR),
    "fire": Bias("fire", learned(FireBias, init_L=20.0), FIRE, causal=True),
    "sandwich": Bias("sandwich", sandwich, near={"rtol": 0, "atol": 2e-5}),  # sums in float32
}
