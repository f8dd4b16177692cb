# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-28
"""Check the positions of a rotation, an attention or a model.

Each check tests one question with a known answer and returns a Finding: the
question, the expected and the found answer, the tolerance, the first position
at which they differ, and the most common cause. Its verdict is printed as one
of

    passes, fails
    reads           a measured property, for which there is no right answer
    not guaranteed  the results differ, but nothing guarantees that they agree
    inconclusive    the check could not have failed here, or could not run; the
                    answer gives the reason

In code and JSON, the last two are "no promise" and "no power". Pass your code:
rotate(x, positions) to check_rotation; attend(q, k, v, query_positions,
key_positions) to check_attention; a model to check_model, a function that
builds it to check_start. report(findings) returns a table,
assert_positions(findings) raises an AssertionError with the failures. The shell
command, for models of transformers,

    python check_positions.py transformers:path-or-config.json [--json]

builds a small random model from its configuration, or loads a folder that has
weights, and exits with 1 if a check fails.

Tolerances: eps is the rounding of float32, the dtype of tables of angles, or of
a coarser dtype that is tested. A rotation by p radians is right to 4 p eps. The
logits of a model are right to 16 times their change when each weight changes by
one rounding, and when the batch grows.

References:
    arXiv:2104.09864, section 3.2.2 (a rotation, its pairs and frequencies).
    arXiv:2309.00071v2, section 3.4, and modeling_rope_utils.py in
    github.com/huggingface/transformers at v5.23.0 (the kinds of scaling).
    The questions are this guide's own.
"""

import argparse
import copy
import importlib
import inspect
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

EPS = 1.1920928955078125e-07  # machine epsilon of float32, 2^-23
EXACT = "donot_use_mm_for_euclid_dist"  # of torch.cdist
NO_CACHE = "the model returns no cache"
SUPPORTED = (4, 57), (5, 24)  # first and last minor version of transformers
CACHES = "cache", "past_key_values", "cache_params"  # newest name first
EVERY = 1_000  # heads: more than any configuration has
LARGEST = 400_000_000  # weights of a model that is built with all its heads
LAYERS = (
    r"(num_hidden_layers|n_layers?|num_layers|depth|num_blocks|"
    r"num_hidden_groups|(num_)?(encoder|decoder|text|vision|pred)_layers|"
    r"num_(encoder|decoder|block)_layers|(encoder|decoder)_num_hidden_layers)"
)
HEADS = (
    r"((num_)?(encoder_|decoder_|global_)?attention_heads|n_heads?|num_heads|"
    r"num_(encoder|decoder)_attention_heads)"
)
KEY_HEADS = r"((\w+_)?num_(global_)?key_value_heads|num_kv_heads|n_head_kv)"
WIDTH = r"(hidden_size|d_model|n_embd|embed_dim|hidden_dim|dim|emb_dim)"
NEAR = (
    "sliding_window",
    "sliding_window_size",
    "local_attention",
    "index_topk",
    "attention_chunk_size",
    "window_size",
)
MOST = (  # largest value of keys with these names
    (r"(\w+_)?vocab_size\w*", 512),
    (r"\w*(num|n)_(\w+_)?experts", 4),
    (r"\w*(experts_per_tok|moe_top_?k)\w*|top_k|moe_k", 2),
    (r"n_group|topk_group|num_expert_group", 1),
    (r"frames_per_clip", 4),
    (r"(mamba_)?chunk_size", 16),
    (r"\w*(intermediate|ffn_dim|ffn_hidden)\w*", 128),
    (r"\w*(d_ff|n_inner|mlp_dim|d_inner)\w*", 128),
)
ROUTER = r"\w*experts_per_tok\w*|n_group|topk_group|num_expert_group"
MIXERS = (  # expansion, number of heads, width of a head, groups
    ("mamba_expand", "mamba_n_heads", "mamba_d_head", "mamba_n_groups"),
    ("mamba_expand", "n_mamba_heads", "mamba_headdim", "mamba_ngroups"),
    ("expand", "num_heads", "head_dim", "n_groups"),
)

CHECKS = """
finite: Are all values finite?
    a query that sees no key, or memory that was never initialised
input_kept: Does the call leave x unchanged?
    an in-place operation, such as mul_
same_twice: Do two equal calls return the same?
    dropout that is still on, or a cache whose key is incomplete
norm_kept: Does a vector have the same norm at all positions?
    the table in one layout and the swap in the other
one_layout: Are both channels of each pair rotated by the same angle?
    repeat where repeat_interleave belongs, or the reverse
precise_angles: Are angles at late positions right?
    angles or positions in half precision: .to(dtype) or autocast before sin and
    cos
offsets_alone: Do scores depend on offsets alone?
    the table in one layout and the swap in the other, or a position that is
    clamped, restarted or rounded
place_alone: Is a token rotated the same alone and among others?
    positions counted from 0 in each call, or a table that was kept from another
    length
reaches: Does the code support so many positions?
    a table with fewer rows, or one whose first rows are not for positions
positions_in_order: Has each position its own rotation, up to the last one?
    positions that are clamped or wrapped at the rows of a table, or a table in
    reverse order
keys_as_queries: Are queries and keys rotated by the same positions?
    positions of queries that are counted before, and those of keys after, the
    cache has grown
longest: Are early tokens rotated the same with a late token in the call?
float64: Does it run on a device without float64?
    frequencies in float64: compute them on the CPU, and move float32
as_configured: Does the rotation match its configuration?
    a key of the configuration that is not read, or read twice; weights that
    were converted without their layout
adds_up: Do the attention weights of a query add up to 1?
    a sink that the kernel does not support
hidden_keys: Which keys does a token see?
    a window that counts the token itself on one side only, or a causal mask
    that is aligned to the top left
rows_alone: Do the last queries alone have the same weights as among all?
    a mask or a bias counted from the first key, not from the query's position
fewer_keys: Do weights stay the same without the later keys?
    a table that is read from its front or its end by the number of keys
scale: By which factor is the product of a query and a key multiplied?
    the width of another head, or a factor that is applied twice or not at all
bias: What do positions add to the scores?
    slopes of another number of heads, as of the local heads only
order: Does the order of tokens change anything?
begins: Where do the model's own positions begin?
position_ids: Does the model read the positions that it is given?
    positions that are not passed on to the attention
no_peeking: Are logits independent of later tokens?
    a mask that is not causal, or is aligned to the wrong corner
alone_in_batch: Is a sequence the same next to a padded one as alone?
    something that is decided for a whole batch, such as any() of a mask
alone_as_padded: Is a sequence with padding on its left the same as alone?
    positions that count the padding, or a mask that ignores it
padded_as_steps: Is it the same as alone when read token by token, too?
    a mask or positions that ignore the padding once there is a cache
alone_as_packed: Is a sequence packed after another the same as alone?
    positions that restart without a mask between documents
moved_as_here: Does moving all positions by 100 change nothing?
    positions that are ignored, or a table
whole_as_steps: Is a sequence read token by token the same as in one pass?
    positions that restart with the cache or are read while its layers grow, or
    keys that are rotated twice
whole_as_chunks: Is a sequence read in chunks the same as in one pass?
    a mask without the cache's offset
past_limits: Is a prompt beyond every limit the same in chunks as in one pass?
    a window or a selection that differs with a cache
saved_and_loaded: Does a model that loads a checkpoint get all its values?
    values that are sampled again in each model, and are not in the checkpoint
started_on_meta: Does one that was built on meta, and emptied, get all values?
    values computed in __init__ that are not in the checkpoint: register them,
    or compute them again
layers_as_configured: Does the rotation of each layer match its configuration?
    a key of the configuration that is not read, or that belongs to layers of
    another kind
model: Which model was tested?
"""  # the question of each check, and the most common cause of a failure
LEADS = (  # a check that fails, and those whose failure has the same cause
    ("input_kept", ("same_twice",)),
    ("place_alone", ("positions_in_order", "precise_angles", "offsets_alone")),
    ("one_layout", ("norm_kept", "precise_angles", "offsets_alone",
                    "positions_in_order", "as_configured")),
    ("norm_kept", ("precise_angles", "offsets_alone", "positions_in_order")),
    ("positions_in_order", ("precise_angles", "offsets_alone",
                            "as_configured", "moved_as_here")),
    ("position_ids", ("alone_as_packed",)),
    ("hidden_keys", ("rows_alone", "offsets_alone", "no_peeking")),
    ("rows_alone", ("fewer_keys", "offsets_alone")),
    ("no_peeking", ("whole_as_steps", "whole_as_chunks", "padded_as_steps")),
    ("alone_in_batch", ("alone_as_padded", "padded_as_steps")),
    ("alone_as_padded", ("padded_as_steps",)),
    ("whole_as_steps", ("whole_as_chunks", "padded_as_steps")),
)  # fmt: skip


class Rotate(Protocol):
    """Define the signature of a rotation, or of an encoding that is added."""

    def __call__(self, x: Tensor, positions: Tensor, /) -> Tensor:
        """Return the rotated queries or keys.

        Args:
            x: Queries or keys, shape `(1, heads, tokens, dim)`.
            positions: Position of each token, shape `(tokens,)`, int64.

        Returns:
            The rotated tensor, in the shape of `x`.
        """
        ...


class Attend(Protocol):
    """Define the signature of an attention."""

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor, /
    ) -> Tensor:
        """Return the output of the attention.

        Args:
            q: Queries, shape `(1, heads, queries, dim)`.
            k: Keys, shape `(1, heads, keys, dim)`.
            v: Values, shape `(1, heads, keys, dim)`.
            i: Position of each query, shape `(queries,)`, int64.
            j: Position of each key, shape `(keys,)`, int64.

        Returns:
            The output, in the shape of `q`.
        """
        ...


class Model(Protocol):
    """Define the signature of a model, as `check_model` calls it."""

    def __call__(
        self,
        ids: Tensor,
        mask: Tensor | None,
        positions: Tensor | None,
        cache: Any,
        /,
    ) -> tuple[Tensor, Any]:
        """Return the logits and the cache.

        Args:
            ids: Token ids, shape `(batch, tokens)`, int64.
            mask: False for padding, shape `(batch, keys)`, bool. None if the
                model has to compute it.
            positions: Position of each token, shape `(batch, tokens)`, int64.
                None if the model has to compute them.
            cache: The cache that an earlier call returned; None in the first
                call.

        Returns:
            The logits, shape `(batch, tokens, ...)`, and the cache, which is
            None for a model without a cache.
        """
        ...


@dataclass(frozen=True)
class Finding:
    """Hold the answer of a check.

    Attributes:
        check: Name of the check, as in `CHECKS`.
        verdict: "passes", "fails", "reads", "no promise" (printed as "not
            guaranteed") or "no power" (printed as "inconclusive").
        question: The question that the check tests.
        expected: The expected answer; empty unless the verdict is "passes" or
            "fails".
        found: The found answer.
        tolerance: Largest difference that passes; None if nothing was compared
            numerically.
        where: First position, channel or layer that is wrong; empty if there is
            none.
        cause: Most common cause of the failure; empty unless the verdict is
            "fails".
    """

    check: str
    verdict: str
    question: str
    expected: str
    found: str
    tolerance: float | None = None
    where: str = ""
    cause: str = ""

    def __str__(self) -> str:
        told = f"{_shown(self.verdict)}: {self.check}: "
        told += f"{self.question} {self.found}"
        if self.verdict != "fails":
            return told
        told += f"; expected {self.expected}"
        if self.tolerance is not None:
            told += f" within {self.tolerance:.1e}"
        told += f"; first at {self.where}" if self.where else ""
        cause = f". Most common cause: {self.cause}"
        return told + cause * bool(self.cause)


@dataclass(frozen=True)
class Rotation:
    """Hold the measured properties of a rotation of `dim` channels.

    If `normed` is True and the norm is RMSNorm or an L2 norm, with or without
    gains, all other attributes describe the rotation inside the norm.

    Attributes:
        kind: "turns" for a rotation, "adds" for an added vector, "ignores" if
            positions have no effect, or "neither".
        dim: Number of channels of a head.
        layout: "half", "interleaved", "either", "own" for any other layout, or
            "none" if nothing is rotated.
        pairs: The two channels of each pair, shape `(pairs, 2)`, int64.
        frequencies: Frequencies in radians per position, measured at the first
            and at the second channel of each pair, shape `(pairs, 2)`.
        errors: Largest error of the frequencies of each pair, in radians per
            position, shape `(pairs,)`.
        factor: Factor by which the rotation multiplies lengths.
        settings: Frequency scaling with the keys of rope_parameters of
            transformers 5.
        unseen: Frequency in radians per position below which a rotation could
            not be detected.
        normed: Whether there is a norm before or after the rotation.
        begin: Position by which position 0 is rotated; 1 if each token is
            rotated by its position plus 1. The other attributes describe the
            rotation that position 0 leaves unchanged.
    """

    kind: str
    dim: int
    layout: str
    pairs: Tensor
    frequencies: Tensor
    errors: Tensor
    factor: float
    settings: Mapping[str, Any]
    unseen: float = 0.0
    normed: bool = False
    begin: float = 0.0

    def __str__(self) -> str:
        if self.kind != "turns":
            hidden = "a norm around a function that is not linear"
            return hidden if self.normed else self.kind
        turned = 2 * len(self.pairs)
        told = "a norm around the rotation, inside it " * self.normed
        told += f"{self.layout} layout, {turned} of {self.dim} channels, "
        told += ", ".join(f"{k} {v:.6g}" if isinstance(v, float) else
                          f"{v}" for k, v in self.settings.items())  # fmt: skip
        told += (f", lengths multiplied by {self.factor:.4g}"
                 if abs(self.factor - 1) > 1e-4 else "")  # fmt: skip
        return told + f", positions begin at {self.begin:g}" * bool(self.begin)


# --- a rotation


def check_rotation(
    rotate: Rotate,
    dim: int,
    *,
    rotate_keys: Rotate | None = None,
    settings: Mapping[str, Any] | None = None,
    layout: str | None = None,
    length: int | None = None,
    float64: bool = True,
) -> list[Finding]:
    """Check a rotation of q and k, or an encoding that is added to x.

    If not all values are finite, only the checks up to that point are returned.

    Args:
        rotate: Function that takes `x`, shape `(1, heads, tokens, dim)`, and
            `positions`, shape `(tokens,)`, int64, and returns a tensor in the
            shape of `x`.
        dim: Number of channels of a head.
        rotate_keys: The function for keys, if it differs from that for queries;
            None uses `rotate` for both.
        settings: Expected frequency scaling, as rope_parameters of transformers
            5. None does not compare it.
        layout: Expected layout, "half" or "interleaved". None does not compare
            it.
        length: Number of positions that the code must support, at least 64.
            None tries 131,072 positions, and having fewer is not a failure.
        float64: Whether the device on which the code will run supports float64.
            MPS does not: pass False to check that the code creates no float64
            tensor.

    Returns:
        One finding or more for each check.

    Raises:
        ValueError: If `rotate` raises an error in a call that it should
            support, or returns another shape than that of `x`; `settings` has
            an unknown `rope_type` or lacks a required key; `layout` is unknown;
            or `length` is less than 64.

    Example:
        >>> def rotate(x, positions):
        ...     angles = positions[:, None] * 10_000 ** -(torch.arange(8) / 8)
        ...     a, b = x.chunk(2, dim=-1)
        ...     cos, sin = angles.cos(), angles.sin()
        ...     return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        >>> findings = check_rotation(rotate, dim=16)
        >>> {f.check for f in findings if f.verdict == "fails"}
        set()
        >>> print(read_rotation(rotate, dim=16))
        half layout, 16 of 16 channels, default, rope_theta 10000
    """
    if length is not None and length < 64:
        raise ValueError(f"length must be 64 or more, got {length}")
    if layout not in (None, "half", "interleaved"):
        raise ValueError(f"layout must be half or interleaved, got {layout}")
    findings = _plain_faults(rotate, dim)
    rotate, keys = _on_copies(rotate), _on_copies(rotate_keys or rotate)
    if not float64:
        findings += [_without_float64(rotate, dim)]
    if any(f.check == "finite" and f.verdict == "fails" for f in findings):
        return findings
    tried = length or 131_072
    longest = _longest(rotate, dim, tried, length is not None)
    steady = _steady(rotate, dim, tried)
    reach = min(1024, steady)
    read = read_rotation(rotate, dim, tried)
    order, repeats = _positions_in_order(rotate, dim, read, steady)
    if repeats is not None:
        read, steady = read_rotation(rotate, dim, repeats), repeats
    told = _finding("reading", "reads", f"is: {read}")
    if read.kind == "turns":
        inside = _inside(rotate, read)
        findings += [told, _norm_kept(rotate, dim, bool(rotate_keys), reach)]
        findings += [_one_layout(inside, read)]
        findings += _precise_angles(inside, read, tried, steady)
    elif read.kind == "adds":
        said = "adds a vector to x, so scores need not depend on offsets alone"
        findings += [_finding("reading", "reads", said)]
    else:
        findings += [told]
    findings += [_offsets_alone(rotate, keys, read, reach)]
    if rotate_keys and read.kind == "turns":
        findings += [_keys_as_queries(rotate, keys, read)]
    findings += [_place_alone(rotate, dim), *longest, *order]
    if settings is not None or layout is not None:
        findings += [_as_configured(read, settings, layout)]
    return _with_common_causes(findings)


