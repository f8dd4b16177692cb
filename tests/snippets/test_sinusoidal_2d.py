"""sinusoidal_2d.py against its formula, against models of transformers, under shifts and flips."""

import itertools
import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.sinusoidal import shift_matrix, sinusoidal_encoding, sinusoidal_encoding_t2t
from snippets.sinusoidal_2d import axial_sinusoids, axis_frequencies, grid_positions, padded_grid_positions
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, random, refusals

MODELS = "transformers.models"
LAYOUTS = "interleaved", "sin_cos", "sines_first"
TURN = 2 * math.pi
DETR = {"order": (0, 1), "layout": "interleaved", "base": 10_000.0}
ROWS_FIRST = {"order": (0, 1), "layout": "sin_cos", "base": 10_000.0}
COLUMNS_FIRST = {"order": (1, 0), "layout": "sin_cos", "base": 10_000.0}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def exact(places, dim, *, base=10_000.0, **options):
    return axial_sinusoids(places, dim, base=base, dtype=torch.float64, **options)


# --- what the sources say


def channel(layout, axes, pairs, axis, pair, cosine):
    """Where a wave stands, of the axis that comes at this place in the order."""
    if layout == "interleaved":
        return 2 * (axis * pairs + pair) + cosine
    if layout == "sin_cos":
        return (2 * axis + cosine) * pairs + pair
    return (cosine * axes + axis) * pairs + pair


@every_layout
@pytest.mark.parametrize("order", [(0,), (0, 1), (1, 0), (2, 0, 1)])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("pairs", "base"), [(2, 100.0), (5, 10000.0)])
def test_every_channel_is_its_formula(layout, order, closed, pairs, base):
    axes = len(order)
    dim, places = 2 * axes * pairs, 50 * random(3, axes)
    made = exact(places, dim, order=order, layout=layout, base=base, closed=closed)
    assert made.shape == (3, dim)
    for n, (at, axis) in itertools.product(range(3), enumerate(order)):
        for pair in range(pairs):
            angle = places[n, axis].item() / base ** (pair / (pairs - 1 if closed else pairs))
            for cosine, wave in enumerate((math.sin, math.cos)):
                found = made[n, channel(layout, axes, pairs, at, pair, cosine)].item()
                assert found == pytest.approx(wave(angle), abs=1e-12)


@pytest.mark.parametrize("start", [0, 1, 0.5, -3])
@pytest.mark.parametrize("span", [None, 1.0, TURN])
@pytest.mark.parametrize("grid", [(1,), (1, 1), (3, 5), (4, 1), (2, 3, 4)])
def test_every_place_is_its_formula(start, span, grid):
    places = grid_positions(grid, start=start, span=span)
    assert places.shape == (*grid, len(grid))
    whole = span is None and start != 0.5
    assert places.dtype == (torch.int64 if whole else torch.float64)
    for cell in itertools.product(*map(range, grid)):
        for axis, n in enumerate(cell):
            expected = start + n if span is None else (start + n) / grid[axis] * span
            assert places[cell][axis].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("start", [0, 1, 0.5])
@pytest.mark.parametrize("span", [None, TURN])
@pytest.mark.parametrize("corner", [(0, 0), (2, 1)])
def test_a_padded_picture_has_the_places_it_has_alone(start, span, corner):
    (top, left), sizes = corner, [(3, 4), (5, 5), (1, 2)]
    valid = torch.zeros(3, 7, 6, dtype=torch.bool)
    for picture, (rows, columns) in zip(valid, sizes, strict=True):
        picture[top : top + rows, left : left + columns] = True
    places = padded_grid_positions(valid, start=start, span=span)
    for n, grid in enumerate(sizes):
        alone = grid_positions(grid, start=start, span=span)
        assert places.dtype == alone.dtype
        assert_close(places[n][valid[n]], alone.flatten(0, 1), rtol=0, atol=1e-14)
    assert places.isfinite().all()


# --- other libraries


def of_picture(grid, dim, **options):
    """Row by row: (rows * columns, dim)."""
    return axial_sinusoids(grid_positions(grid, start=0), dim, **options).flatten(0, 1)


