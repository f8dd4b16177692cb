# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Relative logits: a learned bias by distance, mixed by each query token.

A layer learns a bank of profiles. A profile has one number for each distance
from a query back to a key. From the vector x[i] of a token, the layer computes
a state for each head, which contains the weight of each profile in the bias
that the head adds to the scaled scores of this query.

    state[h, i]   = project[h] @ x[i]
    bias[h, i, j] = state[h, i] . bank[:, i - j]    for 0 <= i - j < extent
                  = 0                               for all other keys

The heads share the bank. The bank has no numbers for later keys, which must be
masked, and does not distinguish keys at a distance of `extent` tokens or more.
If the states are q / sqrt(dim) and the bank is a table of Shaw's method, the
bias is Shaw's term for keys.

Inkling uses this and no other encoding of text positions, but its convolutions
over a few tokens and the mask depend on order, too. In a layer with a window,
`extent` is the window. Inkling-2 gives the states a learned scale and shortens
long ones (`max_norm` = 8). In layers without a window, it multiplies the states
and q by a factor that grows with the logarithm of i, from some i on; so does
Inkling, if log_scaling_n_floor is set. The caller has to apply this factor.

References:
    No paper.
    Inkling2RelativeLogits, Inkling2ScaledL2Clip and their use in
    Inkling2FullAttention, in Hugging Face Transformers 5.23.0,
    models/inkling2/modeling_inkling2.py; models/inkling has no clip.
"""

import math

import torch
from torch import Tensor, nn


def relative_logits(
    states: Tensor,  # (..., queries, profiles)
    bank: Tensor,  # (profiles, extent)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
) -> Tensor:
    """Return the bias that the states of queries add to their scores.

    The bias hides no key: mask later keys as well. In float32 it takes 4 *
    heads + 8 bytes per query and key at its peak (with 2 heads or more), and 4
    * heads * (extent + 1) more per query.

    If positions are on the CPU and `states` are not, each call copies them, and
    the host waits for the copy.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        states: Weights of the profiles, shape
            `(..., heads, queries, profiles)`, where the axis of heads may be
            left out, floating-point.
        bank: Profiles, shape `(profiles, extent)`, in the dtype of `states`.
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.

    Returns:
        The bias, shape `(..., queries, keys)` with the leading axes of
        `states`.

    Raises:
        ValueError: If `states` or `bank` does not have the shape described
            above, is not floating-point, or if their dtypes differ; or if
            positions are not integer tensors or their shapes do not match.

    Example:
        >>> bank = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
        >>> states = torch.tensor([[1.0, 0.0], [3.0, 4.0]])  # of two queries
        >>> relative_logits(states, bank, torch.tensor([3, 4]), torch.arange(5))
        tensor([[0., 0., 0., 1., 0.],
                [0., 0., 2., 2., 5.]])
    """
    _check_states(states)
    profiles, have = states.shape[-1], tuple(bank.shape)
    fits = len(have) == 2 and have[0] == profiles and have[1] > 0
    if not fits or bank.dtype != states.dtype:
        raise ValueError(
            f"bank must be {states.dtype} ({profiles}, extent), "
            f"got {bank.dtype} {have}"
        )
    extent = have[1]
    column = _offsets(query_positions, key_positions, states.device).neg_()
    column.masked_fill_((column < 0) | (column > extent), extent)
    nothing = bank.new_zeros(profiles, 1)  # the last column: of other keys
    by_distance = states @ torch.cat((bank, nothing), 1)
    shape = torch.Size((*states.shape[:-1], column.shape[-1]))
    return by_distance.gather(-1, _per_head(column, shape))


def clip_norm(states: Tensor, max_norm: float) -> Tensor:
    """Shorten each vector to a maximum length.

    Shorter vectors are unchanged. Lengths are computed in float32 or wider.
    transformers adds 1e-6 to the length, so its vectors are slightly shorter.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        states: Vectors in the last axis, shape `(..., queries, profiles)`,
            floating-point.
        max_norm: Maximum length; above 0.

    Returns:
        The vectors, with the shape and dtype of `states`.

    Raises:
        ValueError: If `states` are not floating-point vectors, or `max_norm` is
            not above 0.

    Example:
        >>> clip_norm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    _check_states(states)
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    exact = states.to(torch.promote_types(states.dtype, torch.float32))
    length = torch.linalg.vector_norm(exact, dim=-1, keepdim=True)
    factor = torch.where(
        length > max_norm, max_norm / length.clamp(min=max_norm), 1.0
    )
    return (exact * factor).to(states.dtype)


