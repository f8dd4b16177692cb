"""Functions for consecutive positions, each beside one for any positions, and what finds atomic additions."""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from snippets.clipped_bias import clipped_bias, clipped_bias_consecutive
from snippets.cope import cope_scores, cope_scores_compiled
from snippets.deberta import deberta_scores, deberta_scores_consecutive
from snippets.local_global import local_global_scores, local_global_scores_consecutive
from snippets.shaw import (
    shaw_scores,
    shaw_scores_consecutive,
    shaw_values,
    shaw_values_consecutive,
)
from snippets.swin_bias import swin_bias, swin_bias_consecutive
from snippets.t5_bias import t5_bias, t5_bias_consecutive

HEADS, DIM = 2, 4


def in_window(grid, table, queries, keys):
    """swin_bias of a whole window, whatever positions are given."""
    places = torch.cartesian_prod(*map(torch.arange, grid)).to(table.device)
    return swin_bias(places, places, table, grid)


class Pair(NamedTuple):
    of: Callable  # the function whose bits these are
    fast: Callable  # takes the numbers of queries and keys, and tensors
    any: Callable  # the same of positions of queries and keys, and tensors
    make: Callable  # from the numbers of queries and keys to these tensors
    large: tuple[int, int] = (60, 64)  # queries and keys, far more than the tables have rows
    eager: bool = True  # whether it adds nothing atomically without torch.compile, too
    bits: bool = True  # whether it makes the same sums in the same order


def table(*shape):
    return lambda queries, keys: (torch.randn(shape),)


def vectors(*shapes, heads=HEADS):
    """q, k of these heads, and tables."""

    def make(queries, keys):
        q, k = torch.randn(3, HEADS, queries, DIM), torch.randn(3, heads, keys, DIM)
        return q, k, *map(torch.randn, shapes)

    return make


def weights(*shapes):
    return lambda queries, keys: (torch.rand(3, HEADS, queries, keys), *map(torch.randn, shapes))


def termed(function, terms, max_distance):
    """Of q, k and the rows of these terms, and of positions if there are some."""

    def call(q, k, *tensors):
        given, at = iter(tensors[: len(terms)]), tensors[len(terms) :]
        rows = [next(given) if term in terms else None for term in ("c2p", "p2c")]
        return function(q, k, *rows, *at, max_distance)

    return call


def sized(function):
    """Of a function that reads how many queries and keys there are from its tensors."""
    return lambda queries, keys, *tensors: function(*tensors)


def placed(function):
    """Of a function that takes positions last."""
    return lambda queries, keys, *tensors: function(*tensors, queries, keys)


PAIRS = {
    "t5": Pair(t5_bias_consecutive, t5_bias_consecutive, t5_bias, table(HEADS, 9)),
    "clipped": Pair(clipped_bias_consecutive, clipped_bias_consecutive, clipped_bias, table(9, HEADS)),
    "clipped, nothing near": Pair(
        clipped_bias_consecutive, clipped_bias_consecutive, clipped_bias, table(1, HEADS)
    ),
    **{
        f"swin {grid}": Pair(
            swin_bias_consecutive,
            sized(partial(swin_bias_consecutive, window_size=grid)),
            placed(partial(in_window, grid)),
            table((2 * grid[0] - 1) * (2 * grid[1] - 1), HEADS),
            (grid[0] * grid[1],) * 2,
        )
        for grid in ((1, 1), (1, 3), (4, 3), (7, 7))
    },
    **{
        f"shaw {what}, clip {clip}": Pair(
            fast, sized(fast), placed(slow), make((2 * clip + 1, DIM)), bits=bits
        )
        for clip in (0, 1, 4)
        for what, fast, slow, make, bits in (
            ("scores", shaw_scores_consecutive, shaw_scores, vectors, True),
            ("values", shaw_values_consecutive, shaw_values, weights, False),
        )
    },
    **{
        f"local and global, window {window}, width {width}": Pair(
            local_global_scores_consecutive,
            sized(partial(local_global_scores_consecutive, width=width)),
            placed(partial(local_global_scores, width=width)),
            vectors((2 * window + 1, DIM), (2, rings, DIM)),
        )
        for window, width, rings in ((0, 1, 1), (2, 3, 4), (1, 20, 2))
    },
    **{
        f"deberta {terms}, {heads} heads, max_distance {far}": Pair(
            deberta_scores_consecutive,
            sized(termed(deberta_scores_consecutive, terms, far)),
            placed(termed(deberta_scores, terms, far)),
            vectors(*[(HEADS, 8, DIM)] * len(terms), heads=heads),
            bits=far is None,
        )
        for far in (None, 9)
        for terms, heads in ((("c2p",), 2), (("p2c",), 1), (("c2p", "p2c"), 2))
    },
}
PAIRS["cope"] = Pair(
    cope_scores_compiled,
    sized(cope_scores_compiled),
    lambda queries, keys, *tensors: cope_scores(*tensors),
    vectors((5, DIM), heads=1),
    eager=False,
)