def read_rotation(rotate: Rotate, dim: int, length: int = 131_072) -> Rotation:
    """Measure what a rotation does with positions.

    All frequencies are measured at positions up to 1,024, except those that are
    too low to be detected there. These are measured at later positions, if the
    code supports such positions and rotates early tokens the same next to late
    ones. If the frequencies depend on the longest position, as in dynamic NTK
    and LongRoPE, those of short texts are measured. If the length of x has no
    effect, because there is a norm before or after the rotation, the rotation
    inside the norm is measured. If position 0 is rotated, rotations are
    measured relative to it.

    Args:
        rotate: Function of `x` and `positions`, as in `check_rotation`.
        dim: Number of channels of a head.
        length: Number of positions; all measured positions are below it.

    Returns:
        The measured properties.

    Raises:
        ValueError: If `rotate` raises an error in a call that it should
            support, or returns another shape than that of `x`.
    """
    length = _steady(rotate, dim, length)
    positions = torch.tensor([0, *(2**n for n in range(11) if 2**n < length)])
    turns, added = _matrices(rotate, dim, positions)
    scale = float(turns[0].abs().max())
    same = float((turns - turns[0]).abs().max()) <= 8 * EPS * scale
    moves = float((added - added[0]).abs().max())
    none = torch.empty(0, 2, dtype=torch.int64)
    if same or not _linear(rotate, dim):
        normed = not same and _is_normed(rotate, dim)
        inside = _without_norm(rotate, dim) if normed else None
        if inside is not None:
            return replace(read_rotation(inside, dim, length), normed=True)
        kind = "adds" if moves > 8 * EPS and same else "neither"
        kind = "ignores" if same and moves <= 8 * EPS else kind
        return Rotation(kind, dim, "none", none, none, none, scale, {},
                        normed=normed)  # fmt: skip
    from_zero = _from_zero(rotate, turns[0])
    if from_zero is not None:
        read = read_rotation(from_zero, dim, length)
        begin = _begin(turns[0], read)
        if begin is not None:
            return replace(read, begin=begin)
    positions, turns = _further(rotate, dim, length, positions, turns)
    pairs = _pairs(turns)
    if not len(pairs):
        return Rotation("neither", dim, "none", none, none, none, scale, {})
    factor = float(turns[0].diagonal()[pairs].mean())
    factor = factor if factor > EPS * scale else scale
    frequencies, errors = _frequencies(turns / factor, pairs, positions)
    unseen = 16 * EPS / int(positions[-1])
    return _rotation(dim, pairs, frequencies, errors, factor, unseen)


def _shown(verdict: str) -> str:
    """Return the words that are printed for a verdict."""
    words = {"no promise": "not guaranteed", "no power": "inconclusive"}
    return words.get(verdict, verdict)


def _steady(rotate: Rotate, dim: int, length: int) -> int:
    """Return how far positions may go without changing early tokens of a call.

    This is `length` or the largest power of two, from 64 on, that leaves early
    tokens as they are; it is `length` if `rotate` raises an error.
    """
    x, early = _random(1, 2, 9, dim), torch.arange(9)
    before = _turn(rotate, x, early)[0, :, :-1]
    slack = 64 * EPS * float(x.abs().max())
    for span in (length, *(2**n for n in range(40, 5, -1) if 2**n < length)):
        late = early.clone()
        late[-1] = span - 1
        try:
            beside = _turn(rotate, x, late)[0, :, :-1]
        except ValueError:
            return length
        if float((before - beside).abs().max()) <= slack:
            return span
    return min(length, 64)


def _is_normed(rotate: Rotate, dim: int) -> bool:
    """Return whether multiplying x by a factor changes nothing."""
    x, at = _random(1, 2, 5, dim), torch.arange(5)
    short, long = _turn(rotate, x, at), _turn(rotate, 1024 * x, at)
    size = float(short.abs().max())
    return size > 0 and float((short - long).abs().max()) <= 1e-3 * size


def _without_norm(rotate: Rotate, dim: int) -> Rotate | None:
    """Return the rotation inside RMSNorm or an L2 norm with gains, or None.

    x is multiplied by a large factor, so that the epsilon under the square root
    has no effect.
    """

    def inside(x: Tensor, positions: Tensor) -> Tensor:
        size = x.float().square().mean(-1, keepdim=True).sqrt()
        out = rotate(1024 * x, positions)
        return (out * size.to(out.dtype)).where(size > 0, 0)

    here, _ = _matrices(inside, dim, torch.tensor([0]))
    gains = here[0].diagonal().float()

    def alone(x: Tensor, positions: Tensor) -> Tensor:
        return inside(x / gains.to(x.dtype), positions)

    return alone if bool((gains != 0).all()) and _linear(alone, dim) else None


def _from_zero(rotate: Rotate, start: Tensor) -> Rotate | None:
    """Return the rotation relative to that of position 0, (out, in).

    This is None if position 0 is not rotated.
    """
    size = start.norm(dim=0)
    if float((start / size - start.new_ones(len(start)).diag()).abs().max()
             ) <= 64 * EPS or not bool((size > 0).all()):  # fmt: skip
        return None
    back = (start / size).inverse().mT

    def relative(x: Tensor, positions: Tensor) -> Tensor:
        return rotate(x, positions).double() @ back

    return relative


def _begin(start: Tensor, read: Rotation) -> float | None:
    """Return the position that has the rotation `start`, (out, in), or None."""
    if read.kind != "turns":
        return None
    a, b = read.pairs.unbind(-1)
    angles = torch.atan2(start[b, a], start[a, a])
    w, turn = read.frequencies[:, 0].double(), math.tau
    n = int(w.abs().where(w.abs() > 100 * read.errors, torch.inf).argmin())
    begin = _halved(float(angles[n] / w[n]))
    gap = begin * w - angles
    gap = (gap - turn * (gap / turn).round()).abs()
    slack = 64 * EPS + abs(begin) * (4 * EPS * w.abs() + read.errors)
    return begin if bool((gap <= slack).all()) else None


def _halved(x: float) -> float:
    """Round to a multiple of 1/2."""
    return round(2 * x) / 2


def _inside(rotate: Rotate, read: Rotation) -> Rotate:
    """Return the rotation that `read` describes: without norm, from 0 on."""
    inside = (read.normed and _without_norm(rotate, read.dim)) or rotate
    if not read.begin:
        return inside
    turns, _ = _matrices(inside, read.dim, torch.tensor([0]))
    return _from_zero(inside, turns[0]) or inside


