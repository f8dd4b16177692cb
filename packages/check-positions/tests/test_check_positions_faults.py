"""check_positions.py finds faults that were reported in public threads, and names their causes."""

import pytest
import torch
from torch.nn.functional import rms_norm

from check_positions.checker import check_attention, check_model, check_rotation
from findings import failing, one, turning
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.rope import rope_frequencies
from snippets.sinusoidal import sinusoidal_encoding

ROPE = turning(rope_frequencies(16, base=10000))
SETTINGS = {"rope_type": "default", "rope_theta": 10_000.0}
GAINS = torch.linspace(0.5, 1.5, 16)


def add_sinusoids(x, at):
    return x + sinusoidal_encoding(at, x.shape[-1])


# --- a rotation


@pytest.mark.parametrize(
    ("rotate", "length", "words"),
    [
        (lambda x, at: ROPE(x, at.clamp(max=1199)), 2048, "positions from 1200 on are rotated as 1199 is"),
        (lambda x, at: ROPE(x, at.clamp(max=69_999)), 131_072, "positions from 70000 on"),
        (lambda x, at: ROPE(x, at.clamp(max=2046)), 2048, "positions from 2047 on are rotated as 2046 is"),
        (lambda x, at: ROPE(x, at.clamp(max=39)), 64, "positions from 40 on are rotated as 39 is"),
        (lambda x, at: ROPE(x, at % 4096), 8192, "position 4096 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, at % 3000), 8192, "position 3000 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, at.where(at < 1500, 0)), 2048, "position 1500 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, 4095 - at), 4096, "position 0 is rotated by 4095"),
        (lambda x, at: add_sinusoids(x, at.clamp(max=1199)), 2048, "add the same vector"),
        (lambda x, at: add_sinusoids(x, at % 512), 2048, "add the same vector"),
    ],
)
def test_positions_that_repeat_or_run_backwards_fail_one_check(rotate, length, words):
    findings = check_rotation(rotate, 16, length=length)
    assert words in one(findings, "positions_in_order").found
    assert failing(findings) - {"offsets_alone"} == {"positions_in_order"}


def test_positions_before_a_clamped_one_are_read():
    findings = check_rotation(lambda x, at: ROPE(x, at.clamp(max=1199)), 16, settings=SETTINGS, length=2048)
    assert one(findings, "as_configured").verdict == "passes"
    assert one(findings, "positions_in_order").where == "position 1200"


@pytest.mark.parametrize("begin", [1, 2, 256, -1])
@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_positions_that_begin_elsewhere_are_read_and_nothing_fails(begin, factor):
    rope = turning(rope_frequencies(16, base=10000), factor=factor)
    findings = check_rotation(lambda x, at: rope(x, at + begin), 16, layout="half", length=8192)
    assert not failing(findings)
    assert one(findings, "reading").found.endswith(f"positions begin at {begin}")
    assert one(findings, "as_configured").verdict == "passes"


@pytest.mark.parametrize(
    ("apart", "words"), [(1, "keys stand 1 position further"), (-2, "keys stand 2 positions back")]
)
def test_keys_at_other_positions_than_queries_fail(apart, words):
    findings = check_rotation(ROPE, 16, rotate_keys=lambda x, at: ROPE(x, at + apart), settings=SETTINGS)
    assert failing(findings) == {"keys_as_queries"}
    assert words in one(findings, "keys_as_queries").found
    assert not failing(check_rotation(ROPE, 16, rotate_keys=ROPE, settings=SETTINGS))


def rounded(x, at):
    return ROPE(x, at.bfloat16().float())


def restarted(x, at):
    return ROPE(x, at - at[0])


def low_precision(x, at):
    return ROPE(x, at if x.dtype == torch.float32 else at.bfloat16().float())