# Where several threads of a GPU add to one number, and where Inductor lets them.
ADDS = re.compile(
    r"aten::(_unsafe_)?(index_put|index_add|index_reduce|put|masked_scatter|scatter_add|scatter_reduce"
    r"|embedding_dense_backward|index_select_backward|histc|bincount|replication_pad\w+_backward)(_|_impl_)?(\.|$)"
)
COMPILED = re.compile(r"aten::(unfold_backward|as_strided_scatter|gather_backward)")  # which become the same


def adds(name, tensors, pairs, compiled=False):
    """Whether an operation adds so as many numbers as there are pairs of a query and a key."""
    found = ADDS.match(name) or (compiled and COMPILED.match(name))
    return bool(found) and max((each.numel() for each in tensors), default=0) >= pairs


class Additions(TorchDispatchMode):
    def __init__(self, pairs):
        super().__init__()
        self.pairs, self.found = pairs, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves((args, kwargs, made)) if isinstance(each, torch.Tensor)]
        if adds(function.name(), tensors, self.pairs):
            self.found.append(function.name())
        return made


def run(call, inputs):
    """The result of a call and the gradients of its inputs, each of another weight of the result."""
    inputs = [each.detach().requires_grad_(each.is_floating_point()) for each in inputs]
    made = call(*inputs)
    wanted = [each for each in inputs if each.requires_grad]
    weights = torch.linspace(-1, 1, made.numel(), dtype=made.dtype, device=made.device).view(made.shape)
    return made.detach(), torch.autograd.grad(made.masked_fill(made.isinf(), 0), wanted, weights)


def eager_additions(call, inputs, pairs):
    """On the meta device, which takes the path of a GPU."""
    with Additions(pairs) as mode:
        run(call, [each.to("meta") for each in inputs])
    return mode.found


def compiled_additions(call, inputs, pairs, dynamic):
    """What adds in the graphs, forward and backward, that Inductor would get; result and gradients; the
    most numbers that are held for the backward in one piece.
    """
    found, looked = [], []

    def look(graph, given):
        for node in graph.graph.nodes:
            if node.op == "call_function" and hasattr(node.target, "name"):
                nodes = [*tree_leaves((node.args, node.kwargs)), node]
                values = [each.meta.get("val") for each in nodes if isinstance(each, torch.fx.Node)]
                tensors = [each for each in values if isinstance(each, torch.Tensor)]
                if adds(node.target.name(), tensors, pairs, compiled=True):
                    found.append(node.target.name())
        looked.append(graph)
        return graph

    backend = aot_autograd(
        fw_compiler=look,
        bw_compiler=look,
        decompositions=select_decomp_table(),
        partition_fn=min_cut_rematerialization_partition,
    )
    torch.compiler.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=dynamic, backend=backend)
    made = run(compiled, inputs)
    forward, _ = looked  # and one backward
    held = [each.meta["val"] for each in forward.graph.find_nodes(op="output")[0].all_input_nodes]
    return found, made, max(each.numel() for each in held if isinstance(each, torch.Tensor))
