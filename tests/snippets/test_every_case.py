"""What all functions and modules of families/ do alike, each tried as its cases there call it."""

import copy
import inspect
import re
from functools import partial

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

from snippets.graph_positions import laplacian, laplacian_encoding
from snippets.sinusoidal_2d import axial_sinusoids, grid_positions
from snippets.vit_table import AddGridTable, resize_table
from tests.snippets.common import COUNTING, NO_INTEGERS, SEEDS
from tests.snippets.fitness import SIZES, all_cases, called

CASES = all_cases()


def every(*but, only=(), when=lambda case: True):
    """A row for each case but these, or for those only, named by its function and by its number there.

    when: whether a case has what the test is about; one that has it not would pass without being tried.
    """
    rows, seen = [], {}
    for case in CASES:
        name = case.of.__name__
        seen[name] = seen.get(name, -1) + 1
        row = f"{name}-{seen[name]}"
        if name not in but and row not in but and (not only or name in only) and when(case):
            rows.append(pytest.param(case, id=row))
    return pytest.mark.parametrize("case", rows)


def integers(given):
    """Which of the inputs are integers, by their index."""
    return [n for n, each in enumerate(given) if not each.is_floating_point() and each.dtype != torch.bool]


def has_integers(case):
    return bool(integers(case.make(*SIZES[0])))


def replaced(given, n, other):
    return *given[:n], other, *given[n + 1 :]


def learned(call):
    """The parameters of a module, all of which get other values than those it starts with."""
    values = dict(call.named_parameters()) if isinstance(call, torch.nn.Module) else {}
    for value in values.values():
        torch.nn.init.uniform_(value, 0.1, 0.9)
    return values


# --- integers

# The cache gives back the positions and documents it got; nn.Embedding takes no other tokens, and axes are
# those of pair_axes.
AS_GIVEN = "KeyValueCache", "keep_slots", "move_positions", "write_slots", "Decoder", "Embed", "mrope_tables"


@every(*AS_GIVEN, when=has_integers)
def test_integers_of_any_dtype_give_the_same(case):
    """Each input of integers alone, and all of them together."""
    call, given = called(case), case.make(*SIZES[0])
    for dtype in COUNTING:
        limits = max(torch.iinfo(dtype).min, -128), min(torch.iinfo(dtype).max, 127)
        whole = [each.clamp(*limits) if n in integers(given) else each for n, each in enumerate(given)]
        expected = call(*whole)
        for narrow in [[n] for n in integers(given)] + [integers(given)]:
            made = call(*(each.to(dtype) if n in narrow else each for n, each in enumerate(whole)))
            assert_close(made, expected, rtol=0, atol=0)


# torch's own errors must do for these, as in test_fitness.py; the cache checks shapes alone
UNCHECKED = ("Block", "Decoder", "document_positions", "Embed", "padded_positions", "packed_positions")
UNCHECKED += "KeyValueCache", "keep_slots", "move_positions", "write_slots", "attention_mask"
UNCHECKED += "flex_attention_mask", "flex_bias"
UNCHECKED += "fourier_features", "FourierEncoding"
FRACTIONS = ("rope_tables", "axial_rope_tables", "mrope_tables", "xpos_tables", "sinusoidal_encoding")
FRACTIONS += "sinusoidal_encoding_t2t", "shift_matrix", "AddSinusoidal", "AddGated", "axial_sinusoids"
WORDS = {
    False: r"(positions|places|coordinates|offsets|distances) must be "
    r"(a tensor of uint8 or int8 to int64|integer tensors \(uint8, int8, int16, int32 or int64\)), got ",
    True: r"(positions|places|offsets) must be a tensor of (uint8, int8 to int64|integers), float32 or "
    r"float64(, such as torch.arange\(10\))?, got ",
}


@every(*UNCHECKED, when=has_integers)
def test_refuses_positions_that_do_not_count(case):
    call, given = called(case), case.make(*SIZES[0])
    fractions = case.of.__name__ in FRACTIONS
    for wrong, got in (
        *NO_INTEGERS,
        (torch.zeros(3).half(), "torch.float16"),
        (torch.zeros(3) + 0j, "torch.complex64"),
    ):
        for n in integers(given)[:1] if fractions else integers(given):
            if not (fractions and got == "torch.float32"):
                with pytest.raises(ValueError, match=f"^{WORDS[fractions]}{re.escape(got)}$"):
                    call(*replaced(given, n, wrong))


# What depends on the offsets of keys from queries alone.
SHIFTS = ("alibi_bias", "alibi_bias_symmetric", "t5_bias", "T5Bias", "clipped_bias", "ClippedBias")
SHIFTS += "kerple_log_bias", "kerple_power_bias", "KerpleLog", "KerplePower", "swin_bias", "SwinBias"
SHIFTS += "SwinV2Bias", "shaw_scores", "shaw_values", "ShawTables", "deberta_scores", "DebertaScores"
SHIFTS += "local_global_index", "local_global_scores", "LocalGlobal", "relative_logits", "RelativeLogits"