GRIDS = (1, 1), (3, 5), (8, 2), (14, 14), (40, 30)


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-detr",
    "The snippet reproduces the sinusoids of DETR (plain, normalised, and normalised in a padded batch at "
    "the patches that are not padding) and of Grounding DINO in transformers, to 1e-5.",
)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dim", [4, 32, 256])
@pytest.mark.parametrize("normalize", [False, True])
def test_agrees_with_detr(grid, dim, normalize, same_as):
    theirs = peer(f"{MODELS}.detr.modeling_detr").DetrSinePositionEmbedding
    options = {"normalize": normalize, "scale": TURN}
    shape = torch.Size((1, 3, *grid))
    expected = theirs.build_sine_position_embedding(shape, "cpu", torch.float32, dim // 2, **options)
    places = grid_positions(grid, start=1, span=TURN if normalize else None)
    made = axial_sinusoids(places, dim, **DETR).movedim(-1, 0)[None]
    assert_close(made, expected, rtol=0, atol=1e-5)
    same_as(f"{MODELS}.detr.modeling_detr.DetrSinePositionEmbedding", made, expected)


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-detr",
    "The snippet reproduces the sinusoids of DETR (plain, normalised, and normalised in a padded batch at "
    "the patches that are not padding) and of Grounding DINO in transformers, to 1e-5.",
)
@pytest.mark.parametrize("sizes", [[(7, 9), (3, 9)], [(2, 4), (7, 1)]])
def test_agrees_with_grounding_dino_and_detr_in_a_padded_batch(sizes, same_as):
    valid = torch.zeros(2, 7, 9, dtype=torch.bool)
    for picture, (rows, columns) in zip(valid, sizes, strict=True):
        picture[:rows, :columns] = True
    places = padded_grid_positions(valid, start=1, span=TURN)
    dino = peer(f"{MODELS}.grounding_dino.modeling_grounding_dino")
    config = peer("transformers").GroundingDinoConfig(d_model=32)
    assert config.positional_embedding_temperature == 20
    detr = peer(f"{MODELS}.detr.modeling_detr").DetrSinePositionEmbedding
    given = torch.Size((2, 3, 7, 9)), "cpu", torch.float32, 16
    for base, name, expected in (
        (
            20,
            "grounding_dino.modeling_grounding_dino.GroundingDinoSinePositionEmbedding",
            dino.GroundingDinoSinePositionEmbedding(config)(valid, valid),
        ),
        (
            10_000,
            "detr.modeling_detr.DetrSinePositionEmbedding",
            detr.build_sine_position_embedding(*given, True, TURN, mask=valid),
        ),
    ):
        made = axial_sinusoids(places, 32, **DETR | {"base": base}).movedim(-1, 1)
        shown = valid[:, None].expand(-1, 32, -1, -1)
        assert_close(made[shown], expected[shown], rtol=0, atol=1e-5)
        same_as(f"{MODELS}.{name}", made[shown], expected[shown])


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-mae",
    "The snippet reproduces sinusoids of transformers to 1e-6: with rows first, those of RT-DETR's "
    "position embedding; with columns first, those of ViT-MAE's encoder and decoder, of AIMv2 and of "
    "Granite-Docling.",
)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dim", [4, 64])
def test_agrees_with_rt_detr_which_puts_rows_first(grid, dim, same_as):
    theirs = peer(f"{MODELS}.rt_detr.modeling_rt_detr").RTDetrSinePositionEmbedding(embed_dim=dim)
    expected = theirs(grid[1], grid[0], device=torch.device("cpu"), dtype=torch.float32)[0]
    made = of_picture(grid, dim, **ROWS_FIRST)
    assert_close(made, expected, rtol=0, atol=1e-7)
    same_as(f"{MODELS}.rt_detr.modeling_rt_detr.RTDetrSinePositionEmbedding", made, expected)


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-mae",
    "The snippet reproduces sinusoids of transformers to 1e-6: with rows first, those of RT-DETR's "
    "position embedding; with columns first, those of ViT-MAE's encoder and decoder, of AIMv2 and of "
    "Granite-Docling.",
)
@pytest.mark.parametrize("side", [1, 2, 14])
@torch.no_grad()
def test_agrees_with_vit_mae_whose_encoder_and_decoder_put_columns_first(side, same_as):
    """Of the models: the function that they call puts rows first, and they swap the halves."""
    modeling = peer(f"{MODELS}.vit_mae.modeling_vit_mae")
    sizes = {"hidden_size": 16, "decoder_hidden_size": 32, "image_size": 2 * side, "patch_size": 2}
    config = modeling.ViTMAEConfig(**sizes, num_attention_heads=2, decoder_num_attention_heads=2)
    encoder = modeling.ViTMAEEmbeddings(config)
    encoder.initialize_weights()
    decoder = modeling.ViTMAEDecoder(config, side**2)
    decoder.initialize_weights(side**2)
    for name, table in (
        ("ViTMAEEmbeddings", encoder.position_embeddings),
        ("ViTMAEDecoder", decoder.decoder_pos_embed),
    ):
        expected = table[0, 1:]
        assert table.shape[1] == 1 + side**2 and not table[0, 0].any()
        made = of_picture((side, side), table.shape[-1], **COLUMNS_FIRST)
        assert_close(made, expected, rtol=0, atol=1e-7)
        wrong = of_picture((side, side), table.shape[-1], **ROWS_FIRST)
        assert side == 1 or (wrong - expected).abs().max() > 0.5
        same_as(f"{MODELS}.vit_mae.modeling_vit_mae.{name}", made, expected)


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-mae",
    "The snippet reproduces sinusoids of transformers to 1e-6: with rows first, those of RT-DETR's "
    "position embedding; with columns first, those of ViT-MAE's encoder and decoder, of AIMv2 and of "
    "Granite-Docling.",
)
@pytest.mark.parametrize("side", [1, 9])
def test_agrees_with_granite_docling_which_puts_columns_first(side, same_as):
    docling = peer(f"{MODELS}.granite_docling.modeling_granite_docling").GraniteDoclingPositionEmbedding
    made, expected = of_picture((side, side), 16, **COLUMNS_FIRST), docling.build(16, side)
    assert_close(made, expected, rtol=0, atol=1e-7)
    same_as(
        f"{MODELS}.granite_docling.modeling_granite_docling.GraniteDoclingPositionEmbedding", made, expected
    )


