"""Positions in graphs: a symmetric adjacency for each text of the batch, or vectors of its nodes."""

from functools import partial

import torch

from snippets.graph_positions import (
    components,
    laplacian,
    laplacian_encoding,
    random_signs,
    random_walk_encoding,
)
from tests.snippets.fitness import Case


def weights(batch, nodes):
    drawn = torch.rand(batch, nodes, nodes) * (torch.rand(batch, nodes, nodes) < 0.6)
    above = drawn.triu(1)
    return (above + above.mT,)


def signed(vectors):
    """The same signs in each call on the CPU; elsewhere, those of the device's own generator."""
    made = torch.Generator().manual_seed(0) if vectors.device.type == "cpu" else None
    return random_signs(vectors, made)


CASES = [
    *(
        Case(laplacian, partial(laplacian, normalized=normalized), weights, (0,))
        for normalized in (True, False)
    ),
    *(
        Case(
            laplacian_encoding,
            partial(laplacian_encoding, k=2, normalized=True, skip=skip),
            weights,
            (0,),
        )
        for skip in ("first", "zeros")
    ),
    Case(random_walk_encoding, partial(random_walk_encoding, steps=4), weights, (0,)),
    Case(components, components, weights, (0,)),
    Case(random_signs, signed, lambda batch, nodes: (torch.randn(batch, nodes, 3),)),
]
