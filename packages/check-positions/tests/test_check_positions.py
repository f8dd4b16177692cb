"""check_positions.py on rotations and attentions: right ones pass, faults are found by the check for them."""

import itertools
import math

import pytest
import torch

from check_positions.checker import (
    Finding,
    assert_positions,
    check_attention,
    check_rotation,
    configured_frequencies,
    read_rotation,
    read_scaling,
    report,
)
from findings import failing, one, proportional, turning, verdicts
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import (
    llama3,
    longrope,
    ntk_aware,
    position_interpolation,
    yarn,
)
from snippets.sinusoidal import sinusoidal_encoding
from snippets.t5_bias import t5_bias, t5_bias_by_offset
from snippets.xpos import apply_xpos, xpos_tables
from tests.peers import peer
from tests.peers.turned import ROPE
from tests.snippets.common import refused

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"original_max_position_embeddings": 4096}
SCALED = {  # settings beyond base and share, frequencies of a width and a base, the factor of lengths
    "default": ({}, rope_frequencies, 1.0),
    "linear": ({"factor": 4.0}, lambda n, base: position_interpolation(rope_frequencies(n, base), 4.0), 1.0),
    "llama3": ({"factor": 8.0, **LLAMA3}, lambda n, base: llama3(rope_frequencies(n, base)), 1.0),
    "yarn": (
        {"factor": 8.0, **YARN},
        lambda n, base: yarn(rope_frequencies(n, base), 8.0, 4096),
        0.1 * math.log(8) + 1,
    ),
}
SIZES = [(16, 100.0), (64, 1e4), (64, 1e9), (128, 5e5), (128, 1e9), (256, 1e6)]


# --- what is read off


@pytest.mark.claim(
    "a-rotation-is-read-off",
    "The checker reads the base, the layout and the fraction of rotated channels of a rotation of two or "
    "more pairs from its outputs, and the kind and factor of linear scaling, of Llama 3's and of YaRN.",
)
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
@pytest.mark.parametrize(("dim", "base"), SIZES)
def test_a_rope_is_read_off(dim, base, share, layout):
    read = read_rotation(turning(rope_frequencies(int(share * dim), base), layout), dim)
    settings = dict(read.settings)
    assert (read.kind, read.layout, 2 * len(read.pairs)) == ("turns", layout, share * dim)
    assert settings.pop("rope_theta") == pytest.approx(base, rel=2e-4)
    assert settings == {"rope_type": "default"} | ({"partial_rotary_factor": share} if share < 1 else {})
    assert read.factor == pytest.approx(1)


@pytest.mark.claim(
    "a-rotation-is-read-off",
    "The checker reads the base, the layout and the fraction of rotated channels of a rotation of two or "
    "more pairs from its outputs, and the kind and factor of linear scaling, of Llama 3's and of YaRN.",
)
@pytest.mark.parametrize("kind", ["linear", "llama3", "yarn"])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize(
    ("dim", "base", "share"), [(64, 1e4, 1.0), (128, 5e5, 1.0), (128, 1e6, 0.5), (128, 1e9, 1.0)]
)
def test_a_scaling_is_read_off(kind, layout, dim, base, share):
    extra, frequencies, factor = SCALED[kind]
    read = read_rotation(turning(frequencies(int(share * dim), base), layout, factor), dim)
    assert (read.settings["rope_type"], read.layout) == (kind, layout)
    assert read.settings["rope_theta"] == pytest.approx(base, rel=1e-3)
    assert read.settings["factor"] == pytest.approx(extra["factor"], rel=1e-3)
    assert read.settings.get("partial_rotary_factor", 1.0) == share
    assert read.factor == pytest.approx(factor)
    if kind == "llama3":
        assert read.settings["high_freq_factor"] == pytest.approx(4, rel=1e-3)
        assert read.settings["original_max_position_embeddings"] == pytest.approx(8192, rel=1e-3)


@pytest.mark.parametrize(("dim", "base"), [(64, 100.0), (128, 1e4), (256, 1e6)])
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_partners_tell_proportional_from_partial(dim, base, share):
    read = read_rotation(turning(proportional(dim, base, share)), dim)
    assert read.settings == {
        "rope_type": "proportional",
        "rope_theta": base,
        "partial_rotary_factor": share,
    }
    other = read_rotation(turning(rope_frequencies(int(share * dim), base)), dim)
    assert other.settings["rope_type"] == "default"


def test_frequencies_alone_tell_proportional_by_a_base_that_is_round():
    assert read_scaling(rope_frequencies(64, 5e5)[:8], 64)["rope_type"] == "proportional"
    assert read_scaling(rope_frequencies(16, 5e5), 64)["rope_type"] == "default"


def test_ntk_is_read_as_another_base():
    w = ntk_aware(rope_frequencies(64, base=10000), 4.0)
    assert read_scaling(w, 64)["rope_theta"] == pytest.approx(1e4 * 4 ** (64 / 62), rel=2e-4)


