"""swin_bias.py against its formulas, against Swin and Swin V2 in transformers, and in other windows."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.swin_bias import SwinBias, SwinV2Bias, log_spaced_offsets, relative_position_index, swin_bias
from snippets.vit_table import resize_table
from tests.peers import peer
from tests.snippets.common import SEEDS, filled, random, refusals

MODELS = "transformers.models"
HEADS = 3
GRIDS = st.tuples(st.integers(1, 5), st.integers(1, 5))
WINDOWS = [(1, 1), (1, 4), (3, 1), (2, 2), (3, 5), (7, 7)]


def cells(grid):
    """The places of a window, row by row: (patches, 2)."""
    return torch.tensor(list(itertools.product(*map(range, grid))))


def table_of(grid, heads=HEADS):
    return random((2 * grid[0] - 1) * (2 * grid[1] - 1), heads)


def learned(grid, **options):
    return filled(SwinV2Bias(HEADS, grid, hidden=8, **options))


# --- the definitions


@settings(max_examples=40, deadline=None)
@given(SEEDS, GRIDS)
def test_every_entry_is_its_formula(seed, grid):
    torch.manual_seed(seed)
    table, (rows, columns) = table_of(grid), grid
    queries, keys = (cells(grid)[torch.randint(rows * columns, (n,))] for n in (4, 5))
    made, found = swin_bias(queries, keys, table, grid), relative_position_index(queries, keys, grid)
    assert made.shape == (HEADS, 4, 5)
    for i, j in itertools.product(range(4), range(5)):
        dy, dx = (queries[i] - keys[j]).tolist()
        row = (dy + rows - 1) * (2 * columns - 1) + dx + columns - 1
        assert found[i, j] == row
        assert torch.equal(made[:, i, j], table[row])


def u(d, size):
    return math.copysign(math.log2(1 + 8 * abs(d) / max(size - 1, 1)) / 3, d) if d else 0.0


@pytest.mark.parametrize("trained", [None, (4, 6)])
@pytest.mark.parametrize("grid", WINDOWS)
def test_every_number_of_swin_v2_is_its_formula(grid, trained):
    made, places = learned(grid, pretrained_window_size=trained), cells(grid)
    bias, read = made(places, places), log_spaced_offsets(grid, trained)
    rows, columns = trained or grid
    (inner, inner_bias), (outer,) = made.mlp[0].parameters(), made.mlp[2].parameters()
    for i, j in itertools.product(range(len(places)), repeat=2):
        dy, dx = (places[i] - places[j]).tolist()
        given = [u(dy, rows), u(dx, columns)]
        row = relative_position_index(places, places, grid)[i, j]
        assert_close(read[row], torch.tensor(given).double(), rtol=0, atol=1e-7)
        if i % 5 and j % 3:
            continue  # enough of them
        hidden = [
            max(0.0, (w[0] * given[0] + w[1] * given[1] + b).item())
            for w, b in zip(inner, inner_bias, strict=True)
        ]
        for head in range(HEADS):
            score = sum(w.item() * h for w, h in zip(outer[head], hidden, strict=True))
            assert bias[head, i, j].item() == pytest.approx(16 / (1 + math.exp(-score)), abs=1e-10)


def test_the_ends_of_a_window_are_a_little_above_one():
    for grid in WINDOWS[3:]:
        read = log_spaced_offsets(grid)
        assert read.dtype == torch.float64
        assert read.max().item() == -read.min().item() == pytest.approx(math.log2(9) / 3, abs=1e-12)
        assert_close(read.flip(0), -read, rtol=0, atol=0)


def test_tables_begin_small_and_networks_as_linear_layers():
    table = SwinBias(16, (20, 20)).table
    assert table.std().item() == pytest.approx(0.02, rel=0.05) and table.mean().abs() < 1e-3
    made = SwinV2Bias(4, (7, 7))
    shapes = {name: tuple(value.shape) for name, value in made.state_dict().items()}
    assert shapes == {"mlp.0.weight": (512, 2), "mlp.0.bias": (512,), "mlp.2.weight": (4, 512)}


# --- other libraries


@pytest.mark.claim(
    "swin-bias-agrees-with-swin",
    "The snippet's table and lookup give the bias of Swin, and of the Swin versions in Donut and "
    "MaskFormer, in transformers, bit for bit.",
)
@pytest.mark.parametrize("grid", WINDOWS)
@torch.no_grad()
def test_agrees_with_swin(grid, same_as):
    swin = peer(f"{MODELS}.swin.modeling_swin").SwinRelativePositionBias(HEADS, grid)
    theirs = {"swin.modeling_swin.SwinRelativePositionBias": swin}
    for model, kind in (
        ("donut.modeling_donut_swin", "DonutSwin"),
        ("maskformer.modeling_maskformer_swin", "MaskFormerSwin"),
    ):
        modeling = peer(f"{MODELS}.{model}")
        config = getattr(modeling, f"{kind}Config")()
        theirs[f"{model}.{kind}SelfAttention"] = getattr(modeling, f"{kind}SelfAttention")(
            config, 6, HEADS, grid
        )
    for name, module in theirs.items():
        torch.nn.init.normal_(module.relative_position_bias_table)
        made = swin_bias(cells(grid), cells(grid), module.relative_position_bias_table, grid)
        expected = module()[0] if module is swin else looked_up(module, grid)
        assert torch.equal(made, expected)
        same_as(f"{MODELS}.{name}", made, expected)


def looked_up(module, grid):
    """What the attention of Donut's and MaskFormer's Swin adds, by the rows it has noted."""
    patches = grid[0] * grid[1]
    rows = module.relative_position_index.view(-1)
    return module.relative_position_bias_table[rows].view(patches, patches, -1).permute(2, 0, 1)


@pytest.mark.claim(
    "swin-bias-agrees-with-swin-v2",
    "Attention weights computed from the snippet's bias alone equal those that Swin V2 and Swin2SR in "
    "transformers compute from theirs alone, with and without a pretrained window, to 5e-6.",
)
@pytest.mark.parametrize("trained", [None, (4, 6), (12, 12)])
@pytest.mark.parametrize("grid", WINDOWS[3:])
@pytest.mark.parametrize(("model", "kind"), [("swinv2", "Swinv2"), ("swin2sr", "Swin2SR")])
@torch.no_grad()
def test_agrees_with_swin_v2(model, kind, grid, trained, same_as):
    modeling = peer(f"{MODELS}.{model}.modeling_{model}")
    config = getattr(modeling, f"{kind}Config")(attention_probs_dropout_prob=0.0)
    theirs = getattr(modeling, f"{kind}SelfAttention")(config, 6, HEADS, grid, list(trained or (0, 0))).eval()
    for name, parameter in theirs.named_parameters():
        torch.nn.init.normal_(parameter, std=0.3 if "position_bias" in name else 0.0)
    made = SwinV2Bias(HEADS, grid, trained)
    made.mlp.load_state_dict(theirs.continuous_position_bias_mlp.state_dict())
    patches = cells(grid)
    weights = theirs(torch.zeros(1, len(patches), 6), output_attentions=True)[1][0]
    ours = made(patches, patches).softmax(-1)
    assert_close(ours, weights, rtol=0, atol=5e-6)
    assert ours.std() > 0.01 / len(patches)  # it is not the same for all
    same_as(f"{MODELS}.{model}.modeling_{model}.{kind}SelfAttention", ours, weights)


# --- properties


@pytest.mark.parametrize("grid", WINDOWS)
def test_each_row_of_a_table_is_asked_for(grid):
    places = cells(grid)
    rows = relative_position_index(places, places, grid)
    assert rows.unique().tolist() == list(range((2 * grid[0] - 1) * (2 * grid[1] - 1)))
    assert (rows.diagonal() == len(table_of(grid)) // 2).all()
    assert torch.equal(rows + rows.T, torch.full_like(rows, len(table_of(grid)) - 1))  # there and back


@pytest.mark.claim(
    "swin-v2-bias-is-bounded",
    "The bias of Swin V2 lies between zero and sixteen, whatever its weights and its window.",
)
@pytest.mark.parametrize("std", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("grid", WINDOWS)
def test_swin_v2_is_bounded(std, grid):
    for _ in range(5):
        made = filled(SwinV2Bias(HEADS, grid, hidden=32), std).table()
        assert (made >= 0).all() and (made <= 16).all()
        assert std > 1 or ((made > 0) & (made < 16)).all()


def at_offset(made, dy, dx):
    place = torch.tensor([[dy, dx]])
    return made(place.clamp(min=0), (-place).clamp(min=0))[:, 0, 0]


@pytest.mark.claim(
    "swin-v2-bias-in-another-window",
    "In a larger window, Swin V2's network gives an offset the same bias as before if u is normalised by "
    "the window that it was trained in. If u is normalised by the larger window, an offset gets the bias "
    "that the offset at the same fraction of the old window had: at twice the offset, if the window size "
    "minus one is twice as large.",
)
@pytest.mark.parametrize(("old", "new"), [((4, 4), (7, 7)), ((2, 5), (3, 9)), ((3, 3), (5, 5))])
def test_a_network_in_a_larger_window(old, new):
    made = learned(old)
    before = {
        offset: at_offset(made, *offset) for offset in itertools.product(*(range(1 - n, n) for n in old))
    }
    made.window_size, made.pretrained_window_size = new, old
    for offset, bias in before.items():
        assert_close(at_offset(made, *offset), bias, rtol=0, atol=1e-12)
    made.pretrained_window_size = None
    for (dy, dx), bias in before.items():
        assert_close(at_offset(made, 2 * dy, 2 * dx), bias, rtol=0, atol=1e-12)
    apart = [(at_offset(made, *offset) - bias).abs().max() for offset, bias in before.items() if any(offset)]
    assert max(apart) > 1e-3
    assert_close(at_offset(made, 0, 0), before[0, 0], rtol=0, atol=1e-12)


@pytest.mark.claim(
    "swin-bias-resizes-as-a-table",
    "The authors' script adapts a Swin table to another window by resizing it as an image of offsets, "
    "which is resize_table with bicubic and no extra row.",
)
@pytest.mark.parametrize(("old", "new"), [(7, 12), (4, 3), (2, 5)])
def test_a_table_of_another_window_is_resized_as_a_picture(old, new):
    table, (before, after) = table_of((old, old)), (2 * old - 1, 2 * new - 1)
    picture = table.permute(1, 0).view(1, HEADS, before, before)
    expected = torch.nn.functional.interpolate(picture, size=(after, after), mode="bicubic")
    made = resize_table(table, (before, before), (after, after), convention="bicubic", extra=0)
    assert_close(made, expected.view(HEADS, -1).T, rtol=0, atol=1e-9)
    assert swin_bias(cells((new, new)), cells((new, new)), made, (new, new)).shape == (HEADS, new**2, new**2)


def test_flipping_a_window_flips_offsets():
    grid = (3, 4)
    table, places = table_of(grid), cells(grid)
    mirrored = torch.stack((places[:, 0], grid[1] - 1 - places[:, 1]), -1)
    flipped = table.unflatten(0, (5, 7)).flip(1).flatten(0, 1)
    assert torch.equal(swin_bias(mirrored, mirrored, table, grid), swin_bias(places, places, flipped, grid))
    turned = table.unflatten(0, (5, 7)).transpose(0, 1).flatten(0, 1)
    across = places.flip(-1)
    assert torch.equal(swin_bias(across, across, turned, grid[::-1]), swin_bias(places, places, table, grid))


# --- modes


def test_a_pair_that_does_not_fit_has_a_row_that_no_table_has(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # where nothing may be compared
    apart = torch.tensor([[0, 0], [0, 2], [2, 0], [0, -2]])
    assert relative_position_index(apart, apart[:1], (2, 2))[:, 0].tolist() == [4, 9, 9, 9]
    with pytest.raises((IndexError, RuntimeError)):
        swin_bias(apart, apart[:1], table_of((2, 2)), (2, 2))


def test_gradients():
    places = cells((2, 3))
    table = table_of((2, 3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda table: swin_bias(places, places, table, (2, 3)), table)
    made = learned((2, 3))
    (made(places, places) * random(HEADS, 6, 6)).sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in made.parameters())


# --- what is refused, and in which words


@refusals
def test_refuses():
    places = cells((2, 3))
    for wrong in ((0, 3), (3, 0), (2, -1), (3,), (1, 2, 3), ()):
        message = f"window_size must be rows and columns, of a patch or more, got {wrong}"
        yield message, relative_position_index, places, places, wrong
        yield message, swin_bias, places, places, table_of((2, 3)), wrong
        yield message, log_spaced_offsets, wrong
        yield message, SwinBias, 2, wrong
        yield message, SwinV2Bias, 2, wrong
        message = f"pretrained_window_size must be rows and columns, of a patch or more, got {wrong}"
        yield message, log_spaced_offsets, (2, 3), wrong
        yield message, SwinV2Bias, 2, (2, 3), wrong
    for wrong in ((1, 3), (2, 1), (1, 1)):
        message = "pretrained_window_size must have offsets on each axis where window_size has, "
        message += f"got {wrong} for (2, 3)"
        yield message, log_spaced_offsets, (2, 3), wrong
    for shape in ((14, 2), (16, 2), (15,), (3, 5, 2), ()):
        message = f"table must be (15, heads) for a window of 2 rows and 3 columns, got {shape}"
        yield message, swin_bias, places, places, torch.zeros(shape), (2, 3)
    for one, apart in (
        ([2, 0], "2 rows and 0"),
        ([-2, 0], "2 rows and 0"),
        ([0, 3], "0 rows and 3"),
        ([5, -4], "5 rows and 4"),
    ):
        message = f"coordinates must lie in a window of 2 rows and 3 columns, got some {apart} columns apart"
        pair = torch.tensor([one]), torch.zeros(1, 2).long()
        yield message, relative_position_index, *pair, (2, 3)
        yield message, relative_position_index, *pair[::-1], (2, 3)
        yield message, lambda *pair: SwinBias(2, (2, 3))(*pair), *pair
    for i, j in (
        ((2,), (3, 2)),
        ((3, 2), (2,)),
        ((), ()),
        ((3, 3), (3, 3)),
        ((3, 2), (3, 1)),
        ((2, 3, 2), (3, 2)),
        ((2, 3, 2), (1, 3, 2)),
    ):
        message = f"coordinates must be (..., queries, 2) and (..., keys, 2), got {i} and {j}"
        yield message, relative_position_index, torch.zeros(i).long(), torch.zeros(j).long(), (2, 3)
    for heads in (0, -1):
        yield f"heads must be at least 1, got {heads}", SwinBias, heads, (2, 3)
        yield f"heads and hidden must be at least 1, got {heads} and 512", SwinV2Bias, heads, (2, 3)
    yield "heads and hidden must be at least 1, got 2 and 0", SwinV2Bias, 2, (2, 3), None, 0


def test_an_axis_of_one_patch_needs_no_offset_to_measure_by():
    assert_close(log_spaced_offsets((1, 3), (1, 5)), log_spaced_offsets((1, 3), (9, 5)), rtol=0, atol=0)


@pytest.mark.parametrize(("grid", "trained"), [((8, 8), None), ((24, 24), (12, 12)), ((1, 7), None)])
def test_log_offsets_in_float32_as_on_other_devices_are_near_those_in_float64(grid, trained):
    near, exact = log_spaced_offsets(grid, trained, torch.float32), log_spaced_offsets(grid, trained)
    assert near.dtype == torch.float32
    assert_close(near.double(), exact, rtol=0, atol=1e-6)
