"""axial_rope.py against its definition and models of transformers; what moves and mirrors do to scores."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from snippets.axial_rope import (
    apply_axial_rope,
    axial_frequencies,
    axial_rope_tables,
    golden_frequencies,
    mixed_frequencies,
    patch_coordinates,
)
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from tests.peers import peer
from tests.snippets.common import EXACT, random, refusals

DIM, HEADS = 16, 3
LAYOUTS = ("interleaved", "half", "half_by_axis")
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def cells(rows, columns, first=0):
    return torch.cartesian_prod(torch.arange(first, first + rows), torch.arange(first, first + columns))


def kinds(dim=DIM):
    """One head's frequency vectors of each kind: (2, pairs)."""
    torch.manual_seed(0)
    return {
        "axial": axial_frequencies(dim, "each", 1e4),
        "turns": axial_frequencies(dim, "turns", 1e4),
        "mixed": mixed_frequencies(dim, 1, 10.0)[0],
        "golden": golden_frequencies(dim, 1, 0.2, 2.0)[0],
    }


every_kind = pytest.mark.parametrize("kind", ["axial", "turns", "mixed", "golden"])


def score(q, k, i, j, frequencies, layout="half"):
    """Of a query at place i and a key at place j."""
    turned = (
        apply_axial_rope(x[None], *axial_rope_tables(at[None], frequencies, torch.float64), layout)[0]
        for x, at in ((q, i), (k, j))
    )
    return torch.stack(list(turned)).prod(0).sum()


# --- what the definition says


