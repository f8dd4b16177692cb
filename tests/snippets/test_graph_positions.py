"""graph_positions.py against its definitions, closed forms and networkx, and what it cannot tell apart."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.graph_positions import (
    components,
    laplacian,
    laplacian_encoding,
    random_signs,
    random_walk_encoding,
)
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, random, refusals

NODES = st.integers(2, 9)


def graph(edges, nodes):
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


def path(nodes):
    return graph([(i, i + 1) for i in range(nodes - 1)], nodes)


def ring(nodes):
    return graph([(i, (i + 1) % nodes) for i in range(nodes)], nodes)


def beside(*graphs):
    return torch.block_diag(*graphs)


def weighted(seed, nodes, share=0.6, loops=False):
    drawn = torch.Generator().manual_seed(seed)
    weights = torch.rand(nodes, nodes, dtype=torch.float64, generator=drawn) + 0.1
    weights = weights * (torch.rand(nodes, nodes, generator=drawn) < share)
    return weights.tril().tril(-1).mT + weights.tril(0 if loops else -1)


def encoded(adjacency, k, normalized=True, skip="first"):
    return laplacian_encoding(adjacency, k, normalized=normalized, skip=skip, dtype=torch.float64)


def walks(adjacency, steps):
    return random_walk_encoding(adjacency, steps, torch.float64)


def projectors(adjacency, normalized=True):
    """The projector onto the space of each eigenvalue, smallest first, by numpy."""
    values, vectors = np.linalg.eigh(laplacian(adjacency, normalized=normalized).numpy())
    spaces = itertools.groupby(range(len(values)), key=lambda n: round(values[n], 6))
    return {
        value: torch.tensor(vectors[:, list(n)] @ vectors[:, list(n)].T) for value, n in map(listed, spaces)
    }


def listed(space):
    value, places = space
    return value, list(places)


# --- what the sources say


@given(SEEDS, NODES, st.booleans())
def test_both_laplacians_are_their_formulas(seed, nodes, loops):
    a = weighted(seed, nodes, loops=loops)
    degrees = [sum(row) for row in a.tolist()]
    plain, normalized = (laplacian(a, normalized=kind) for kind in (False, True))
    for i, j in itertools.product(range(nodes), repeat=2):
        edge, same = a[i, j].item(), i == j
        assert plain[i, j].item() == pytest.approx((degrees[i] if same else 0) - edge, abs=1e-12)
        scaled = edge / math.sqrt(degrees[i] * degrees[j]) if edge else 0
        expected = (1 if same and degrees[i] else 0) - scaled
        assert normalized[i, j].item() == pytest.approx(expected, abs=1e-12)


@given(SEEDS, NODES, st.booleans(), st.data())
def test_eigenvectors_are_the_smallest_behind_the_first(seed, nodes, normalized, data):
    a, k = weighted(seed, nodes), data.draw(st.integers(1, nodes - 1))
    values, vectors = encoded(a, k, normalized)
    matrix = laplacian(a, normalized=normalized)
    assert values.shape == (k,) and vectors.shape == (nodes, k)
    assert_close(matrix @ vectors, vectors * values, rtol=0, atol=1e-10)
    assert_close(vectors.mT @ vectors, torch.eye(k, dtype=torch.float64), rtol=0, atol=1e-10)
    every = sorted(np.linalg.eigvals(matrix.numpy()).real)  # by the solver for any matrix
    assert values.tolist() == pytest.approx(every[1 : k + 1], abs=1e-7)


def loop_walks(rows, node, steps):
    """The chance to be back, over all walks of so many steps one by one."""
    chance = 0.0
    for way in itertools.product(range(len(rows)), repeat=steps - 1):
        stops, one = (node, *way, node), 1.0
        for here, there in itertools.pairwise(stops):
            total = sum(rows[here])
            one *= rows[here][there] / total if total else 0.0
        chance += one
    return chance


@given(SEEDS, st.integers(1, 4), st.booleans())
@settings(max_examples=20)
def test_walks_are_the_sum_over_all_walks_that_return(seed, nodes, loops):
    a = weighted(seed, nodes, loops=loops)
    made = walks(a, 4)
    for node, step in itertools.product(range(nodes), range(1, 5)):
        assert made[node, step - 1].item() == pytest.approx(loop_walks(a.tolist(), node, step), abs=1e-12)


@pytest.mark.claim(
    "graph-ring-has-waves",
    "On a ring of n nodes, the two Laplacian eigenvectors of each repeated eigenvalue span the same space "
    "as the sine and the cosine of a wave around the ring; the m-th such eigenvalue is 2 - 2 cos(2 pi m / "
    "n). If n is even, the last eigenvalue has a single eigenvector, whose sign alternates from node to "
    "node.",
)
@pytest.mark.parametrize("nodes", [3, 4, 7, 12])
def test_a_ring_has_sines_and_cosines(nodes):
    values, vectors = encoded(ring(nodes), nodes - 1, normalized=False)
    around = torch.arange(nodes, dtype=torch.float64)
    for m in range(1, (nodes + 1) // 2):
        turn = 2 * math.pi * m / nodes
        pair = slice(2 * m - 2, 2 * m)
        assert values[pair].tolist() == pytest.approx([2 - 2 * math.cos(turn)] * 2, abs=1e-10)
        wave = torch.stack(((turn * around).sin(), (turn * around).cos()), 1) * math.sqrt(2 / nodes)
        assert_close(vectors[:, pair] @ vectors[:, pair].mT, wave @ wave.mT, rtol=0, atol=1e-10)
    if nodes % 2 == 0:
        assert values[-1].item() == pytest.approx(4, abs=1e-10) and values[-2] < 4 - 1e-3
        last = vectors[:, -1] * vectors[0, -1].sign()
        assert_close(last, (1 - 2 * (around % 2)) / math.sqrt(nodes), rtol=0, atol=1e-10)


@pytest.mark.claim(
    "graph-path-has-cosines",
    "On a path, the n-th Laplacian eigenvector after the first is, up to sign and scale, a cosine with n "
    "half-periods from end to end.",
)
@pytest.mark.parametrize("nodes", [2, 3, 8, 20])
def test_a_path_has_cosines(nodes):
    values, vectors = encoded(path(nodes), nodes - 1, normalized=False)
    along = torch.arange(nodes, dtype=torch.float64) + 0.5
    for n in range(1, nodes):
        wave = (math.pi * n * along / nodes).cos() * math.sqrt(2 / nodes)
        assert values[n - 1].item() == pytest.approx(2 - 2 * math.cos(math.pi * n / nodes), abs=1e-10)
        assert abs(vectors[:, n - 1] @ wave) == pytest.approx(1, abs=1e-10)


# --- another library


@pytest.mark.claim(
    "graph-walks-agree-with-networkx",
    "The random-walk encoding equals the diagonals of the powers of networkx's transition matrix, to "
    "1e-12 in float64, and the snippet's connected components are those of networkx.",
)
@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("loops", [False, True])
def test_walks_and_components_are_those_of_networkx(share, loops):
    networkx = peer("networkx")
    for seed in range(10):
        a = weighted(seed, 8, share, loops)
        theirs = networkx.from_numpy_array(a.numpy())
        connected = {node: min(part) for part in networkx.connected_components(theirs) for node in part}
        assert components(a).tolist() == [connected[node] for node in range(8)]
        step = networkx.google_matrix(theirs, alpha=1.0)  # its pages without links go anywhere
        step[a.sum(-1).numpy() == 0] = 0
        powers = [np.linalg.matrix_power(step, m).diagonal() for m in range(1, 7)]
        expected = torch.tensor(np.stack(powers, -1))
        assert_close(walks(a, 6), expected, **EXACT)


# --- what is the graph's own, and what is not


@pytest.mark.claim(
    "graph-permuting-nodes-permutes-rows",
    "If the nodes of a graph are listed in another order, the random-walk encodings and the projectors "
    "onto the eigenspaces of both Laplacians are permuted in the same way and are otherwise unchanged, up "
    "to rounding.",
)
@given(SEEDS, NODES, st.booleans())
def test_another_order_of_nodes_is_another_order_of_rows(seed, nodes, normalized):
    a = weighted(seed, nodes)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(seed))
    moved = a[order][:, order]
    assert_close(walks(moved, 6), walks(a, 6)[order], **EXACT)
    mine, others = projectors(a, normalized), projectors(moved, normalized)
    assert mine.keys() == others.keys()
    for value, space in mine.items():
        assert_close(others[value], space[order][:, order], rtol=0, atol=1e-6)
    values, vectors = encoded(moved, 1, normalized)
    first = encoded(a, 1, normalized)
    assert_close(values, first[0], rtol=0, atol=1e-10)
    spaces = [space for value, space in mine.items() if abs(value - values.item()) < 1e-5]
    if sum(spaces).trace() < 1.5:  # a value of its own
        assert abs(vectors[:, 0] @ first[1][order, 0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.claim(
    "graph-signs-say-nothing",
    "Eigenvectors remain eigenvectors of the same eigenvalues whatever signs are sampled for them. One "
    "sign is sampled for each column of each graph, the same for all its nodes, and both signs occur "
    "about equally often.",
)
def test_a_sign_is_drawn_for_each_column_of_each_graph():
    a = torch.stack([weighted(seed, 7) for seed in range(300)])
    values, vectors = encoded(a, 4)
    drawn = random_signs(vectors, torch.Generator().manual_seed(3))
    assert_close(laplacian(a, normalized=True) @ drawn, drawn * values[:, None], rtol=0, atol=1e-10)
    assert torch.equal(drawn.abs(), vectors.abs())
    signs = random_signs(torch.ones(300, 7, 4))
    assert (signs == signs[:, :1]).all()
    assert signs[:, 0].mean(0).abs().max() < 0.2
    assert (signs[:, 0].mT @ signs[:, 0] / 300 - torch.eye(4)).abs().max() < 0.2
    again = random_signs(vectors, torch.Generator().manual_seed(3))
    assert torch.equal(again, drawn)
    assert not torch.equal(random_signs(vectors, torch.Generator().manual_seed(4)), drawn)


@pytest.mark.claim(
    "graph-equal-values-share-a-space",
    "On a ring, rotating two eigenvectors of one eigenvalue together by any angle gives eigenvectors of "
    "that eigenvalue again. Unless the angle is a multiple of 180 degrees, no choice of signs undoes the "
    "rotation; the projector onto the two is unchanged.",
)
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("nodes", [3, 6, 11])
@pytest.mark.parametrize("angle", [0.01, 0.7, 2.0])
def test_vectors_of_equal_values_may_be_turned(normalized, nodes, angle):
    a, (values, here) = ring(nodes), encoded(ring(nodes), 2, normalized)
    cos, sin = math.cos(angle), math.sin(angle)
    there = here @ torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
    assert values[0].item() == pytest.approx(values[1].item(), abs=1e-12)
    assert_close(laplacian(a, normalized=normalized) @ there, there * values, **EXACT)
    assert_close(there.mT @ there, torch.eye(2).double(), **EXACT)
    signs = itertools.product((1.0, -1.0), repeat=2)
    assert min((here * torch.tensor(each) - there).abs().max() for each in signs) > 0.004
    assert_close(here @ here.mT, there @ there.mT, **EXACT)
    assert_close(projectors(a, normalized)[round(values[0].item(), 6)], there @ there.mT, rtol=0, atol=1e-10)


@pytest.mark.claim(
    "graph-zeros-are-components",
    "Both Laplacians have the eigenvalue zero as many times as the graph has connected components, where "
    "a node without edges counts as one.",
)
@given(SEEDS, st.integers(1, 4), st.booleans())
def test_zeros_count_components(seed, parts, normalized):
    torch.manual_seed(seed)
    sizes = torch.randint(1, 5, (parts,)).tolist()
    a = beside(*(weighted(seed + n, size, share=1.0) for n, size in enumerate(sizes)))
    order = torch.randperm(len(a))
    a = a[order][:, order]
    every = torch.linalg.eigvalsh(laplacian(a, normalized=normalized))
    assert (every.abs() < 1e-9).sum() == parts
    assert len(set(components(a).tolist())) == parts
    left = len(a) - parts
    if left:
        values, _ = encoded(a, left, normalized, skip="zeros")
        assert values.min() > 1e-6
        assert_close(values, every[parts:], rtol=0, atol=1e-9)
    if parts > 1:
        assert encoded(a, 1, normalized)[0].item() == pytest.approx(0, abs=1e-9)


@pytest.mark.claim(
    "graph-padding-changes-no-row",
    "Isolated nodes that pad a graph get zeros. If all zero eigenvalues are skipped, the padding changes "
    "neither the eigenvalues nor, except for signs, the eigenvector entries of the other nodes, nor their "
    "random-walk encodings.",
)
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("padding", [1, 5])
def test_isolated_nodes_change_nothing(normalized, padding):
    graphs = [weighted(seed, 7, share=0.9) for seed in range(9)]
    padded = torch.stack([torch.nn.functional.pad(a, (0, padding, 0, padding)) for a in graphs])
    values, vectors = encoded(padded, 4, normalized, skip="zeros")
    for a, value, made, walk in zip(graphs, values, vectors, walks(padded, 5), strict=True):
        alone, expected = encoded(a, 4, normalized, skip="zeros")
        assert_close(value, alone, rtol=0, atol=1e-10)
        assert_close(made[:7].abs(), expected.abs(), rtol=0, atol=1e-8)
        assert made[7:].abs().max() < 1e-10
        assert torch.equal(walk[7:], torch.zeros(padding, 5).double())
        assert_close(walk[:7], walks(a, 5), **EXACT)


@pytest.mark.claim(
    "graph-walks-are-squares-of-eigenvectors",
    "For each node that has an edge, the probability of being back at the node after m steps is the sum, "
    "over all eigenvectors of the normalized Laplacian, of (1 - e)^m times the square of the node's "
    "entry, where e is the eigenvalue.",
)
@given(SEEDS, NODES, st.booleans())
def test_walks_are_sums_of_squares_of_entries(seed, nodes, loops):
    a = weighted(seed, nodes, loops=loops)
    values, vectors = torch.linalg.eigh(laplacian(a, normalized=True))
    has = a.sum(-1) > 0
    for m, made in enumerate(walks(a, 7).mT, 1):
        expected = ((1 - values) ** m * vectors.square()).sum(-1)
        assert_close(made[has], expected[has], rtol=0, atol=1e-10)
        assert (made[~has] == 0).all()


@given(SEEDS, NODES, st.floats(0.01, 100))
def test_a_factor_of_all_weights_is_one_of_the_plain_values_alone(seed, nodes, factor):
    a = weighted(seed, nodes)
    assert_close(walks(factor * a, 5), walks(a, 5), **EXACT)
    for normalized in (True, False):
        values = encoded(a, nodes - 1, normalized)[0] * (1 if normalized else factor)
        assert_close(encoded(factor * a, nodes - 1, normalized)[0], values, rtol=1e-7, atol=1e-9)


@given(SEEDS, NODES)
def test_normalized_values_are_zero_to_two_and_chances_zero_to_one(seed, nodes):
    a = weighted(seed, nodes)
    values, _ = encoded(a, nodes - 1)
    assert values.min() >= 0 and values.max() <= 2 + 1e-12
    assert walks(a, 9).min() >= 0 and walks(a, 9).max() <= 1 + 1e-12


def test_no_value_falls_below_zero_by_rounding():
    parted = torch.stack([beside(weighted(n, 4, 1.0), weighted(n + 99, 5, 1.0)) for n in range(200)])
    for normalized in (True, False):
        assert torch.linalg.eigvalsh(laplacian(parted, normalized=normalized))[:, 1].min() < 0
        assert encoded(parted, 1, normalized)[0].min() == 0


def test_where_edges_go_between_two_sides_no_odd_walk_returns():
    sides = graph([(i, j) for i in (0, 1, 2) for j in (3, 4)], 5)
    for a in (path(6), ring(6), sides):
        assert (walks(a, 9)[:, ::2] == 0).all()
        assert (walks(a, 9)[:, 1::2] > 0).all()
    assert (walks(ring(5), 9)[:, 4::2] > 0).all()


def test_a_loop_lets_a_walk_stay_and_drops_out_of_the_plain_laplacian():
    a, loop = path(3), torch.diag(torch.tensor([0.0, 2.0, 0.0]).double())
    assert torch.equal(laplacian(a + loop, normalized=False), laplacian(a, normalized=False))
    assert not torch.equal(laplacian(a + loop, normalized=True), laplacian(a, normalized=True))
    assert walks(a + loop, 1)[:, 0].tolist() == [0, 0.5, 0]
    assert walks(torch.ones(1, 1), 3).tolist() == [[1, 1, 1]]


# --- what it tells apart, and what not


def rook():
    """Squares of a board of four by four; an edge where a rook may go."""
    board = list(itertools.product(range(4), repeat=2))
    edges = [(i, j) for i, j in itertools.combinations(range(16), 2) if aligned(board[i], board[j])]
    return graph(edges, 16)


def aligned(one, other):
    return one[0] == other[0] or one[1] == other[1]


def shrikhande():
    """The same squares on a torus; steps along both axes and along one diagonal."""
    edges = [
        (4 * y + x, 4 * ((y + down) % 4) + (x + right) % 4)
        for y, x in itertools.product(range(4), repeat=2)
        for down, right in ((0, 1), (1, 0), (1, 1))
    ]
    return graph(edges, 16)


def refined(*graphs):
    """Whether colours of nodes, each refined by those of its neighbours, come out alike in all graphs."""
    colours = [[0] * len(a) for a in graphs]
    for _ in range(max(map(len, graphs))):
        seen = [
            [(mine[i], tuple(sorted(mine[j] for j in range(len(a)) if a[i, j]))) for i in range(len(a))]
            for a, mine in zip(graphs, colours, strict=True)
        ]
        names = {each: n for n, each in enumerate(sorted({each for row in seen for each in row}))}
        colours = [[names[each] for each in row] for row in seen]
    return len({tuple(sorted(each)) for each in colours}) == 1


@pytest.mark.claim(
    "graph-walks-tell-what-neighbours-cannot",
    "Colour refinement by neighbours, networkx's included, does not distinguish two triangles from a "
    "hexagon. Walks of three steps return with a probability of one quarter in the triangles and never in "
    "the hexagon.",
)
def test_walks_tell_two_triangles_from_a_hexagon():
    networkx = peer("networkx")
    triangles, hexagon = beside(ring(3), ring(3)), ring(6)
    assert refined(triangles, hexagon)
    theirs = [networkx.from_numpy_array(a.numpy()) for a in (triangles, hexagon)]
    for each in theirs:
        networkx.set_node_attributes(each, "alike", "colour")
    mine, other = (
        networkx.weisfeiler_lehman_graph_hash(each, node_attr="colour", iterations=6) for each in theirs
    )
    assert mine == other
    assert_close(walks(triangles, 3)[:, 2], torch.full((6,), 0.25).double(), **EXACT)
    assert (walks(hexagon, 3)[:, 2] == 0).all()
    assert torch.equal(walks(hexagon, 2), walks(triangles, 2))
    assert not refined(path(6), hexagon)


@pytest.mark.claim(
    "graph-walks-and-values-have-twins",
    "The rook's graph on a board of four by four squares and the Shrikhande graph are not isomorphic: the "
    "neighbours of a node form two triangles in the first and a hexagon in the second. Yet colour "
    "refinement, the eigenvalues of both Laplacians, and the random-walk encodings of each node up to "
    "thirty steps are the same in both.",
)
def test_walks_and_values_do_not_tell_rook_from_shrikhande():
    networkx = peer("networkx")
    pair = rook(), shrikhande()
    theirs = [networkx.from_numpy_array(a.numpy()) for a in pair]
    assert not networkx.is_isomorphic(*theirs)
    for a, around in zip(pair, (beside(ring(3), ring(3)), ring(6)), strict=True):
        for node in range(16):
            near = a[node].nonzero().flatten()
            mine = networkx.from_numpy_array(a[near][:, near].numpy())
            assert networkx.is_isomorphic(mine, networkx.from_numpy_array(around.numpy()))
    assert refined(*pair)
    for normalized in (True, False):
        values = [encoded(a, 15, normalized)[0] for a in pair]
        assert_close(*values, rtol=0, atol=1e-10)
    made = [walks(a, 30) for a in pair]
    assert_close(*made, **EXACT)
    assert_close(made[0], made[0][:1].expand(16, 30), **EXACT)


@pytest.mark.claim(
    "graph-walks-cannot-tell-mirrored-nodes",
    "Nodes that a symmetry of the graph exchanges, such as the two ends of a path, have the same "
    "random-walk encoding; the first eigenvector of a path has opposite signs at its ends.",
)
@pytest.mark.parametrize("nodes", [2, 3, 8, 15])
def test_walks_are_the_same_at_both_ends_of_a_path(nodes):
    assert torch.equal(walks(path(nodes), 12), walks(path(nodes), 12).flip(0))
    for normalized in (True, False):
        ends = encoded(path(nodes), 1, normalized)[1][[0, -1], 0]
        assert ends[0].item() == pytest.approx(-ends[1].item(), abs=1e-10)
        assert abs(ends[0]) > 0.1


# --- modes


@pytest.mark.parametrize("skip", ["first", "zeros"])
@pytest.mark.parametrize("normalized", [True, False])
def test_graphs_of_a_batch_are_as_alone(normalized, skip):
    a = torch.stack(
        [beside(weighted(n, 3, 1.0), weighted(n, 4, 1.0)) if n % 2 else weighted(n, 7) for n in range(6)]
    )
    a = a.unflatten(0, (2, 3))
    values, vectors = encoded(a, 3, normalized, skip)
    assert values.shape == (2, 3, 3) and vectors.shape == (2, 3, 7, 3)
    for place in itertools.product(range(2), range(3)):
        alone = encoded(a[place], 3, normalized, skip)
        assert_close(values[place], alone[0], rtol=0, atol=1e-10)
        if (
            skip == "zeros" or len(set(components(a[place]).tolist())) == 1
        ):  # else any basis of the zeros is right
            assert_close(vectors[place].abs(), alone[1].abs(), rtol=0, atol=1e-8)
        assert_close(walks(a, 4)[place], walks(a[place], 4), **EXACT)
        assert torch.equal(components(a)[place], components(a[place]))


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32])
def test_an_adjacency_of_any_real_dtype_gives_the_same(kind):
    a = ring(6) + graph([(0, 2)], 6)
    assert torch.equal(walks(a.to(kind), 5), walks(a, 5))
    assert torch.equal(laplacian(a.to(kind), normalized=True), laplacian(a, normalized=True))
    assert torch.equal(components(a.to(kind)), components(a))
    assert torch.equal(encoded(a.to(kind), 3)[1], encoded(a, 3)[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_results_are_rounded_once(dtype):
    a = weighted(1, 9)
    values, vectors = laplacian_encoding(a, 4, normalized=True, skip="first", dtype=dtype)
    assert torch.equal(values, encoded(a, 4)[0].to(dtype))
    assert torch.equal(vectors, encoded(a, 4)[1].to(dtype))
    assert torch.equal(random_walk_encoding(a, 5, dtype), walks(a, 5).to(dtype))
    assert random_signs(vectors).dtype == dtype
    defaults = laplacian_encoding(a, 4, normalized=True, skip="first"), random_walk_encoding(a, 5)
    assert {each.dtype for each in (*defaults[0], defaults[1])} == {torch.float32}


def test_signs_are_drawn_where_the_generator_is_and_else_where_the_vectors_are(monkeypatch):
    drawn, draw = [], torch.randint

    def watched(*sizes, device, **options):
        drawn.append(torch.device(device).type)
        return draw(*sizes, device=device, **options)

    monkeypatch.setattr(torch, "randint", watched)
    elsewhere = torch.ones(2, 3, 4, device="meta")
    random_signs(elsewhere), random_signs(elsewhere, torch.Generator()), random_signs(torch.ones(3, 2))
    assert drawn == ["meta", "cpu", "cpu"]


def test_walks_have_gradients_by_weights():
    torch.manual_seed(1)
    half = (random(4, 4).abs() + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda half: walks(half + half.mT, 4), half)


def test_no_graph_and_one_node():
    assert walks(torch.zeros(0, 3, 3), 2).shape == (0, 3, 2)
    assert encoded(torch.zeros(0, 3, 3), 2)[1].shape == (0, 3, 2)
    assert walks(torch.zeros(1, 1), 2).tolist() == [[0, 0]]
    assert components(torch.zeros(1, 1)).tolist() == [0]


def test_a_long_path_is_one_component():
    for nodes in (1, 2, 3, 31, 32, 33, 64, 100):
        assert (components(path(nodes)) == 0).all()
        assert (components(path(nodes).flip(0, 1)) == 0).all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    good = ring(4)
    ways = (
        lambda a: laplacian(a, normalized=True),
        lambda a: encoded(a, 1),
        lambda a: walks(a, 2),
        components,
    )
    for wrong in (
        *(torch.zeros(shape) for shape in ((3, 4), (4,), (), (0, 0), (2, 4, 3))),
        good.to(torch.complex64),
    ):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        for way in ways:
            yield f"adjacency must be real and (..., nodes, nodes), got {got}", way, wrong
    for number, got in ((-1.0, "-1 to 1"), (math.nan, "nan to nan"), (math.inf, "0 to inf")):
        wrong = good.clone()
        wrong[0, 2] = wrong[2, 0] = number
        for way in ways:
            yield f"adjacency must be weights of 0 or more, got {got}", way, wrong
    directed = good.clone()
    directed[1, 0] = 0.25
    for wrong in (directed, torch.stack((good, directed))):
        message = (
            "adjacency must be symmetric, edges in both directions, got weights that differ by 0.75; "
            "(a + a.mT) / 2 may do"
        )
        for way in ways:
            yield message, way, wrong
    for k, skip, adjacency, (most, nodes) in (
        (0, "first", good, (3, 4)),
        (-1, "zeros", good, (3, 4)),
        (4, "first", good, (3, 4)),
        (4, "zeros", good, (3, 4)),
        (5, "zeros", beside(ring(3), ring(3)), (4, 6)),
        (5, "zeros", torch.stack((ring(6), beside(ring(3), ring(3)))), (4, 6)),
        (1, "first", torch.zeros(1, 1), (0, 1)),
    ):
        message = (
            f"k must be at least 1 and at most {most}, the number of eigenvectors that are not skipped, "
            f"of {nodes} in all, got {k}"
        )
        yield message, lambda a, k, skip: encoded(a, k, skip=skip), adjacency, k, skip
    message = "skip must be 'first' or 'zeros', got 'none'"
    yield message, lambda: encoded(good, 1, skip="none")
    for steps in (0, -3):
        yield f"steps must be at least 1, got {steps}", random_walk_encoding, good, steps
    for vectors in (torch.zeros(3), torch.tensor(0.0), torch.zeros(3, 2).long()):
        got = f"{vectors.dtype} {tuple(vectors.shape)}"
        yield f"vectors must be floating and (..., nodes, k), got {got}", random_signs, vectors