@pytest.mark.parametrize(
    "frequencies",
    [
        lambda: longrope(rope_frequencies(64, 1e4), torch.linspace(1, 4, 32) ** 2, torch.ones(32), 4096, 100),
        lambda: torch.rand(32, generator=torch.Generator().manual_seed(0)) + 0.1,
        lambda: yarn(rope_frequencies(64, 100.0), 8.0, 4096),  # the ramp does not end within the pairs
        lambda: rope_frequencies(2, base=10000),
    ],
    ids=["longrope", "random", "a ramp without an end", "one pair"],
)
def test_what_is_of_no_known_kind_is_unknown(frequencies):
    frequencies = frequencies()
    dim = 2 * len(frequencies)
    assert read_scaling(frequencies, dim)["rope_type"] == "unknown"
    assert read_rotation(turning(frequencies), dim).settings["rope_type"] == "unknown"


def test_a_table_that_ends_early_hides_pairs_and_changes_nothing_else():
    right = turning(rope_frequencies(64, 1e9))

    def rotate(x, positions):
        if positions.max() >= 512:
            raise IndexError("512 rows")
        return right(x, positions)

    read = read_rotation(rotate, 64, length=512)
    assert 20 < len(read.pairs) < 32
    assert str(read) == f"half layout, {2 * len(read.pairs)} of 64 channels, default, rope_theta 1e+09"
    settings = {"rope_type": "default", "rope_theta": 1e9}
    assert not failing(check_rotation(rotate, 64, settings=settings, layout="half", length=512))


@pytest.mark.parametrize(
    ("rotate", "kind"),
    [
        (lambda x, positions: x, "ignores"),
        (lambda x, positions: x + sinusoidal_encoding(positions, x.shape[-1]), "adds"),
        (lambda x, positions: x * (1 + positions[:, None]), "neither"),
        (lambda x, positions: x.softmax(-1) * positions[:, None].cos(), "neither"),
    ],
    ids=["nothing", "sinusoids", "a scale", "a curve"],
)
def test_what_does_not_turn_is_named(rotate, kind):
    read = read_rotation(rotate, 16)
    assert (read.kind, str(read)) == (kind, kind)


def test_channels_that_meet_in_another_order_are_a_layout_of_their_own():
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    right = turning(rope_frequencies(16, base=10000))
    read = read_rotation(lambda x, positions: right(x[..., order], positions)[..., order.argsort()], 16)
    assert (read.kind, read.layout, len(read.pairs)) == ("turns", "own", 8)


# --- what settings ask for