@pytest.mark.claim(
    "alibi-depends-on-offset-only",
    "Both forms of the ALiBi bias depend only on the offset between query and key: shifting all positions "
    "by the same amount changes no number.",
)
@pytest.mark.claim(
    "relative-methods-ignore-a-common-shift",
    "For fixed queries and keys, shifting the positions of all queries and keys by the same number "
    "changes neither T5's bias nor the clipped bias nor DeBERTa's scores.",
)
@pytest.mark.claim(
    "relative-logits-know-distances-only",
    "For fixed states, shifting all positions by the same number leaves relative logits bit-for-bit "
    "unchanged.",
)
@pytest.mark.claim(
    "shaw-depends-on-distance-only",
    "With Shaw's tables and fixed queries, keys and values, shifting all positions by the same number "
    "changes neither the attention weights nor the output.",
)
@pytest.mark.claim(
    "swin-bias-knows-offsets-only",
    "Shifting all grid positions by the same number of rows and columns leaves the biases of Swin and "
    "Swin V2 bit-for-bit unchanged.",
)
@every(only=SHIFTS)
@settings(max_examples=15)
@drawn(SEEDS, st.lists(st.integers(-100_000, 100_000), min_size=2, max_size=2))
def test_moving_all_positions_by_the_same_changes_nothing(case, seed, by):
    """By as many rows as columns, or by more, where positions are places in a grid."""
    torch.manual_seed(seed)
    call, given = called(case), case.make(*SIZES[0])
    learned(call)
    by = torch.tensor(by if "swin" in case.of.__module__ else by[0])
    moved = [each + by if n in integers(given) else each for n, each in enumerate(given)]
    assert torch.equal(call(*moved), call(*given))


@every(only=FRACTIONS)
def test_positions_may_be_floats_and_have_gradients(case):
    """The first input of integers; whole numbers give the same whatever their dtype."""
    call, given = called(case), case.make(*SIZES[0])
    at, expected = integers(given)[0], call(*given)
    for dtype in (torch.float32, torch.float64):
        made = call(*replaced(given, at, given[at].to(dtype)))
        assert_close(made, expected, rtol=0, atol=0)
    if "dtype" in inspect.signature(call).parameters:
        exact = partial(call, dtype=torch.float64)
        positions = (9 * torch.rand_like(given[at], dtype=torch.float64)).requires_grad_()
        at_positions = lambda positions: exact(*replaced(given, at, positions))  # noqa: E731
        assert torch.autograd.gradcheck(at_positions, positions, fast_mode=True)


# --- gradients

GRAPHS = "laplacian", "laplacian_encoding", "random_walk_encoding", "components"  # with symmetric weights


@every(*GRAPHS, "alibi_bias")  # whose slopes are not learned
def test_gradients_are_those_of_finite_differences(case):
    """Of all inputs that have fractions and of all that is learned, in float64."""
    call, given = called(case), case.make(*SIZES[0])
    names, values = list(learned(call)), [value.detach().double() for value in learned(call).values()]
    given = [each.double() if each.is_floating_point() else each for each in given]
    if "dtype" in inspect.signature(call).parameters:
        call = partial(call, dtype=torch.float64)

    def run(*inputs):
        learned, inputs = dict(zip(names, inputs[: len(names)], strict=True)), inputs[len(names) :]
        made = torch.func.functional_call(call, learned, inputs) if names else call(*inputs)
        made = [each.double() for each in tree_leaves(made) if each.is_floating_point()]
        return tuple(each.masked_fill(each.isinf(), 0) for each in made)  # what is hidden has none

    inputs = [each.requires_grad_() if each.is_floating_point() else each for each in (*values, *given)]
    if any(each.requires_grad for each in inputs):
        assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


# --- dtypes

TABLES = (
    "rope_tables",
    "axial_rope_tables",
    "mrope_tables",
    "position_interpolation",
    "ntk_aware",
    "dynamic_ntk",
)
TABLES += "ntk_by_parts", "llama3", "yarn", "longrope", "proportional"  # of frequencies, never narrow
ROTATES = "apply_rope", "apply_xpos", "apply_axial_rope"  # by tables that are never narrow
WIDE = ("flex_bias", "alibi_bias", "alibi_bias_symmetric", "forgetting_bias", "ForgetGates", "path_keys")
WIDE += "laplacian_encoding", "random_walk_encoding", "PathProjection"
STEPS = ("scaled_dot_product", "attention", "SelfAttention", "attend", "Block", "Decoder", "SwinV2Bias")
STEPS += "ShawTables", "DebertaScores", "TransformerXLScores", "CopeScores", "LocalGlobal", "shaw_scores"
STEPS += "shaw_values", "RelativeLogits", "deberta_scores", "transformer_xl_scores", "cope_scores"
STEPS += "local_global_scores", "AddSinusoidal", "gated_encoding", "AddGated", "FourierEncoding"
STEPS += "AddGridTable", "ForgetGates", "PathProjection", "shaw_scores_consecutive", "shaw_values_consecutive"
STEPS += (
    "deberta_scores_consecutive",
    "local_global_scores_consecutive",
    "cope_scores_compiled",
)  # each of which rounds