@pytest.mark.claim(
    "sinusoidal-2d-agree-with-mae",
    "The snippet reproduces sinusoids of transformers to 1e-6: with rows first, those of RT-DETR's "
    "position embedding; with columns first, those of ViT-MAE's encoder and decoder, of AIMv2 and of "
    "Granite-Docling.",
)
@torch.no_grad()
def test_agrees_with_aimv2_which_puts_columns_first(same_as):
    modeling = peer(f"{MODELS}.aimv2.modeling_aimv2")
    config = modeling.Aimv2VisionConfig(hidden_size=16, patch_size=2, image_size=8, is_native=True)
    theirs, picture = modeling.Aimv2VisionEmbeddings(config), torch.randn(1, 3, 6, 10)
    patches = theirs.rms_norm(theirs.patch_embed(picture).flatten(2).transpose(1, 2))
    made = patches + of_picture((3, 5), 16, **COLUMNS_FIRST)
    assert_close(made, theirs(picture), rtol=0, atol=1e-6)
    same_as(f"{MODELS}.aimv2.modeling_aimv2.Aimv2VisionEmbeddings", made, theirs(picture))


@pytest.mark.claim(
    "sinusoidal-2d-omdet-turbo-lists-columns",
    "OmDet-Turbo in transformers lists the grid positions of an image column by column, but its patches "
    "row by row. In a square image, rows appear where its code says columns; in an image of three rows "
    "and five columns, most patches get the position of another patch.",
)
def test_omdet_turbo_lists_places_column_by_column(same_as):
    omdet = peer(f"{MODELS}.omdet_turbo.modeling_omdet_turbo").OmDetTurboHybridEncoder

    def theirs(rows, columns):
        return omdet.build_2d_sincos_position_embedding(columns, rows, 16)[0]

    for grid in GRIDS:
        places = grid_positions(grid, start=0).transpose(0, 1)
        made = axial_sinusoids(places, 16, **COLUMNS_FIRST).flatten(0, 1)
        assert_close(made, theirs(*grid), rtol=0, atol=1e-5)
        where = f"{MODELS}.omdet_turbo.modeling_omdet_turbo.OmDetTurboHybridEncoder"
        same_as(where, made, theirs(*grid))
    assert_close(of_picture((7, 7), 16, **ROWS_FIRST), theirs(7, 7), rtol=0, atol=1e-5)
    for options in (ROWS_FIRST, COLUMNS_FIRST):
        wrong = (of_picture((3, 5), 16, **options) - theirs(3, 5)).abs().amax(-1) > 0.01
        assert wrong.sum() > 15 / 2


