"""fourier.py against its definition, the waves of other models, and the kernel that it starts from.

Its waves alone are those of SAM and LightGlue in Transformers. Nobody among the peers has the whole.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.fourier import FourierEncoding, fourier_features
from snippets.gated_encoding import AddGated
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, random, refusals


def layer(axes=2, dim=6, features=8, hidden=5, gamma=1.0, groups=1):
    return FourierEncoding(axes, dim, features, hidden, gamma, groups).double()


# --- the definition, and what others have of it


@given(SEEDS, st.integers(1, 4), st.integers(1, 5))
def test_every_wave_is_its_formula(seed, axes, waves):
    torch.manual_seed(seed)
    x, w = random(3, 2, axes), random(waves, axes)
    made = fourier_features(x, w)
    assert made.shape == (3, 2, 2 * waves)
    for row in range(3):
        for place in range(2):
            for wave in range(waves):
                angle = sum(w[wave, axis].item() * x[row, place, axis].item() for axis in range(axes))
                scale = math.sqrt(2 * waves)
                assert made[row, place, wave].item() == pytest.approx(math.cos(angle) / scale, abs=1e-12)
                assert made[row, place, waves + wave].item() == pytest.approx(
                    math.sin(angle) / scale, abs=1e-12
                )


def linear(layer, row):
    weight, bias = layer.weight.tolist(), layer.bias.tolist()
    return [b + sum(w * x for w, x in zip(ws, row, strict=True)) for ws, b in zip(weight, bias, strict=True)]


@given(SEEDS, st.sampled_from([(1, 1), (2, 1), (4, 2), (6, 3), (3, 3)]))
def test_every_channel_is_its_formula(seed, shape):
    torch.manual_seed(seed)
    axes, groups = shape
    encode, x = layer(axes, 6, groups=groups), random(2, axes)
    made = encode(x)
    for place in range(2):
        expected = []
        for group in x[place].view(groups, -1):
            angles = [
                sum(w * c for w, c in zip(ws, group.tolist(), strict=True))
                for ws in encode.frequencies.tolist()
            ]
            row = [wave(a) / math.sqrt(8) for wave in (math.cos, math.sin) for a in angles]
            row = [h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in linear(encode.inner, row)]
            expected += linear(encode.outer, row)
        assert_close(made[place], torch.tensor(expected, dtype=torch.float64), **EXACT)


def test_its_waves_are_those_of_segment_anything(same_as):
    sam = peer("transformers.models.sam.modeling_sam")
    config = peer("transformers").SamVisionConfig(num_pos_feats=8, scale=3.0)
    theirs = sam.SamPositionalEmbedding(config).double()
    at = torch.rand(5, 7, 2, dtype=torch.float64)
    sin, cos = theirs(at).chunk(2, -1)
    frequencies = 2 * math.pi * theirs.positional_embedding.detach().mT
    made, expected = fourier_features(2 * at - 1, frequencies), torch.cat([cos, sin], -1) / 4
    assert_close(made, expected, rtol=0, atol=1e-14)
    same_as("transformers.models.sam.modeling_sam.SamPositionalEmbedding", made, expected)


def test_its_waves_are_those_of_lightglue(same_as):
    lightglue = peer("transformers.models.lightglue.modeling_lightglue")
    config = lightglue.LightGlueConfig(descriptor_dim=64, num_attention_heads=4)
    theirs = lightglue.LightGluePositionalEncoder(config).double()
    at = random(5, 7, 2)
    ((cos, sin),) = theirs(at)  # each number twice, for rotating pairs
    made = fourier_features(at, theirs.projector.weight)
    expected = torch.cat([cos[..., ::2], sin[..., ::2]], -1) / 4
    assert_close(made, expected, rtol=0, atol=1e-14)
    same_as("transformers.models.lightglue.modeling_lightglue.LightGluePositionalEncoder", made, expected)


# --- what its products know of two places


@pytest.mark.claim(
    "fourier-products-know-the-offset",
    "Whatever the frequencies, the dot product of the Fourier features of two positions depends only on "
    "their difference, in each direction: it is half the mean cosine of the angles between them.",
)
@given(SEEDS, st.integers(1, 4), st.integers(1, 64))
def test_products_know_the_difference_alone(seed, axes, waves):
    torch.manual_seed(seed)
    x, y, shift = random(9, axes), random(9, axes), 100 * random(axes)
    w = 3 * random(waves, axes)
    product = (fourier_features(x, w) * fourier_features(y, w)).sum(-1)
    moved = (fourier_features(x + shift, w) * fourier_features(y + shift, w)).sum(-1)
    assert_close(moved, product, **EXACT)
    assert_close(product, ((x - y) @ w.mT).cos().mean(-1) / 2, **EXACT)


@pytest.mark.claim(
    "fourier-starts-as-a-gaussian",
    "Averaged over the random initialisation of the snippet, the dot product of the Fourier features of "
    "two positions is half of exp(-distance^2 / (2 gamma^2)), whatever the direction, the number of axes "
    "and the width. The wider the features, the less a single initialisation deviates from this average.",
)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("gamma", [0.25, 40.0])
def test_it_starts_from_a_gaussian_of_the_distance(axes, gamma):
    directions = torch.nn.functional.normalize(random(6, axes), dim=-1)
    distances = gamma * torch.tensor([0, 0.3, 1, 1.7, 2.5, 4], dtype=torch.float64)
    places, origin = directions * distances[:, None], torch.zeros(axes, dtype=torch.float64)
    kernel = torch.exp(-(distances**2) / (2 * gamma**2)) / 2
    strayed = []
    for features, draws in ((4, 800), (64, 200), (1024, 50)):
        drawn = [FourierEncoding(axes, 1, features, 1, gamma).frequencies for _ in range(draws)]
        made = [(fourier_features(places, w.double()), fourier_features(origin, w.double())) for w in drawn]
        products = torch.stack([there @ here for there, here in made]).detach()
        # half the standard deviation of cos(z) for a normal z of standard deviation distance / gamma
        spread = (1 - (2 * kernel) ** 2) / math.sqrt(8)
        error = spread / math.sqrt(draws * features / 2)
        assert ((products.mean(0) - kernel).abs() <= 5 * error + 1e-6).all(), features
        strayed.append((products - kernel).square().mean().sqrt())
        assert_close(strayed[-1], (spread**2).mean().sqrt() / math.sqrt(features / 2), rtol=0.2, atol=0)
    assert strayed[0] > strayed[1] > strayed[2]


@pytest.mark.claim(
    "fourier-encoding-promises-neither",
    "Dot products of complete Fourier encodings, network included, are limited neither to a Gaussian "
    "shape nor to a function of the difference of the positions: in newly initialised encodings they "
    "change when both positions are shifted equally.",
)
@pytest.mark.parametrize("gamma", [0.25, 1.0, 40.0])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_whole_encoding_knows_the_place(axes, gamma):
    for seed in range(9):
        torch.manual_seed(seed)
        encode = layer(axes, 32, 64, 16, gamma)
        x, y, shift = (gamma * random(20, axes) for _ in range(3))
        product = (encode(x) * encode(y)).sum(-1)
        moved = (encode(x + shift) * encode(y + shift)).sum(-1)
        assert ((moved - product).abs() > 1e-9).all()


def test_frequencies_start_with_variance_one_by_gamma_squared():
    for gamma in (0.5, 10.0):
        w = FourierEncoding(2, 4, 20_000, 1, gamma).frequencies
        assert w.mean().item() == pytest.approx(0, abs=0.03 / gamma)
        assert w.std().item() == pytest.approx(1 / gamma, rel=0.02)
        kurtosis = (w**4).mean() / (w**2).mean() ** 2
        assert kurtosis.item() == pytest.approx(3, abs=0.15)


def test_groups_share_their_weights_and_do_not_meet():
    torch.manual_seed(1)
    encode, box = layer(4, 6, groups=2), random(5, 4)
    swapped = encode(box.roll(2, -1))
    assert_close(swapped, encode(box).roll(3, -1), **EXACT)
    box[:, :2] += 1
    assert_close(encode(box)[:, 3:], swapped[:, :3], **EXACT)
    assert encode.frequencies.shape == (4, 2)


# --- gradients, dtypes, modules


def test_every_parameter_is_learned_and_saved():
    encode = layer()
    names = ["frequencies", "inner.bias", "inner.weight", "outer.bias", "outer.weight"]
    assert sorted(encode.state_dict()) == names
    (encode(random(9, 2)) * random(9, 6)).sum().backward()
    assert all((parameter.grad != 0).all() for parameter in encode.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_angles_are_wide_whatever_the_dtype_of_the_model(dtype):
    w = torch.tensor([[1.0, 0.5], [0.25, 2.0]], dtype=dtype)  # without rounding in any of them
    eps = torch.finfo(dtype).eps
    for at in (torch.tensor([[257, 1001]]), torch.tensor([[257.0, 1001.0]])):
        made = fourier_features(at, w)
        assert made.dtype == dtype
        assert_close(made.double(), fourier_features(at, w.double()), rtol=0, atol=eps)
    assert layer().to(dtype)(torch.tensor([[257, 1001]])).dtype == dtype


def test_no_place_is_rounded_before_its_angle():
    w, far = torch.tensor([[1.0]]), 2**24 + 1
    for at in (torch.tensor([[far]]), torch.tensor([[far]], dtype=torch.float64)):
        made = fourier_features(at, w)[0] * math.sqrt(2)
        expected = [math.cos(far), math.sin(far)]
        assert_close(made, torch.tensor(expected), rtol=0, atol=1e-7)


def test_whole_numbers_are_places_like_any_other():
    encode = layer()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        at = torch.randint(0, 99, (5, 2))
        assert_close(encode(at.to(dtype)), encode(at.double()), **EXACT)


def test_no_places_are_no_trouble():
    assert layer()(random(2, 0, 2)).shape == (2, 0, 6)


def test_goes_where_an_added_encoding_goes():
    encode, tokens = FourierEncoding(2, 6, 8, 5, 1.0), torch.nn.Embedding(11, 6)
    at = torch.cartesian_prod(torch.arange(3), torch.arange(4))
    x = tokens(torch.randint(0, 11, (2, 12)))
    assert_close(AddGated(6, encode)(x, at), x + encode(at) / 2)


# --- what is refused, and in which words


@refusals
def test_refuses():
    for made in (lambda x: fourier_features(x, torch.zeros(4, 2)), lambda x: layer()(x)):
        wanted = "must be a tensor of integers, float32 or float64"
        for dtype in (torch.bfloat16, torch.float16, torch.bool, torch.complex64):
            yield f"coordinates {wanted}, got {dtype}", made, torch.zeros(3, 2, dtype=dtype)
        yield f"coordinates {wanted}, got list", made, [[0.0, 1.0]]
        for shape in ((), (3,), (3, 1), (2, 4)):
            yield f"coordinates must be (..., 2), got {shape}", made, torch.zeros(shape)
    for wrong in (torch.zeros(2), torch.zeros(1, 4, 2), torch.zeros(4, 2).long()):
        got = f"{tuple(wrong.shape)} of {wrong.dtype}"
        message = f"frequencies must be (waves, axes) of a floating dtype, got {got}"
        yield message, fourier_features, torch.zeros(3, 2), wrong
    for place, number in itertools.product(range(5), (0, -2)):
        sizes = [2, 6, 8, 5, 1]
        sizes[place] = number
        message = "axes, dim, features, hidden and groups must be at least 1, got {}, {}, {}, {} and {}"
        yield message.format(*sizes), FourierEncoding, *sizes[:4], 1.0, sizes[4]
    yield "features must be even, got 7", FourierEncoding, 2, 6, 7, 5, 1.0
    for axes, dim, groups in ((3, 6, 2), (4, 6, 4), (2, 6, 3)):
        message = f"groups must divide axes and dim, got {groups} for {axes} and {dim}"
        yield message, FourierEncoding, axes, dim, 8, 5, 1.0, groups
    for gamma in (0, -1.0, math.nan):
        yield f"gamma must be above 0, got {gamma}", FourierEncoding, 2, 6, 8, 5, gamma


def test_takes_the_smallest_encoding():
    assert FourierEncoding(1, 1, 2, 1, 1.0, 1)(random(3, 1).float()).shape == (3, 1)