@pytest.mark.parametrize("kind", [*SCALED, "proportional"])
@pytest.mark.parametrize(("dim", "base"), SIZES)
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_configured_frequencies_are_those_of_rope_and_rope_scaling(kind, dim, base, share):
    settings = {"rope_type": kind, "rope_theta": base, "partial_rotary_factor": share}
    if kind == "proportional":
        expected, factor = rope_frequencies(dim, base)[: int(share * dim) // 2], 1.0
    else:
        extra, frequencies, factor = SCALED[kind]
        settings, expected = settings | extra, frequencies(int(share * dim), base)
    made, scale = configured_frequencies(settings, dim)
    torch.testing.assert_close(made, expected, rtol=1e-9, atol=0)
    assert scale == pytest.approx(factor)


LONG = {"short_factor": [1 + n / 8 for n in range(32)], "long_factor": [2.0 + n for n in range(32)]}
PEERS = [
    ("linear", {"factor": 4.0}),
    ("dynamic", {"factor": 4.0}),
    ("llama3", {"factor": 32.0, **LLAMA3}),
    ("proportional", {"partial_rotary_factor": 0.25}),
    ("yarn", {"factor": 8.0, **YARN}),
    ("yarn", {"factor": 40.0, **YARN, "beta_fast": 16.0, "beta_slow": 2.0, "truncate": False}),
    ("yarn", {"factor": 40.0, **YARN, "mscale": 0.7, "mscale_all_dim": 1.2}),
    ("yarn", {"factor": 40.0, **YARN, "attention_factor": 0.5}),
    ("yarn", {"factor": 4.0, **YARN, "partial_rotary_factor": 0.5}),
    ("longrope", {"factor": 8.0, **YARN, **LONG}),
]


@pytest.mark.parametrize(("kind", "extra"), PEERS, ids=[f"{n} {k}" for n, (k, _) in enumerate(PEERS)])
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_configured_frequencies_agree_with_transformers(kind, extra, base, same_as):
    settings = {"rope_type": kind, "rope_theta": base, **extra}
    made, factor = configured_frequencies(settings, 64)
    config = peer("transformers").LlamaConfig(
        hidden_size=64, num_attention_heads=1, max_position_embeddings=32768, rope_parameters=dict(settings)
    )
    theirs, scale = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[kind](config, "cpu")
    same_as("transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS", made, theirs[: len(made)])
    torch.testing.assert_close(theirs[: len(made)].double(), made, rtol=16 * 2**-23, atol=0)
    assert not theirs[len(made) :].any()
    assert scale == pytest.approx(factor)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_dynamic_with_alpha_is_that_of_hunyuan(share, same_as):
    """One base for all lengths, under the name of dynamic."""
    settings = {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0, "factor": 1.0}
    modeling = peer("transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense")
    config = peer("transformers").HunYuanDenseV1Config(head_dim=int(64 * share), rope_parameters=settings)
    theirs = modeling.HunYuanDenseV1RotaryEmbedding(config).inv_freq
    made, factor = configured_frequencies(settings | {"partial_rotary_factor": share}, 64)
    name = "transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense.HunYuanDenseV1RotaryEmbedding"
    same_as(name, made, theirs)
    torch.testing.assert_close(theirs.double(), made, rtol=16 * 2**-23, atol=0)
    assert factor == 1


@pytest.mark.parametrize(
    ("message", "settings"),
    [
        (
            "rope_type must be default, linear, dynamic, yarn, llama3, longrope or proportional, got 'su'",
            {"rope_type": "su", "rope_theta": 1e4, "factor": 2.0, **YARN},
        ),
        ("settings must have rope_theta, got ['rope_type']", {"rope_type": "default"}),
        ("settings must have rope_theta, got []", {"rope_theta": None}),
        ("settings must have factor, got ['rope_theta', 'type']", {"type": "linear", "rope_theta": 1e4}),
        (
            "settings must have original_max_position_embeddings, got ['factor', 'rope_theta', 'rope_type']",
            {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0},
        ),
        (
            "settings must have low_freq_factor, got "
            "['factor', 'original_max_position_embeddings', 'rope_theta', 'rope_type']",
            {"rope_type": "llama3", "rope_theta": 1e4, "factor": 2.0, **YARN},
        ),
        (
            "settings must have short_factor, got ['rope_theta', 'rope_type']",
            {"rope_type": "longrope", "rope_theta": 1e4},
        ),
    ],
)
def test_settings_that_lack_something_are_refused(message, settings):
    refused(message, configured_frequencies, settings, 64)
    refused(message, check_rotation, turning(rope_frequencies(64, base=10000)), 64, settings=settings)


# --- a rotation: right ones


@pytest.mark.claim(
    "a-right-rotation-passes",
    "No check fails for a correct rotation, whatever its base, its fraction of rotated channels and its "
    "kind of scaling.",
)
@pytest.mark.parametrize("kind", [*SCALED, "proportional"])
@pytest.mark.parametrize(("dim", "base"), [(16, 1e4), (64, 1e9), (128, 5e5)])
@pytest.mark.parametrize("length", [None, 128])
def test_nothing_fails_of_a_right_rotation(kind, dim, base, length):
    settings = {"rope_type": kind, "rope_theta": base, "partial_rotary_factor": 0.5}
    if kind == "proportional":
        w, factor = proportional(dim, base, 0.5), 1.0
    else:
        extra, frequencies, factor = SCALED[kind]
        settings, w = settings | extra, frequencies(dim // 2, base)
    right = turning(w, "half", factor)

    def rotate(x, positions):
        assert length is None or positions.max() < length
        return right(x, positions)

    findings = check_rotation(rotate, dim, settings=settings, layout="half", length=length)
    told = verdicts(findings)
    assert told.pop("precise_angles") == "passes, passes, passes"
    assert told.pop("same_twice") == "passes, passes"
    assert told.pop("reading") == "reads"
    assert set(told.values()) == {"passes"}
    assert set(told) == {
        "finite", "input_kept", "norm_kept", "one_layout", "offsets_alone", "place_alone", "longest",
        "as_configured", "positions_in_order",
    }  # fmt: skip
    assert_positions(findings)


@pytest.mark.parametrize("library", ROPE, ids=lambda library: library.name)
def test_nothing_fails_of_a_rotation_that_nobody_here_wrote(library):
    rotary = library.rotary(64, library.base)

    def rotate(x, positions):
        return rotary.turn(x, x, *rotary.tables(x, positions[None]))[0]

    share = {"partial_rotary_factor": 1 / library.share} if library.share > 1 else {}
    settings = {"rope_type": "default", "rope_theta": library.base, **share}
    findings = check_rotation(rotate, 64, settings=settings, layout=library.layout)
    assert not failing(findings)
    assert one(findings, "as_configured").verdict == "passes"
    other = [rope for rope in ("half", "interleaved") if rope != library.layout]
    assert "as_configured" in failing(check_rotation(rotate, 64, layout=other[0]))


def test_rotations_of_their_own_for_queries_and_keys_keep_offsets_alone():
    def role(name):
        def rotate(x, positions):
            return apply_xpos(x, *xpos_tables(positions, 16, name, centre=512))

        return rotate

    findings = check_rotation(role("query"), 16, rotate_keys=role("key"), length=1024)
    told = verdicts(findings)
    assert told["norm_kept"] == "no promise"
    assert "offsets_alone" not in failing(findings)
    assert "offsets_alone" in failing(check_rotation(role("query"), 16, length=1024))


def test_one_that_ignores_positions_or_adds_cannot_fail_on_offsets():
    told = verdicts(check_rotation(lambda x, positions: x, 16))
    assert (told["reading"], told["offsets_alone"], told["place_alone"]) == ("reads", "no power", "no power")
    added = check_rotation(lambda x, positions: x + sinusoidal_encoding(positions, 16), 16)
    assert not failing(added)
    assert one(added, "offsets_alone").verdict == "no promise"


# --- a rotation: each fault is found


W = 10_000.0 ** -(torch.arange(8, dtype=torch.float64) / 8)
RIGHT = turning(W)


def in_place(x, positions):
    out = RIGHT(x, positions)
    x.mul_(0.5)
    return out


def table_and_swap(x, positions):
    """The table in the half layout, the swap interleaved."""
    angles = (positions[:, None] * W.float()).repeat(1, 2)
    swapped = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * angles.cos() + swapped * angles.sin()


def clamped(x, positions):
    return RIGHT(x, positions.clamp(max=1015))


def rounded(x, positions):
    """Positions in bfloat16, which has no 257."""
    return RIGHT(x, positions.bfloat16().float())


def low_angles(x, positions):
    """Angles in the dtype of x, or of autocast."""
    cos, sin = rope_tables(positions, W)
    if x.dtype == torch.bfloat16 or torch.is_autocast_enabled("cpu"):
        angles = (positions[:, None].bfloat16() * W.bfloat16()).float()
        cos, sin = angles.cos(), angles.sin()
    return apply_rope(x, cos, sin, "half")


def restarted(x, positions):
    """Counted from 0 in each call."""
    return RIGHT(x, positions - positions[0])


def not_norm(x, positions):
    return RIGHT(x, positions) * (1 + positions[:, None] / 1e4)


class Kept:
    """Slower from its longest call on."""

    longest = 0

    def __call__(self, x, positions):
        self.longest = max(self.longest, int(positions.max()))
        return turning(W / (1 + (self.longest > 70_000)))(x, positions)


def ends(x, positions):
    if positions.max() >= 4096:
        raise IndexError("index out of range")
    return RIGHT(x, positions)


def float64(x, positions):
    return turning(W.double())(x, positions)


def dynamic(x, positions):
    return turning(W / (1 + (positions.max() > 4096)))(x, positions)


@pytest.mark.parametrize(
    ("rotate", "check", "options", "words"),
    [
        (lambda x, positions: x / 0, "finite", {}, "Are all values finite? no"),
        (in_place, "input_kept", {}, "an in-place operation"),
        (lambda x, at: torch.dropout(RIGHT(x, at), 0.5, True), "same_twice", {}, "dropout that is still on"),
        (Kept(), "same_twice", {}, "before a call with a late one and after"),
        (table_and_swap, "one_layout", {}, "the table is in the half layout, the swap interleaved"),
        (table_and_swap, "norm_kept", {}, "first at vector 0, position 1"),
        (table_and_swap, "offsets_alone", {}, "6.685 instead of 7.889"),
        (not_norm, "norm_kept", {}, "Does a vector have the same norm"),
        (clamped, "offsets_alone", {}, "shift 1012"),
        (rounded, "precise_angles", {}, "first at position 257, channels (0, 8)"),
        (low_angles, "precise_angles", {}, "Are angles right in bfloat16"),
        (low_angles, "precise_angles", {}, "Are angles right in autocast to bfloat16"),
        (restarted, "place_alone", {}, "counted from 0 in each call"),
        (ends, "reaches", {"length": 8192}, "position 8191 raises IndexError: index out of range"),
        (float64, "float64", {"float64": False}, "makes float64"),
        (RIGHT, "as_configured", {"layout": "interleaved"}, "the layout is half, not interleaved"),
        (
            RIGHT,
            "as_configured",
            {"settings": {"rope_theta": 1.1e4}},
            "pair 1 rotates by 0.316228 radians per position, not 0.31",
        ),
        (
            turning(W, factor=1.3),
            "as_configured",
            {"settings": {"rope_theta": 1e4}},
            "lengths are multiplied by 1.3, not 1",
        ),
        (
            turning(10_000.0 ** -(torch.arange(4, dtype=torch.float64) / 4)),
            "as_configured",
            {"settings": {"rope_theta": 1e4}},
            "4 pairs rotate, not 8",
        ),
        (
            turning(10_000.0 ** -(torch.arange(4, dtype=torch.float64) / 4)),
            "as_configured",
            {"settings": {"rope_type": "proportional", "rope_theta": 1e8, "partial_rotary_factor": 0.5}},
            "the channels of a pair are 4 apart, not 8",
        ),
        (lambda x, positions: x, "as_configured", {"settings": {"rope_theta": 1e4}}, "ignores"),
    ],
)
def test_a_fault_of_a_rotation_is_found_by_its_check(rotate, check, options, words):
    told = [
        str(each)
        for each in check_rotation(rotate, 16, **options)
        if each.check == check and each.verdict == "fails"
    ]
    assert any(words in each for each in told), told


def test_an_entry_that_is_found_by_one_check_is_found_by_no_other():
    assert failing(check_rotation(in_place, 16)) == {"input_kept"}
    assert failing(check_rotation(low_angles, 16)) == {"precise_angles"}
    assert failing(check_rotation(ends, 16, length=8192)) == {"reaches"}
    assert failing(check_rotation(float64, 16, float64=False)) == {"float64"}


def test_float64_is_asked_for_only_where_there_is_none():
    def rotate(x, positions):
        angles = positions[:, None].float() * W.float()
        return apply_rope(x, angles.cos(), angles.sin(), "half")

    told = verdicts(check_rotation(turning(W.float()), 16))
    assert "float64" not in told
    found = one(check_rotation(rotate, 16, float64=False), "float64")
    assert found.verdict == "passes"


def test_a_rotation_that_hangs_on_the_longest_promised_nothing():
    findings = check_rotation(dynamic, 16)
    found = one(findings, "longest")
    assert found.verdict == "no promise"
    assert "cache keys before they are rotated" in found.found
    assert "same_twice" not in failing(findings)


def growing(original, factor=4.0, base=1e4, rounded=lambda positions: positions):
    """Dynamic NTK of 64 channels: its base grows with the longest position of a call."""

    def rotate(x, positions):
        longest = max(int(positions.max()) + 1, original)
        grown = base * (factor * longest / original - (factor - 1)) ** (64 / 62)
        return turning(rope_frequencies(64, grown))(x, rounded(positions))

    return rotate


def of_transformers(settings, length):
    config = peer("transformers").LlamaConfig(
        hidden_size=64, num_attention_heads=1, max_position_embeddings=length, rope_parameters=dict(settings)
    )
    modeling = peer("transformers.models.llama.modeling_llama")
    rotary = modeling.LlamaRotaryEmbedding(config)
    return lambda x, positions: modeling.apply_rotary_pos_emb(x, x, *rotary(x, positions[None]))[0]


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "factor": 8.0, **LONG}
DEPENDS = {
    **{f"dynamic, {n}": (lambda n=n: growing(n), DYNAMIC, n) for n in (512, 1000, 2048, 65_536)},
    **{f"dynamic of transformers, {n}": (lambda n=n: of_transformers(DYNAMIC, n), DYNAMIC, n)
       for n in (512, 2048)},
    **{f"LongRoPE of transformers, {n}": (
        lambda n=n: of_transformers(LONGROPE | {"original_max_position_embeddings": n}, 8 * n), LONGROPE, n)
       for n in (256, 4096)},
}  # fmt: skip


@pytest.mark.claim(
    "a-right-rotation-passes",
    "No check fails for a correct rotation, whatever its base, its fraction of rotated channels and its "
    "kind of scaling.",
)
@pytest.mark.parametrize("length", [None, 4096, 131_072])
@pytest.mark.parametrize(("make", "settings", "original"), DEPENDS.values(), ids=DEPENDS)
def test_nothing_fails_of_a_rotation_whose_frequencies_depend_on_the_longest(
    make, settings, original, length
):
    settings = settings | {"original_max_position_embeddings": original}
    findings = check_rotation(make(), 64, settings=settings, length=length)
    told = verdicts(findings)
    assert not failing(findings)
    assert (told["precise_angles"], told["as_configured"]) == ("passes, passes, passes", "passes")
    depends = (length or 131_072) > original
    assert told["longest"] == ("no promise" if depends else "passes")
    words = "frequencies depend on the longest position"
    assert all((words in each.found) == depends for each in findings if each.check == "precise_angles")


@pytest.mark.parametrize(
    ("rotate", "check"),
    [
        (growing(2048, rounded=lambda positions: positions.bfloat16().float()), "precise_angles"),
        (growing(2048, base=2e4), "as_configured"),
        (growing(2048, rounded=lambda positions: positions - positions[0]), "place_alone"),
    ],
    ids=["positions in bfloat16", "another base", "positions from 0"],
)
def test_faults_are_found_where_frequencies_depend_on_the_longest_position(rotate, check):
    settings = DYNAMIC | {"original_max_position_embeddings": 2048}
    assert check in failing(check_rotation(rotate, 64, settings=settings))


# --- a rotation with a norm before or after it


def rms(x, eps=1e-6):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=eps)