@pytest.mark.parametrize(
    ("rotate", "together", "words"),
    [
        (lambda x, at: ROPE(x, at.clamp(max=511)), {"offsets_alone"}, "clamped or wrapped"),
        (lambda x, at: ROPE(x, at // 2), {"precise_angles", "offsets_alone"}, "an integer division"),
        (rounded, {"precise_angles", "offsets_alone"}, "positions that are rounded, in half precision"),
        (restarted, {"place_alone"}, "counted from 0 in each call"),
        (low_precision, {"precise_angles"}, "half precision"),
        (lambda x, at: ROPE(x, at.float().sqrt()), {"precise_angles"}, "not the position times a constant"),
        (
            lambda x, at: ROPE(x, at) * GAINS,
            {"one_layout", "norm_kept", "offsets_alone"},
            "weights of a norm",
        ),
        (lambda x, at: rms_norm(ROPE(x, at), (16,), GAINS), {"one_layout", "norm_kept"}, "weights of a norm"),
    ],
)
def test_failures_that_one_fault_explains_have_its_cause(rotate, together, words):
    wrong = [each for each in check_rotation(rotate, 16, length=2048) if each.verdict == "fails"]
    assert together <= {each.check for each in wrong}
    assert all(words in each.cause for each in wrong if each.check in together)


# --- an attention


def attending(turn_keys=0, scale=0.25, ends=lambda i: i, slopes=None, spread=0):
    """A causal attention with RoPE; each argument can make it wrong."""

    def attend(q, k, v, i, j):
        scores = scale * ROPE(q, i) @ ROPE(k, j + turn_keys).mT
        if slopes is not None:
            scores = scale * q @ k.mT + alibi_bias(i, j, slopes)
        if spread:
            scores = scores + ((i[:, None] - j + spread - len(j)) / 4).sin()
        return scores.masked_fill(j > ends(i)[:, None], -torch.inf).softmax(-1) @ v

    return attend


def block_when_alone(size):
    return lambda i: (i // size + 1) * size - 1 if len(i) == 1 else i


@pytest.mark.parametrize(
    ("attend", "options", "check", "words"),
    [
        (attending(turn_keys=1), {}, "keys_as_queries", "keys stand 1 position further"),
        (attending(turn_keys=-1), {}, "keys_as_queries", "keys stand 1 position back"),
        (attending(turn_keys=-3), {"scale": 0.25}, "keys_as_queries", "keys stand 3 positions back"),
        (attending(ends=block_when_alone(32)), {}, "no_peeking", "query 8 sees 23 later keys, up to key 31"),
        (attending(ends=block_when_alone(4)), {}, "no_peeking", "up to key 11"),
        (attending(scale=40**-0.5), {"scale": 16**-0.5}, "scale", "0.1581, which is 1 / sqrt(40)"),
        (attending(scale=4.0), {"scale": 16**-0.5}, "scale", "expected 0.25"),
        (attending(spread=999), {}, "fewer_keys", "by the number of keys"),
    ],
)
def test_a_fault_of_an_attention_fails_one_check(attend, options, check, words):
    findings = check_attention(attend, 16, causal=True, **options)
    assert failing(findings) == {check}
    assert words in str(one(findings, check))


@pytest.mark.parametrize("dim", [4, 24, 64, 128, 256])
def test_a_correct_attention_of_any_width_fails_nothing(dim):
    rope = turning(rope_frequencies(dim, base=10000))

    def attend(q, k, v, i, j):
        scores = (rope(q, i) @ rope(k, j).mT / dim**0.5).masked_fill(j > i[:, None], -torch.inf)
        return scores.softmax(-1) @ v

    assert not failing(check_attention(attend, dim, causal=True, scale=dim**-0.5))


@pytest.mark.parametrize("scale", [16**-0.5, 40**-0.5, 1.0, 4.0])
def test_the_scale_is_read(scale):
    found = one(check_attention(attending(scale=scale), 16, causal=True), "scale")
    assert (found.verdict, found.found) == ("reads", f"{scale:.4g}, which is 1 / sqrt({scale**-2:.4g})")


def test_a_norm_of_queries_leaves_the_scale_unread_and_nothing_fails():
    def attend(q, k, v, i, j):
        return attending()(*(torch.nn.functional.normalize(x, dim=-1) for x in (q, k)), v, i, j)

    findings = check_attention(attend, 16, causal=True, scale=0.25)
    assert not failing(findings)
    assert one(findings, "scale").verdict == "no power"


def test_a_scale_is_read_where_positions_are_added_to_keys():
    table = torch.randn(200, 16, generator=torch.Generator().manual_seed(4))

    def attend(q, k, v, i, j):
        far = (i[:, None] - j).clamp(0, 199)
        scores = (q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, table[far])) / 4
        return scores.masked_fill(j > i[:, None], -torch.inf).softmax(-1) @ v

    findings = check_attention(attend, 16, causal=True, scale=0.25)
    assert not failing(findings)
    assert one(findings, "scale").verdict == "passes"


def test_a_mask_by_rows_is_no_fault_where_queries_are_the_last():
    def attend(q, k, v, i, j):
        rows = torch.arange(len(j) - len(i), len(j)) + j[0]
        return attending(ends=lambda i: rows)(q, k, v, i, j)

    findings = check_attention(attend, 16, causal=True)
    assert not failing(findings)
    assert one(findings, "no_peeking").verdict == "no promise"


@pytest.mark.parametrize(
    ("slopes", "expected", "words"),
    [
        (alibi_slopes(4), None, "the slopes of 4 heads"),
        (alibi_slopes(8)[4:], None, "the slopes of heads 4 to 7 of 8"),
        (alibi_slopes(12)[8:], None, "the slopes of heads 8 to 11 of 12"),
        (alibi_slopes(4), alibi_slopes(8)[4:], "those of 4 heads, not of heads 4 to 7 of 8"),
        (alibi_slopes(8)[:3], alibi_slopes(3), "those of heads 0 to 2 of 8, not of 3 heads"),
    ],
)
def test_the_heads_whose_slopes_are_subtracted_are_named(slopes, expected, words):
    expected = expected if expected is None else expected.tolist()
    findings = check_attention(attending(slopes=slopes), 16, len(slopes), causal=True, slopes=expected)
    assert words in one(findings, "bias").found
    assert failing(findings) == (set() if expected is None else {"bias"})


# --- a model


def modelling(turn=lambda at: at, reads=True, sees_padding=lambda n: False):
    """One layer of causal attention with RoPE; each argument can make it wrong."""
    made = torch.Generator().manual_seed(0)
    tokens, project = torch.randn(20, 16, generator=made), torch.randn(16, 48, generator=made) / 3

    def model(ids, mask, positions, cache):
        own = torch.arange(ids.shape[1]).expand_as(ids)
        own = own if mask is None else (mask.cumsum(1) - 1).clamp(min=0)
        at = turn(positions if reads and positions is not None else own)
        q, k, v = (tokens[ids] @ project).chunk(3, -1)
        q, k = (torch.cat([ROPE(x[None, n : n + 1], at[n])[0] for n in range(len(x))]) for x in (q, k))
        hidden = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
        if mask is not None and not sees_padding(ids.shape[1]):
            hidden = hidden | ~mask[:, None] & ~torch.eye(len(hidden)).bool()
        scores = (q @ k.mT / 4).masked_fill(hidden, -torch.inf)
        return (scores.softmax(-1) @ v) @ tokens.T, None

    return model


@pytest.mark.parametrize(
    ("options", "given", "found", "words"),
    [
        ({"sees_padding": lambda n: n % 32 == 1}, {}, "alone_as_padded", "with 33 tokens, 4 of them padding"),
        ({"sees_padding": lambda n: n % 64 == 0}, {}, "alone_as_padded", "with 64 tokens"),
        ({"turn": lambda at: at.clamp(max=63)}, {}, "positions_in_order", "clamped"),
        ({"turn": lambda at: at.clamp(max=299)}, {}, "positions_in_order", "first at position 299"),
        ({"reads": False}, {"packs": True}, "alone_as_packed", "not passed on to the attention"),
    ],
)
def test_a_fault_of_a_model_that_short_texts_hide_fails_one_check(options, given, found, words):
    findings = check_model(modelling(**options), 20, **given)
    assert failing(findings) == {found}
    assert words in str(one(findings, found))


def test_a_right_model_passes_at_all_lengths():
    assert not failing(check_model(modelling(), 20, moves=True))


def test_position_ids_that_are_ignored_are_reported():
    found = one(check_model(modelling(reads=False), 20), "position_ids")
    assert (found.verdict, "ignores position ids" in found.found) == ("no promise", True)