class RelativeLogits(nn.Module):
    """Hold the bank and the projection of a layer.

    With attention.py, for tokens at positions `at`:

        output, _ = attention(q, k, v, relative(x, at, at), causal=True)

    In the Inkling of transformers, project.weight is r_proj.weight, bank is
    rel_logits_proj.proj and scale is rel_l2_clip.scale.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Number of channels of the inputs.
        heads: Number of heads.
        profiles: Number of profiles in the bank.
        extent: Number of distances, from 0 on, that have a number of their own.
        max_norm: Maximum length of the states; above 0. If given, states have a
            learned scale, initialised to one, and are shortened by `clip_norm`.
            None is for neither.

    Attributes:
        scale: Learned scale of the states, shape `(heads, profiles)`, or None.

    Raises:
        ValueError: If a size is less than 1, or `max_norm` is not above 0.
    """

    scale: nn.Parameter | None

    def __init__(
        self,
        dim: int,
        heads: int,
        profiles: int,
        extent: int,
        max_norm: float | None = None,
    ):
        super().__init__()
        if min(dim, heads, profiles, extent) < 1:
            raise ValueError(
                "dim, heads, profiles and extent must be at least 1, "
                f"got {dim}, {heads}, {profiles} and {extent}"
            )
        if max_norm is not None and not max_norm > 0:
            raise ValueError(f"max_norm must be above 0, got {max_norm}")
        self.heads, self.max_norm = (
            heads,
            math.inf if max_norm is None else max_norm,
        )
        self.project = nn.Linear(dim, heads * profiles, bias=False)
        self.bank = nn.Parameter(torch.empty(profiles, extent))
        self.scale = (
            nn.Parameter(torch.empty(heads, profiles)) if max_norm else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the bank and the scale, but not the projection.

        The projection has its own method.
        """
        nn.init.normal_(self.bank, std=0.02)
        if self.scale is not None:
            nn.init.ones_(self.scale)

    def states(self, x: Tensor) -> Tensor:
        """Return the weight of each profile, for each head and query.

        Args:
            x: Vectors from which the queries are projected, shape
                `(..., queries, dim)`.

        Returns:
            The states, shape `(..., heads, queries, profiles)`.

        Raises:
            ValueError: If `x` does not have the shape described above.
        """
        dim = self.project.in_features
        if x.ndim < 2 or x.shape[-1] != dim:
            raise ValueError(
                f"x must be (..., queries, {dim}), got {tuple(x.shape)}"
            )
        states = self.project(x).unflatten(-1, (self.heads, -1))
        if self.scale is not None:
            exact = torch.promote_types(states.dtype, torch.float32)
            scaled = states.to(exact) * self.scale
            states = clip_norm(scaled, self.max_norm).to(states.dtype)
        return states.transpose(-3, -2)  # (..., heads, queries, profiles)

    def forward(
        self, x: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return the bias of the queries.

        Args:
            x: Vectors from which the queries are projected, shape
                `(..., queries, dim)`.
            query_positions: Positions of the queries, as in `relative_logits`.
            key_positions: Positions of the keys, as in `relative_logits`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: If `x` does not have the shape described above, or
                positions are invalid, as described for `relative_logits`.
        """
        states = self.states(x)
        bank = self.bank.to(states.dtype)  # autocast may narrow the dtype
        return relative_logits(states, bank, query_positions, key_positions)


def _check_states(states: Tensor) -> None:
    shape = tuple(states.shape)
    if len(shape) < 2 or not shape[-1] or not states.is_floating_point():
        raise ValueError(
            "states must be floating and (..., queries, profiles), "
            f"got {states.dtype} {shape}"
        )


def _per_head(rows: Tensor, shape: torch.Size) -> Tensor:
    """Add an axis of heads to rows, (..., queries, keys), to fit scores."""
    *batch, queries, keys = rows.shape
    fits = len(batch) in (0, len(shape) - 3) and (queries, keys) == shape[-2:]
    leading = zip(batch, shape, strict=False)
    if not fits or any(n not in (1, of) for n, of in leading):
        raise ValueError(
            "query and key positions must match scores of shape "
            f"{tuple(shape)}, got {(*batch, queries)} and {(*batch, keys)}"
        )
    rows = rows[..., None, :, :] if batch else rows
    return rows.expand(shape)


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be integer tensors (uint8, int8, int16, int32 or "
                f"int64), got {kind}"
            )


def _offsets(
    query_positions: Tensor, key_positions: Tensor, device: torch.device | None
) -> Tensor:
    """Return key minus query position: (..., queries, keys), int64."""
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    i = query_positions.to(device, torch.int64)[..., :, None]
    return key_positions.to(device)[..., None, :] - i