def l2(x):
    return torch.nn.functional.normalize(x, dim=-1)


def layer(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


GAINS = torch.rand(64, generator=torch.Generator().manual_seed(1)) + 0.5


def plain_rope(x, at):
    return turning(rope_frequencies(64, base=10000))(x, at)


def with_yarn(x, at):
    return turning(SCALED["yarn"][1](64, 1e4), factor=SCALED["yarn"][2])(x, at)


NORMED = {
    "RMSNorm before": (lambda x, at: plain_rope(rms(x), at), "default"),
    "RMSNorm with gains before": (lambda x, at: plain_rope(rms(x, 1e-5) * GAINS.to(x.dtype), at), "default"),
    "gains of both signs": (lambda x, at: plain_rope(rms(x) * (GAINS - 1).to(x.dtype), at), "default"),
    "RMSNorm after": (lambda x, at: rms(plain_rope(x, at)), "default"),
    "L2 norm before": (lambda x, at: plain_rope(l2(x), at), "default"),
    "L2 norm after": (lambda x, at: 8 * l2(plain_rope(x, at)), "default"),
    "YaRN, whose factor the gains hide": (lambda x, at: with_yarn(rms(x) * GAINS.to(x.dtype), at), "yarn"),
}


@pytest.mark.parametrize(("rotate", "kind"), NORMED.values(), ids=NORMED)
def test_a_norm_around_a_rotation_is_read_and_the_rotation_inside_it(rotate, kind):
    settings = {"rope_type": kind, "rope_theta": 1e4, **SCALED[kind][0]}
    read = read_rotation(rotate, 64)
    assert (read.kind, read.layout, read.normed, read.settings["rope_type"]) == ("turns", "half", True, kind)
    assert str(read).startswith(
        f"a norm around the rotation, inside it half layout, 64 of 64 channels, {kind}"
    )
    findings = check_rotation(rotate, 64, settings=settings, layout="half")
    assert not failing(findings)
    assert one(findings, "as_configured").verdict == "passes"
    (wrong,) = (
        each
        for each in check_rotation(rotate, 64, settings=settings | {"rope_theta": 2e4})
        if each.verdict == "fails"
    )
    assert wrong.check == "as_configured"


@pytest.mark.parametrize(
    ("rotate", "checks"),
    [
        (
            lambda x, at: rms(plain_rope(x, at)) * GAINS.to(x.dtype),
            {"offsets_alone", "one_layout", "norm_kept"},
        ),
        (lambda x, at: plain_rope(rms(x), at.bfloat16().float()), {"precise_angles", "offsets_alone"}),
        (lambda x, at: plain_rope(rms(x), at - at[0]), {"place_alone"}),
    ],
    ids=["gains after the rotation", "positions in bfloat16", "positions from 0"],
)
def test_faults_are_found_with_a_norm_around_the_rotation(rotate, checks):
    assert checks <= failing(check_rotation(rotate, 64))


@pytest.mark.parametrize(
    "rotate",
    [
        lambda x, at: plain_rope(layer(x), at),
        lambda x, at: rms(plain_rope(rms(x) * GAINS.to(x.dtype), at)),
        lambda x, at: plain_rope(rms(x) * (torch.arange(64) != 5), at),
    ],
    ids=["LayerNorm", "norms before and after", "a gain of zero"],
)
def test_a_norm_that_hides_the_rotation_leaves_it_unread_and_no_check_fails(rotate):
    findings = check_rotation(rotate, 64, settings={"rope_type": "default", "rope_theta": 1e4})
    assert not failing(findings)
    assert one(findings, "reading").found == "is: a norm around a function that is not linear"
    found = one(findings, "as_configured")
    assert (found.verdict, found.found) == (
        "no power",
        "the function inside the norm is not linear and cannot be read",
    )


def test_what_is_not_linear_and_has_no_norm_is_still_no_rotation():
    found = one(
        check_rotation(lambda x, at: plain_rope(x, at).tanh(), 64, settings={"rope_theta": 1e4}),
        "as_configured",
    )
    assert found.verdict == "fails"


def test_a_table_that_ends_is_no_fault_where_no_length_was_promised():
    findings = check_rotation(ends, 16)
    assert not failing(findings)
    assert one(findings, "reaches").verdict == "no power"
    assert "no power" in verdicts(findings)["precise_angles"]
    assert not failing(check_rotation(ends, 16, length=4096))


# --- a rotation: bad input


@pytest.mark.parametrize(
    ("message", "rotate", "options"),
    [
        (
            "rotate must take x (1, 2, 5, 16), (batch, heads, tokens, dim), and positions (5,) up to 9; "
            "it raised TypeError: bad",
            None,
            {},
        ),
        (
            "rotate must return (1, 2, 5, 16) for x (1, 2, 5, 16), (batch, heads, tokens, dim), and "
            "positions (5,) up to 9, got (1, 5, 2, 16)",
            lambda x, positions: x.transpose(1, 2),
            {},
        ),
        (
            "rotate must return (1, 2, 5, 16) for x (1, 2, 5, 16), (batch, heads, tokens, dim), and "
            "positions (5,) up to 9, got tuple",
            lambda x, positions: (x, x),
            {},
        ),
        ("layout must be half or interleaved, got neox", RIGHT, {"layout": "neox"}),
        ("length must be 64 or more, got 0", RIGHT, {"length": 0}),
    ],
)
def test_what_is_no_rotation_is_refused(message, rotate, options):
    def raising(x, positions):
        raise TypeError("bad")

    refused(message, check_rotation, rotate or raising, 16, **options)


def test_a_rotation_with_axes_in_another_order_says_which_it_was_given():
    def rotate(x, positions):  # as for (batch, tokens, heads, dim)
        return apply_rope(x, *rope_tables(positions, W), "half", heads_axis=-2)

    with pytest.raises(
        ValueError, match=r"x \(1, 2, 5, 16\), \(batch, heads, tokens, dim\).*it raised ValueError"
    ):
        check_rotation(rotate, 16)


# --- an attention


def attending(bias=None, window=None, causal=True, sink=None, steep=None):
    """An attention: bias(i, j) to (heads, queries, keys), window and causal as attention_mask has them."""

    def attend(q, k, v, i, j):
        steps = i[:, None] - j
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if steep is not None:
            scores = scores * steep(i)[:, None]
        if bias is not None:
            scores = scores + bias(i, j)
        if causal:
            scores = scores.masked_fill(steps < 0, -math.inf)
        if window is not None:
            scores = scores.masked_fill(steps >= window, -math.inf)
        if sink is not None:
            rest = torch.full_like(scores[..., :1], sink)
            return torch.cat((scores, rest), -1).softmax(-1)[..., :-1] @ v
        return scores.softmax(-1) @ v

    return attend


def turned(q, k, v, i, j):
    return attending()(RIGHT(q, i), RIGHT(k, j), v, i, j)


ALIBI = attending(lambda i, j: alibi_bias(i, j, alibi_slopes(2)))
TABLE = torch.randn(32, 2, generator=torch.Generator().manual_seed(2))
T5 = attending(lambda i, j: t5_bias(i, j, t5_bias_by_offset(TABLE, bidirectional=False)))


@pytest.mark.parametrize("attend", [ALIBI, T5, turned], ids=["alibi", "t5_bias", "rope"])
def test_nothing_fails_of_a_right_attention(attend):
    told = verdicts(check_attention(attend, 16, causal=True, sinks=False, scale=0.25))
    assert told.pop("bias") == "reads"
    assert set(told.values()) == {"passes"}
    assert set(told) == {
        "finite", "same_twice", "adds_up", "hidden_keys", "rows_alone", "no_peeking", "fewer_keys",
        "offsets_alone", "scale",
    }  # fmt: skip


def test_the_bias_is_read_off():
    assert one(check_attention(ALIBI, 16), "bias").found == (
        "head 0: 0.0625 less for each step back; head 1: 0.00391 less for each step back; "
        "the slopes of 2 heads"
    )
    assert "at the farthest key, relative to the nearest" in one(check_attention(T5, 16), "bias").found
    assert one(check_attention(turned, 16), "bias").found == "nothing"


def test_slopes_that_are_given_are_held():
    right, other = alibi_slopes(2).tolist(), alibi_slopes(4).tolist()[::2]
    assert one(check_attention(ALIBI, 16, slopes=right), "bias").verdict == "passes"
    found = one(check_attention(ALIBI, 16, slopes=other), "bias")
    assert (found.verdict, found.where) == ("fails", "head 0, key 0")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "causal, with all earlier keys"),
        ({"window": 8}, "causal, a window of 8 keys, the token itself included"),
        ({"causal": False}, "not causal, with all earlier keys"),
    ],
)
def test_what_is_hidden_is_read_off(options, said):
    found = one(check_attention(attending(**options), 16), "hidden_keys")
    assert (found.verdict, found.found) == ("reads", said)