# --- its relatives


@every_layout
def test_each_axis_is_the_encoding_of_a_text(layout):
    places = random(4, 2) * 30
    for order, closed in itertools.product([(0, 1), (1, 0)], [False, True]):
        encode = sinusoidal_encoding_t2t if closed else sinusoidal_encoding
        of_text = "interleaved" if layout == "interleaved" else "sin_cos"
        parts = [encode(places[:, axis], 12, dtype=torch.float64, layout=of_text) for axis in order]
        if layout == "sines_first":
            parts = [torch.cat(part, -1) for part in zip(*(p.chunk(2, -1) for p in parts), strict=True)]
        made = exact(places, 24, order=order, layout=layout, closed=closed)
        assert_close(made, torch.cat(parts, -1), **EXACT)


@pytest.mark.claim(
    "sinusoidal-2d-conventions-reorder",
    "All orders and layouts contain the same numbers, each in its own channel. Another start, span, base "
    "or closed gives numbers that no reordering makes equal. None of these choices raises an error.",
)
@pytest.mark.parametrize("axes", [2, 3])
def test_conventions_are_one_encoding_in_other_orders(axes):
    dim, places = 8 * axes, 9 * random(5, axes)
    orders = list(itertools.permutations(range(axes)))
    made = [exact(places, dim, order=order, layout=each) for order in orders for each in LAYOUTS]
    for one, other in itertools.combinations(made, 2):
        assert_close(one.sort(-1).values, other.sort(-1).values, **EXACT)
        assert (one - other).abs().max() > 0.1
    for one in made:
        channels = [(one[:, [n]] - made[0]).abs().amax(0).argmin().item() for n in range(dim)]
        assert sorted(channels) == list(range(dim))
    grid = tuple(range(3, 3 + axes))
    given = {"order": orders[0], "layout": "sin_cos"}
    plain = exact(grid_positions(grid, start=0), dim, **given)
    for places, options in (
        (grid_positions(grid, start=1), given),
        (grid_positions(grid, start=0, span=TURN), given),
        (grid_positions(grid, start=0), given | {"base": 20}),
        (grid_positions(grid, start=0), given | {"closed": True}),
    ):
        other = exact(places, dim, **options)
        assert other.shape == plain.shape
        assert (other.sort(-1).values - plain.sort(-1).values).abs().max() > 0.01


# --- what moving a picture does


@pytest.mark.claim(
    "sinusoidal-2d-shifts-turn-one-half",
    "A shift along one axis rotates that axis's half of the encoding, by a rotation that depends only on "
    "the shift, and leaves the other half bit-for-bit unchanged.",
)
@settings(max_examples=30)
@given(SEEDS, st.sampled_from([(0, 1), (1, 0)]), st.integers(0, 1), st.floats(-50, 50))
def test_a_shift_along_an_axis_turns_its_half(seed, order, axis, by):
    torch.manual_seed(seed)
    places, shift = 20 * random(7, 2), torch.zeros(2, dtype=torch.float64)
    shift[axis] = by
    before, after = (
        exact(at, 24, order=order, layout="interleaved").unflatten(-1, (2, 12))
        for at in (places, places + shift)
    )
    half = order.index(axis)
    turn = shift_matrix(torch.tensor(by, dtype=torch.float64), 12, dtype=torch.float64)
    assert_close(turn @ turn.mT, torch.eye(12, dtype=torch.float64), **EXACT)
    assert_close(after[:, half], before[:, half] @ turn.mT, rtol=0, atol=1e-11)
    assert torch.equal(after[:, 1 - half], before[:, 1 - half])