def _further(
    rotate: Rotate, dim: int, length: int, positions: Tensor, turns: Tensor
) -> tuple[Tensor, Tensor]:
    """Return positions and matrices, with later ones if they agree."""
    last = int(positions[-1])
    late = torch.tensor(
        [last << n for n in range(7) if last << n <= length // 2]
    )
    if not len(late):
        return positions, turns
    try:
        more, _ = _matrices(rotate, dim, late)
    except ValueError:
        return positions, turns
    if float((more[0] - turns[-1]).abs().max()) > 16 * EPS * float(turns.max()):
        return positions, turns
    return torch.cat([positions, late[1:]]), torch.cat([turns, more[1:]])


def _rotation(
    dim: int,
    pairs: Tensor,  # (pairs, 2)
    frequencies: Tensor,  # (pairs, 2)
    errors: Tensor,  # (pairs)
    factor: float,
    unseen: float,
) -> Rotation:
    layout = _layout(pairs)
    apart = int(pairs[0, 1] - pairs[0, 0]) if layout == "half" else None
    settings = read_scaling(frequencies[:, 0], dim, errors, apart, unseen)
    return Rotation("turns", dim, layout, pairs, frequencies, errors, factor,
                    settings, unseen)  # fmt: skip


def read_scaling(
    frequencies: Tensor,  # (pairs)
    dim: int,
    errors: Tensor | None = None,  # (pairs)
    apart: int | None = None,
    unseen: float = 0.0,
) -> dict[str, Any]:
    """Return the known kind of frequency scaling that has these frequencies.

    NTK-aware scaling is returned as another base. `rope_type` is "unknown" if
    no known kind has these frequencies; this includes LongRoPE, in which each
    pair has its own factor.

    Args:
        frequencies: Frequency of each pair in radians per position, shape
            `(pairs,)`.
        dim: Number of channels of a head. If `2 * pairs` is less, the other
            channels are not rotated.
        errors: Largest error of each frequency in radians per position, shape
            `(pairs,)`; None is the rounding of float32.
        apart: Distance between the two channels of a pair in layout "half";
            None for any other layout.
        unseen: Frequency in radians per position below which pairs may be
            missing from `frequencies`.

    Returns:
        The scaling, with the keys of rope_parameters of transformers 5.

    Example:
        >>> read_scaling(1e4 ** -torch.arange(0, 1, 1 / 16), 32)["rope_theta"]
        10000.0
    """
    w = frequencies.double().abs()
    error = 8 * EPS * w if errors is None else errors
    pairs = len(w)
    found: dict[str, Any] = {"rope_type": "unknown"}
    known = (error < 0.01 * w).nonzero()[:, 0]
    if len(known) < 2:
        return found
    wide, share = 2 * (apart or pairs), 2 * pairs / dim
    if _is_base(w, error):
        even, slope = _even(w, error)
        base, full = _base(slope, wide), _base(slope, dim)
        hidden = float(even[-1]) * math.exp(-slope) <= unseen
        if apart is None and hidden and _is_round(full):
            wide, base = dim, full
        proportional = wide == dim and not hidden
        if apart is None:
            proportional = _is_round(full) and not _is_round(base)
        if 2 * pairs < dim and proportional:
            return {"rope_type": "proportional", "rope_theta": full,
                    "partial_rotary_factor": share}  # fmt: skip
        found = {"rope_type": "default", "rope_theta": base}
        slower = float(1 / w[0])
        if abs(slower - 1) > 64 * EPS:
            found["rope_type"], found["factor"] = "linear", _rounded(slower)
    else:
        found = _ramped(w[: int(known[-1]) + 1], wide)
    if wide < dim:
        found["partial_rotary_factor"] = wide / dim
    return found


def configured_frequencies(
    settings: Mapping[str, Any], dim: int
) -> tuple[Tensor, float]:
    """Return the frequencies and attention factor of rope_parameters.

    Both are for texts up to the original length. Keys whose value is None count
    as absent.

    Args:
        settings: The rope_parameters of a configuration of transformers 5.
        dim: Number of channels of a head.

    Returns:
        Frequencies in radians per position, shape `(pairs,)`, float64, and the
        factor by which cosines and sines are multiplied.

    Raises:
        ValueError: If `rope_type` is unknown, or a key that it requires is
            missing.

    Example:
        >>> settings = {"rope_type": "linear", "rope_theta": 100.0, "factor": 2}
        >>> configured_frequencies(settings, 4)
        (tensor([0.5000, 0.0500], dtype=torch.float64), 1.0)
    """
    given = {k: v for k, v in settings.items() if v is not None}
    kind = given.get("rope_type", given.get("type", "default"))
    share = given.get("partial_rotary_factor", 1.0)
    wide = dim if kind == "proportional" else int(dim * share)
    turned = (int(dim * share) + 1) // 2
    m = torch.arange(turned, dtype=torch.float64)
    base = _needed(given, "rope_theta")
    if kind == "dynamic" and given.get("alpha"):  # HunYuan's, for all lengths
        base = base * given["alpha"] ** (wide / (wide - 2))
    w = base ** (-2 * m / wide)  # (pairs)
    if kind in ("default", "dynamic"):
        return w, 1.0
    if kind in ("linear", "proportional"):
        default = 1.0 if kind == "proportional" else None
        return w / _needed(given, "factor", default), 1.0
    if kind == "longrope":
        return w / torch.tensor(_needed(given, "short_factor")).double(), (
            given.get("attention_factor") or _longrope_factor(given)
        )
    factor = _needed(given, "factor")
    turns = _needed(given, "original_max_position_embeddings") * w / math.tau
    if kind == "llama3":
        low = _needed(given, "low_freq_factor")
        high = _needed(given, "high_freq_factor")
        kept = ((turns - low) / max(high - low, 1e-9)).clamp(0, 1)
        return w * kept + w / factor * (1 - kept), 1.0
    if kind == "yarn":
        kept = 1 - _yarn_ramp(given, turns, m)
        return w * kept + w / factor * (1 - kept), _yarn_factor(given, factor)
    raise ValueError(
        "rope_type must be default, linear, dynamic, yarn, llama3, longrope or "
        f"proportional, got {kind!r}"
    )


def _needed(given: Mapping[str, Any], key: str, default: Any = None) -> Any:
    if given.get(key, default) is None:
        raise ValueError(f"settings must have {key}, got {sorted(given)}")
    return given.get(key, default)


def _longrope_factor(given: Mapping[str, Any]) -> float:
    factor = given.get("factor", 1.0)
    original = _needed(given, "original_max_position_embeddings")
    return math.sqrt(1 + math.log(max(factor, 1)) / math.log(original))


def _yarn_factor(given: Mapping[str, Any], factor: float) -> float:
    if "attention_factor" in given:
        return float(given["attention_factor"])

    def scale(of: float) -> float:
        return 0.1 * of * math.log(factor) + 1 if factor > 1 else 1.0

    if given.get("mscale") and given.get("mscale_all_dim"):
        return scale(given["mscale"]) / scale(given["mscale_all_dim"])
    return scale(1)


def _yarn_ramp(given: Mapping[str, Any], turns: Tensor, m: Tensor) -> Tensor:
    """Return how much each pair is slowed, from 0 to 1."""
    logs = turns.log()
    step = (logs[0] - logs[-1]) / max(len(m) - 1, 1)
    low = (logs[0] - math.log(given.get("beta_fast") or 32)) / step
    high = (logs[0] - math.log(given.get("beta_slow") or 1)) / step
    if given.get("truncate", True):
        low, high = low.floor(), high.ceil()
    low, high = low.clamp(min=0), high.clamp(max=2 * len(m) - 1)
    return ((m - low) / (high - low).clamp(min=0.001)).clamp(0, 1)


# --- checks of a rotation


def _plain_faults(rotate: Rotate, dim: int) -> list[Finding]:
    x = _random(1, 2, 5, dim)
    before, positions = x.clone(), torch.tensor([0, 1, 2, 5, 9])
    once = _turn(rotate, x, positions)
    kept = bool((x == before).all())
    twice = _turn(rotate, before.clone(), positions)
    same = bool(((once == twice) | ~once.isfinite()).all())
    return [
        _plain("finite", bool(once.isfinite().all())),
        _plain("input_kept", kept),
        _plain("same_twice", same),
    ]


def _norm_kept(rotate: Rotate, dim: int, scales: bool, reach: int) -> Finding:
    x = _random(1, 4, 1, dim)
    positions = torch.tensor([0, 1, 2, 3, 7, reach // 10, reach - 1])
    out = _turn(rotate, x.expand(1, 4, 7, dim).contiguous(), positions)
    norms = out.double().norm(dim=-1) / x.double().norm(dim=-1)  # (1, 4, 7)
    places = [("vector", range(4)), ("position", positions.tolist())]
    here = norms[..., :1].expand_as(norms)
    found = _compare("norm_kept", here[0], norms[0], 16 * EPS, places)
    if found.verdict == "fails" and scales:
        said = "no; queries and keys have separate rotations"
        return _finding("norm_kept", "no promise", said)
    return found


def _one_layout(rotate: Rotate, read: Rotation) -> Finding:
    positions = torch.tensor([0, 1, 2, 3, 5, 8, 13])
    turns, _ = _matrices(rotate, read.dim, positions)
    a, b = read.pairs.unbind(-1)
    first = torch.stack([turns[:, a, a], -turns[:, a, b]], -1)
    second = torch.stack([turns[:, b, b], turns[:, b, a]], -1)
    pairs = [tuple(pair) for pair in read.pairs.tolist()]
    places = [("position", positions.tolist()), ("channels", pairs)]
    places += [("entry", ["cos", "sin"])]
    found = _compare("one_layout", first, second, 32 * EPS, places)
    if found.verdict == "passes":
        return found
    table, swap = _table_layout(read), read.layout
    said = "no: " + found.found
    if table not in (swap, "own"):
        said += f"; the table is in the {table} layout, the swap {swap}"
    if found.verdict == "fails" and _gains_after(first, second):
        said += "; each channel has a gain after the rotation"
        why = "the weights of a norm, which must come before the rotation"
        found = replace(found, cause=why)
    return replace(found, expected="one angle", found=said)


def _gains_after(
    first: Tensor,  # (positions, pairs, 2): cos and sin of one channel
    second: Tensor,
) -> bool:
    """Return whether channels are rotated correctly, and then multiplied."""
    (cos_a, sin_a), (cos_b, sin_b) = first.unbind(-1), second.unbind(-1)
    a, b = cos_a[:1], cos_b[:1]  # at position 0
    cosines, others = cos_a / a, cos_b / b
    one = cosines.square() + sin_a / b * sin_b / a
    off = torch.stack([cosines - others, one - 1]).abs().max()
    return bool(off <= 64 * EPS)


def _table_layout(read: Rotation) -> str:
    """Return the layout of the frequencies, channel by channel."""
    table = torch.zeros(read.dim, dtype=torch.float64)
    table[read.pairs] = read.frequencies.abs()
    table = table[: 2 * len(read.pairs)]
    layouts = {
        "half": table.unflatten(0, (2, -1)),
        "interleaved": table.unflatten(0, (-1, 2)).mT,
    }
    same = (n for n, (a, b) in layouts.items()
            if bool(((a - b).abs() <= 1e-3 * a).all()))  # fmt: skip
    return next(same, "own")


def _offsets_alone(
    rotate: Rotate, keys: Rotate, read: Rotation, reach: int
) -> Finding:
    """Check that one query and one key have one score for each offset."""
    q, k = _random(1, 1, 1, read.dim, seed=1), _random(1, 1, 1, read.dim)
    here = torch.arange(12)
    made = []
    shifts = [0, 1, reach // 10, reach - 12]
    for shift in shifts:
        x = q.expand(1, 1, 12, -1).contiguous()
        y = k.expand(1, 1, 12, -1).contiguous()
        turned = _turn(rotate, x, here + shift), _turn(keys, y, here + shift)
        made.append((turned[0].double() @ turned[1].double().mT)[0, 0])
    scores = torch.stack(made)  # (shifts, queries, keys)
    if read.kind == "adds":
        return _finding("offsets_alone", "no promise", "no: it adds a vector")
    diagonals = torch.stack([
        torch.stack([s.diagonal(-n)[0] for n in range(-11, 12)]) for s in scores
    ])  # fmt: skip
    if float((diagonals[0] - diagonals[0, 11]).abs().max()) < 64 * EPS:
        said = "all offsets have the same score"
        return _finding("offsets_alone", "no power", said)
    i, j = here[:, None], here[None, :]
    expected = diagonals[0][(i - j) + 11].expand_as(scores)
    size = float(q.double().norm() * k.double().norm()) * read.factor**2
    fastest = float(read.frequencies.abs().max()) if len(read.pairs) else 1.0
    tolerance = size * EPS * (16 + 4 * reach * fastest)
    places: list[tuple[str, Sequence[int]]] = [("shift", shifts)]
    places += [("query", range(12)), ("key", range(12))]
    return _compare("offsets_alone", expected, scores, tolerance, places)


def _place_alone(rotate: Rotate, dim: int) -> Finding:
    """Check that a token is rotated the same alone and among others."""
    x, positions = _random(1, 2, 40, dim), torch.arange(3, 43)
    whole = _turn(rotate, x, positions)[0]
    if float((whole - x[0]).abs().max()) == 0:
        said = "it leaves all tokens unchanged"
        return _finding("place_alone", "no power", said)
    alone = [
        _turn(rotate, x[:, :, n : n + 1].contiguous(), positions[n : n + 1])
        for n in range(40)
    ]
    places = [("head", range(2)), ("position", positions.tolist())]
    places += [("channel", range(dim))]
    here, there = whole.double(), torch.cat(alone, 2)[0].double()
    tolerance = 64 * EPS * float(x.abs().max())
    return _compare("place_alone", here, there, tolerance, places)


def _longest(
    rotate: Rotate, dim: int, length: int, promised: bool
) -> list[Finding]:
    """Check that a late token in a call, or before it, changes no early one."""
    x, early = _random(1, 2, 9, dim), torch.arange(9)
    late = early.clone()
    late[-1] = length - 1
    before = _turn(rotate, x, early)[0, :, :-1].double()
    try:
        beside = _turn(rotate, x, late)[0, :, :-1].double()
    except ValueError as error:
        verdict = "fails" if promised else "no power"
        said = f"no: position {length - 1} raises {_told(error.__cause__)}"
        question = f"Does the code support {length} positions?"
        return [_finding("reaches", verdict, said, question=question)]
    after = _turn(rotate, x, early)[0, :, :-1].double()
    slack = 64 * EPS * float(x.abs().max())
    places = [("head", range(2)), ("position", range(8))]
    places += [("channel", range(dim))]
    question = (
        "Are early tokens rotated the same before a call with a late one "
    )
    same = _compare("same_twice", before, after, slack, places,
                    question + "and after?")  # fmt: skip
    gap, verdict = float((before - beside).abs().max()), "passes"
    said = f"yes, within {gap:.1e}"
    if not gap <= slack:
        said, verdict = f"no, they change by {gap:.2g}", "no promise"
        said += ": cache keys before they are rotated"
    return [same, _finding("longest", verdict, said, tolerance=slack)]


def _positions_in_order(
    rotate: Rotate, dim: int, read: Rotation, length: int
) -> tuple[list[Finding], int | None]:
    """Check that positions around edges continue the rotation of early ones.

    Return the findings, and the first position that repeats an earlier one, as
    all after it do; None if there is none.
    """
    length = _supported(rotate, dim, length)
    say = partial(_finding, "positions_in_order")
    if read.kind == "adds":
        return [_vectors_apart(rotate, dim, length)], None
    if read.kind != "turns":
        return [], None
    edges = _edges(length)
    wrong = _off(rotate, read, edges)
    if bool(wrong.any()):  # a late fault spoils what is read of slow pairs
        read = read_rotation(rotate, dim, 16)
        wrong = _off(rotate, read, edges)
    if not bool(wrong.any()):
        if read.begin < -1:
            said = f"no: position 0 is rotated by {-read.begin:g}, and later "
            said += "positions by less and less"
            return [say("fails", said, where="position 0")], None
        return [say("passes", f"yes, up to {length - 1}")], None
    n = int(wrong.nonzero()[0])
    low, first = (int(edges[n - 1]) if n else 0), int(edges[n])
    while first - low > 1:
        middle = (low + first) // 2
        late = bool(_off(rotate, read, torch.tensor([middle])).any())
        low, first = (low, middle) if late else (middle, first)
    return _misplaced(rotate, dim, first, length)


def _misplaced(
    rotate: Rotate, dim: int, first: int, length: int
) -> tuple[list[Finding], int | None]:
    """Return the finding for the first wrong position, as above."""
    say = partial(_finding, "positions_in_order", "fails",
                  where=f"position {first}")  # fmt: skip
    out = _same_vector(rotate, dim, torch.arange(min(first + 3, length)))
    slack = 64 * EPS * float(out.abs().max())
    gaps = (out[:first] - out[first]).abs().amax(-1)
    like = int(gaps.argmin())
    rest = (out[first:] - out[like]).abs().amax(-1)
    if not float(gaps[like]) <= slack and first <= 16:
        said = "even the first positions have no common frequencies"
        return [_finding("positions_in_order", "no power", said)], None
    if not float(gaps[like]) <= slack:
        said = f"no: from position {first} on, the rotation does not continue"
        why = "rows of a table that were not computed, or a table of angles "
        why += "in half precision"
        return [say(said + " that of earlier ones", cause=why)], None
    if like == first - 1 and not float(rest.max()) <= slack:
        said = f"no: position {first} is rotated as position {like} is"
        why = "positions that are rounded, in half precision or by an integer "
        return [say(said, cause=why + "division")], None
    if like == first - 1:
        said = f"no: positions from {first} on are rotated as {like} is"
    else:
        said = f"no: position {first} is rotated as position {like} is"
    return [say(said)], first


def _vectors_apart(rotate: Rotate, dim: int, length: int) -> Finding:
    """Check that positions around edges add different vectors."""
    edges = _edges(length)
    vectors = _same_vector(rotate, dim, edges)
    gaps = torch.cdist(vectors, vectors, compute_mode=EXACT)
    gaps = gaps.fill_diagonal_(torch.inf)
    slack = 8 * EPS * float(vectors.abs().max())
    if float(gaps.min()) > slack:
        said = f"yes, up to {length - 1}"
        return _finding("positions_in_order", "passes", said)
    late, early = (int(edges[n]) for n in (gaps <= slack).nonzero()[0])
    early, late = min(early, late), max(early, late)
    said = f"no: positions {early} and {late} add the same vector"
    return _finding("positions_in_order", "fails", said,
                    where=f"position {late}")  # fmt: skip


def _off(rotate: Rotate, read: Rotation, at: Tensor) -> Tensor:
    """Return at which positions any angle differs from the measured one."""
    a, b = read.pairs.unbind(-1)
    x = torch.zeros(read.dim)
    x[a] = 1.0
    x = x.expand(1, 1, len(at), -1).contiguous()
    out = _turn(_inside(rotate, read), x, at)[0, 0].double()
    w = read.frequencies[:, 0].double()
    want, got = at[:, None] * w, torch.atan2(out[:, b], out[:, a])
    gap = 2 * ((want - got) / 2).sin().abs()  # (positions, pairs)
    tolerance = _slack(read, at, EPS)
    bad = ~(gap <= tolerance) & (tolerance < 0.5)
    return bad.any(-1)


def _slack(read: Rotation, at: Tensor, eps: float) -> Tensor:
    """Return the tolerance of cosines and sines, (positions, pairs)."""
    w = read.frequencies[:, 0].double()
    return 4 * eps + at[:, None] * (4 * EPS * w.abs() + read.errors)


def _edges(length: int) -> Tensor:
    """Return positions around powers of two and round numbers, ascending."""
    marks = [2**n for n in range(2, length.bit_length())]
    marks += [m * 10**n for n in range(2, 7) for m in (1, 2, 5)] + [length - 1]
    near = {m + step for m in marks for step in (-1, 0, 1)}
    return torch.tensor(sorted(n for n in near if n < length))


def _same_vector(rotate: Rotate, dim: int, at: Tensor) -> Tensor:
    """Return one vector at all positions, shape `(positions, dim)`."""
    x = _random(1, 1, 1, dim).expand(1, 1, len(at), dim).contiguous()
    return _turn(rotate, x, at)[0, 0].double()


def _supported(rotate: Rotate, dim: int, length: int) -> int:
    """Return `length`, or the largest power of two that raises no error."""
    spans = (2**n for n in range(length.bit_length(), 2, -1) if 2**n < length)
    for span in (length, *spans):
        try:
            _same_vector(rotate, dim, torch.tensor([span - 1]))
        except ValueError:
            continue
        return span
    return 4


def _keys_as_queries(rotate: Rotate, keys: Rotate, read: Rotation) -> Finding:
    """Check that a query and a key at position 0 are rotated the same."""
    at = torch.tensor([0])
    turns = [_matrices(each, read.dim, at)[0][0] for each in (rotate, keys)]
    ways = [each / each.norm(dim=0).clamp(min=1e-9) for each in turns]
    gap = float((ways[0] - ways[1]).abs().max())
    if gap <= 64 * EPS:
        return _finding("keys_as_queries", "passes", f"yes, within {gap:.1e}")
    apart = read_rotation(keys, read.dim, 1024).begin - read.begin
    said = "no: position 0 is rotated in different ways"
    said = _stand(apart) if apart else said
    return _finding("keys_as_queries", "fails", said, where="position 0",
                    tolerance=64 * EPS)  # fmt: skip


def _stand(apart: float) -> str:
    """Return the answer if keys stand this many positions further on."""
    many = f"{abs(apart):g} position" + "s" * (abs(apart) != 1)
    way = "further" if apart > 0 else "back"
    return f"no: keys stand {many} {way}, compared with queries"


class _NoFloat64(TorchDispatchMode):
    """Raise an error for each float64 tensor, like a device without float64."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.dtype == torch.float64:
            raise TypeError(f"{function} makes float64")
        return made


def _without_float64(rotate: Rotate, dim: int) -> Finding:
    try:
        with _NoFloat64():  # type: ignore[no-untyped-call]
            _turn(rotate, _random(1, 2, 5, dim), torch.arange(5))
    except ValueError as error:
        return _finding("float64", "fails", f"no: {error.__cause__}")
    return _finding("float64", "passes", "yes")


def _precise_angles(
    rotate: Rotate, read: Rotation, length: int, steady: int
) -> Iterator[Finding]:
    """Compare late angles with those of the measured frequencies, in 3 ways."""
    late = [n for n in (255, 256, 257, 65_535, 65_536, 65_537) if n < steady]
    at = torch.tensor(late or [steady - 2, steady - 1])
    left = f"; beyond {steady - 1} frequencies depend on the longest position"
    left = left if steady < length else ""
    half = torch.bfloat16
    a, b = read.pairs.unbind(-1)
    w = read.frequencies[:, 0].double()
    angles = at[:, None] * w  # (positions, pairs)
    want = torch.stack([angles.cos(), angles.sin()], -1)
    for name, dtype, autocast in (
        ("float32", torch.float32, False),
        ("bfloat16", half, False),
        ("autocast to bfloat16", torch.float32, True),
    ):
        say = partial(_finding, "precise_angles",
                      question=f"Are angles right in {name}?")  # fmt: skip
        try:
            with torch.autocast("cpu", half, enabled=autocast):
                turns, _ = _matrices(rotate, read.dim, at, dtype)
        except ValueError as error:
            why = error.__cause__ or error
            yield say("no power", f"the call failed: {why}")
            continue
        got = torch.stack([turns[:, a, a], -turns[:, a, b]], -1)
        got = got / got.norm(dim=-1, keepdim=True).clamp(min=1e-9)
        eps = EPS if name == "float32" else torch.finfo(half).eps
        tolerance = _slack(read, at, eps)  # (positions, pairs)
        usable = tolerance < 0.5
        gap = (got - want).abs().amax(-1)
        wrong = ~(gap <= tolerance) & usable
        worst = float(gap.where(usable, 0).max())
        if not bool(wrong.any()):
            said = f"cosines are off by {worst:.1e} at most{left}"
            yield say("passes", said, tolerance=4 * eps)
            continue
        n, pair = (int(n) for n in wrong.nonzero()[0])
        channels = tuple(read.pairs[pair].tolist())
        yield say("fails", f"no: a cosine or sine is off by {worst:.2g}",
                  where=f"position {at[n]}, channels {channels}",
                  tolerance=float(tolerance[n, pair]))  # fmt: skip


def _as_configured(
    read: Rotation, settings: Mapping[str, Any] | None, layout: str | None
) -> Finding:
    if read.normed and read.kind != "turns":
        said = "the function inside the norm is not linear and cannot be read"
        return _finding("as_configured", "no power", said)
    wrong = []
    if layout is not None and read.layout not in (layout, "either"):
        wrong.append(f"the layout is {read.layout}, not {layout}")
    if settings is not None:
        asked = configured_frequencies(settings, read.dim)
        wrong += _unlike(read, settings, *asked)
    if not wrong:
        said = f"yes: {read}"
        if read.normed:
            said += "; a norm's gains hide a factor of lengths"
        return _finding("as_configured", "passes", said)
    said = f"no: {'; '.join(wrong)}. Measured: {read}"
    want = ", ".join(f"{k} {v}" for k, v in (settings or {}).items())
    want = want or str(layout)
    return _finding("as_configured", "fails", said, expected=want)


def _unlike(
    read: Rotation, settings: Mapping[str, Any], w: Tensor, factor: float
) -> list[str]:
    """Return the differences from the configured settings, in words.

    A pair that only one side has counts if its frequency is high enough to be
    detected.
    """
    if read.kind != "turns":
        return [f"it does not rotate (measured: {read.kind})"]
    w, have = w[w != 0], read.frequencies[:, 0].abs()
    both = min(len(w), len(have))
    surplus = bool((have > 4 * read.errors)[both:].any())
    if surplus or bool((w[both:] > read.unseen).any()):
        return [f"{len(have)} pairs rotate, not {len(w)}"]
    kind = settings.get("rope_type", settings.get("type"))
    apart = int(read.pairs[0, 1] - read.pairs[0, 0])
    want = read.dim // 2 if kind == "proportional" else len(w)
    if read.layout == "half" and apart != want:
        return [f"the channels of a pair are {apart} apart, not {want}"]
    gap, slack = (have[:both] - w[:both]).abs(), 16 * EPS * w[:both]
    off = gap > slack + 2 * read.errors[:both]
    said = []
    if bool(off.any()):
        n = int(off.nonzero()[0])
        said = [f"pair {n} rotates by {have[n]:.6g} radians per position, "
                f"not {w[n]:.6g}"]  # fmt: skip
    if not read.normed and abs(read.factor / factor - 1) > 64 * EPS:
        said += [f"lengths are multiplied by {read.factor:.6g}, "
                 f"not {factor:.6g}"]  # fmt: skip
    return said


# --- measuring a rotation


def _matrices(
    rotate: Rotate,
    dim: int,
    positions: Tensor,  # (positions)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return the matrix that multiplies x, and the vector that is added to it.

    Shapes are `(positions, out, in)` and `(positions, out)`.
    """
    eye = torch.eye(dim + 1, dim, dtype=dtype)  # the last row is 0
    x = eye[None, :, None].expand(1, dim + 1, len(positions), dim)
    out = _turn(rotate, x.contiguous(), positions)[0].double()
    return (out[:-1] - out[-1]).permute(1, 2, 0), out[-1]


def _linear(rotate: Rotate, dim: int) -> bool:
    x, y = _random(1, 2, 5, dim), _random(1, 2, 5, dim, seed=1)
    at = torch.arange(5)
    apart = _turn(rotate, x, at) + _turn(rotate, y, at)
    gap = apart - _turn(rotate, x + y, at) - _turn(rotate, 0 * x, at)
    return float(gap.abs().max()) < 256 * EPS


def _pairs(turns: Tensor) -> Tensor:
    """Return the channels that are mixed with one other each: (pairs, 2)."""
    met = turns.abs().amax(0)
    met = torch.maximum(met, met.mT).fill_diagonal_(0) > 8 * EPS
    alone = met.sum(-1) == 1
    partner = met.int().argmax(-1)
    found = [
        (a, int(b))
        for a, b in enumerate(partner)
        if alone[a] and a < b and alone[b]
    ]
    return torch.tensor(found, dtype=torch.int64).reshape(-1, 2)


def _layout(pairs: Tensor) -> str:
    a, b = pairs.unbind(-1)
    step, each = int((b - a)[0]), a.diff()
    if bool((b - a != step).any()):
        return "own"
    if len(pairs) == 1 and step == 1:
        return "either"
    if step >= len(pairs) and bool((each == 1).all()):
        return "half"
    return "interleaved" if step == 1 and bool((each == 2).all()) else "own"


def _frequencies(
    turns: Tensor,  # (positions, out, channels)
    pairs: Tensor,  # (pairs, 2)
    positions: Tensor,  # (positions): 0, 1, 2, 4, ...
) -> tuple[Tensor, Tensor]:
    """Return the radians per position of both channels, and their errors.

    Each doubling of the position determines the angle of the position before to
    half its error, as long as the two agree; from the first disagreement on, no
    more is measured. Beyond position 1,024, only pairs that have not rotated by
    a radian are measured.
    """
    a, b = pairs.unbind(-1)
    sin = torch.stack([-turns[:, a, b], turns[:, b, a]], -1)
    cos = torch.stack([turns[:, a, a], turns[:, b, b]], -1)
    angles = torch.atan2(sin, cos)  # (positions, pairs, 2)
    w, reach = angles[1], torch.ones_like(angles[1])
    going = torch.ones_like(w, dtype=torch.bool)
    for angle, p in zip(angles[2:], positions[2:].tolist(), strict=True):
        told = w * p
        unwrapped = angle + math.tau * ((told - angle) / math.tau).round()
        going = going & ((unwrapped - told).abs() < 0.01 + 8 * EPS * told.abs())
        going = going & ((told.abs() < 1) | (p <= 1024))
        w = (unwrapped / p).where(going, w)
        reach = reach.where(~going, float(p))
    return w, (4 * EPS * (w.abs() + 1 / reach)).amax(-1)


def _even(w: Tensor, error: Tensor) -> tuple[Tensor, float]:
    """Return a geometric sequence through the two best-known frequencies."""
    known = (error < 0.01 * w).nonzero()[:, 0]
    first, last = int(known[0]), int(known[-1])
    slope = float((w[first] / w[last]).log()) / (last - first)
    m = torch.arange(len(w), dtype=torch.float64) - first
    return w[first] * torch.exp(-slope * m), slope


def _base(slope: float, dim: int) -> float:
    return _rounded(math.exp(slope * dim / 2))


def _is_base(w: Tensor, error: Tensor) -> bool:
    """Return whether each frequency is the same multiple of the one before."""
    even, _ = _even(w, error)
    known = error < 0.01 * w
    ends = (error / w)[known][[0, -1]].sum()
    return bool(((w - even).abs() <= 2 * (error + ends * even)).all())


def _rounded(x: float) -> float:
    """Round to four digits if rounding errors allow it."""
    near = float(f"{x:.4g}")
    return near if abs(x / near - 1) < 2e-4 else x


def _is_round(x: float) -> bool:
    return abs(x / float(f"{x:.2g}") - 1) < 1e-3


def _ramped(w: Tensor, wide: int) -> dict[str, Any]:
    """Return the settings of YaRN or Llama 3, if the frequencies are theirs.

    Both keep the high frequencies and divide the low ones by one factor.
    """
    unknown: dict[str, Any] = {"rope_type": "unknown"}
    pairs = len(w)
    slope = float((w[0] / w[1].clamp(min=1e-30)).log())
    plain = w[0] * torch.exp(-slope * torch.arange(pairs, dtype=torch.float64))
    ratio = w / plain
    factor = 1 / float(ratio[-1])
    if not factor > 1 or bool((ratio > 1 + 1e-3).any()):
        return unknown
    kept = (ratio - 1 / factor) / (1 - 1 / factor)
    inner = (kept > 1e-3) & (kept < 1 - 1e-3)
    if int(inner.sum()) < 3 or abs(float(w[0]) - 1) > 1e-3:
        return unknown
    if bool(inner[-2]):
        return unknown  # the end of the ramp is unknown
    base = _base(slope, wide)
    known = {"rope_theta": base, "factor": _rounded(factor)}
    index = inner.nonzero()[:, 0].double()
    for kind, x in (("yarn", index), ("llama3", plain[inner])):
        a, b = _line(x, kept[inner])
        if float((a * x + b - kept[inner]).abs().max()) < 2e-3:
            found = {"rope_type": kind, **known}
            if kind == "llama3":
                high = 1 - 1 / b
                found["high_freq_factor"] = _rounded(high)
                original = a * math.tau * (high - 1)
                found["original_max_position_embeddings"] = _rounded(original)
            return found
    return unknown


def _line(x: Tensor, y: Tensor) -> tuple[float, float]:
    a = float(
        ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    )
    return a, float(y.mean() - a * x.mean())


# --- an attention


def check_attention(
    attend: Attend,
    dim: int,
    heads: int = 2,
    *,
    causal: bool | None = None,
    window: int | None = None,
    sinks: bool | None = None,
    slopes: Sequence[float] | None = None,
    scale: float | None = None,
    length: int = 64,
) -> list[Finding]:
    """Check an attention: its mask, its sinks and its bias.

    The attention weights are computed from the outputs for values that are 1
    for one key and 0 for all others. If they are not all finite, the other
    checks are skipped.

    Args:
        attend: Function that takes `q`, `k` and `v`, each of shape
            `(1, heads, tokens, dim)`, then the positions of the queries and of
            the keys, each of shape `(tokens,)`, int64, and returns the output
            in the shape of `q`.
        dim: Number of channels of a head.
        heads: Number of heads.
        causal: Whether later keys are expected to be hidden. None only reports
            it.
        window: Expected number of keys that a token sees, counting the token
            itself. None only reports it.
        sinks: Whether the weights of a query are expected to sum to less than
            1, as with attention sinks. None only reports it.
        slopes: Expected slope of each head, as in ALiBi: the amount by which
            the score decreases for each token further back. None only reports
            the bias.
        scale: Expected factor of the product of a query and a key, usually
            `dim ** -0.5`. None only reports it.
        length: Number of queries and keys, at least 24.

    Returns:
        One finding for each check.

    Raises:
        ValueError: If `attend` raises an error in a call that it should
            support, or returns another shape than that of `q`.

    Example:
        >>> def attend(q, k, v, query_positions, key_positions):
        ...     steps = query_positions[:, None] - key_positions
        ...     scores = q @ k.mT - steps / 8
        ...     scores = scores.masked_fill(steps < 0, -torch.inf)
        ...     return scores.softmax(-1) @ v
        >>> findings = check_attention(attend, dim=8, causal=True)
        >>> [f.found for f in findings if f.check == "hidden_keys"]
        ['causal, with all earlier keys']
    """
    q, k = (_random(1, heads, length, dim, seed=n) for n in (0, 1))
    here = torch.arange(length)
    weights = _weights(attend, q, k, here, here)  # (heads, queries, keys)
    finite = _plain("finite", bool(weights.isfinite().all()))
    if finite.verdict == "fails":
        return [finite]
    few = min(dim, length)
    twice = _weights(attend, q, k, here, here, first=few)
    findings = [
        finite,
        _plain("same_twice", bool((weights[..., :few] == twice).all())),
        _adds_up(weights, sinks),
        _hidden_keys(weights, causal, window),
        _rows_alone(attend, q, k, weights),
        *_alone_ahead(attend, q, k, weights),
        _fewer_keys(attend, q, k, weights),
        _kept_when_moved(attend, q, k, weights),
        *_scale(attend, q, k, scale),
        _bias(attend, heads, dim, slopes),
    ]
    return _with_common_causes(findings)


def _weights(
    attend: Attend,
    q: Tensor,
    k: Tensor,
    i: Tensor,
    j: Tensor,
    first: int | None = None,
) -> Tensor:
    """Return the weights, (heads, queries, keys), from blocks of values.

    If `first` is given, only those of so many keys are returned.
    """
    heads, dim = q.shape[1], q.shape[-1]
    want = tuple(q.shape)
    columns = []
    for block in torch.eye(len(j), first or len(j)).split(dim, dim=1):
        v = torch.nn.functional.pad(block, (0, dim - block.shape[1]))
        v = v.expand(1, heads, -1, -1).contiguous()  # (1, heads, keys, dim)
        given = f"q {want}, k and v {tuple(k.shape)} and their positions"
        try:
            out = attend(q.clone(), k.clone(), v, i, j)
        except Exception as error:
            said = f"attend must take {given}; it raised {_told(error)}"
            raise ValueError(said) from error
        have = tuple(out.shape) if isinstance(out, Tensor) else type(out)
        if have != want:
            raise ValueError(f"attend must return {want}, got {have}")
        columns.append(out[0].double()[..., : block.shape[1]])
    return torch.cat(columns, -1)


def _adds_up(weights: Tensor, sinks: bool | None) -> Finding:
    least = float(weights.sum(-1).min())
    held, said = least < 1 - 1e-4, "yes"
    if held:
        said = f"no, the smallest sum is {least:.3g}: a sink has the rest"
    if sinks is None:
        return _finding("adds_up", "reads", said)
    verdict = "passes" if sinks == held else "fails"
    want, cause = ("less than 1, with sinks", None) if sinks else ("1", "")
    return _finding("adds_up", verdict, said, expected=want, tolerance=1e-4,
                    cause=cause)  # fmt: skip


def _hidden_keys(
    weights: Tensor, causal: bool | None, window: int | None
) -> Finding:
    """Check which keys have no weight in any head."""
    seen = (weights > 0).any(0)  # (queries, keys)
    n = len(seen)
    steps = torch.arange(n)[:, None] - torch.arange(n)
    ahead = bool(seen[steps < 0].any())
    back = steps.where(seen, -n).max().item() + 1
    ahead_most = -steps.where(seen, n).min().item()
    rule = (steps < back) & (steps >= -max(ahead_most, 0))
    said = "not causal" if ahead else "causal"
    said += ", with all earlier keys" if back >= n else (
        f", a window of {back} keys, the token itself included")  # fmt: skip
    if not bool((seen == rule).all()):
        i, j = (int(x) for x in (seen != rule).nonzero()[0])
        sees = "sees" if seen[i, j] else "does not see"
        said += f", but query {i} {sees} key {j}"
    wanted, wrong = [], False
    if causal is not None:
        wanted.append("causal" if causal else "not causal")
        wrong |= causal == ahead
    if window is not None:
        wanted.append(f"a window of {window} keys")
        if window >= n:
            said += f"; {n} keys do not reach beyond a window of {window}"
            return _finding("hidden_keys", "no power", said)
        wrong |= back != window
    if not wanted:
        return _finding("hidden_keys", "reads", said)
    wrong |= not bool((seen == rule).all())
    verdict, want = "fails" if wrong else "passes", " and ".join(wanted)
    return _finding("hidden_keys", verdict, said, expected=want)


def _rows_alone(attend: Attend, q: Tensor, k: Tensor, whole: Tensor) -> Finding:
    """Check the last queries against all keys, as with a cache."""
    n = q.shape[-2]
    at = torch.arange(n)
    alone = [_weights(attend, q[..., m:, :].contiguous(), k, at[m:], at)[:, :1]
             for m in (n - 5, n - 1)]  # fmt: skip
    here = whole[:, (n - 5, n - 1)]
    places = [("head", range(len(whole))), ("query", (n - 5, n - 1))]
    places += [("key", range(n))]
    there = torch.cat(alone, 1)
    return _compare("rows_alone", here, there, 64 * EPS, places)


def _alone_ahead(
    attend: Attend, q: Tensor, k: Tensor, whole: Tensor
) -> list[Finding]:
    """Check that a causal query, alone among all keys, sees no later one."""
    n = q.shape[-2]
    at = torch.arange(n)
    if bool((whole > 0).any(0)[at[:, None] < at].any()):
        return []
    say = partial(_finding, "no_peeking",
                  question="Does a query that is decoded alone see no later "
                  "key?")  # fmt: skip

    def ahead(first: int, many: int) -> Tensor:
        rows = at[first : first + many]
        few = q[..., first : first + many, :].contiguous()
        keys = at[: n // 2]
        seen = _weights(attend, few, k[..., : len(keys), :], rows, keys) > 0
        return seen.any(0) & (rows[:, None] < keys)

    late = ahead(n // 8, 1)[0].nonzero()[:, 0]
    if not len(late):
        return [say("passes", "yes")]
    two = ahead(n // 3, 2).sum(-1)
    if bool(two.any()) and int(two[0]) == int(two[1]):
        said = "it assumes that the queries are the last: empty slots of a "
        return [say("no promise", said + "cache must not be passed")]
    said = f"no: query {n // 8} sees {len(late)} later keys, up to key "
    why = "a mask that ends with a block of keys, not with the query"
    return [say("fails", f"{said}{int(late[-1])}", cause=why,
                where=f"query {n // 8}, key {int(late[0])}")]  # fmt: skip


def _fewer_keys(attend: Attend, q: Tensor, k: Tensor, whole: Tensor) -> Finding:
    """Check that weights keep their ratios without the last keys."""
    heads, n = q.shape[1], q.shape[-2] // 2
    at = torch.arange(n)
    few = _weights(attend, q[..., :n, :].contiguous(),
                   k[..., :n, :].contiguous(), at, at)  # fmt: skip
    here = whole[:, :n, :n]
    here, few = (w / w.sum(-1, keepdim=True).clamp(min=1e-9)
                 for w in (here, few))  # fmt: skip
    places = [("head", range(heads)), ("query", range(n)), ("key", range(n))]
    found = _compare("fewer_keys", here, few, 64 * EPS, places)
    if found.verdict == "fails" and _temperature(here, few):
        said = "no: scores are multiplied by a number that depends on the "
        return _finding("fewer_keys", "no promise", said + "number of keys")
    return found


def _scale(
    attend: Attend, q: Tensor, k: Tensor, scale: float | None
) -> list[Finding]:
    """Read the factor of the product of a query and a key at one position."""
    at = torch.arange(16)
    sizes = 1 + at[:, None] % 3 / 2
    q, k = (2 * sizes * nn.functional.normalize(x[..., :16, :], dim=-1)
            for x in (q, k))  # fmt: skip
    k[..., 0, :] = 0

    def parts(a: Tensor, b: Tensor) -> Tensor:
        weights = _weights(attend, a, b, at, at).log()
        return weights - weights[..., :1]  # (heads, queries, keys)

    products = (q.double() @ k.double().mT)[0]
    bias = parts(0 * q, 0 * k)
    scores = parts(q, k) - bias
    read = _scale_apart(scores, products)
    if not read:  # positions are added to queries or keys
        scores = scores - parts(q, 0 * k) - parts(0 * q, k) + 2 * bias
        read = _scale_apart(scores, products)
    read = read or _scale_of_later(attend, q)
    if read:
        return _told_scale(*read, scale)
    verdict = "reads" if scale is None else "no power"
    said = "scores of a query and a key at one position are not a multiple of "
    return [_finding("scale", verdict, said + "their product")]


def _scale_apart(scores: Tensor, products: Tensor) -> tuple[float, int] | None:
    """Return the factor of the products, and the distance at which it is."""
    for apart in (0, 1, 2, 3, 4, -1, -2, -3, -4):
        factor = _factor(scores.diagonal(-apart, 1, 2)[:, 1:],
                         products.diagonal(-apart, 1, 2)[:, 1:])  # fmt: skip
        if factor:
            return factor, apart
    return None


def _scale_of_later(attend: Attend, q: Tensor) -> tuple[float, int] | None:
    """Return the same for keys that stand back, which causal masks hide.

    The products at these distances are continued from those at 0 and 1.
    """
    near = _products(attend, q.shape[1], q.shape[-1])
    if not bool(near.isfinite().all()) or (
            torch.linalg.cond(near) > 1e3).any():  # fmt: skip
        return None
    here, next_to_it = near
    back = torch.linalg.solve(next_to_it, here)
    for apart in (1, 2, 3, 4):
        here = here @ back
        factor = _factor(here, torch.eye(q.shape[-1]).expand_as(here))
        if factor:
            return factor, -apart
    return None


def _products(attend: Attend, heads: int, dim: int) -> Tensor:
    """Return the matrices of scores at distances 0 and 1, in units of q and k.

    Their shape is `(2, heads, dim, dim)`.
    """
    at = torch.arange(dim + 2)
    k = nn.functional.pad(torch.eye(dim), (0, 0, 1, 1))
    k = k.expand(1, heads, -1, -1).contiguous()
    rows = []
    for channel in torch.eye(dim):
        q = channel.expand_as(k).contiguous()
        scores = _weights(attend, q, k, at, at).log()
        scores = scores - scores[..., :1]  # key 0 is zero
        near = [scores.diagonal(-n, 1, 2)[:, 1 : dim + 1] for n in (0, 1)]
        rows.append(torch.stack(near))
    return torch.stack(rows, 2)


def _factor(scores: Tensor, products: Tensor) -> float:
    """Return the ratio of scores and products; 0 if there is no common one."""
    known = scores.isfinite()
    if int(known.sum()) < 4:
        return 0.0
    a, b = scores[known], products[known]
    ratio = float((a * b).sum() / b.square().sum())
    off = float((a - ratio * b).square().mean().sqrt())
    return ratio if off <= 1e-2 * float(a.square().mean().sqrt()) else 0.0


def _told_scale(
    factor: float, apart: int, scale: float | None
) -> list[Finding]:
    """Return the findings for a factor that was read at this distance."""
    found = []
    if apart:
        found = [_finding("keys_as_queries", "fails", _stand(apart))]
    said = f"{factor:.4g}, which is 1 / sqrt({factor**-2:.4g})"
    if scale is None:
        return [*found, _finding("scale", "reads", said)]
    verdict = "passes" if abs(factor / scale - 1) <= 5e-3 else "fails"
    want = f"{scale:.4g}, which is 1 / sqrt({scale**-2:.4g})"
    return [*found, _finding("scale", verdict, said, expected=want)]


def _kept_when_moved(
    attend: Attend, q: Tensor, k: Tensor, weights: Tensor
) -> Finding:
    """Check that weights stay the same when all positions are shifted."""
    question = "Are weights the same when all positions move?"
    heads, n, dim = q.shape[1:]
    at, shifts = torch.arange(n), (1, 100, 1000)
    mixed = _weights(attend, q, k, at, at.flip(0))
    if float((mixed - weights).abs().max()) < 64 * EPS:
        said = "reversing the positions of keys changes no weight"
        return _finding("offsets_alone", "no power", said, question=question)
    moved = [_weights(attend, q, k, at + s, at + s) for s in shifts]
    size = float(q.norm(dim=-1).max() * k.norm(dim=-1).max())
    tolerance = EPS * (16 + 4 * (1000 + n)) * size / dim**0.5
    places = [("shift", shifts), ("head", range(heads))]
    places += [("query", range(n)), ("key", range(n))]
    there = torch.stack(moved)
    found = _compare("offsets_alone", weights.expand_as(there), there,
                     tolerance, places, question)  # fmt: skip
    if found.verdict == "fails" and (said := _temperature(weights, moved[-1])):
        return _finding("offsets_alone", "no promise", said, question=question)
    return found


def _temperature(here: Tensor, there: Tensor) -> str:
    """Return the finding if shifted scores are the old ones times a number.

    Otherwise, return an empty string.
    """
    seen = here > 0
    if not bool((seen == (there > 0)).all()):
        return ""
    rows = []
    for weights in (here, there):
        scores = weights.where(seen, 1).log()
        mean = scores.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
        rows.append((scores - mean).masked_fill(~seen, 0))
    a, b = rows
    ratio = (a * b).sum(-1) / a.square().sum(-1).clamp(min=1e-12)
    left = (b - ratio[..., None] * a).abs().amax(-1)
    many = seen.sum(-1) > 2
    if float(left[many].max()) > 1e-2 * float(b.abs().max()):
        return ""
    most = float(ratio[many].max())
    return (
        "no: the scores of a query are multiplied by a number that depends on "
        f"its position, {most:.4g} times as large 1000 positions later"
    )


def _bias(
    attend: Attend, heads: int, dim: int, slopes: Sequence[float] | None
) -> Finding:
    """Report the scores of queries and keys that are zero."""
    if slopes is not None:
        return _slopes(attend, dim, slopes)
    at, zero = torch.arange(24), torch.zeros(1, heads, 24, dim)
    weights = _weights(attend, zero, zero, at, at)[:, -1]  # (heads, keys)
    seen = weights > 0
    scores = weights.where(seen, 1).log()
    said, read = [], []
    for row, shown in zip(scores, seen, strict=True):
        steps = row[shown].diff()
        if not len(steps) or float(steps.abs().max()) < 1e-4:
            said.append("nothing")
        elif float((steps - steps.mean()).abs().max()) < 1e-4:
            read.append(float(steps.mean()))
            said.append(f"{read[-1]:.3g} less for each step back")
        else:
            said.append(f"{float(row[shown][0] - row[shown][-1]):.3g} at the "
                        "farthest key, relative to the nearest")  # fmt: skip
    told = "; ".join(f"head {n}: {what}" for n, what in enumerate(said))
    told = said[0] if len(set(said)) == 1 else told
    heads_of = _heads_of(read) if len(read) == heads else ""
    told += f"; the slopes of {heads_of}" * bool(heads_of)
    return _finding("bias", "reads", told)


def _heads_of(slopes: Sequence[float]) -> str:
    """Return which heads of ALiBi have these slopes, "" if none have."""
    for heads in range(len(slopes), 257 if len(slopes) > 1 else 0):
        known = _alibi(heads)
        for first in range(heads - len(slopes) + 1):
            part = known[first : first + len(slopes)]
            if all(abs(a - b) <= 1e-3 * b + 1e-5
                   for a, b in zip(slopes, part, strict=True)):  # fmt: skip
                every = len(slopes) == heads
                last = first + len(slopes) - 1
                return f"{heads} heads" if every else (
                    f"heads {first} to {last} of {heads}")  # fmt: skip
    return ""


def _alibi(heads: int) -> list[float]:
    """Return ALiBi's slopes, as its reference code computes them."""
    whole = 2 ** (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (n + 1) / whole) for n in range(whole)]
    more = [2 ** (-4 * (2 * n + 1) / whole) for n in range(heads - whole)]
    return slopes + more


def _slopes(attend: Attend, dim: int, slopes: Sequence[float]) -> Finding:
    """Check that each token further back costs the slope of the head."""
    question = "Does each head subtract its slope for each step back?"
    heads, at = len(slopes), torch.arange(24)
    zero = torch.zeros(1, heads, 24, dim)
    scores = _weights(attend, zero, zero, at, at)[:, -1].log()
    want = torch.tensor(slopes).double()[:, None] * (at - 23)
    places = [("head", range(heads)), ("key", range(24))]
    got = scores - scores[:, -1:]
    slack = 64 * EPS * (1 + float(want.abs().max()))
    found = _compare("bias", want, got, slack, places, question=question)
    have = _heads_of((got[:, -1] - got[:, -2]).tolist())
    if found.verdict == "passes" or not have:
        return found
    told = f"{found.found}: the slopes are those of {have}"
    asked = _heads_of(slopes)
    return replace(found, found=told + f", not of {asked}" * bool(asked))


# --- a model


def check_model(
    model: Model,
    vocabulary: int | Tensor,
    *,
    weights: Iterable[Tensor] = (),
    causal: bool = True,
    pads: bool | None = True,
    packs: bool | None = None,
    moves: bool | None = None,
    limits: Mapping[str, int] | None = None,
    longest: int = 1024,
) -> list[Finding]:
    """Check how a model uses positions.

    The model is a function `model(ids, mask, positions, cache)` that returns
    `(logits, cache)`. `ids` and `positions` have the shape `(batch, tokens)`,
    int64; `mask` has the shape `(batch, keys)`, bool, and is False for padding.
    `mask` and `positions` are None where the model has to compute them itself.
    `cache` is None in the first call and then the cache that the model
    returned, which may be None for a model without a cache.

    If the logits are not finite, or do not depend on the order of the tokens,
    the remaining checks are skipped.

    Args:
        model: The model; its logits have the shape `(batch, tokens, ...)`. Put
            it into eval mode first.
        vocabulary: Number of token ids, or a tensor of the ids to use, shape
            `(ids,)`, int64; at least 8.
        weights: Trained parameters of the model. They are changed by one
            rounding and then restored, to measure how much the logits change.
            The tolerance depends on this change.
        causal: Whether logits must not depend on later tokens. The checks of
            the cache are run only if it is True.
        pads: Whether a left-padded sequence must have the same logits as alone.
            If False or None, a difference is reported as not guaranteed.
        packs: Whether a text that is packed behind another, with positions from
            0, must have the same logits as alone. If False or None, a
            difference is reported as not guaranteed.
        moves: Whether shifting all positions must change nothing. If False or
            None, a difference is reported as not guaranteed.
        limits: Windows, top-k values and original lengths in tokens, by name.
            One prompt that exceeds all limits of at most `longest - 8` is
            compared in chunks and in one pass.
        longest: Maximum number of tokens of this prompt. Positions below it
            must differ from each other, if the model reads them.

    Returns:
        One finding or more for each check.

    Raises:
        ValueError: If `model` raises an error for a single text without mask,
            positions and cache, or returns something other than logits of the
            expected shape and a cache; or if `vocabulary` has fewer than 8
            tokens.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> table = torch.randn(9, 9, generator=generator)
        >>> def model(ids, mask, positions, cache):  # a bigram model
        ...     return table[ids], cache
        >>> findings = check_model(model, vocabulary=9)
        >>> findings[-1].verdict, findings[-1].found
        ('no power', 'swapping two tokens changes no logit')

        The verdict "no power" is printed as "inconclusive".
    """
    tokens = vocabulary
    if isinstance(tokens, int):
        tokens = torch.arange(tokens)
    if len(tokens) < 8:
        raise ValueError(f"vocabulary must have 8 tokens, got {len(tokens)}")
    order = torch.randperm(len(tokens), generator=_seeded(0))
    ids = tokens[order[:24]][None]
    whole, _ = _logits(model, ids)
    finite = bool(whole.isfinite().all())
    findings = [_plain("finite", finite, question="Are all logits finite?")]
    if not finite:
        return findings
    twice, _ = _logits(model, ids)
    findings += [_plain("same_twice", bool((whole == twice).all()))]
    noise = _noise(model, ids, whole, weights)
    batch, found = _in_batch(model, ids, whole)
    findings += found
    noise = 16 * max(noise, batch)
    case = _Case(model, ids, tokens, whole, noise, causal)
    swapped = ids.clone()
    swapped[0, [0, 1]] = ids[0, [1, 0]]
    effect = (_logits(model, swapped)[0] - whole)[0, 2:].abs().max().item()
    if effect <= case.tolerance:
        said = "swapping two tokens changes no logit"
        return [*findings, _finding("order", "no power", said)]
    findings += [_begins(case)]
    told = findings[-1].found.removeprefix("at ")
    case = replace(case, begin=int(told) if told.isdigit() else 0)
    asks = {"alone_in_batch": _alone_in_batch, "alone_as_padded": _padded,
            "alone_as_packed": _packed, "moved_as_here": _moved}  # fmt: skip
    if causal:
        asks = {"no_peeking": _no_peeking, **asks, "whole_as_steps": _steps,
                "whole_as_chunks": _chunks}  # fmt: skip
    promises = {_padded: pads, _packed: packs, _moved: moves}
    for check, ask in asks.items():
        try:
            found = ask(case)
        except ValueError as error:
            question = "The check could not run:"
            found = [_finding(check, "no power", str(error), question=question)]
        findings += [_promised(f, promises.get(ask, True)) for f in found]
    findings += _late_positions(case, longest)
    if causal and limits:
        findings += [_past_limits(case, limits, longest)]
    return _with_common_causes(findings)


@dataclass(frozen=True)
class _Case:
    """Hold a model, a text, and the logits of the text.

    Attributes:
        model: The model.
        ids: The text, shape `(1, tokens)`.
        tokens: Token ids of the vocabulary.
        whole: Logits of the text, shape `(1, tokens, ...)`.
        tolerance: Largest difference of logits that passes.
        causal: Whether logits must not depend on later tokens.
        begin: First position that the model itself assigns.
    """

    model: Model
    ids: Tensor
    tokens: Tensor
    whole: Tensor
    tolerance: float
    causal: bool
    begin: int = 0

    def positions(self, mask: Tensor) -> Tensor:
        """Return positions of the tokens; padding has the first position."""
        return self.begin + (mask.cumsum(1) - 1).clamp(min=0)

    def agrees(self, check: str, want: Tensor, got: Tensor) -> Finding:
        """Check that two tensors of logits agree within the tolerance.

        Args:
            check: Name of the check.
            want: Expected logits, shape `(batch, tokens, ...)`.
            got: Found logits, in the shape of `want`.

        Returns:
            The finding; "no power" if the difference may be rounding.
        """
        places = [("token", range(got.shape[1])), ("logit", range(9**9))]
        want, got = want.flatten(2), got.flatten(2)
        told = _compare(check, want[0], got[0], self.tolerance, places)
        gap = float((want - got).abs().max())
        if told.verdict == "passes" or not gap <= 16 * self.tolerance:
            return told
        said = f"off by {gap:.1e}, which may be rounding; rounding changed the "
        said += f"logits by {self.tolerance / 16:.1e}"
        return _finding(check, "no power", said, tolerance=self.tolerance)


def _promised(found: Finding, promise: bool | None) -> Finding:
    if found.verdict not in ("passes", "fails") or promise:
        return found
    plain = replace(found, expected="", where="", cause="")
    if found.verdict == "passes":
        return replace(plain, verdict="reads")
    said = f"no, but this is not guaranteed: {found.found}"
    return replace(plain, verdict="no promise", found=said)


def _logits(
    model: Model,
    ids: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
    cache: Any = None,
) -> tuple[Tensor, Any]:
    """Return the logits of the model in float64, and its cache."""
    given = f"ids {tuple(ids.shape)}"
    for name, each in (("mask", mask), ("positions", positions)):
        given += f", {name} {None if each is None else tuple(each.shape)}"
    given += ", a cache" if cache is not None else ", no cache"
    try:
        with torch.no_grad():
            made = model(ids, mask, positions, cache)
    except Exception as error:
        said = f"model must take {given}; it raised {_told(error)}"
        raise ValueError(said) from error
    if not isinstance(made, tuple) or len(made) != 2:
        got = type(made).__name__
        raise ValueError(f"model must return (logits, cache), got {got}")
    logits, cache = made
    have = tuple(logits.shape)
    if have[:2] != tuple(ids.shape) or len(have) < 3:
        want = (*ids.shape, "...")
        raise ValueError(f"logits must be {want} for {given}, got {have}")
    return logits.double(), cache


def _in_batch(
    model: Model, ids: Tensor, whole: Tensor
) -> tuple[float, list[Finding]]:
    """Return how much logits change in a batch of equal texts, and findings.

    There is a finding only if the model cannot run the batch. The model gets no
    mask and no positions.
    """
    try:
        batch, _ = _logits(model, ids.repeat(3, 1))
    except ValueError as error:
        question = "The model could not run a batch of three sequences:"
        found = _finding(
            "alone_in_batch", "no power", str(error), question=question
        )
        return 0.0, [found]
    return float((batch[0] - whole[0]).abs().max()), []


def _noise(
    model: Model, ids: Tensor, whole: Tensor, weights: Iterable[Tensor]
) -> float:
    """Return how much logits change by rounding, each weight's included."""
    weights = [w for w in weights if w.is_floating_point()]
    kept = [w.detach().clone() for w in weights]
    made = _seeded(3)
    with torch.no_grad():
        for w in weights:
            way = torch.randint(0, 2, w.shape, generator=made) * 2 - 1
            w.mul_(1 + torch.finfo(w.dtype).eps * way.to(w.dtype))
        moved, _ = _logits(model, ids)
        for w, old in zip(weights, kept, strict=True):
            w.copy_(old)
    least = EPS * float(whole.abs().max())
    return max(least, float((moved - whole).abs().max()))


def _in_parts(
    case: _Case,
    ids: Tensor,
    sizes: Sequence[int],
    told: bool,
    mask: Tensor | None = None,
) -> Tensor | None:
    """Return the logits of a text read in parts; None if there is no cache."""
    mask = torch.ones_like(ids).bool() if mask is None else mask
    positions = case.positions(mask)
    cache, done, made = None, 0, []
    for size in sizes:
        part = ids[:, done : done + size]
        at = positions[:, done : done + size] if told else None
        seen = mask[:, : done + size]
        logits, cache = _logits(case.model, part, seen, at, cache)
        made.append(logits)
        done += size
        if cache is None:
            return None
    return torch.cat(made, 1)


def _cached(
    case: _Case, check: str, sizes: Sequence[int], told: bool
) -> list[Finding]:
    got = _in_parts(case, case.ids, sizes, told)
    if got is None:
        return [_finding(check, "no power", NO_CACHE)]
    return [case.agrees(check, case.whole, got)]


def _steps(case: _Case) -> list[Finding]:
    n = case.ids.shape[1]
    return _cached(case, "whole_as_steps", [n // 2] + [1] * (n - n // 2), False)


def _chunks(case: _Case) -> list[Finding]:
    n = case.ids.shape[1]
    sizes = [5] * (n // 5) + [n % 5] * (n % 5 > 0)
    return _cached(case, "whole_as_chunks", sizes, True)


def _no_peeking(case: _Case) -> list[Finding]:
    other = case.ids.clone()
    other[0, -1] = case.ids[0, 0]
    got = _logits(case.model, other)[0][:, :-1]
    return [case.agrees("no_peeking", case.whole[:, :-1], got)]


def _alone_in_batch(case: _Case) -> list[Finding]:
    """Check a full sequence next to, and behind, one with left padding."""
    rows, mask = _left_padded(case)
    both, _ = _logits(case.model, rows, mask, case.positions(mask))
    rows, mask = rows.flip(0), mask.flip(0)
    back, _ = _logits(case.model, rows, mask, case.positions(mask))
    got = torch.cat([both[:1], back[1:]])
    found = [case.agrees("alone_in_batch", case.whole, x[None]) for x in got]
    return [next((f for f in found if f.verdict == "fails"), found[0])]


def _padded(case: _Case) -> list[Finding]:
    rows, mask = _left_padded(case)
    short = int((~mask[1]).sum())
    alone, _ = _logits(case.model, case.ids[:, short:])
    both, _ = _logits(case.model, rows, mask, case.positions(mask))
    found = [case.agrees("alone_as_padded", alone, both[1:, short:])]
    if found[0].verdict == "passes":
        found = [_padded_at_edges(case) or found[0]]
    half = case.ids.shape[1] // 2
    parts = [half] + [1] * (case.ids.shape[1] - half)
    steps = _in_parts(case, rows, parts, True, mask) if case.causal else None
    if steps is not None:
        got = steps[1:, short:]
        found += [case.agrees("padded_as_steps", alone, got)]
    return found


def _padded_at_edges(case: _Case) -> Finding | None:
    """Return the failure of padding at another length, None if there is none.

    These lengths are those around powers of two, which kernels use as blocks.
    """
    pick = torch.randint(0, len(case.tokens), (1, 65), generator=_seeded(7))
    ids = case.tokens[pick]
    try:
        whole, _ = _logits(case.model, ids)
        for n in (17, 31, 32, 33, 63, 64, 65):
            found = _padded_at(case, ids[:, :n], whole[:, : n - 4])
            if found.verdict == "fails":
                return found
    except ValueError:
        pass  # fewer positions, and an error that says so
    return None


def _padded_at(case: _Case, ids: Tensor, alone: Tensor) -> Finding:
    """Compare a text behind 4 tokens of padding with its logits alone.

    If they differ from those of a longer text, the text is read alone.
    """
    n = ids.shape[1]
    row = torch.cat([ids[:, -4:], ids[:, :-4]], 1)
    mask = torch.arange(n)[None] >= 4
    both, _ = _logits(case.model, row, mask, case.positions(mask))
    found = case.agrees("alone_as_padded", alone, both[:, 4:])
    if found.verdict == "fails":
        alone, _ = _logits(case.model, ids[:, :-4])
        found = case.agrees("alone_as_padded", alone, both[:, 4:])
    told = f"{found.found}, with {n} tokens, 4 of them padding"
    why = "a mask that a kernel skips at some lengths"
    return replace(found, found=told, cause=why)


def _left_padded(case: _Case) -> tuple[Tensor, Tensor]:
    """Return a sequence, the same without its first quarter, and the mask."""
    n = case.ids.shape[1]
    short = n // 4
    pad = case.ids[:, -1:].expand(1, short)
    rows = torch.cat([case.ids, torch.cat([pad, case.ids[:, short:]], 1)])
    mask = torch.ones(2, n, dtype=torch.bool)
    mask[1, :short] = False
    return rows, mask


def _begins(case: _Case) -> Finding:
    """Find the position from which the model itself counts."""
    at = torch.arange(case.ids.shape[1])[None]
    for begin in range(4):
        try:
            got, _ = _logits(case.model, case.ids, None, begin + at)
        except ValueError as error:
            return _finding("begins", "no power", str(error))
        if float((got - case.whole).abs().max()) <= case.tolerance:
            return _finding("begins", "reads", f"at {begin}")
    said = "passing positions from 0, 1, 2 or 3 always changes the logits"
    return _finding("begins", "no promise", said)


def _packed(case: _Case) -> list[Finding]:
    n = case.ids.shape[1]
    first = n // 3
    alone, _ = _logits(case.model, case.ids[:, first:])
    at = torch.cat([torch.arange(first), torch.arange(n - first)])[None]
    at = at + case.begin
    got = _logits(case.model, case.ids, None, at)[0][:, first:]
    return [case.agrees("alone_as_packed", alone, got)]


def _moved(case: _Case) -> list[Finding]:
    mixed = torch.arange(case.ids.shape[1]).flip(0)[None] + case.begin
    got, _ = _logits(case.model, case.ids, None, mixed)
    if float((got - case.whole).abs().max()) <= case.tolerance:
        said = "reversing the positions changes no logit"
        ignored = "no: it ignores position ids, and counts positions itself"
        return [_finding("moved_as_here", "no power", said),
                _finding("position_ids", "no promise", ignored)]  # fmt: skip
    at = torch.arange(case.ids.shape[1])[None] + case.begin + 100
    got, _ = _logits(case.model, case.ids, None, at)
    return [case.agrees("moved_as_here", case.whole, got)]


def _late_positions(case: _Case, last: int) -> list[Finding]:
    """Check that late positions differ from each other, up to `last`."""
    n = case.ids.shape[1]

    def one(begin: int) -> bool:
        at = begin + torch.arange(n)[None]
        pair = [_logits(case.model, case.ids, None, p)[0]
                for p in (at, at.flip(1))]  # fmt: skip
        return float((pair[0] - pair[1]).abs().max()) <= case.tolerance

    low, high = case.begin, last - n
    try:
        if one(low) or not one(high):
            return []
    except ValueError:
        return []  # fewer positions, and an error that says so
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if one(middle) else (middle, high)
    said = f"no: reversing the positions from {high} on changes no logit"
    return [_finding("positions_in_order", "fails", said,
                     where=f"position {high}")]  # fmt: skip


def _past_limits(
    case: _Case, limits: Mapping[str, int], longest: int
) -> Finding:
    """Compare one pass with chunks, for a prompt that exceeds the limits."""
    crossed = {k: v for k, v in limits.items() if v + 8 <= longest}
    beyond = [f"{k} {v}" for k, v in limits.items() if k not in crossed]
    left = f"; not exceeded: {', '.join(beyond)}" if beyond else ""
    if not crossed:
        said = f"no prompt of {longest} tokens exceeds {', '.join(beyond)}"
        return _finding("past_limits", "no power", said)
    n = max(crossed.values()) + 8
    pick = torch.randint(0, len(case.tokens), (1, n), generator=_seeded(5))
    ids = case.tokens[pick]
    try:
        whole, _ = _logits(case.model, ids)
        sizes = [n - 8, 1, 1, 1, 5]
        got = _in_parts(case, ids, sizes, True)
    except ValueError as error:
        return _finding("past_limits", "no power", str(error))
    if got is None:
        return _finding("past_limits", "no power", NO_CACHE)
    found = case.agrees("past_limits", whole, got)
    names = ", ".join(f"{k} {v}" for k, v in crossed.items())
    said = f"{found.found}, with {n} tokens, beyond {names}{left}"
    return replace(found, found=said)


# --- how a model starts


def check_start(
    build: Callable[[], nn.Module],
    initialize: Callable[[nn.Module], Any] | None = None,
) -> list[Finding]:
    """Check that a module gets all its values, also if it was built on meta.

    The module is built twice, and the second one loads the state dict of the
    first. So does a third one that was built on the meta device, emptied by
    to_empty, filled with nan where memory has no values yet, and passed to
    `initialize`. All values must then equal those of the first module,
    including those that are not in the checkpoint.

    Args:
        build: Function without arguments that returns a new module.
        initialize: Function of the library that initialises an emptied module.
            None if there is none.

    Returns:
        One finding for loading and one for the meta device.

    Raises:
        ValueError: If `build` raises an error or does not return a module.

    Example:
        >>> class Rotary(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         w = 1 / torch.arange(1.0, 5)
        ...         self.register_buffer("inv_freq", w, persistent=False)
        >>> [f.verdict for f in check_start(Rotary)]
        ['passes', 'fails']
    """
    try:
        first, second = build(), build()
    except Exception as error:
        said = f"build must return a module; it raised {_told(error)}"
        raise ValueError(said) from error
    if not isinstance(first, nn.Module):
        got = type(first).__name__
        raise ValueError(f"build must return a module, got {got}")
    saved = first.state_dict()
    second.load_state_dict(saved)
    findings = [_numbers("saved_and_loaded", first, second, saved)]
    try:
        with torch.device("meta"):
            empty = build()
        empty = empty.to_empty(device="cpu")
        _fill(empty)
        if initialize is not None:
            initialize(empty)
    except Exception as error:
        said = f"it could not be built so: {_told(error)}"
        return [*findings, _finding("started_on_meta", "no power", said)]
    empty.load_state_dict(saved)
    return [*findings, _numbers("started_on_meta", first, empty, saved)]


def _fill(module: nn.Module) -> None:
    """Fill memory without values with nan, or with the largest number."""
    with torch.no_grad():
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point() or each.is_complex():
                each.fill_(torch.nan)
            elif each.dtype != torch.bool:
                each.fill_(torch.iinfo(each.dtype).max)


def _numbers(
    check: str, want: nn.Module, got: nn.Module, saved: Iterable[str]
) -> Finding:
    have = dict([*got.named_parameters(), *got.named_buffers()])
    wrong = []
    for name, each in (*want.named_parameters(), *want.named_buffers()):
        there = have.get(name)
        if (
            there is None
            or there.shape != each.shape
            or not bool(
                ((there == each) | (there != there) & (each != each)).all()
            )
        ):
            wrong.append(name)
    if not wrong:
        return _finding(check, "passes", "yes")
    said = f"no: {', '.join(wrong[:3])}" + " and more" * (len(wrong) > 3)
    said += ", not in the checkpoint" if set(wrong) - set(saved) else ""
    return _finding(check, "fails", said, where=wrong[0])


# --- the rotation in each layer


@dataclass(frozen=True)
class Layer:
    """Hold how the queries of one attention depend on position.

    The contents of all tokens are the same, and only their positions differ.

    Attributes:
        kind: "turns" for a rotation; "turns on axes" for a rotation whose
            angles are not proportional to one position; "adds" for an added
            vector; "scales" for a temperature; "still" if positions have no
            effect; or "neither".
        queries: Queries of the first head, shape `(tokens, dim)`.
        rotation: The measured rotation if `kind` is "turns", without pairs
            whose frequency is too low to be detected; otherwise None.
        scores: Scores for two contents, as a softmax receives them, shape
            `(2, heads, tokens, keys)`. None if a fused kernel computes them.
        path: Path of the attention in the model.
    """

    kind: str
    queries: Tensor
    rotation: Rotation | None = None
    scores: Tensor | None = None
    path: str = ""

    def __str__(self) -> str:
        return str(self.rotation) if self.rotation else self.kind


class AttentionWatch(TorchFunctionMode):
    """Record the queries and scores of each attention that runs.

    This is a torch function mode: use it as a context manager. It records calls
    of scaled_dot_product_attention, and products whose result a softmax
    receives.

    Attributes:
        path: Path of the module that runs, set by the caller.
        seen: One tuple for each attention: the path of its module, q of shape
            `(..., queries, dim)`, and the scores of shape
            `(..., queries, keys)`, which have one more column if there is a
            sink. The scores of scaled_dot_product_attention are hidden: None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.path = ""
        self.seen: list[tuple[str, Tensor, Tensor | None]] = []
        self._products: list[tuple[Tensor, torch.Size]] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name == "scaled_dot_product_attention":
            q = (args[0] if args else kwargs["query"]).detach()
            self.seen.append((self.path, q, None))
        out = function(*args, **kwargs)
        if name in ("matmul", "__matmul__", "bmm") and out.ndim > 2:
            self._products.append((args[0].detach(), out.shape))
        if name == "baddbmm":
            q = args[1] if len(args) > 1 else kwargs["batch1"]
            self._products.append((q.detach(), out.shape))
        if name == "einsum" and out.ndim > 2:
            q = _summed_queries(*args)
            if q is not None:
                self._products.append((q.detach(), out.shape))
        del self._products[:-6]
        if name == "softmax" and out.ndim > 2:
            given = args[0] if args else kwargs["input"]
            made = [q for q, shape in self._products if _fits(shape, out.shape)]
            if made:
                self.seen.append((self.path, made[-1], given.detach()))
        return out


def _summed_queries(equation: str, *factors: Any) -> Tensor | None:
    """Return the factor before the keys of an einsum, (..., queries, dim)."""
    if "->" not in equation:
        return None
    given, made = equation.replace(" ", "").split("->")
    names = given.split(",")
    tensors = factors[0] if isinstance(factors[0], (list, tuple)) else factors
    summed = [n for n in names[0] if n in names[-1] and n not in made]
    if len(names) != 2 or "." in equation or len(summed) != 1:
        return None
    axes = [n for n in made if n in names[0]] + summed
    if axes[-2:-1] != [made[-2]] or len(axes) != len(names[0]):
        return None
    return torch.einsum(f"{names[0]}->{''.join(axes)}", tensors[0])


def _fits(product: torch.Size, scores: torch.Size) -> bool:
    """Return whether scores can be a product, with or without a sink."""
    sunk = torch.Size([*product[:-1], product[-1] + 1])
    if product[-2] != scores[-2]:
        return False
    return product.numel() == scores.numel() or sunk == scores


def read_layers(model: nn.Module, run: Callable[[int], Any]) -> list[Layer]:
    """Measure what each attention does with positions, in running order.

    The inputs of each module with "Attention" or "Attn" in the name of its
    class are made the same at all positions, so that only the attention itself
    can distinguish positions.

    Args:
        model: The model that `run` runs. Put it into eval mode first.
        run: Function of a number. It runs `model` over at least 32 tokens that
            are all the same; another number stands for another token.

    Returns:
        One measured layer for each attention that ran.

    Raises:
        ValueError: If the runs with two different tokens have different numbers
            of attentions. Errors of `run` are passed on.
    """
    seen = []
    for token in (3, 5):
        watch = AttentionWatch()
        with _alike(model, watch), torch.no_grad(), watch:
            run(token)
        seen.append(watch.seen)
    layers = []
    for (path, *a), (_, *b) in zip(*seen, strict=True):
        q, r = (each[0].flatten(0, -3)[0].double() for each in (a, b))
        scores = None
        if a[1] is not None and b[1] is not None and a[1].shape == b[1].shape:
            scores = torch.stack([a[1].flatten(0, -3), b[1].flatten(0, -3)])
        layers.append(replace(_layer(q, r), scores=scores, path=path))
    return layers


@contextmanager
def _alike(model: nn.Module, watch: AttentionWatch) -> Iterator[None]:
    """Give all positions the middle vector of what enters an attention."""
    names = ("hidden_states", "hidden_state", "query", "key", "value", "x")

    def flat(x: Any, shape: Any = None) -> Any:
        floats = isinstance(x, Tensor) and x.is_floating_point()
        known = floats and x.ndim in (2, 3, 4)
        if not known or shape not in (None, x.shape):
            return x
        places = x.flatten(0, -2)  # for any leading axes
        return places[len(places) // 2].expand_as(x).contiguous()

    def hook(path: str, module: nn.Module, args: Any, kwargs: Any) -> Any:
        watch.path = path
        kwargs = {k: flat(v) if k in names else v for k, v in kwargs.items()}
        shape = getattr(args[0], "shape", None) if args else None
        return tuple(flat(x, shape) for x in args), kwargs

    hooks: list[Any] = []
    inside: list[str] = []
    for path, module in model.named_modules():
        name = type(module).__name__
        outer = not any(path.startswith(each) for each in inside)
        if outer and ("Attention" in name or "Attn" in name):
            named = partial(hook, path)
            hooks += [module.register_forward_pre_hook(named, with_kwargs=True)]
            inside += [path + "."]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


def _layer(a: Tensor, b: Tensor) -> Layer:
    """Return the layer with these queries, (tokens, dim), of two contents."""
    size = float(a.abs().max()) or 1.0
    slack = 1e-5 * size
    if float((a - a[0]).abs().max()) <= slack:
        return Layer("still", a)
    if float(((a - b) - (a - b)[0]).abs().max()) <= slack:
        return Layer("adds", a)
    length = a.norm(dim=-1, keepdim=True)
    if float((a / length - a[0] / length[0]).abs().max()) <= 1e-5:
        return Layer("scales", a)
    pairs = _turning(a)
    if pairs is None:
        return Layer("neither", a)
    x, y = a[:, pairs].unbind(-1)  # (tokens, pairs)
    angles = torch.atan2(y, x)
    steps = angles.diff(dim=0)
    steps = steps - math.tau * (steps / math.tau).round()
    w = steps.mean(0)
    even = (steps - w).abs().amax(0) <= 1e-4
    if not bool(even.all()):
        return Layer("turns on axes", a)
    radius = (x.square() + y.square()).sqrt().mean(0)
    noise = 4 * EPS * (1 + size / radius.clamp(min=1e-9))
    errors = noise * (w.abs() + 1 / len(a))
    first = int(w.abs().argmax())
    last = first + _turned(w.abs()[first:], errors[first:])
    pairs, errors = pairs[first:last], errors[first:last]
    both, dim = w[first:last, None].expand(-1, 2), a.shape[-1]
    unseen = 4 * float((noise / len(a)).max())
    return Layer("turns", a, _rotation(dim, pairs, both, errors, 1.0, unseen))


def _turned(w: Tensor, errors: Tensor) -> int:
    """Return how many pairs rotate, without a last part that stands still.

    Pairs whose frequency is too low to be detected may belong to either part.
    """
    seen = int((w > 4 * errors).sum())
    if seen in (0, 1, len(w)) or int((errors < 0.01 * w).sum()) < 2:
        return len(w)
    even, _ = _even(w, errors)
    return seen if bool(even[seen] > 8 * errors[seen]) else len(w)


def _turning(q: Tensor) -> Tensor | None:
    """Return pairs of channels whose length is constant.

    Pairs at one end of a head are preferred.
    """
    dim, size = q.shape[-1], float(q.abs().max())
    moves = (q - q.mean(0)).abs().amax(0) > 1e-5 * size
    at = moves.nonzero()[:, 0]
    if not len(at):  # nan
        return None
    for turned in range(dim - dim % 2, 0, -2):
        for begin in dict.fromkeys((0, dim - turned)):
            if at[0] < begin or at[-1] >= begin + turned:
                continue
            first = begin + torch.arange(turned // 2)
            for pairs in (
                torch.stack([first, first + turned // 2], -1),
                torch.stack([2 * first - begin, 2 * first - begin + 1], -1),
            ):
                length = q[:, pairs].norm(dim=-1)
                if float((length - length[0]).abs().max()) <= 2e-5 * size:
                    return pairs
    squares = q[:, at].square()
    sums = squares[:, :, None] + squares[:, None]  # (tokens, moving, moving)
    kept = (sums - sums[0]).abs().amax(0) <= 4e-5 * size**2
    met = kept.fill_diagonal_(False).sum(-1)
    return at[kept.triu().nonzero()] if bool((met == 1).all()) else None


def check_layers(
    layers: Sequence[Layer], settings: Sequence[Mapping[str, Any] | None]
) -> list[Finding]:
    """Compare the measured rotation of each layer with its configuration.

    Args:
        layers: Measured layers from `read_layers`.
        settings: One entry for each layer: the rope_parameters of transformers
            5; None if the layer is configured without rotation; an empty
            mapping if the configuration does not specify the rotation.

    Returns:
        One finding if a layer differs; otherwise one for the layers that were
        compared, one for layers without rotation that no key explains, and one
        for layers without a rotation to compare, as far as there are any.

    Raises:
        ValueError: If `settings` does not have one entry for each layer.
    """
    if len(layers) != len(settings):
        raise ValueError(
            f"settings must have {len(layers)} entries, one for each layer, "
            f"got {len(settings)}"
        )
    strange = "queries depend on position, but by no rotation or added vector"
    say = partial(_finding, "layers_as_configured")
    wrong: list[tuple[int, str]] = []
    bare: list[int] = []
    unread: list[int] = []
    for n, (layer, want) in enumerate(zip(layers, settings, strict=True)):
        if layer.kind == "neither":
            wrong.append((n, strange))
        elif layer.rotation is None:
            (bare if layer.kind == "still" and want else unread).append(n)
        elif want is None:
            wrong.append((n, f"rotates: {layer}"))
        elif said := _unlike_known(layer.rotation, want):
            wrong.append((n, said))
    if wrong:
        n, said = wrong[0]
        told = f"no, in layers {', '.join(str(n) for n, _ in wrong)}: {said}"
        why = _known("norm_kept")[1] if said == strange else None
        return [say("fails", told, where=f"layer {n}", cause=why)]
    findings = []
    read = [n for n in range(len(layers)) if n not in (*bare, *unread)]
    if read:
        kinds = sorted({str(layers[n]) for n in read})
        findings += [say("passes", f"yes: {'; '.join(kinds)}")]
    if bare:
        which = ", ".join(map(str, bare))
        told = "do not rotate, although no key of the configuration says so"
        findings += [say("no promise", f"layers {which} {told}")]
    if unread:
        which = ", ".join(map(str, unread))
        told = ", ".join(sorted({layers[n].kind for n in unread}))
        told = f"no rotation to compare in layers {which}: {told}"
        findings += [say("reads", told)]
    return findings


def _unlike_known(read: Rotation, want: Mapping[str, Any]) -> str:
    try:
        w, _ = configured_frequencies(want, read.dim)
    except ValueError:
        return ""  # no rotation is specified, or an unknown kind
    return "; ".join(_unlike(read, want, w, 1.0))


# --- shared by all checks


def report(findings: Sequence[Finding]) -> str:
    """Format the findings as a table, failures first.

    Args:
        findings: Findings of any checks.

    Returns:
        The table, with a last line that counts the verdicts.

    Example:
        >>> finding = Finding("finite", "passes", "Finite?", "yes", "yes")
        >>> print(report([finding]))
        passes          finite                Finite? yes
        1 passes
    """
    order = ["fails", "passes", "reads", "no promise", "no power"]
    lines = []
    for one in sorted(findings, key=lambda f: order.index(f.verdict)):
        told = str(one).split(": ", 2)[2]
        head = f"{_shown(one.verdict):16}{one.check:22}"
        lines += textwrap.wrap(head + told, 78, subsequent_indent=" " * 12)
    counts = [(sum(f.verdict == v for f in findings), _shown(v)) for v in order]
    return "\n".join([*lines, ", ".join(f"{n} {v}" for n, v in counts if n)])


def assert_positions(findings: Sequence[Finding]) -> None:
    """Raise an error if a check fails.

    Args:
        findings: Findings of any checks.

    Raises:
        AssertionError: If a verdict is "fails"; the message contains all
            findings that fail.

    Example:
        >>> finding = Finding("finite", "passes", "Finite?", "yes", "yes")
        >>> assert_positions([finding])
    """
    failed = [str(one) for one in findings if one.verdict == "fails"]
    if failed:
        raise AssertionError("\n".join(failed))


def _known(check: str) -> tuple[str, str]:
    """Return the question of a check, and the most common cause of failure."""
    told = CHECKS.partition(f"\n{check}: ")[2]
    asked, *cause = re.split(r"\n(?! )", told)[0].split("\n")
    return asked, " ".join(line.strip() for line in cause)


def _finding(
    check: str,
    verdict: str,
    found: str,
    *,
    question: str = "",
    expected: str = "yes",
    tolerance: float | None = None,
    where: str = "",
    cause: str | None = None,
) -> Finding:
    """Return a finding with the question and cause from CHECKS.

    The expected answer is included only if the verdict is "passes" or "fails".
    """
    known, why = _known(check)
    expected = expected if verdict in ("passes", "fails") else ""
    why = (why if cause is None else cause) if verdict == "fails" else ""
    return Finding(check, verdict, question or known, expected, found,
                   tolerance, where, why)  # fmt: skip


def _plain(check: str, right: bool, question: str = "") -> Finding:
    verdict, said = ("passes", "yes") if right else ("fails", "no")
    return _finding(check, verdict, said, question=question)


def _compare(
    check: str,
    expected: Tensor,
    found: Tensor,
    tolerance: float,
    places: Sequence[tuple[str, Sequence[Any]]],
    question: str = "",
) -> Finding:
    """Check that two tensors are equal.

    `places` has the name of each axis and the label of each index.
    """
    gap = (expected - found).abs()
    wrong = ~(gap <= tolerance)
    if not bool(wrong.any()):
        said = f"yes, within {float(gap.max()):.1e}"
        return _finding(
            check, "passes", said, tolerance=tolerance, question=question
        )
    at = tuple(int(n) for n in wrong.nonzero()[0])
    pairs = zip(places, at, strict=True)
    where = ", ".join(f"{name} {values[n]}" for (name, values), n in pairs)
    want = f"{float(expected[at]):.4g}"
    said = f"{float(found[at]):.4g} instead of {want}"
    return _finding(check, "fails", said, expected=want, tolerance=tolerance,
                    where=where, question=question)  # fmt: skip


def _with_common_causes(findings: Sequence[Finding]) -> list[Finding]:
    """Give failures that one fault explains the cause of that fault.

    Where no frequencies could be read, imprecise angles are not the cause.
    """
    causes = {f.check: f.cause for f in findings if f.verdict == "fails"}
    if any(f.check == "position_ids" for f in findings):
        causes["position_ids"] = _known("position_ids")[1]
    if any(f.check == "positions_in_order" and f.verdict == "no power"
           for f in findings) and "precise_angles" in causes:  # fmt: skip
        why = "angles that are not the position times a constant"
        causes["precise_angles"] = why
    for lead, others in LEADS:
        if lead in causes:
            causes |= {c: causes[lead] for c in others if c in causes}
    return [replace(f, cause=causes[f.check]) if f.verdict == "fails" else f
            for f in findings]  # fmt: skip


def _on_copies(rotate: Rotate) -> Rotate:
    return lambda x, positions: rotate(x.clone(), positions.clone())


def _told(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _turn(rotate: Rotate, x: Tensor, positions: Tensor) -> Tensor:
    want, many, most = tuple(x.shape), len(positions), int(positions.max())
    given = f"x {want}, (batch, heads, tokens, dim), and positions ({many},)"
    given += f" up to {most}"
    try:
        out = rotate(x, positions)
    except Exception as error:
        said = f"rotate must take {given}; it raised {_told(error)}"
        raise ValueError(said) from error
    have = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
    if have != want:
        raise ValueError(f"rotate must return {want} for {given}, got {have}")
    return out


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=_seeded(seed))


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- models of transformers, which is imported only here


class FromTransformers:
    """Wrap a model of transformers for `check_model`.

    The model is put into eval mode.

    Args:
        model: The model.
        without_cache: Reason for which the model can only run without a cache;
            empty if it can use one.

    Attributes:
        model: The model.
        takes_positions: Whether its forward method has position_ids.
        cache_name: Name of the cache among the arguments of its forward
            method, and in what it returns; empty if it takes none.
        without_cache: As above.
    """

    def __init__(self, model: nn.Module, without_cache: str = ""):
        self.model = model.eval()
        taken = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in taken
        named = (n for n in CACHES if n in taken and not _is_dict(taken[n]))
        self.cache_name = next(named, "")
        self.without_cache = without_cache
        kinds = {type(part).__name__ for part in model.modules()}
        self._attends = any("Attention" in kind for kind in kinds)

    def __call__(
        self, ids: Tensor, mask: Tensor | None, positions: Tensor | None,
        cache: Any,
    ) -> tuple[Tensor, Any]:  # fmt: skip
        """Run the model, as `check_model` calls it.

        Args:
            ids: Token ids, shape `(batch, tokens)`, int64.
            mask: False for padding, shape `(batch, keys)`, bool; None for no
                padding.
            positions: Position of each token, shape `(batch, tokens)`, int64;
                None if the model has to compute them.
            cache: The cache that an earlier call returned; None in the first
                call.

        Returns:
            The logits, shape `(batch, tokens, vocabulary)`, and the cache, None
            if the model returns none.

        Raises:
            ValueError: If the model has no position_ids, and `positions` are
                not those that the mask implies.
        """
        given: dict[str, Any] = {"input_ids": ids}
        if mask is not None and (self._attends or cache is None):
            # A recurrent state has no padding that a mask could hide.
            given["attention_mask"] = mask.long()
        if self.takes_positions and positions is not None:
            given["position_ids"] = positions
        elif positions is not None and not _counted(mask, positions):
            raise ValueError("the model takes no position_ids")
        if cache is not None:
            given[self.cache_name] = cache
        if self.cache_name:
            given["use_cache"] = not self.without_cache
        out = self.model(**given)
        logits = out.logits if "logits" in out else out[0]
        return logits, out.get(self.cache_name)


def _is_dict(parameter: inspect.Parameter) -> bool:
    """Return whether it takes a dictionary, as XLM's own cache is."""
    return "dict" in str(parameter.annotation)


def check_transformers(source: str | Path, seed: int = 0) -> list[Finding]:
    """Check the model of a folder or of a config.json.

    A folder with weights is loaded without change. From a configuration alone,
    a small model with random weights is built: it has few and narrow layers,
    but its heads keep their width, and its positions keep all their settings
    except windows, chunks and top-k, which shrink to 8 so that short prompts
    exceed them.

    Args:
        source: Path of a config.json or of a folder with one.
        seed: Random seed of the weights.

    Returns:
        The findings of `check_module`. For a model with random weights, a
        finding that names the model comes first, and those of `check_start`
        follow.

    Raises:
        ValueError: If the version of transformers is not supported, there is no
            configuration at `source`, transformers does not know its
            model_type, the model has both an encoder and a decoder, or it
            cannot be built and run.
    """
    wanted = f"{source} must be a config.json or a folder with one"
    if not Path(source).exists():
        raise ValueError(f"{wanted}; it does not exist")
    transformers = importlib.import_module("transformers")
    _require_supported(transformers.__version__)
    try:
        config = transformers.AutoConfig.from_pretrained(
            source, trust_remote_code=False
        )
    except Exception as error:
        known = f"{wanted}, of a model that transformers knows: {error}"
        if "trust_remote_code" in str(error):
            known = (f"{wanted}, of a model that transformers knows; this one "
                     "needs code from its own repository (auto_map), which is "
                     "never run")  # fmt: skip
        raise ValueError(known) from error
    folder, old = Path(source), transformers.__version__.startswith("4.")
    if hasattr(config, "use_mamba_kernels"):
        config.update({"use_mamba_kernels": False})  # for the CPU
    torch.manual_seed(seed)
    kind, causal = model_class(config)
    if getattr(config, "is_encoder_decoder", False) and not causal:
        raise ValueError(f"{kind.__name__} must be a decoder or an encoder, "
                         "got both, for which there are no checks")  # fmt: skip
    if folder.is_dir() and any(folder.glob("*.safetensors")):
        model = kind.from_pretrained(folder, attn_implementation="eager")
        return check_module(model, causal)
    with _one_thread():
        model, made = _small_model(kind, config)
        findings = [_asked_of(model, config, causal)]
        findings += check_module(model, causal)
        build, initialize = lambda: kind(copy.deepcopy(made)), kind.init_weights
        started = check_start(build, initialize)
        if old:
            started = [_unless_promised(one) for one in started]
        return findings + started


def _require_supported(version: str) -> None:
    """Raise ValueError unless this version of transformers is supported."""
    first, last = (f"{major}.{minor}" for major, minor in SUPPORTED)
    got = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if not SUPPORTED[0] <= got <= SUPPORTED[1]:
        raise ValueError(
            f"transformers must be a version from {first} to {last}, got "
            f"{version}; install one of them: pip install "
            f"'transformers>={first},<{SUPPORTED[1][0]}.{SUPPORTED[1][1] + 1}'"
        )


def _unless_promised(started: Finding) -> Finding:
    """Return the finding about a start that is right for transformers 4.

    It computes values that are not in the checkpoint only in __init__, and
    keeps them off the meta device: its init_weights restores none.
    """
    if (started.check, started.verdict) != ("started_on_meta", "fails"):
        return started
    said = f"{started.found}; transformers 4 computes them in __init__ alone"
    return _finding("started_on_meta", "no promise", said)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: many would wait longer than a small model runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _small_model(kind: Any, config: Any) -> tuple[Any, Any]:
    """Return a small model that runs, and its configuration.

    It has few heads. If its sizes are then inconsistent, it has all its heads,
    unless that model is too large.

    Raises:
        ValueError: If neither model can be built and run.
    """
    failed: list[str] = []
    reads, text = getattr(kind, "config_class", None), config.get_text_config()
    if reads and isinstance(text, reads) and not isinstance(config, reads):
        config = text
    for heads in (4, EVERY):
        done = "be built"
        try:
            made = small_config(config, heads=heads)
            if heads == EVERY and _size(kind, made) > LARGEST:
                break
            model = kind(copy.deepcopy(made))
            scale_up_weights(model)
            done = "run, small and with random weights"
            if "input_ids" in inspect.signature(model.forward).parameters:
                called = FromTransformers(model, _why_no_caching(model))
                _logits(called, 10 + torch.arange(24)[None])
            return model, made
        except Exception as error:
            cause = error.__cause__ or error
            said = f"{kind.__name__} must {done}, it raised {_told(cause)}"
            failed.append(said)
            if isinstance(error, MemoryError) or "allocate" in str(error):
                break
    raise ValueError(failed[0])


def _why_no_caching(model: Any) -> str:
    """Return the error that the model raises with a cache, "" if none."""
    called = FromTransformers(model)
    try:
        _logits(called, 10 + torch.arange(24)[None])
    except ValueError as error:
        return _told(error.__cause__ or error) * bool(called.cache_name)
    return ""


def _size(kind: Any, config: Any) -> int:
    """Return the number of weights, without creating them."""
    with torch.device("meta"):
        return sum(w.numel() for w in kind(copy.deepcopy(config)).parameters())


def _asked_of(model: Any, given: Any, causal: bool) -> Finding:
    """Return the finding that names the small model that was built."""
    given, made = given.get_text_config(), model.config.get_text_config()
    said = f"a small random {type(model).__name__}"
    for name in NEAR:
        was, now = _value(given, name), _value(made, name)
        said += f", {name} {now} instead of {was}" if was != now else ""
    said += "" if causal else "; cache and causality are not tested"
    return _finding("model", "reads", said)


def check_module(model: Any, causal: bool) -> list[Finding]:
    """Check the logits and the layers of a model of transformers.

    Args:
        model: The model. Put it into eval mode first.
        causal: Whether logits must not depend on later tokens, as in
            `check_model`.

    Returns:
        The findings of `check_model`, if the model takes token ids, and those
        of `check_layers`. If the layers cannot be measured, the last finding
        gives the reason.

    Raises:
        ValueError: In the cases listed for `check_model`.
    """
    config = model.config.get_text_config()
    findings = []
    if "input_ids" in inspect.signature(model.forward).parameters:
        vocabulary = torch.arange(10, min(config.vocab_size, 300))
        called = FromTransformers(model, _why_no_caching(model))
        pads = called.takes_positions or None
        findings = check_model(
            called, vocabulary, weights=model.parameters(), causal=causal,
            pads=pads, limits=_limits(config),
        )  # fmt: skip
        if called.without_cache:
            said = f"with a cache it raised {called.without_cache}"
            findings = [replace(f, found=said) if f.found == NO_CACHE else f
                        for f in findings]  # fmt: skip
    try:
        layers = read_layers(model, lambda n: model(**constant_input(model, n)))
    except Exception as error:
        said = f"the model did not run: {_told(error)}"
        return [*findings, _finding("layers_as_configured", "no power", said)]
    return findings + check_layers(layers, _settings(config, len(layers)))


def scale_up_weights(model: nn.Module, scale: float = 3.0) -> None:
    """Scale up the weights of a model, so that attention prefers some keys.

    With random initial weights, all keys get nearly the same attention weight,
    and the order of the tokens hardly changes the logits. Matrices whose
    entries are all equal, such as zeros, are sampled again with a standard
    deviation of 0.5.

    Args:
        model: The model, which is changed in place.
        scale: Factor of the weights with at least two axes.
    """
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1 and weight.shape[-1] > 1:
                weight.mul_(scale)
            if weight.ndim > 1 and _same_everywhere(weight):
                weight.normal_(0, 0.5)


def _same_everywhere(weight: Tensor) -> bool:
    """Return whether all entries are nearly equal.

    Zeros are, and so are SAM's initial values, with a standard deviation of
    1e-10.
    """
    flat = weight.flatten()
    return bool(((flat - flat[:1]).abs() < 1e-6).all())


def small_config(config: Any, layers: int = 6, heads: int = 4) -> Any:
    """Return a small copy of a configuration.

    The copy has fewer layers, heads and experts and smaller tables, and its
    windows, chunks and top-k shrink to 8. The heads keep their width.

    Args:
        config: Configuration of transformers; it does not change.
        layers: Maximum number of layers.
        heads: Maximum number of heads.

    Returns:
        The small configuration, of the same class.
    """
    config = copy.deepcopy(config)
    given = {k: v for k, v in vars(config).items() if not k.startswith("_")}
    changed = _narrow(given, heads) | _short(given, layers)
    for name in getattr(type(config), "sub_configs", None) or {}:
        if getattr(config, name, None) is not None:
            changed[name] = small_config(getattr(config, name), layers, heads)
    for name in ("attn", "experts"):
        changed[f"_{name}_implementation_internal"] = "eager"
    for name, value in changed.items():
        object.__setattr__(config, name, value)
    return config


def _short(given: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """Return fewer layers, and shorter lists with one entry per layer."""
    deep = {k: v for k, v in given.items()
            if re.fullmatch(LAYERS, k) and type(v) is int}  # fmt: skip
    changed: dict[str, Any] = {k: min(v, layers) for k, v in deep.items()}
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and len(value) in deep.values():
            changed[name] = type(value)(_one_of_each(value, layers))
    return changed


def _one_of_each(values: Sequence[Any], many: int) -> Sequence[Any]:
    """Return the first values; the last may be of a missing kind."""
    kept = list(values[:many])
    lost = [v for v in values[many:] if v not in kept]
    return [*kept[:-1], lost[0]] if lost else kept


def _narrow(given: Mapping[str, Any], heads: int) -> dict[str, Any]:
    """Return fewer heads of the old width, smaller tables and windows."""
    changed: dict[str, Any] = {}
    whole = {k: v for k, v in given.items() if type(v) is int and v > 0}
    named = [v for k, v in whole.items() if re.fullmatch(HEADS, k)]
    many = max(named, default=0)
    widths = {k: v for k, v in whole.items() if re.fullmatch(WIDTH, k)}
    known = (*MOST, ("|".join(NEAR), 8))
    patch = given.get("patch_size")
    pictures = 6 * (patch if isinstance(patch, int) else 16)
    words = [v for k, v in whole.items() if re.fullmatch(MOST[0][0], k)]
    few = min(words, default=MOST[0][1]) < 500
    routed = any(re.fullmatch(MOST[1][0], k) for k in whole)
    for name, value in given.items():
        if routed and value is None and re.fullmatch(ROUTER, name):
            changed[name] = 2 if "tok" in name else 1
    for name, value in whole.items():
        if re.search(r"(token_id|token_index)$", name) and value > 400:
            own = sum(map(ord, name))  # texts have no token below 10
            if not few:
                changed[name] = 400 + own % 100
            elif value >= min(words):
                changed[name] = own % 10
        elif name in ("image_size", "crop_size"):
            changed[name] = value if value <= 256 else pictures
        else:
            most = [n for how, n in known if re.fullmatch(how, name)]
            changed |= {name: min(value, most[0])} if most else {}
    if many > heads and widths:
        kept = heads
        for name, value in whole.items():
            if re.fullmatch(HEADS, name):
                changed[name] = kept
            elif re.fullmatch(KEY_HEADS, name):
                changed[name] = kept if value == many else min(value, kept // 2)
        head = given.get("head_dim") or max(widths.values()) // many
        changed |= {name: kept * int(head) for name in widths}
        changed |= _mixers(whole, whole | changed)
    return changed


def _mixers(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    """Return sizes of Mamba 2 heads that fill the expanded width."""
    for expand, heads, wide, groups in MIXERS:
        if not {expand, heads, wide, "hidden_size"} <= old.keys():
            continue
        if old[heads] * old[wide] != old[expand] * old["hidden_size"]:
            continue
        total = new[expand] * new["hidden_size"]
        fits = total % old[wide] == 0
        many = total // old[wide] if fits else math.gcd(total, 8)
        shared = math.gcd(many, old.get(groups, 1))
        return {heads: many, wide: total // many, groups: shared}
    return {}


def model_class(config: Any) -> tuple[Any, bool]:
    """Return the class of a configuration's model, and whether it is causal.

    A class with logits is preferred.

    Args:
        config: Configuration of transformers.

    Returns:
        The class, and True if it is a causal language model.

    Raises:
        ValueError: If transformers has no model for such a configuration.
    """
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    for name, causal in (
        ("MODEL_FOR_MASKED_LM_MAPPING", False),
        ("MODEL_FOR_CAUSAL_LM_MAPPING", True),
        ("MODEL_MAPPING", False),
    ):
        try:
            kind = getattr(auto, name)[type(config)]
        except KeyError:
            continue
        kind = kind[0] if isinstance(kind, tuple) else kind
        return kind, causal and _hides_later(kind, config)
    raise ValueError(f"no model is known for a {type(config).__name__}")


def _hides_later(kind: Any, config: Any) -> bool:
    """Return whether a language model hides later tokens.

    Its is_decoder decides, but for a model without an encoder only if its code
    reads this key, which every configuration of transformers 4 has.
    """
    decoder = getattr(config, "is_decoder", True)
    if decoder or getattr(config, "is_encoder_decoder", False):
        return bool(decoder)
    source = inspect.getsource(sys.modules[kind.__module__])
    code = "\n".join(line for line in source.splitlines() if ">>>" not in line)
    return not re.search(r"config\.is_decoder\b(?! =)", code)


def _limits(config: Any) -> dict[str, int]:
    """Return all lengths beyond which something changes, by name."""
    found = {k: _value(config, k) for k in NEAR}
    given = _rope_parameters(config)
    for each in (given, *(v for v in given.values() if isinstance(v, dict))):
        original = each.get("original_max_position_embeddings")
        found["original_max_position_embeddings"] = original
    return {k: v for k, v in found.items() if isinstance(v, int)}


def _rope_parameters(config: Any) -> Mapping[str, Any]:
    """Return rope_parameters, in transformers 4 made from its older keys."""
    given = getattr(config, "rope_parameters", None)
    base = _value(config, "rope_theta")
    if given or base is None or hasattr(config, "standardize_rope_params"):
        return given or {}
    plain = {"rope_type": "default", "rope_theta": base}
    scaling = getattr(config, "rope_scaling", None) or {}
    made = {**plain, "rope_type": scaling.get("type", "default"), **scaling}
    share = getattr(config, "partial_rotary_factor", None)
    made |= {} if share is None else {"partial_rotary_factor": share}
    if made["rope_type"] in ("llama3", "yarn", "longrope"):
        known = config.max_position_embeddings
        key = "original_max_position_embeddings"
        made[key] = getattr(config, key, None) or made.get(key) or known
    named = ("rope_local_base_freq", "local_rope_theta")
    near = next((getattr(config, k) for k in named if hasattr(config, k)), None)
    if near is None and config.model_type != "olmo3":
        return made
    plain["rope_theta"] = near or base  # of windows, which no scaling reaches
    return {"full_attention": made, "sliding_attention": plain}


def _layer_types(config: Any, layers: int) -> Sequence[str | None]:
    """Return the kind of each layer; None if the configuration has no kinds."""
    every = getattr(config, "global_attn_every_n_layers", None)
    if every is None:
        return getattr(config, "layer_types", None) or [None] * layers
    kinds = ("sliding_attention", "full_attention")
    return [kinds[n % every == 0] for n in range(layers)]


def _settings(config: Any, layers: int) -> list[Mapping[str, Any] | None]:
    """Return the configured rotation of each layer."""
    if _value(config, "position_embedding_type") == "nope":
        return [None] * layers
    given = _rope_parameters(config)
    kinds = _layer_types(config, layers)
    used = getattr(config, "no_rope_layers", None) or [1] * layers
    if len(kinds) != layers or len(used) != layers:
        kinds, used = [None] * layers, [1] * layers
    nested = any(isinstance(v, dict) for v in given.values())
    if nested and not any(kind in given for kind in kinds):
        return [{}] * layers  # its keys are not kinds of layers
    try:
        parts = [
            getattr(config, f"qk_{k}_head_dim", None) or 0
            for k in ("rope", "nope")
        ]
    except Exception:  # each layer has its own value
        return [{}] * layers
    found: list[Mapping[str, Any] | None] = []
    for kind, turns in zip(kinds, used, strict=True):
        one = given.get(kind or "") if nested else given
        bare = not turns or (nested and kind and one is None)
        found.append(None if bare else dict(one or {}))
        if found[-1] and all(parts):
            share = {"partial_rotary_factor": parts[0] / sum(parts)}
            found[-1] = {**found[-1], **share}
    return found


def _value(config: Any, name: str) -> Any:
    """Return an attribute; None also if each layer has its own value."""
    try:
        return getattr(config, name, None)
    except Exception:
        return None


def constant_input(model: Any, token: int) -> dict[str, Any]:
    """Return an input that is the same at all positions.

    Args:
        model: Model of transformers that takes token ids, images or videos.
        token: Number of the content; a different number gives a different
            input.

    Returns:
        The input, with its argument name as the key: token ids, shape
        `(1, 48)`; an image, shape `(1, 3, size, size)`; or a video, shape
        `(1, frames, 3, size, size)`.

    Raises:
        ValueError: If the model takes neither token ids nor images or videos.
    """
    name = getattr(model, "main_input_name", "input_ids")
    config = model.config
    dtype = next(model.parameters()).dtype
    if name == "input_ids":
        return {name: torch.full((1, 48), 10 + token)}
    if name not in ("pixel_values", "pixel_values_videos"):
        raise ValueError(f"it wants {name}, for which there is no input here")
    size: Any = getattr(config, "image_size", 0) or config.crop_size
    size = size if isinstance(size, int) else size[0]
    shape: tuple[int, ...] = (3, size, size)
    colour = torch.randn(3, 1, 1, generator=_seeded(token)).to(dtype)
    if name == "pixel_values_videos":
        frames = getattr(config, "num_frames", 4)
        shape = (getattr(config, "frames_per_clip", frames), *shape)
    return {name: colour.expand(1, *shape).contiguous()}


def _counted(mask: Tensor | None, positions: Tensor) -> bool:
    """Return whether these are the positions that the mask implies."""
    if mask is None:
        mask = torch.ones_like(positions).bool()
    counted = (mask.cumsum(1) - 1).clamp(min=0)[:, -positions.shape[1] :]
    return bool((positions == counted).all())


def _print_report(text: str, code: int) -> int:
    """Print the text and return the exit code, or another if printing fails."""
    try:
        if sys.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as error:
        # Python flushes stdout once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(
            f"check_positions.py: cannot write: {error.strerror}\n"
        )
        return 2
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shell command.

    Args:
        arguments: Command-line arguments; None uses those of the process.

    Returns:
        The exit code: 0 if no check fails, 1 if one does, 2 if nothing could be
        checked or printed, 141 if the reader of the output has stopped reading.
    """
    about = "Test whether the positions of a model are right."
    parser = argparse.ArgumentParser("check_positions.py", description=about)
    wanted = "transformers:FOLDER or transformers:config.json"
    parser.add_argument("model", help=wanted)
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    given = parser.parse_args(arguments)
    library, _, source = given.model.partition(":")
    if library != "transformers" or not source:
        parser.error(f"model must begin with transformers:, got {given.model}")
    try:
        findings = check_transformers(source)
    except (
        Exception
    ) as error:  # transformers may raise any error for a configuration
        known = isinstance(error, ValueError | ImportError)
        why = f"{error}" if known else f"{type(error).__name__}: {error}"
        sys.stderr.write(f"check_positions.py: {why}\n")
        return 2
    told = [asdict(one) for one in findings]
    table = json.dumps(told, indent=1) if given.json else report(findings)
    code = int(any(one.verdict == "fails" for one in findings))
    return _print_report(table + "\n", code)


# Former names, kept until the next release.
enliven = scale_up_weights
small = small_config


if __name__ == "__main__":
    sys.exit(main())