def in_dtype(call, dtype):
    return call.to(dtype) if isinstance(call, torch.nn.Module) else call


def eps(dtype):
    return torch.finfo(dtype).eps


@every(*TABLES, "laplacian", "components")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_narrow_numbers_cost_their_own_rounding_and_no_more(case, dtype):
    """The result is that of float32, rounded once, or in steps that add up to a few roundings."""
    name, call, given = case.of.__name__, called(case), case.make(*SIZES[0])
    wider = torch.float64 if dtype == torch.float32 else torch.float32
    narrow = [each.to(dtype) if each.is_floating_point() else each for each in given]
    if name in ROTATES:
        narrow[1:] = given[1:]
    if not (learned(call) or any(each.dtype == dtype for each in narrow)):
        return
    made = tree_leaves(in_dtype(call, dtype)(*narrow))
    wide = [each.to(wider) if each.dtype == dtype else each for each in narrow]
    expected = tree_leaves(in_dtype(call, wider)(*wide))
    once = dtype != torch.float32 and name not in STEPS
    for each, exact in zip(made, expected, strict=True):
        if exact.is_floating_point():
            assert each.dtype == (torch.float32 if name in WIDE else dtype)
            close = {"rtol": 0, "atol": 0} if once else dict.fromkeys(["rtol", "atol"], 64 * eps(dtype))
            assert_close(each, exact.to(each.dtype), **close)


@every("additive_mask")  # which adds to a bias of its own dtype
def test_refuses_a_dtype_without_fractions(case):
    call, given = called(case), case.make(*SIZES[0])
    if "dtype" in inspect.signature(case.call).parameters:
        tables = case.of.__name__.endswith("_tables")  # whose angles are lost in narrow numbers
        wanted = "float32 or float64" if tables else "a floating dtype"
        for dtype in (torch.int64, torch.bool, torch.complex64, *[torch.bfloat16] * tables):
            with pytest.raises(ValueError, match=f"^dtype must be {wanted}, got {dtype}$"):
                call(*given, dtype=dtype)


# --- sizes

SCALINGS = "position_interpolation", "ntk_aware", "dynamic_ntk", "ntk_by_parts", "llama3", "yarn", "longrope"
NEVER_EMPTY = (
    *GRAPHS,
    *SCALINGS,
    "proportional",
    "flex_attention_mask",
    "flex_bias",
    "KeyValueCache",
    "Decoder",
)

# These count keys from the end, of which there are as many as queries, or more.
COUNTS_ROWS = "CopeScores", "cope_scores", "TransformerXLScores", "transformer_xl_scores", "relative_shift"
COUNTS_ROWS += "wall_scores", "path_scores", "attention-1", "forgetting_bias-1"
COUNTS_ROWS += ("cope_scores_compiled",)
COUNTS_ROWS += tuple({case.of.__name__ for case in CASES if case.of.__name__.endswith("_consecutive")})


@every(*NEVER_EMPTY, "SelfAttention", "forgetting_bias-1", "padded_grid_positions")
def test_there_may_be_no_text_and_no_token(case):
    """The result is empty along the same axes that grow with texts and with tokens."""
    call, ((batch, tokens), (batches, more)) = called(case), SIZES
    one, other = (tree_leaves(call(*case.make(*known))) for known in SIZES)
    for texts, each in ((0, tokens), (batch, 0), (0, 0)):
        steps = {0: 0, batches - batch: texts - batch, more - tokens: each - tokens}
        made = tree_leaves(call(*case.make(texts, each)))
        for result, small, large in zip(made, one, other, strict=True):
            expected = [n + steps[m - n] for n, m in zip(small.shape, large.shape, strict=True)]
            assert list(result.shape) == expected


FLAT = "SelfAttention", "path_keys", "padded_grid_positions"