@pytest.mark.claim(
    "sinusoidal-2d-products-add-the-axes",
    "The dot product of the encodings of two grid positions is a sum over axes of one function of the "
    "offset along that axis. It is the same in every order and layout, and shifting, flipping or "
    "transposing the image does not change it for any two positions.",
)
@settings(max_examples=30)
@given(SEEDS, st.sampled_from([(1, 1), (3, 5), (6, 2)]), st.sampled_from([0, 1, 0.5]))
def test_products_are_a_sum_over_axes(seed, grid, start):
    torch.manual_seed(seed)
    rows, columns = grid
    places = grid_positions(grid, start=start).double()

    def products(places, order=(0, 1), layout="sin_cos"):
        each = exact(places, 16, order=order, layout=layout).flatten(0, 1)
        return each @ each.mT

    flat = places.flatten(0, 1)
    offsets = flat[:, None] - flat  # (places, places, 2)
    expected = (offsets[..., None] * axis_frequencies(16, 2, 1e4)).cos().sum((-2, -1))
    for order, layout in itertools.product([(0, 1), (1, 0)], LAYOUTS):
        assert_close(products(places, order, layout), expected, **EXACT)
    last = 2 * start + torch.tensor([rows - 1, columns - 1])
    flipped = torch.stack((places[..., 0], last[1] - places[..., 1]), -1)
    upside_down = torch.stack((last[0] - places[..., 0], places[..., 1]), -1)
    for moved in (places + 100 * random(2), flipped, upside_down, places.flip(-1)):
        assert_close(products(moved), expected, **EXACT)