def right_window(**options):
    return attending(window=8, **options)


def top_left(q, k, v, i, j):
    """A causal mask by rows and columns, not by positions."""
    seen = torch.ones(q.shape[-2], k.shape[-2]).tril().bool()
    return (q @ k.mT).masked_fill(~seen, -math.inf).softmax(-1) @ v


def by_rows(q, k, v, i, j):
    """A bias that counts rows."""
    rows = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])
    return (q @ k.mT - rows.abs()).softmax(-1) @ v


def holed(q, k, v, i, j):
    steps = i[:, None] - j
    hidden = (steps < 0) | (steps == 5)
    return (q @ k.mT).masked_fill(hidden, -math.inf).softmax(-1) @ v


@pytest.mark.parametrize(
    ("attend", "check", "options", "words"),
    [
        (lambda q, k, v, i, j: 0 * q / 0, "finite", {}, "Are all values finite? no"),
        (lambda q, k, v, i, j: torch.dropout(turned(q, k, v, i, j), 0.5, True), "same_twice", {}, "no"),
        (right_window(), "hidden_keys", {"window": 9}, "a window of 8 keys, the token itself included"),
        (right_window(), "hidden_keys", {"window": 7}, "expected a window of 7 keys"),
        (attending(), "hidden_keys", {"causal": False}, "expected not causal"),
        (attending(causal=False), "hidden_keys", {"causal": True}, "not causal"),
        (holed, "hidden_keys", {"causal": True}, "but query 5 does not see key 0"),
        (attending(), "adds_up", {"sinks": True}, "a sink that the kernel does not support"),
        (attending(sink=0.0), "adds_up", {"sinks": False}, "a sink has the rest"),
        (top_left, "rows_alone", {}, "first at head 0, query 59"),
        (by_rows, "rows_alone", {}, "counted from the first key"),
        (attending(lambda i, j: (i[:, None] - j) * i[:, None] / 99), "offsets_alone", {}, "shift 1,"),
        (lambda q, k, v, i, j: turned(q, k, v, i.clamp(max=99), j), "offsets_alone", {}, "shift 100,"),
    ],
)
def test_a_fault_of_an_attention_is_found_by_its_check(attend, check, options, words):
    found = one(check_attention(attend, 16, **options), check)
    assert found.verdict == "fails"
    assert words in str(found)