@pytest.mark.parametrize("dim", [(12,), (12, 12), (4, 4, 4), (6, 2), (44, 42, 42), (2, 8, 6, 4)])
@pytest.mark.parametrize("base", [0.5, 100.0, 10_000.0])
def test_every_axial_frequency_is_its_definition(dim, base):
    made = axial_frequencies(dim, "each", base)
    assert made.shape == (len(dim), sum(dim) // 2)
    pairs = [(axis, n) for axis, own in enumerate(dim) for n in range(own // 2)]
    for p, (mine, n) in enumerate(pairs):
        for axis in range(len(dim)):
            expected = (axis == mine) * base ** (-2 * n / dim[mine])
            assert_close(made[axis, p].item(), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_axes_take_turns_in_one_spectrum(axes, base):
    made = axial_frequencies((12,) * axes, "turns", base)
    for p, (mine, n) in enumerate((axis, n) for axis in range(axes) for n in range(6)):
        for axis in range(axes):
            expected = (axis == mine) * base ** (-2 * (axes * n + axis) / (12 * axes))
            assert_close(made[axis, p].item(), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("spectrum", ["each", "turns"])
def test_a_number_of_channels_is_halved_between_row_and_column(spectrum):
    assert torch.equal(
        axial_frequencies(DIM, spectrum, 1e4), axial_frequencies((DIM // 2, DIM // 2), spectrum, 1e4)
    )


def test_every_golden_vector_is_its_definition():
    made = golden_frequencies(DIM, HEADS, 0.1, 3.0)
    for head in range(HEADS):
        for p in range(DIM // 2):
            length = 0.1 * 30 ** (p / (DIM // 2 - 1))
            angle = (head * DIM // 2 + p) * math.pi * (5**0.5 - 1) / 2
            expected = torch.tensor([length * math.cos(angle), length * math.sin(angle)]).double()
            assert_close(made[head, :, p], expected, rtol=1e-6, atol=1e-7)
            assert made[head, :, p].norm().item() == pytest.approx(length, rel=1e-12)


def test_golden_vectors_may_all_be_as_long():
    lengths = golden_frequencies(DIM, HEADS, 0.5, 0.5).norm(dim=1)
    assert_close(lengths, torch.full_like(lengths, 0.5), **EXACT)


def test_mixed_vectors_begin_as_two_crossed_axes_of_each_head():
    torch.manual_seed(3)
    made, lengths = mixed_frequencies(DIM, 200, 10.0), 10.0 ** (-4 * torch.arange(4).double() / DIM)
    assert_close(made.norm(dim=1), lengths.repeat(2).expand(200, -1), **EXACT)
    first, second = made.chunk(2, -1)  # (heads, 2, dim / 4)
    assert (first * second).sum(1).abs().max() < 1e-12
    assert_close(made[..., 0] / lengths[0], made[..., 1] / lengths[1], **EXACT)  # all of an axis alike
    torch.manual_seed(3)
    turn = 2 * math.pi * torch.rand(200, dtype=torch.float64)
    assert_close(first[..., 0], torch.stack((turn.cos(), turn.sin()), -1), **EXACT)
    assert turn.std() > 1 and not torch.equal(made, mixed_frequencies(DIM, 200, 10.0))
    turned_on = torch.stack((-first[:, 1], first[:, 0]), 1)
    assert_close(second, turned_on, **EXACT)


@every_layout
@every_kind
def test_every_channel_is_turned_as_its_definition(layout, kind):
    x, at, w = random(5, DIM), torch.randint(0, 30, (5, 2)), kinds()[kind]
    made = apply_axial_rope(x, *axial_rope_tables(at, w, torch.float64), layout)
    partners = {
        "interleaved": [(2 * p, 2 * p + 1) for p in range(8)],
        "half": [(p, p + 8) for p in range(8)],
        "half_by_axis": [(p + 4 * (p > 3), p + 4 * (p > 3) + 4) for p in range(8)],
    }[layout]
    for token in range(5):
        for p, (a, b) in enumerate(partners):
            angle = (at[token, 0] * w[0, p] + at[token, 1] * w[1, p]).item()
            first, second = x[token, a].item(), x[token, b].item()
            expected = (
                first * math.cos(angle) - second * math.sin(angle),
                first * math.sin(angle) + second * math.cos(angle),
            )
            assert (made[token, a].item(), made[token, b].item()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.claim(
    "axial-of-a-line-is-rope",
    "With one axis, axial frequencies, tables and rotations are those of RoPE. With two axes and the same "
    "row coordinate everywhere, the pairs for columns are rotated as by RoPE over half of the channels.",
)
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_on_a_line_it_is_rope(layout):
    x, at = random(2, HEADS, 9, DIM), torch.randint(0, 500, (9,))
    for spectrum in ("each", "turns"):
        w = axial_frequencies((DIM,), spectrum, 1e4)
        assert torch.equal(w[0], rope_frequencies(DIM, base=10000))
        made = apply_axial_rope(x, *axial_rope_tables(at[:, None], w, torch.float64), layout)
        theirs = apply_rope(x, *rope_tables(at, w[0], torch.float64), layout)
        assert_close(made, theirs, **EXACT)
    row = torch.stack((torch.zeros_like(at), at), -1)
    cos, _ = axial_rope_tables(row, axial_frequencies(DIM, "each", 1e4), torch.float64)
    assert torch.equal(cos[:, :4], torch.ones(9, 4).double())
    w = rope_frequencies(DIM // 2, base=10000)
    assert_close(cos[:, 4:], rope_tables(at, w, torch.float64)[0], **EXACT)


# --- other libraries


def of_qwen2(x, rows, columns):
    modeling = peer("transformers.models.qwen3_vl.modeling_qwen3_vl")
    config = SimpleNamespace(
        rope_parameters={"rope_type": "axial", "rope_theta": 10_000.0},
        head_dim=DIM,
        hidden_size=DIM,
        num_heads=1,
    )
    rotary = modeling.Qwen3VLVisionRotaryEmbedding(config)
    cos, sin = rotary(x, cells(rows, columns))
    yield modeling.apply_rotary_pos_emb_vision(x.transpose(0, 1), x.transpose(0, 1), cos, sin)[0].transpose(
        0, 1
    )
    yield apply_axial_rope(
        x, *axial_rope_tables(cells(rows, columns), axial_frequencies(DIM, "each", 1e4)), "half"
    )


def of_gemma_4(x, rows, columns):
    modeling = peer("transformers.models.gemma4.modeling_gemma4")
    config = SimpleNamespace(rope_parameters={"rope_type": "axial", "rope_theta": 100.0}, head_dim=DIM)
    places = cells(rows, columns).flip(-1)[None]
    cos, sin = modeling.Gemma4VisionRotaryEmbedding(config)(x, places)
    theirs = modeling.apply_multidimensional_rope(x[None].transpose(1, 2), cos, sin, places)
    yield theirs.transpose(1, 2)[0]
    places = cells(rows, columns).flip(-1)
    yield apply_axial_rope(
        x, *axial_rope_tables(places, axial_frequencies(DIM, "each", 100.0)), "half_by_axis"
    )


def of_pixtral(x, rows, columns):
    modeling = peer("transformers.models.pixtral.modeling_pixtral")
    config = SimpleNamespace(rope_parameters={"rope_type": "axial", "rope_theta": 10_000.0}, head_dim=DIM)
    cos, sin = modeling.PixtralVisionRotaryEmbedding(config)(x, cells(rows, columns))
    yield modeling.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=0)[0]
    yield apply_axial_rope(
        x, *axial_rope_tables(cells(rows, columns), axial_frequencies(DIM, "turns", 1e4)), "half"
    )


def of_dinov3(x, rows, columns):
    modeling = peer("transformers.models.dinov3_vit.modeling_dinov3_vit")
    config = SimpleNamespace(
        rope_theta=100.0, hidden_size=DIM, num_attention_heads=1, image_size=32, patch_size=4
    )
    rotary = modeling.DINOv3ViTRopePositionEmbedding(config).eval()
    tables = rotary(torch.zeros(1, 3, 4 * rows, 4 * columns))
    yield modeling.apply_rotary_pos_emb(x, x, *tables)[0]
    w = 2 * math.pi * axial_frequencies(DIM, "each", 100.0)
    yield apply_axial_rope(x, *axial_rope_tables(patch_coordinates(rows, columns), w), "half")


def of_llama_4(x, rows, columns):
    modeling = peer("transformers.models.llama4.modeling_llama4")
    config = SimpleNamespace(
        image_size=rows, patch_size=1, hidden_size=DIM, num_attention_heads=1,
        rope_parameters={"rope_theta": 10_000.0},
    )  # fmt: skip
    with_class = torch.cat((x, x[:, :1]), 1).transpose(0, 1)[None]
    tables = modeling.Llama4VisionRotaryEmbedding(config)(x)
    theirs = modeling.vision_apply_rotary_emb(with_class, with_class, tables)[0][0].transpose(0, 1)
    assert_close(theirs[:, -1], x[:, 0], rtol=0, atol=1e-6)  # the class token is not turned
    yield theirs[:, :-1]
    places = cells(rows, columns, first=1).flip(-1)
    yield apply_axial_rope(x, *axial_rope_tables(places, axial_frequencies(DIM, "each", 1e4)), "interleaved")


PEERS = {
    "qwen3_vl": of_qwen2,
    "gemma4": of_gemma_4,
    "pixtral": of_pixtral,
    "dinov3_vit": of_dinov3,
    "llama4": of_llama_4,
}


@pytest.mark.claim(
    "axial-agrees-with-transformers",
    "With the arguments given in its table, the snippet rotates vectors as the vision parts of Qwen3-VL, "
    "Gemma 4, Pixtral, DINOv3 and Llama 4 in transformers 5.23.0 do, to 1e-5, for images of one patch to "
    "twelve by twelve.",
)
@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        (name, *sides)
        for name in PEERS
        for sides in ((1, 1), (3, 3), (4, 9), (12, 12))
        if name != "llama4" or sides != (4, 9)  # whose pictures are square
    ],
)
def test_agrees_with_models_of_transformers(name, rows, columns, same_as):
    x = torch.randn(HEADS, rows * columns, DIM)
    theirs, ours = PEERS[name](x, rows, columns)
    assert_close(ours, theirs, rtol=0, atol=1e-5)
    same_as(f"transformers.models.{name}.modeling_{name} (vision)", ours, theirs)


@pytest.mark.parametrize(
    ("name", "base"),
    [("qwen3_vl", 1e4), ("gemma4_vision", 100), ("pixtral", 1e4), ("dinov3_vit", 100), ("llama4", 1e4)],
)
def test_bases_are_the_defaults_of_configurations(name, base):
    config = peer("transformers").AutoConfig.for_model(name)
    config = getattr(config, "vision_config", config)
    assert (getattr(config, "rope_parameters", None) or vars(config))["rope_theta"] == base


def of_wan(x, frames, rows, columns):
    rotary = peer("diffusers.models.transformers.transformer_wan").WanRotaryPosEmbed(128, (1, 1, 1), 64)
    cos, sin = rotary(torch.zeros(1, 1, frames, rows, columns))
    modeling = peer("diffusers.models.embeddings")
    return modeling.apply_rotary_emb(x[None], (cos[0, :, 0], sin[0, :, 0]))[0], (44, 42, 42), (0, 0, 0)


def of_flux(x, frames, rows, columns):
    rotary = peer("diffusers.models.transformers.transformer_flux").FluxPosEmbed(10_000, [16, 56, 56])
    tables = rotary(boxes(frames, rows, columns))
    return peer("diffusers.models.embeddings").apply_rotary_emb(x[None], tables)[0], (16, 56, 56), (0, 0, 0)


def of_qwen_image(x, frames, rows, columns):
    modeling = peer("diffusers.models.transformers.transformer_qwenimage")
    rotary = modeling.QwenEmbedRope(10_000, [16, 56, 56], scale_rope=True)
    angles, _ = rotary((frames, rows, columns), max_txt_seq_len=1, device=x.device)
    turned = modeling.apply_rotary_emb_qwen(x.transpose(0, 1)[None], angles, use_real=False)
    return turned[0].transpose(0, 1), (16, 56, 56), (0, rows // 2 - rows, columns // 2 - columns)


def boxes(frames, rows, columns, first=(0, 0, 0)):
    sides = zip(first, (frames, rows, columns), strict=True)
    return torch.cartesian_prod(*(torch.arange(start, start + side) for start, side in sides))


@pytest.mark.parametrize("theirs_of", [of_wan, of_flux, of_qwen_image])
@pytest.mark.parametrize("sides", [(1, 1, 1), (1, 4, 7), (5, 3, 6), (21, 4, 4)])
def test_agrees_with_models_of_diffusers(theirs_of, sides):
    x = torch.randn(HEADS, math.prod(sides), 128)
    theirs, dim, first = theirs_of(x, *sides)
    tables = axial_rope_tables(boxes(*sides, first), axial_frequencies(dim, "each", 1e4))
    assert_close(apply_axial_rope(x, *tables, "interleaved"), theirs, rtol=0, atol=1e-5)


@pytest.mark.claim(
    "axial-layouts-differ",
    "The same vectors at the same coordinates have different scores in another layout, or with the "
    "columns first.",
)
def test_layouts_and_orders_of_axes_are_not_the_same():
    (q, k), (i, j), w = random(2, DIM), torch.tensor([[3, 1], [0, 7]]), kinds()["axial"]
    scores = [score(q, k, i, j, w, layout) for layout in LAYOUTS]
    scores.append(score(q, k, i.flip(-1), j.flip(-1), w))
    assert min(abs(a - b) for n, a in enumerate(scores) for b in scores[:n]) > 1e-3


# --- what it is for


@pytest.mark.claim(
    "axes-scores-know-offsets-alone",
    "With axial, mixed and golden RoPE, in each layout, a score does not change if query and key are "
    "moved by the same rows and columns, also by fractions and to negative coordinates.",
)
@every_layout
@every_kind
def test_scores_stay_if_both_move(layout, kind):
    (q, k), w = random(2, DIM), kinds()[kind]
    i, j = torch.tensor([4.0, 9.0]).double(), torch.tensor([7.0, 2.0]).double()
    for by in ((0, 5), (300, 0), (-70.5, 12.25)):
        by = torch.tensor(by).double()
        assert_close(score(q, k, i + by, j + by, w, layout), score(q, k, i, j, w, layout), rtol=0, atol=1e-10)
        assert (score(q, k, i + by, j, w, layout) - score(q, k, i, j, w, layout)).abs() > 1e-3


@pytest.mark.claim(
    "axial-scores-are-sums",
    "An axial score is the sum of one part that depends only on the rows and one that depends only on the "
    "columns; a mixed or a golden score is not.",
)
@every_kind
def test_a_score_is_a_sum_over_axes_for_axial_alone(kind):
    (q, k), w, zero = random(2, DIM), kinds()[kind], torch.zeros(2)
    crossed = [
        score(q, k, zero + torch.tensor([down, right]), zero, w)
        for down in (0.0, 3.0)
        for right in (0.0, 5.0)
    ]
    apart = abs(crossed[3] - crossed[1] - crossed[2] + crossed[0])
    assert apart < 1e-12 if kind in ("axial", "turns") else apart > 0.05


@pytest.mark.claim(
    "axial-makes-a-cross",
    "With axial RoPE of any width and base, two vectors in the same row or column keep, at any distance, "
    "the part of their score that belongs to this axis. For two vectors of equal channels, this part is "
    "half of their score at the same position, and the other part is between minus and plus this half. "
    "With golden directions, 64 equal channels and frequencies from 0.1 to 1 radian per patch, the score "
    "of vectors in the same row or column is at most half of their score at the same position, at "
    "distances from 5 to 40 patches.",
)
@pytest.mark.parametrize("dim", [8, 16, 64, 128])
@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_axial_has_a_cross_at_any_distance(dim, base):
    w, zero, (q, k) = axial_frequencies(dim, "each", base), torch.zeros(2), random(2, dim)
    one, half = torch.ones(dim).double(), torch.arange(dim) % (dim // 2) < dim // 4
    for axis in range(2):
        own = half if axis else ~half  # the channels that the shared axis rotates
        for step in (1.0, 7.5, 40.0, 399.0, 10_000.0):
            at = torch.tensor([step * (axis == n) for n in range(2)])
            kept = score(q * own, k, at, zero, w)
            assert_close(kept, score(q * own, k, zero, zero, w), rtol=0, atol=1e-9)
            alike = score(one, one, at, zero, w) / one.sum()
            other = score(one * ~own, one, at, zero, w) / one.sum()
            assert_close(alike, 0.5 + other, rtol=0, atol=1e-9)
            assert other.abs() <= 0.5 + 1e-9


@pytest.mark.claim(
    "axial-makes-a-cross",
    "With axial RoPE of any width and base, two vectors in the same row or column keep, at any distance, "
    "the part of their score that belongs to this axis. For two vectors of equal channels, this part is "
    "half of their score at the same position, and the other part is between minus and plus this half. "
    "With golden directions, 64 equal channels and frequencies from 0.1 to 1 radian per patch, the score "
    "of vectors in the same row or column is at most half of their score at the same position, at "
    "distances from 5 to 40 patches.",
)
def test_golden_directions_make_no_cross():
    one, zero, w = torch.ones(64).double(), torch.zeros(2), golden_frequencies(64, 1, 0.1, 1.0)[0]
    for axis in range(2):
        for step in range(5, 41):
            at = torch.tensor([step * (axis == n) for n in range(2)]).double()
            assert score(one, one, at, zero, w) <= one.sum() / 2


@pytest.mark.claim(
    "axial-knows-mirrors-and-transposes",
    "If an image is mirrored, an axial score of a query and a key changes, except where both are in the "
    "same column. If rows and columns are swapped, it changes, except where both offsets are equal.",
)
def test_what_mirrors_and_transposes_change():
    (q, k), w, zero = random(2, DIM), kinds()["axial"], torch.zeros(2)

    def at(down, right):
        return score(q, k, torch.tensor([down, right]), zero, w)

    assert at(2.0, 3.0) != pytest.approx(at(2.0, -3.0).item(), abs=1e-3)
    assert at(2.0, 0.0) == at(2.0, -0.0)
    assert at(2.0, 3.0) != pytest.approx(at(3.0, 2.0).item(), abs=1e-3)


def test_vectors_of_each_head_and_pictures_of_a_batch():
    w, places = golden_frequencies(DIM, HEADS, 0.2, 2.0), torch.randint(0, 9, (4, 6, 2))
    x = random(4, HEADS, 6, DIM)
    made = apply_axial_rope(x, *axial_rope_tables(places[:, None], w, torch.float64), "half")
    for n in range(4):
        for head in range(HEADS):
            tables = axial_rope_tables(places[n], w[head], torch.float64)
            assert_close(made[n, head], apply_axial_rope(x[n, head], *tables, "half"), **EXACT)


def test_learned_vectors_get_gradients():
    w = torch.nn.Parameter(mixed_frequencies(DIM, HEADS, 10.0).float())
    cos, sin = axial_rope_tables(cells(2, 3), w)
    apply_axial_rope(torch.randn(HEADS, 6, DIM), cos, sin, "half").square().mean()
    apply_axial_rope(torch.randn(HEADS, 6, DIM), cos, sin, "half")[0, 5, 0].backward()
    assert w.grad[0].abs().sum() > 0 and not w.grad[1:].any()


def test_centres_are_the_middles_of_patches():
    made = patch_coordinates(2, 4)
    assert made.tolist() == [[y, x] for y in (-0.5, 0.5) for x in (-0.75, -0.25, 0.25, 0.75)]
    assert patch_coordinates(1, 1).tolist() == [[0, 0]]
    assert patch_coordinates(3, 3).tolist()[0] == [1 / 3 - 1, 1 / 3 - 1]


# --- what it refuses


def wrong():
    words = "spectrum must be 'each' or, with as many channels for each axis, 'turns', got "
    for spectrum in ("all", None):
        yield f"{words}{spectrum!r} and [4, 4]", axial_frequencies, 8, spectrum, 1e4
    yield f"{words}'turns' and [4, 6]", axial_frequencies, (4, 6), "turns", 1e4
    yield "dim must be a multiple of 4 and at least 4, got 6", axial_frequencies, 6, "each", 1e4
    words = "dim must be an even number of channels for each axis, 2 or more, got "
    for dim in ((), (4, 3), (0, 4), (-2, 4)):
        yield f"{words}{list(dim)}", axial_frequencies, dim, "each", 1e4
    yield "dim must be a multiple of 4 and at least 4, got 0", axial_frequencies, 0, "turns", 1e4
    for base in (0.0, -1.0, math.inf, math.nan):
        yield f"base must be a positive number, got {base}", axial_frequencies, 8, "each", base
    yield "dim must be a multiple of 4 and at least 4, got 6", mixed_frequencies, 6, 1, 10.0
    yield "heads must be at least 1, got 0", mixed_frequencies, 8, 0, 10.0
    yield "heads must be at least 1, got 0", golden_frequencies, 8, 0, 1.0, 2.0
    yield "dim must be a multiple of 2 and at least 2, got 5", golden_frequencies, 5, 1, 1.0, 2.0
    for slow, fast in ((0.0, 1.0), (2.0, 1.0), (1.0, math.inf), (math.nan, 1.0)):
        words = f"slowest and fastest must be above 0, in this order, got {slow} and {fast}"
        yield words, golden_frequencies, 8, 1, slow, fast
    for rows, columns in ((0, 3), (3, 0), (-1, 2)):
        yield (
            f"a picture must have a patch or more, got {rows} by {columns}",
            patch_coordinates,
            rows,
            columns,
        )
    at, w = torch.zeros(4, 2), torch.ones(2, 8)
    yield "frequencies must be float32 or float64, got torch.bfloat16", axial_rope_tables, at, w.bfloat16()
    yield "dtype must be float32 or float64, got torch.float16", axial_rope_tables, at, w, torch.float16
    for bad in (w[:1], w[0], w[None, None], w[:, :0]):
        words = f"frequencies must be (2, pairs) or (heads, 2, pairs), got {tuple(bad.shape)}"
        yield words, axial_rope_tables, at, bad
    yield "places must be (..., tokens, axes), got (4,)", axial_rope_tables, at[:, 0], w
    yield "places must be (..., tokens, axes), got (4, 0)", axial_rope_tables, at[:, :0], w
    cos = sin = torch.zeros(4, 8)
    x, words = (
        torch.randn(3, 4, 16),
        "x must be floating (..., tokens, dim), cos and sin (..., tokens, dim / 2), ",
    )
    for bad, shape in ((x[..., :14], "(3, 4, 14)"), (x[:, :3], "(3, 3, 16)"), (x[..., :15], "(3, 4, 15)")):
        yield f"{words}got torch.float32 {shape}, (4, 8) and (4, 8)", apply_axial_rope, bad, cos, sin, "half"
    yield (
        f"{words}got torch.int64 (4, 16), (4, 8) and (4, 8)",
        apply_axial_rope,
        x[0].long(),
        cos,
        sin,
        "half",
    )
    yield f"{words}got torch.float32 (16,), (4, 8) and (4, 8)", apply_axial_rope, x[0, 0], cos, sin, "half"
    yield (
        f"{words}got torch.float32 (4, 16), (1, 4, 8) and (4, 8)",
        apply_axial_rope,
        x[0],
        cos[None],
        sin,
        "half",
    )
    yield f"{words}got torch.float32 (4, 16), (4, 8) and (3, 8)", apply_axial_rope, x[0], cos, sin[:3], "half"
    words = "layout must be 'interleaved', 'half', or, with dim a multiple of 4, 'half_by_axis', got "
    yield f"{words}'axial' and dim 16", apply_axial_rope, x, cos, sin, "axial"
    yield (
        f"{words}'half_by_axis' and dim 6",
        apply_axial_rope,
        x[..., :6],
        cos[:, :3],
        sin[:, :3],
        "half_by_axis",
    )


test_refuses = refusals(wrong)