@pytest.mark.claim(
    "sinusoidal-2d-transposing-swaps-halves",
    "Transposing an image swaps the two halves of the encoding, if each axis has one half.",
)
@pytest.mark.parametrize("layout", ["interleaved", "sin_cos"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_transposing_swaps_the_halves(layout, order):
    places = 9 * random(4, 3, 2)
    made, transposed = (exact(at, 20, order=order, layout=layout) for at in (places, places.flip(-1)))
    assert torch.equal(transposed, made.roll(10, -1))
    assert torch.equal(transposed, exact(places, 20, order=order[::-1], layout=layout))


@pytest.mark.claim(
    "sinusoidal-2d-flips-mirror",
    "Flipping an image along an axis mirrors each channel pair in that axis's half of the encoding, and "
    "no rotation does that: the matrix of each pair has determinant minus one.",
)
@pytest.mark.parametrize("columns", [1, 2, 9])
@pytest.mark.parametrize("start", [0, 1, 0.5])
def test_flipping_mirrors_each_pair_of_a_half(columns, start):
    places = grid_positions((3, columns), start=start).double()
    made = exact(places, 24, **DETR).unflatten(-1, (2, 6, 2))  # (rows, columns, half, pair, wave)
    angle = (2 * start + columns - 1) * axis_frequencies(24, 2, 1e4)
    mirror = torch.stack((-angle.cos(), angle.sin(), angle.sin(), angle.cos()), -1).unflatten(-1, (2, 2))
    assert_close(torch.linalg.det(mirror), -torch.ones(6, dtype=torch.float64), **EXACT)
    flipped = made.flip(1)
    assert_close(flipped[..., 1, :, :], (mirror @ made[..., 1, :, :, None])[..., 0], rtol=0, atol=1e-11)
    assert_close(flipped[..., 0, :, :], made[..., 0, :, :], **EXACT)


@pytest.mark.claim(
    "sinusoidal-2d-normalised-stays-within-a-turn",
    "If coordinates are counted from one and scaled to a full period, as in DETR, no coordinate exceeds a "
    "full period, so that no wave completes more than one wavelength, however large the image. In a grid "
    "that is finer by a whole factor, every cell of the coarse grid has its coordinates again; if the "
    "factor is not whole, some cells do not.",
)
@pytest.mark.parametrize("grid", [(1, 1), (3, 5), (64, 2), (500, 700)])
def test_normalised_places_end_at_a_turn(grid):
    places = grid_positions(grid, start=1, span=TURN)
    assert places.min() > 0
    assert_close(places.amax((0, 1)), torch.full((2,), TURN, dtype=torch.float64), **EXACT)
    assert (axis_frequencies(256, 2, 1e4) <= 1).all()
    for times in (2, 3, 7):
        finer = grid_positions(tuple(times * size for size in grid), start=1, span=TURN)
        assert_close(finer[times - 1 :: times, times - 1 :: times], places, **EXACT)
    coarse, fine = (grid_positions((size,), start=1, span=TURN) for size in (20, 30))
    again = ((coarse - fine.T).abs().amin(1) < 1e-12).sum()
    assert again == 10  # of 20: only every second one


# --- dtypes, devices, modes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_angles_are_exact_whatever_the_dtype(dtype):
    places = torch.tensor([[100_001, 257], [3, 2**24 + 1]])
    made = axial_sinusoids(places, 64, dtype=dtype, **DETR)
    assert made.dtype == dtype
    assert torch.equal(made, exact(places, 64, **DETR).to(dtype))


def test_waves_of_far_places_are_right_to_the_last_digits():
    made = exact(torch.tensor([[10**9, 0]]), 4, **ROWS_FIRST)[0]
    assert made.tolist() == pytest.approx([math.sin(10**9), math.cos(10**9), 0, 1], abs=1e-12)


# --- what is refused, and in which words


@refusals
def test_refuses():
    good = torch.zeros(3, 2)
    for grid in ((), (0, 3), (3, 0), (2, -1, 4)):
        message = f"grid must have a cell or more on each axis, got {grid}"
        yield message, lambda grid: grid_positions(grid, start=0), grid
    valid = torch.ones(2, 2, dtype=torch.bool)
    for make, of in ((grid_positions, (2, 2)), (padded_grid_positions, valid)):
        for start in (math.nan, math.inf):
            yield f"start must be a number, got {start}", partial(make, start=start), of
        for span in (0, -1.0, math.nan, math.inf):
            yield f"span must be above 0, or None, got {span}", partial(make, start=0, span=span), of
    for wrong, got in (
        (valid.long(), "torch.int64 (2, 2)"),
        (valid[0], "torch.bool (2,)"),
        (valid[0, 0], "torch.bool ()"),
        ([[True]], "list"),
    ):
        message = f"valid must be torch.bool (..., rows, columns), got {got}"
        yield message, lambda wrong: padded_grid_positions(wrong, start=1), wrong
    for dim in (0, -4, 2, 6, 7):
        yield f"dim must be a multiple of 4 and at least 4, got {dim}", axis_frequencies, dim, 2, 1e4
        yield (
            f"dim must be a multiple of 4 and at least 4, got {dim}",
            lambda dim: axial_sinusoids(good, dim, **DETR),
            dim,
        )
    yield "dim must be a multiple of 4 and at least 8, got 4", axis_frequencies, 4, 2, 100.0, True
    yield "dim must be a multiple of 6 and at least 6, got 8", axis_frequencies, 8, 3, 1e4
    for base in (0, -1.0, math.inf, math.nan):
        yield f"base must be a positive number, got {base}", axis_frequencies, 8, 2, base
    for order in ((0,), (0, 0), (1, 2), (0, 1, 2), ()):
        yield (
            f"order must name each axis of 0 to 1 once, got {order}",
            lambda order: axial_sinusoids(good, 8, order=order, layout="sin_cos", base=1e4),
            order,
        )
    for layout in ("cos_sin", "half", None):
        yield (
            f"layout must be 'interleaved', 'sin_cos' or 'sines_first', got {layout!r}",
            lambda layout: axial_sinusoids(good, 8, order=(0, 1), layout=layout, base=1e4),
            layout,
        )
    for shape in ((), (3, 0)):
        message = f"places must be (..., axes), got {shape}"
        yield message, lambda wrong: axial_sinusoids(wrong, 8, **DETR), torch.zeros(shape)
