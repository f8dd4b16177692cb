# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""Positions of nodes in a graph: Laplacian eigenvectors, and walks that return.

A graph has no first node. What a node can say of its place is made of A, the
weights of edges, as many rows as nodes, and of D, the sums of its rows:

    L  = D - A                          the Laplacian
    L  = I - D^(-1/2) A D^(-1/2)        normalized; a node without edges has a
                                        row of zeros
    L u[n] = e[n] u[n]                  e[0] = 0 <= e[1] <= ..., |u[n]| = 1

    laplacian_encoding of node i:       u[1][i], ..., u[k][i]
    random_walk_encoding of node i:     P[i, i], P^2[i, i], ..., P = D^-1 A

Eigenvectors are slow waves over the graph, as sinusoids are over a text. u and
-u are both right, and which comes out means nothing: draw signs anew at each
step of training. Where n values are equal, as on a ring, any turned set of the
n vectors is as right, and signs are not enough: of such a space the graph knows
its projector alone, the sum of u u^T. L has one eigenvalue 0 for each connected
component; what is left out of these is `skip`.

Walks have no such choice: P^m[i, i] is the probability that a random walk of m
steps from i ends in i. It is the sum of (1 - e)^m u[i]^2 over all eigenvectors
of the normalized L. A node without edges has no walk, and gets zeros.

Both come in the order of the nodes that is given, and go to a linear layer that
is added to what nodes are. The other way for graphs, a learned bias by the
length of the shortest path, is that of clipped_bias.py with other distances.

