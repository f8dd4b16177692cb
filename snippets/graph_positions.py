# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Positions of graph nodes: Laplacian eigenvectors and return probabilities.

A graph has no first node. The position of a node is computed from A, the
weights of the edges, with as many rows as nodes, and D, the sums of its rows:

    L  = D - A                          the Laplacian
    L  = I - D^(-1/2) A D^(-1/2)        normalized; a node without edges has a
                                        row of zeros
    L u[n] = e[n] u[n]                  e[0] = 0 <= e[1] <= ..., |u[n]| = 1

    laplacian_encoding of node i:       u[1][i], ..., u[k][i]
    random_walk_encoding of node i:     P[i, i], P^2[i, i], ..., P = D^-1 A

Eigenvectors are slow waves over the graph, as sinusoids are over a text. Both u
and -u are eigenvectors, and which of them is returned has no meaning: sample
signs again at each step of training. If n eigenvalues are equal, as on a ring,
any rotation of the n vectors is equally valid, and signs are not enough: the
graph determines only the projector of such a space, the sum of u u^T. L has one
eigenvalue 0 for each connected component; `skip` specifies which of these are
left out.

Random walks have no such ambiguity: P^m[i, i] is the probability that a random
walk of m steps from i ends in i. It is the sum of (1 - e)^m u[i]^2 over all
eigenvectors of the normalized L. A node without edges has no walk, and gets
zeros.

Both encodings are in the order of the nodes in A, and are passed to a linear
layer whose output is added to the node features. The other method for graphs, a
learned bias for each length of the shortest path, is clipped_bias.py with path
lengths as distances.

References:
    Eigenvectors: arXiv:2012.09699; its code leaves out the first column and
    samples signs in training, one for all graphs of a batch:
    github.com/graphdeeplearning/graphtransformer at 3ca2394.
    Random walks: arXiv:2110.07875 and github.com/vijaydwivedi75/gnn-lspe at
    90e6c5b, data/molecules.py.
    In PyTorch Geometric 2.8.1, AddLaplacianEigenvectorPE drops loops, samples
    signs in each call (once as pre_transform, at each access as transform) and
    gives a node without edges the value 1; AddRandomWalkPE uses weights for the
    degree alone, so that all edges of a node have the same probability.
"""

import torch
from torch import Tensor


def laplacian(adjacency: Tensor, *, normalized: bool) -> Tensor:
    """Return the Laplacian of a graph.

    A loop counts once for the degree of its node, so it cancels in D - A, but
    not in the normalized Laplacian.

    Supports autocast, compile, export, vmap; no host-device sync.

    Args:
        adjacency: Weights of the edges, shape `(..., nodes, nodes)`, symmetric,
            0 or more, 0 where there is no edge; or bool.
        normalized: Whether to return the normalized Laplacian.

    Returns:
        The Laplacian, shape `(..., nodes, nodes)`, float64.

    Raises:
        ValueError: If `adjacency` is not square, is complex or, on the CPU, is
            not symmetric, or contains negative, infinite or nan entries.

    Example:
        >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> laplacian(path, normalized=False)
        tensor([[ 1., -1.,  0.],
                [-1.,  2., -1.],
                [ 0., -1.,  1.]], dtype=torch.float64)
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
    """Return the k smallest eigenvalues not skipped, and their eigenvectors.

    The values of `skip` are

        first    the first one, as papers and libraries do; in a graph of
                 several components the next ones may only distinguish these
        zeros    as many as there are components, the same for all weights;
                 isolated nodes, such as padding, then change no other row

    Look at the eigenvalues: vectors of equal ones may be rotated together, and
    if value k + 1 equals value k, then k cuts through their space.

    The eigenvectors are computed in float64, on the device of the adjacency, in
    a time that grows with the cube of the number of nodes: compute them once
    for each graph.

    Supports autocast.

    Args:
        adjacency: Weights of the edges, as in `laplacian`.
        k: Number of eigenvectors; at least 1 and at most the number of those
            that are not skipped.
        normalized: Whether to use the normalized Laplacian.
        skip: "first" or "zeros": which eigenvectors to leave out as trivial.
        dtype: Floating-point dtype of the result.

    Returns:
        The eigenvalues, shape `(..., k)`, and the eigenvectors, shape
        `(..., nodes, k)`.

    Raises:
        ValueError: If `adjacency` is invalid, as in `laplacian`, `k` or `skip`
            is not as described above, or `dtype` is not floating-point.

    Example:
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
    """Multiply each column of each graph by a random sign.

    Use this in each step of training, so that a model learns to read either
    sign. Signs are sampled on the device of the generator if there is one,
    otherwise on that of `vectors`. A generator on the CPU gives the same signs
    on every device, but the host waits for the copy of the signs in each call.

    Supports autocast, mps; no host-device sync.

    Args:
        vectors: Eigenvectors, shape `(..., nodes, k)`, floating-point.
        generator: Random generator; None is torch's default one.

    Returns:
        The vectors with random signs, in the shape and dtype of `vectors`.

    Raises:
        ValueError: If `vectors` is not floating-point or does not have the
            shape described above.

    Example:
        >>> drawn = random_signs(torch.ones(3, 2))
        >>> drawn.abs().equal(torch.ones(3, 2)), drawn[0].equal(drawn[2])
        (True, True)
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
    """Return the probability of having returned after 1, 2, ... steps.

    The result contains, for each node, the probabilities that a random walk
    from the node is back at its start. Each step follows an edge, with a
    probability in proportion to the weight of the edge. The first number is the
    probability of a loop, which is usually 0. A node without edges gets zeros;
    a node with one loop and nothing else gets ones.

    Supports autocast, compile, export, vmap; no host-device sync.

    Args:
        adjacency: Weights of the edges, as in `laplacian`.
        steps: Number of steps; at least 1.
        dtype: Floating-point dtype of the result.

    Returns:
        The probabilities, shape `(..., nodes, steps)`.

    Raises:
        ValueError: If `adjacency` is invalid, as in `laplacian`, `steps` is
            less than 1, or `dtype` is not floating-point.

    Example:
        >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> random_walk_encoding(path, 4)
        tensor([[0.0000, 0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000, 1.0000],
                [0.0000, 0.5000, 0.0000, 0.5000]])
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
    """Return the first node that each node can reach.

    Nodes of one connected component have the same value, and there are as many
    components as nodes that have their own index.

    Supports autocast, vmap; no host-device sync.

    Args:
        adjacency: Weights of the edges, as in `laplacian`.

    Returns:
        Node indices, shape `(..., nodes)`, int64.

    Raises:
        ValueError: If `adjacency` is invalid, as in `laplacian`.

    Example:
        >>> two = torch.tensor([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
        >>> components(two)
        tensor([0, 1, 0])
    """
    exact = _checked(adjacency)
    nodes = exact.shape[-1]
    near = (exact > 0) | torch.eye(nodes, device=exact.device).bool()
    for _ in range(nodes.bit_length()):  # each doubles how far it reaches
        near = near.double() @ near.double() > 0
    places = torch.arange(nodes, device=exact.device)
    return torch.where(near, places, nodes).amin(-1)  # (..., nodes)


def _checked(adjacency: Tensor) -> Tensor:
    """Return the adjacency in float64, after checks."""
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
        except RuntimeError:  # none, or their numbers cannot be read
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
    except RuntimeError:  # none, or its numbers cannot be read
        most = nodes - 1
    if not 1 <= k <= most:
        raise ValueError(
            f"k must be at least 1 and at most {most}, the number of "
            f"eigenvectors that are not skipped, of {nodes} in all, got {k}"
        )