@every(*NEVER_EMPTY, *COUNTS_ROWS, "keep_slots", "write_slots", "ShawTables", *FLAT)
def test_there_may_be_no_key_with_or_without_queries(case):
    """Keys are the tokens of which there are two more than of others."""
    call, (given, more), (tokens, many) = called(case), (case.make(*n) for n in SIZES), [n for _, n in SIZES]
    keys, queries = (tokens + 2, many + 2), (tokens, many)
    for gone in ([keys], [keys, queries]):

        def none(tensors, larger, gone=gone):
            """Empty along each axis that has as many as there are, here and in a larger batch."""
            for one, other in zip(tensors, larger, strict=True):
                sizes = zip(one.shape, other.shape, strict=True)
                yield one[tuple(slice(0 if pair in gone else None) for pair in sizes)]

        made = tree_leaves(call(*none(given, more)))
        expected = none(*(tree_leaves(call(*tensors)) for tensors in (given, more)))
        assert [each.shape for each in made] == [each.shape for each in expected]


NO_BATCH = (
    "additive_mask",
    "Block",
    "Decoder",
    "flex_attention_mask",
    "flex_bias",
    "random_signs",
    "relative_shift",
)
ONE_BATCH = "rope_tables", "apply_rope", "xpos_tables", "apply_xpos"


@every(*NO_BATCH)
def test_each_text_of_a_batch_gets_what_it_gets_alone(case):
    """So it is without an axis of texts, and in two batches at once."""
    call, (first, second), larger = (
        called(case),
        (case.make(*SIZES[0]) for _ in range(2)),
        case.make(*SIZES[1]),
    )
    texts = [
        one.shape[:1] == SIZES[0][:1] and other.shape[:1] == SIZES[1][:1]
        for one, other in zip(first, larger, strict=True)
    ]
    if not any(texts):
        return
    batch = call(*first)
    if case.of.__name__ in ONE_BATCH:
        whole = tree_map(lambda each: each[None], batch)
    else:
        pairs = zip(first, second, texts, strict=True)
        whole = call(*(torch.stack(pair) if own else pair[0] for *pair, own in pairs))
    for place in range(SIZES[0][0]):
        alone = call(*(each[place] if own else each for each, own in zip(first, texts, strict=True)))
        for one, of_batch, of_both in zip(*map(tree_leaves, (alone, batch, whole)), strict=True):
            assert_close(one, of_batch[place], rtol=0, atol=1e-5)
            assert_close(one, of_both[0, place], rtol=0, atol=1e-5)


@every()
def test_any_memory_layout_gives_the_same(case):
    """Axes that lie in another order, or with room between the numbers."""
    call, given = called(case), case.make(*SIZES[0])
    expected = call(*given)
    for n, each in enumerate(given):
        if each.ndim:
            turned = each.movedim(0, -1).contiguous().movedim(-1, 0)
            apart = torch.stack((each, each), -1)[..., 1]
            for same in (turned, apart):
                assert_close(call(*replaced(given, n, same)), expected, rtol=1e-5, atol=1e-5)


# --- what a call leaves behind


@every("write_slots")  # into the cache that it is given
def test_no_input_is_written_to(case):
    call, given = called(case), case.make(*SIZES[0])
    before = [each.clone() for each in given]
    first = call(*given)
    assert all(map(torch.equal, given, before))
    assert_close(call(*given), first, rtol=0, atol=0, equal_nan=True)


# What checkpoints decide, and no default can guess: a function with what else it takes, and its options.
CONVENTIONS = [
    (partial(laplacian, torch.ones(3, 3) - torch.eye(3)), {"normalized": True}),
    (partial(laplacian_encoding, torch.ones(3, 3) - torch.eye(3), 1), {"normalized": True, "skip": "first"}),
    (
        partial(axial_sinusoids, torch.zeros(3, 2), 8),
        {"order": (1, 0), "layout": "sin_cos", "base": 20.0},
    ),
    (partial(grid_positions, (2, 2)), {"start": 0}),
    (
        partial(resize_table, torch.zeros(13, 2), (3, 4), (2, 2)),
        {"convention": "bicubic", "extra": 1},
    ),
    (partial(AddGridTable, (3, 4), 2, extra=1), {"convention": "bicubic"}),
]


@pytest.mark.parametrize(
    ("call", "options"),
    CONVENTIONS,
    ids=lambda given: getattr(getattr(given, "func", None), "__name__", "options"),
)
def test_conventions_have_no_default(call, options):
    call(**options)
    for name in options:
        with pytest.raises(TypeError, match=name):
            call(**{key: value for key, value in options.items() if key != name})


# --- modules


@every()
def test_a_module_can_be_copied_saved_and_moved(case):
    if isinstance(case.of, type) and isinstance(called(case), torch.nn.Module):
        made, other, given = called(case), called(case), case.make(*SIZES[0])
        different = bool(learned(made)) + bool(learned(other))
        expected = made(*given)
        assert torch.equal(other(*given), expected) != bool(different)
        other.load_state_dict(made.state_dict())
        for same in (other, copy.deepcopy(made)):
            assert torch.equal(same(*given), expected)
        assert made.to("meta")(*(each.to("meta") for each in given)).is_meta