Source: eigenvectors: arXiv:2012.09699; its code leaves out the first column and
draws signs in training, one for all graphs of a batch: github.com/
graphdeeplearning/graphtransformer at 3ca2394. Walks: arXiv:2110.07875 and
github.com/vijaydwivedi75/gnn-lspe at 90e6c5b, data/molecules.py. In PyTorch
Geometric 2.8.1, AddLaplacianEigenvectorPE drops loops, samples signs in each
call (once as pre_transform, at each access as transform) and gives a node
without edges the value 1; AddRandomWalkPE takes weights for the degree alone,
so that all edges of a node have one probability.
"""

import torch
from torch import Tensor


def laplacian(adjacency: Tensor, *, normalized: bool) -> Tensor:
    """The Laplacian: (..., nodes, nodes), float64, of an adjacency like it.

    The adjacency is symmetric and has weights of 0 or more, 0 where there is no
    edge; or it is of bool. A loop counts for the degree of its node once, and
    so it drops out of D - A, but not of the normalized Laplacian.

    >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> laplacian(path, normalized=False)
    tensor([[ 1., -1.,  0.],
            [-1.,  2., -1.],
            [ 0., -1.,  1.]], dtype=torch.float64)

    Fit for autocast, compile, export, vmap; no sync.

    ValueError: an adjacency that is not square, of complex numbers or, on the
    CPU, not symmetric, below 0, infinite or no numbers.
    """
    exact = _checked(adjacency)
    degrees = exact.sum(-1)  # (..., nodes)
    if normalized:
        root = torch.where(degrees > 0, degrees, 1).rsqrt()
        exact = exact * root[..., :, None] * root[..., None, :]
        degrees = (degrees > 0).double()
    return torch.diag_embed(degrees) - exact  # (..., nodes, nodes)


def laplacian_encoding(
    adjacency: Tensor,  # (..., nodes, nodes)
    k: int,
    *,
    normalized: bool,
    skip: str,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """k smallest eigenvalues and their vectors: (..., k) and (..., nodes, k).

    skip says what is left out as trivial:

        first    the first, as papers and libraries do; in a graph of several
                 components what follows may only tell these apart
        zeros    as many as there are components, the same for all weights;
                 isolated nodes, such as padding, then change no other row

    Look at the values: vectors of equal ones may come out turned together, and
    if value k + 1 equals value k, then k cuts through their space. They are
    computed in float64, where the adjacency lives, in a time that grows with
    the cube of the nodes: once for each graph.

    >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> values, vectors = laplacian_encoding(
    ...     path, 2, normalized=True, skip="first"
    ... )
    >>> values
    tensor([1., 2.])
    >>> vectors.abs().round(decimals=4)
    tensor([[0.7071, 0.5000],
            [0.0000, 0.7071],
            [0.7071, 0.5000]])

    Fit for autocast.

    ValueError: an adjacency as for laplacian; k below 1 or above what is left;
    another skip; dtype not floating.
    """
    if skip not in ("first", "zeros"):
        raise ValueError(f"skip must be 'first' or 'zeros', got {skip!r}")
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    matrix = laplacian(adjacency, normalized=normalized)
    nodes = matrix.shape[-1]
    places = torch.arange(nodes, device=matrix.device)  # (nodes)
    skipped = torch.ones_like(matrix[..., 0, 0], dtype=torch.int64)
    if skip == "zeros":
        skipped = (components(adjacency) == places).sum(-1)
    _check_k(k, nodes, skipped)
    values, vectors = torch.linalg.eigh(matrix)
    taken = skipped[..., None] + places[:k]  # (..., k)
    values = values.gather(-1, taken).clamp(min=0)  # rounding may go below
    columns = taken[..., None, :].expand(*vectors.shape[:-1], k)
    return values.to(dtype), vectors.gather(-1, columns).to(dtype)


def random_signs(
    vectors: Tensor,  # (..., nodes, k)
    generator: torch.Generator | None = None,
) -> Tensor:
    """Vectors with a sign drawn for each column of each graph: like vectors.

    For training, at each step anew, so that a model learns to read either.
    Signs are drawn on the device of the generator if there is one, else on that
    of the vectors. A generator on the CPU gives the same signs on every device,
    but the host waits for the copy of the signs in each call.

    >>> drawn = random_signs(torch.ones(3, 2))
    >>> drawn.abs().equal(torch.ones(3, 2)), drawn[0].equal(drawn[2])
    (True, True)

    Fit for autocast, mps; no sync.

    ValueError: vectors that are not floating or not (..., nodes, k).
    """
    shape = tuple(vectors.shape)
    if len(shape) < 2 or not vectors.is_floating_point():
        raise ValueError(
            "vectors must be floating and (..., nodes, k), "
            f"got {vectors.dtype} {shape}"
        )
    one = (*shape[:-2], 1, shape[-1])  # all nodes of a graph alike
    device = vectors.device if generator is None else generator.device
    ways = torch.randint(0, 2, one, generator=generator, device=device)
    return vectors * (1 - 2 * ways).to(vectors)


def random_walk_encoding(
    adjacency: Tensor,  # (..., nodes, nodes)
    steps: int,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The chance to be back after 1, 2, ... steps: (..., nodes, steps).

    Each step goes along an edge, by its share of the weights of the node. The
    first number is that of a loop, mostly 0. A node without edges gets zeros;
    with one loop and nothing else it gets ones.

    >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> random_walk_encoding(path, 4)
    tensor([[0.0000, 0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000, 1.0000],
            [0.0000, 0.5000, 0.0000, 0.5000]])

    Fit for autocast, compile, export, vmap; no sync.

    ValueError: an adjacency as for laplacian; steps below 1; dtype not
    floating.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    exact = _checked(adjacency)
    degrees = exact.sum(-1, keepdim=True)  # (..., nodes, 1)
    walk = exact / torch.where(degrees > 0, degrees, 1)
    there, back = walk, [walk.diagonal(dim1=-2, dim2=-1)]
    while len(back) < steps:  # half the steps there, half of them back
        back.append((there * there.mT).sum(-1))
        further = there @ walk  # (..., nodes, nodes)
        back.append((further * there.mT).sum(-1))  # one step more
        there = further
    return torch.stack(back[:steps], -1).to(dtype)  # (..., nodes, steps)


def components(adjacency: Tensor) -> Tensor:
    """The first node that each can reach: (..., nodes), int64.

    Nodes of one connected component have the same, and there are as many
    components as nodes that have themselves.

    >>> two = torch.tensor([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    >>> components(two)
    tensor([0, 1, 0])

    Fit for autocast, vmap; no sync.

    ValueError: an adjacency as for laplacian.
    """
    exact = _checked(adjacency)
    nodes = exact.shape[-1]
    near = (exact > 0) | torch.eye(nodes, device=exact.device).bool()
    for _ in range(nodes.bit_length()):  # each doubles how far it reaches
        near = near.double() @ near.double() > 0
    places = torch.arange(nodes, device=exact.device)
    return torch.where(near, places, nodes).amin(-1)  # (..., nodes)


def _checked(adjacency: Tensor) -> Tensor:
    """The adjacency in float64: (..., nodes, nodes)."""
    have, kind = tuple(adjacency.shape), adjacency.dtype
    if len(have) < 2 or have[-1] != have[-2] or not have[-1] or kind.is_complex:
        raise ValueError(
            f"adjacency must be real and (..., nodes, nodes), got {kind} {have}"
        )
    exact = adjacency.double()
    if exact.device.type == "cpu" and not torch.compiler.is_compiling():
        try:
            least, most = map(float, exact.detach().aminmax())
            apart = float((exact.detach() - exact.detach().mT).abs().max())
        except RuntimeError:  # there are none, or they show no numbers
            return exact
        if not 0 <= least <= most < float("inf"):
            raise ValueError(
                "adjacency must be weights of 0 or more, "
                f"got {least:.3g} to {most:.3g}"
            )
        if apart:
            raise ValueError(
                "adjacency must be symmetric, edges in both directions, got "
                f"weights that differ by {apart:.3g}; (a + a.mT) / 2 may do"
            )
    return exact


def _check_k(k: int, nodes: int, skipped: Tensor) -> None:
    try:
        most = nodes - int(skipped.max())
    except RuntimeError:  # there is no graph, or it shows no numbers
        most = nodes - 1
    if not 1 <= k <= most:
        raise ValueError(
            f"k must be at least 1 and at most the {most} eigenvectors that "
            f"are left of {nodes}, got {k}"
        )