def test_right_windows_and_sinks_pass():
    findings = check_attention(right_window(sink=1.0), 16, causal=True, window=8, sinks=True)
    assert verdicts(findings)["hidden_keys"] == verdicts(findings)["adds_up"] == "passes"


def test_a_temperature_by_position_promised_nothing():
    grows = attending(lambda i, j: -(i[:, None] - j) * 0.0, steep=lambda i: 1 + (1 + i).log())
    found = one(check_attention(grows, 16), "offsets_alone")
    assert found.verdict == "no promise"
    assert "multiplied by a number that depends on its position" in found.found


@pytest.mark.claim(
    "no-verdict-without-power",
    "Four checks do not pass where they could not have failed: that of order, for a model that no order "
    "changes; that of prompts beyond a limit, for prompts within it; that of offsets, for an attention "
    "without positions; and that of hidden keys, for a window that no key exceeds.",
)
def test_an_attention_that_could_not_have_failed_says_so():
    plain = attending(causal=False)
    found = one(check_attention(plain, 16), "offsets_alone")
    assert (found.verdict, found.found) == ("no power", "reversing the positions of keys changes no weight")
    found = one(check_attention(right_window(), 16, window=99), "hidden_keys")
    assert found.verdict == "no power"
    assert "64 keys do not reach beyond a window of 99" in found.found


