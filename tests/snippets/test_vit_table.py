"""vit_table.py against slow loops of each way to resize, and models of transformers that have it."""

import itertools
import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets import vit_table
from snippets.vit_table import CONVENTIONS, AddGridTable, position_index, resize_table
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, filled, random, refusals

MODELS = "transformers.models"
GRIDS = st.tuples(st.integers(1, 6), st.integers(1, 6))
every_convention = pytest.mark.parametrize("convention", CONVENTIONS)


def resized(table, grid, to, convention, extra=0):
    return resize_table(table, grid, to, convention=convention, extra=extra)


def table_of(grid, extra=0, dim=3):
    return random(extra + grid[0] * grid[1], dim)


# --- what the docstring says of each


def tent(x):
    return max(0.0, 1 - abs(x))


def keys(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def weights(n, old, new, convention):
    """How much of each old cell is in the new cell n of an axis."""
    kernel = tent if convention.startswith("bilinear") else partial(keys, a=-0.75)
    at = (n + 0.5) * old / new - 0.5
    if convention == "bicubic_offset":
        at = (n + 0.5) * old / (new + 0.1) - 0.5
    if convention == "bilinear_corners":
        at = n * (old - 1) / max(new - 1, 1)
    if convention.endswith("antialias"):
        kernel = tent if convention.startswith("bilinear") else partial(keys, a=-0.5)
        wide = max(1.0, old / new)
        found = [kernel((at - m) / wide) for m in range(old)]
        return [each / sum(found) for each in found]
    found = [0.0] * old
    for m in range(math.floor(at) - 2, math.floor(at) + 4):
        found[min(max(m, 0), old - 1)] += kernel(at - m)
    return found


@every_convention
@settings(max_examples=25, deadline=None)
@given(SEEDS, GRIDS, GRIDS, st.integers(0, 3))
def test_every_cell_is_its_formula(convention, seed, grid, to, extra):
    torch.manual_seed(seed)
    table = table_of(grid, extra)
    made = resized(table, grid, to, convention, extra)
    assert torch.equal(made[:extra], table[:extra])
    if grid == to:
        assert torch.equal(made, table)
        return
    for row, column in itertools.product(*map(range, to)):
        rows = weights(row, grid[0], to[0], convention)
        columns = weights(column, grid[1], to[1], convention)
        expected = sum(
            rows[i] * columns[j] * table[extra + i * grid[1] + j]
            for i, j in itertools.product(*map(range, grid))
        )
        assert_close(made[extra + row * to[1] + column], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("extra", [0, 1, 5])
@pytest.mark.parametrize("grid", [(1, 1), (2, 5), (4, 3)])
def test_rows_of_places_count_row_by_row_after_the_extra_ones(grid, extra):
    places = torch.cartesian_prod(*map(torch.arange, grid)).view(-1, 2)
    expected = torch.arange(extra, extra + grid[0] * grid[1])
    assert torch.equal(position_index(places, grid, extra=extra), expected)
    assert torch.equal(position_index(places.flip(0).to(torch.uint8), grid, extra=extra), expected.flip(0))


@pytest.mark.skipif(not torch.__version__.startswith("2.13.0"), reason="said of this version")
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias_of_torch_makes_rows_alike_where_there_is_one_column(mode):
    table = table_of((4, 3), dim=1)
    picture = table.view(1, 1, 4, 3)
    theirs = torch.nn.functional.interpolate(picture, (6, 1), mode=mode, antialias=True).flatten()
    assert (theirs == theirs[0]).all()
    assert resized(table, (4, 3), (6, 1), f"{mode}_antialias").std() > 0.01


# --- other libraries


VIT = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
VIT |= {"image_size": 12, "patch_size": 2}  # 6 rows of 6 patches
TO = [(6, 6), (7, 7), (3, 3), (1, 1), (4, 9), (12, 3), (9, 4), (13, 20)]
# Model, its embeddings, how many rows stand before those of patches, and what transformers resizes by.
BY_METHOD = [
    ("vit", "ViTEmbeddings", "ViTConfig", 1, "bicubic"),
    ("beit", "BeitEmbeddings", "BeitConfig", 1, "bicubic"),
    ("deit", "DeiTEmbeddings", "DeiTConfig", 2, "bicubic"),
    ("vit_msn", "ViTMSNEmbeddings", "ViTMSNConfig", 1, "bicubic"),
    ("vit_mae", "ViTMAEEmbeddings", "ViTMAEConfig", 1, "bicubic"),
    ("dinov2", "Dinov2Embeddings", "Dinov2Config", 1, "bicubic"),
    (
        "dinov2_with_registers",
        "Dinov2WithRegistersEmbeddings",
        "Dinov2WithRegistersConfig",
        1,
        "bicubic_antialias",
    ),
    ("clip", "CLIPVisionEmbeddings", "CLIPVisionConfig", 1, "bicubic"),
    ("rf_detr", "RfDetrDinov2Embeddings", "RfDetrDinov2Config", 1, "bicubic_antialias"),
]


@pytest.mark.claim(
    "vit-table-agrees-with-peers",
    "The snippet resizes a table as ViT, BEiT, DeiT, CLIP, ViT-MSN, ViT-MAE, RF-DETR, DINOv2 and DINOv2 "
    "with registers do in transformers, to 1e-5, also to non-square grids.",
)
@pytest.mark.parametrize("to", TO)
@pytest.mark.parametrize(("model", "kind", "config", "extra", "convention"), BY_METHOD, ids=lambda x: str(x))
@torch.no_grad()
def test_agrees_with_models_that_resize_by_a_method(model, kind, config, extra, convention, to, same_as):
    modeling = peer(f"{MODELS}.{model}.modeling_{model}")
    sizes = VIT | ({"use_absolute_position_embeddings": True} if model == "beit" else {})
    theirs = getattr(modeling, kind)(getattr(modeling, config)(**sizes))
    table = theirs.position_embedding.weight[None] if model == "clip" else theirs.position_embeddings
    torch.nn.init.normal_(table)
    tokens = torch.zeros(1, extra + to[0] * to[1], 8)
    expected = theirs.interpolate_pos_encoding(tokens, 2 * to[0], 2 * to[1])
    made = resized(table, (6, 6), to, convention, extra)
    assert_close(made, expected, rtol=0, atol=1e-5)
    same_as(f"{MODELS}.{model}.modeling_{model}.{kind}", made, expected)


@pytest.mark.claim(
    "vit-table-agrees-with-siglip2-and-vilt",
    "The snippet resizes a table as SigLIP 2 does in transformers, with bilinear_antialias, and as ViLT "
    "does, with bilinear_corners, to 1e-5.",
)
@pytest.mark.parametrize("to", TO)
@torch.no_grad()
def test_agrees_with_siglip2_and_vilt(to, same_as):
    modeling, table = peer(f"{MODELS}.siglip2.modeling_siglip2"), torch.randn(36, 8)
    resize = modeling.Siglip2VisionEmbeddings.resize_positional_embeddings
    expected = resize(table.view(6, 6, 8), torch.tensor([to]), to[0] * to[1])[0]
    made = resized(table, (6, 6), to, "bilinear_antialias")
    assert_close(made, expected, rtol=0, atol=1e-5)
    same_as(f"{MODELS}.siglip2.modeling_siglip2.Siglip2VisionEmbeddings", made, expected)

    modeling = peer(f"{MODELS}.vilt.modeling_vilt")
    theirs = modeling.ViltEmbeddings(modeling.ViltConfig(**VIT, vocab_size=9)).eval()
    torch.nn.init.normal_(theirs.position_embeddings)
    picture = torch.zeros(1, 3, 2 * to[0], 2 * to[1])
    torch.nn.init.zeros_(theirs.patch_embeddings.projection.weight)
    torch.nn.init.zeros_(theirs.patch_embeddings.projection.bias)
    shown = torch.ones(1, 2 * to[0], 2 * to[1])
    expected = theirs.visual_embed(picture, shown, max_image_length=-1)[0][0, 1:]  # its patches come shuffled
    made = resized(theirs.position_embeddings[0], (6, 6), to, "bilinear_corners", 1)[1:]
    ours, expected = (rows[rows[:, 0].argsort()] for rows in (made, expected))
    assert_close(ours, expected, rtol=0, atol=1e-5)
    same_as(f"{MODELS}.vilt.modeling_vilt.ViltEmbeddings", ours, expected)


@pytest.mark.claim(
    "vit-table-agrees-with-packed-pictures",
    "The snippet resizes a table as transformers does for packed images, to 1e-5: bilinear_corners for "
    "Qwen3-VL, bilinear for PaddleOCR-VL and bicubic for Kimi-K2.5.",
)
@pytest.mark.parametrize(
    ("convention", "mode", "corners"),
    [("bilinear_corners", "bilinear", True), ("bilinear", "bilinear", False), ("bicubic", "bicubic", False)],
)
@pytest.mark.parametrize("to", TO)
def test_agrees_with_the_indices_and_weights_of_packed_pictures(convention, mode, corners, to, same_as):
    utils = peer("transformers.vision_utils")
    models = {"bilinear_corners": "qwen3_vl", "bilinear": "paddleocr_vl", "bicubic": "kimi_k25"}
    model = peer(f"{MODELS}.{models[convention]}.modeling_{models[convention]}")
    source = Path(model.__file__).read_text("utf-8")
    assert f'self.interpolation_mode = "{mode}"' in source
    assert f"self.interpolation_align_corners = {corners}" in source
    table = torch.randn(36, 8)
    rows, shares = utils.get_vision_interpolation_indices_and_weights(
        torch.tensor([[1, *to]]), 6, mode=mode, align_corners=corners
    )
    expected = (table[rows] * shares[..., None]).sum(1)
    made = resized(table, (6, 6), to, convention)
    assert_close(made, expected, rtol=0, atol=1e-5)
    same_as("transformers.vision_utils.get_vision_interpolation_indices_and_weights", made, expected)


def radio(table, to):
    """Its square of the longer side, before the cut, by the snippet: and what the model adds."""
    modeling = peer(f"{MODELS}.radio.modeling_radio")
    embeddings = SimpleNamespace(position_embedding=table[None], max_rows=6, max_cols=6)
    resize = next(v for v in vars(modeling).values() if hasattr(v, "_interpolate_position_embedding"))
    given = resize._interpolate_position_embedding(embeddings, to, torch.float32)[0]
    square = resized(table, (6, 6), (max(to), max(to)), "bilinear").unflatten(0, (max(to), max(to)))
    return given, square[: to[0], : to[1]].flatten(0, 1)


def timesformer(table, to):
    modeling = peer(f"{MODELS}.timesformer.modeling_timesformer")
    sizes = {"hidden_size": 8, "image_size": 12, "patch_size": 2, "num_frames": 1}
    config = modeling.TimesformerConfig(**sizes, attention_type="space_only", hidden_dropout_prob=0.0)
    embeddings = modeling.TimesformerEmbeddings(config).eval()
    for parameter in embeddings.parameters():
        torch.nn.init.zeros_(parameter)
    embeddings.position_embeddings.data[0, 1:] = table
    given = embeddings(torch.zeros(1, 1, 3, 2 * to[0], 2 * to[1]))[0, 1:]
    return given, nearest(table, to)


def idefics(name):
    def added(table, to):
        modeling = peer(f"{MODELS}.{name}.modeling_{name}")
        kind = name.title()
        config = getattr(modeling, f"{kind}VisionConfig")(hidden_size=8, image_size=12, patch_size=2)
        embeddings = getattr(modeling, f"{kind}VisionEmbeddings")(config)
        for parameter in embeddings.parameters():
            torch.nn.init.zeros_(parameter)
        embeddings.position_embedding.weight.data = table
        picture = torch.zeros(1, 3, 2 * to[0], 2 * to[1])
        return embeddings(picture, torch.ones(1, *to, dtype=torch.bool))[0], nearest(table, to)

    return added


def nearest(table, to):
    """Cell n of an axis is the old one at the same fraction, rounded down: no cell is a mixture."""
    rows, columns = (torch.arange(new) * 6 // new for new in to)
    return table.unflatten(0, (6, 6))[rows][:, columns].flatten(0, 1)


OTHERS = {
    "radio": radio,
    "timesformer": timesformer,
    "idefics2": idefics("idefics2"),
    "idefics3": idefics("idefics3"),
}


@pytest.mark.claim(
    "vit-table-others-do-otherwise",
    "In transformers, RADIO resizes a table with bilinear to a square of the longer side and crops it; "
    "TimeSformer, Idefics2 and Idefics3 use the old cell at the same fraction of each axis, rounded down. "
    "For four non-square grids of three or more rows and columns, none of them gives the same result as "
    "any of the six conventions.",
)
@pytest.mark.parametrize("to", [(9, 5), (5, 9), (12, 8), (3, 5)])
@pytest.mark.parametrize("name", OTHERS)
@torch.no_grad()
def test_other_models_resize_in_none_of_the_six_ways(name, to):
    table = torch.randn(36, 8)
    given, said = OTHERS[name](table, to)
    assert_close(given, said, rtol=0, atol=1e-5)
    for convention in CONVENTIONS:
        assert (resized(table, (6, 6), to, convention) - given).abs().max() > 0.1


@pytest.mark.claim(
    "vit-table-dinov2-differs-from-its-authors",
    "DINOv2 in transformers resizes a table by target size. With its authors' scale factor, which "
    "includes an extra tenth of a cell, every patch of a table of 6 by 6 gets different numbers for each "
    "of seven other grids.",
)
@pytest.mark.parametrize("to", [to for to in TO if to != (6, 6)])
@torch.no_grad()
def test_dinov2_of_transformers_is_not_that_of_its_authors(to):
    modeling = peer(f"{MODELS}.dinov2.modeling_dinov2")
    theirs = modeling.Dinov2Embeddings(modeling.Dinov2Config(**VIT))
    torch.nn.init.normal_(theirs.position_embeddings)
    tokens = torch.zeros(1, 1 + to[0] * to[1], 8)
    given = theirs.interpolate_pos_encoding(tokens, 2 * to[0], 2 * to[1])
    authors = resized(theirs.position_embeddings, (6, 6), to, "bicubic_offset", 1)
    assert torch.equal(given[:, 0], authors[:, 0])
    assert ((given - authors)[0, 1:].abs().amax(-1) > 1e-4).all()


# --- there and back, and other properties


@pytest.mark.claim(
    "vit-table-own-size",
    "At a table's own size, each convention returns the table bit for bit. For tables of two by two "
    "patches or more, computing the resize anyway would also return it with all conventions except "
    "bicubic_offset, which shifts the points that it samples.",
)
@every_convention
@pytest.mark.parametrize("grid", [(2, 2), (5, 3), (14, 14)])
def test_a_table_of_the_size_that_is_asked_for_stays(convention, grid):
    table = table_of(grid, 2)
    assert resized(table, grid, grid, convention, 2) is table
    anyway = torch.tensor(
        [
            [
                a * b
                for a in weights(r, grid[0], grid[0], convention)
                for b in weights(c, grid[1], grid[1], convention)
            ]
            for r, c in itertools.product(*map(range, grid))
        ],
        dtype=torch.float64,
    )
    moved = (anyway @ table[2:] - table[2:]).abs().max()
    assert moved > 1e-3 if convention == "bicubic_offset" else moved < 1e-12


def there_and_back(table, grid, to, convention):
    return resized(resized(table, grid, to, convention), to, grid, convention)


@pytest.mark.claim(
    "vit-table-there-and-back",
    "A random table of four by four patches that is enlarged to 7, 8, 10 or 31 rows or columns and "
    "reduced again is the same only with bilinear_corners, and only if each enlarged axis, minus one, is "
    "a multiple of the old axis, minus one: from four rows to seven, but not to eight. Enlarged by an odd "
    "factor and reduced again, it is the same with bilinear and bicubic, too.",
)
@every_convention
def test_only_corners_come_back(convention):
    table = random(16, 64)
    for to, whole in (((7, 7), True), ((7, 10), True), ((31, 4), True), ((8, 8), False), ((5, 7), False)):
        error = (there_and_back(table, (4, 4), to, convention) - table).abs().max()
        if convention == "bilinear_corners" and whole:
            assert error < 1e-12
        else:
            assert error > 1e-3, to
    for to in ((12, 12), (20, 20), (12, 4)):
        error = (there_and_back(table, (4, 4), to, convention) - table).abs().max()
        assert convention not in ("bilinear", "bicubic") or error < 1e-12


@pytest.mark.claim(
    "vit-table-flips",
    "Resizing a flipped table gives the flipped result, except with bicubic_offset, which shifts all "
    "cells towards the first one.",
)
@every_convention
@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([(3, 4), (2, 5)]), st.sampled_from([(5, 7), (4, 2), (9, 9)]))
def test_resizing_is_the_same_in_a_mirror(convention, seed, grid, to):
    torch.manual_seed(seed)
    table = table_of(grid)

    def flipped(table, grid, axis):
        return table.unflatten(0, grid).flip(axis).flatten(0, 1)

    for axis in (0, 1):
        made = resized(flipped(table, grid, axis), grid, to, convention)
        apart = (flipped(made, to, axis) - resized(table, grid, to, convention)).abs().max()
        assert apart > 1e-4 if convention == "bicubic_offset" else apart < 1e-12
    ramp = torch.arange(8.0).double()[:, None]
    if convention == "bicubic_offset":
        assert (resized(ramp, (1, 8), (1, 16), convention) < resized(ramp, (1, 8), (1, 16), "bicubic"))[
            3:-3
        ].all()


@every_convention
@given(SEEDS, GRIDS, GRIDS)
def test_rows_and_columns_are_treated_alike(convention, seed, grid, to):
    torch.manual_seed(seed)
    table = table_of(grid)

    def turned(table, grid):
        return table.unflatten(0, grid).transpose(0, 1).flatten(0, 1)

    made = resized(turned(table, grid), grid[::-1], to[::-1], convention)
    assert_close(turned(made, to[::-1]), resized(table, grid, to, convention), **EXACT)


@pytest.mark.claim(
    "vit-table-overshoots",
    "The bicubic conventions can give numbers outside the range of the table; the bilinear conventions "
    "cannot.",
)
@every_convention
def test_bicubic_goes_beyond_what_a_table_has(convention):
    step = torch.tensor([0.0, 0, 0, 1, 1, 1], dtype=torch.float64)[:, None]
    made = resized(step, (1, 6), (1, 24), convention)
    assert (made.max() > 1.01) == (made.min() < -0.01) == convention.startswith("bicubic")
    for _ in range(20):
        table = table_of((5, 5))
        for to in ((9, 9), (3, 3), (2, 20)):
            made = resized(table, (5, 5), to, convention)
            within = (made.amax(0) <= table.amax(0) + 1e-12).all() and (
                made.amin(0) >= table.amin(0) - 1e-12
            ).all()
            assert within or convention.startswith("bicubic")


@pytest.mark.claim(
    "vit-table-antialias-when-enlarging",
    "If no axis gets smaller, antialias does not change bilinear. It does change bicubic enlargement, "
    "because torch uses a different kernel for it.",
)
@pytest.mark.parametrize("to", [(5, 4), (8, 8), (4, 9), (31, 17)])
def test_antialias_changes_bicubic_even_where_nothing_shrinks(to):
    table = table_of((4, 4))
    bilinear, bicubic = (
        [resized(table, (4, 4), to, each + also) for also in ("", "_antialias")]
        for each in ("bilinear", "bicubic")
    )
    assert_close(*bilinear, **EXACT)
    assert (bicubic[0] - bicubic[1]).abs().max() > 0.01
    smaller = [resized(table, (4, 4), (2, 2), f"bilinear{also}") for also in ("", "_antialias")]
    assert (smaller[0] - smaller[1]).abs().max() > 0.01


@every_convention
@settings(deadline=None)
@given(SEEDS, GRIDS, GRIDS)
def test_resizing_is_linear_and_keeps_what_is_constant(convention, seed, grid, to):
    torch.manual_seed(seed)
    a, b = table_of(grid), table_of(grid)
    made = resized(2 * a - b, grid, to, convention)
    assert_close(
        made, 2 * resized(a, grid, to, convention) - resized(b, grid, to, convention), rtol=0, atol=1e-11
    )
    flat = resized(torch.ones_like(a), grid, to, convention)
    assert_close(flat, torch.ones_like(flat), **EXACT)


@pytest.mark.claim(
    "vit-table-conventions-differ",
    "For a larger square grid, no two conventions give the same numbers, except bilinear with and without "
    "antialias; for a smaller square grid, no two do.",
)
@pytest.mark.parametrize(("to", "alike"), [((6, 6), {"bilinear", "bilinear_antialias"}), ((3, 3), set())])
def test_no_two_conventions_agree(to, alike):
    table = table_of((4, 4), dim=64)
    for one, other in itertools.combinations(CONVENTIONS, 2):
        apart = (resized(table, (4, 4), to, one) - resized(table, (4, 4), to, other)).abs().max()
        assert apart < 1e-12 if {one, other} == alike else apart > 0.01


# --- the module


def add(grid=(2, 3), dim=4, extra=1, convention="bicubic"):
    return filled(AddGridTable(grid, dim, extra=extra, convention=convention))


@every_convention
@pytest.mark.parametrize("extra", [0, 1, 5])
def test_the_module_adds_the_table_of_the_picture(convention, extra):
    made = add(extra=extra, convention=convention)
    for grid in (None, (2, 3), (3, 2), (5, 7)):
        rows, columns = grid or (2, 3)
        x = random(2, extra + rows * columns, 4)
        table = resized(made.table, (2, 3), (rows, columns), convention, extra)
        assert torch.equal(made(x, grid), x + table)
        assert torch.equal(made(x[0], grid), made(x, grid)[0])


def test_a_table_begins_as_that_of_vit():
    made = AddGridTable((20, 20), 64, extra=1, convention="bicubic")
    assert made.table.std().item() == pytest.approx(0.02, rel=0.05)
    assert {name: tuple(value.shape) for name, value in made.state_dict().items()} == {"table": (401, 64)}


@every_convention
@pytest.mark.parametrize(("old", "new"), [(14, 37), (37, 14), (64, 16), (3, 2), (1, 5), (5, 1)])
def test_weights_of_cells_in_float32_as_on_other_devices_are_near_those_in_float64(convention, old, new):
    exact, near = (
        vit_table._shares(old, new, convention, partial(torch.arange, dtype=dtype))
        for dtype in (torch.float64, torch.float32)
    )
    assert near.dtype == torch.float32
    assert_close(near.double(), exact, rtol=0, atol=1e-5)


@every_convention
def test_autocast_changes_no_bit(convention):
    made, x = AddGridTable((4, 4), 8, extra=1, convention=convention), torch.randn(2, 26, 8)
    with torch.autocast("cpu", torch.bfloat16):
        cast = made(x, (5, 5))
    assert torch.equal(cast, made(x, (5, 5)))


# --- what is refused, and in which words


GRID = "must be rows and columns, of a patch or more, got"


@refusals
def test_refuses():
    table, place = torch.zeros(13, 2), torch.zeros(1, 2).long()
    for wrong in ("linear", "bicubic_corners", None):
        message = f"convention must be one of {CONVENTIONS}, got {wrong!r}"
        yield message, lambda wrong: resized(table, (3, 4), (2, 2), wrong, 1), wrong
        yield message, lambda wrong: AddGridTable((3, 4), 2, extra=1, convention=wrong), wrong
    for wrong in ((0, 3), (3, 0), (2, -1), (3,), (1, 2, 3), ()):
        yield f"grid {GRID} {wrong}", lambda wrong: resized(table, wrong, (2, 2), "bicubic", 1), wrong
        yield f"to {GRID} {wrong}", lambda wrong: resized(table, (3, 4), wrong, "bicubic", 1), wrong
        yield f"grid {GRID} {wrong}", lambda wrong: position_index(place, wrong, extra=0), wrong
        yield (
            f"grid {GRID} {wrong}",
            lambda wrong: AddGridTable(wrong, 2, extra=1, convention="bicubic"),
            wrong,
        )
    for wrong in ((0, 3), (3,)):
        yield f"grid {GRID} {wrong}", lambda wrong: add()(random(7, 4), wrong), wrong
    for extra in (-1, -5):
        message = f"extra must not be below 0, got {extra}"
        yield message, lambda extra: resized(table, (3, 4), (2, 2), "bicubic", extra), extra
        yield message, lambda extra: position_index(place, (3, 4), extra=extra), extra
        yield message, lambda extra: AddGridTable((3, 4), 2, extra=extra, convention="bicubic"), extra
    for shape in ((12, 2), (14, 2), (13,), (), (2, 13)):
        message = f"table must be (..., 13, dim) for 3 rows of 4 patches and 1 before, got {shape}"
        yield message, lambda wrong: resized(wrong, (3, 4), (2, 2), "bicubic", 1), torch.zeros(shape)
    message = "table must have a floating-point dtype, got torch.int64"
    yield message, lambda: resized(table.long(), (3, 4), (2, 2), "bicubic", 1)
    for dim in (0, -2):
        message = f"dim must be at least 1, got {dim}"
        yield message, lambda dim: AddGridTable((3, 4), dim, extra=1, convention="bicubic"), dim
    for shape, grid in (((6, 4), None), ((7, 5), None), ((4,), None), ((), None), ((2, 7, 4), (3, 3))):
        rows, columns = grid or (2, 3)
        wanted = f"(..., {1 + rows * columns}, 4) for {rows} rows of {columns} patches and 1 before"
        message = f"x must be {wanted}, got {shape}"
        yield message, lambda shape, grid: add()(torch.zeros(shape), grid), shape, grid
    yield "x must have a floating-point dtype, got torch.int64", lambda: add()(torch.zeros(7, 4).long())
    for shape in ((), (2, 3), (1,)):
        message = f"places must be (..., 2), got {shape}"
        yield message, lambda shape: position_index(torch.zeros(shape).long(), (3, 4), extra=0), shape
    for place, got in (
        ([3, 0], "rows must be 0 to 2, got 3 to 3"),
        ([-1, 0], "rows must be 0 to 2, got -1 to -1"),
        ([0, 4], "columns must be 0 to 3, got 4 to 4"),
        ([2, -1], "columns must be 0 to 3, got -1 to -1"),
    ):
        yield got, lambda place: position_index(torch.tensor(place), (3, 4), extra=0), place