@pytest.mark.parametrize(
    ("words", "attend"),
    [
        (r"attend must take q \(1, 2, 64, 16\), k and v .*; it raised RuntimeError: no", None),
        (
            r"attend must return \(1, 2, 64, 16\), got \(1, 64, 2, 16\)",
            lambda q, k, v, i, j: q.transpose(1, 2),
        ),
    ],
)
def test_what_is_no_attention_is_refused(words, attend):
    def raising(*given):
        raise RuntimeError("no")

    with pytest.raises(ValueError, match=words):
        check_attention(attend or raising, 16)


# --- what is told


def test_a_report_has_what_fails_first_and_counts():
    findings = [
        Finding("finite", "passes", "Finite?", "yes", "yes"),
        Finding("norm_kept", "fails", "Same?", "1", "2", 0.5, "here", "so"),
    ]
    lines = report(findings).splitlines()
    told = " ".join(lines[:2]).split(None, 2)
    assert told[:2] == ["fails", "norm_kept"]
    assert (
        " ".join(told[2].split())
        == "Same? 2; expected 1 within 5.0e-01; first at here. Most common cause: so"
    )
    assert lines[-1] == "1 fails, 1 passes"
    with pytest.raises(AssertionError) as caught:
        assert_positions(findings)
    assert str(caught.value) == str(findings[1])


def test_a_report_fits_a_terminal_and_leaves_out_no_word():
    findings = check_rotation(table_and_swap, 16)
    told = report(findings)
    assert max(map(len, told.splitlines())) <= 78
    words = set(" ".join(told.split()).split())
    assert set(itertools.chain(*(str(each).split(": ", 2)[2].split() for each in findings))) <= words
