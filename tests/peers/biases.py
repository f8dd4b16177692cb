"""Who else adds a number to the score of each query and key."""

import math

import torch

from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.clipped_bias import clipped_bias
from snippets.fire import FireBias
from snippets.forgetting import ForgetGates, forgetting_bias
from snippets.kerple import kerple_log_bias, kerple_power_bias
from snippets.sandwich import sandwich_bias
from snippets.swin_bias import swin_bias
from snippets.t5_bias import t5_bias, t5_bias_by_offset
from tests.peers import ANEW, DIM, HELD, Case, Way, learnable, peer

SLOPES = "slopes, which it keeps"
DIGITS = "sums from each query back, which keep their digits in long texts"


def square(snippet, what, heads, tokens, ways, close=1e-4):
    return Case(snippet, what, f"{heads} × {tokens} × {tokens}", ways, close)


def decoded(snippet, what, heads, keys, layers, ways):
    """Ways make a bias for one new token; each layer adds it to its scores."""
    return Case(snippet, f"{what}, one token, {layers} layers", f"{heads} × 1 × {keys}", ways, layers=layers)


def alibi(batch, heads, tokens):
    at, theirs = torch.arange(tokens), peer("x_transformers.x_transformers").AlibiPositionalBias(heads)

    def masked():
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        return theirs.forward_custom_pos(at, at).masked_fill(later, -math.inf)

    ours = Way("", lambda slopes: alibi_bias(at, at, slopes), lambda: (alibi_slopes(heads),))
    ways = [ours, Way("x-transformers and a causal mask", masked, lambda: (), SLOPES)]
    return square("alibi", "alibi_bias", heads, tokens, ways)


def alibi_symmetric(batch, heads, tokens):
    at, theirs = torch.arange(tokens), peer("x_transformers.x_transformers").AlibiPositionalBias(heads)
    ours = Way("", lambda slopes: alibi_bias_symmetric(at, at, slopes), lambda: (alibi_slopes(heads),))
    ways = [ours, Way("x-transformers", lambda: theirs.forward_custom_pos(at, at), lambda: (), SLOPES)]
    return square("alibi", "alibi_bias_symmetric", heads, tokens, ways)


def alibi_decoded(batch, heads, tokens, first, layers):
    at, keys, scores = torch.tensor([first]), torch.arange(first + 1), torch.randn(batch, heads, 1, first + 1)
    slopes, theirs = alibi_slopes(heads), peer("x_transformers.x_transformers").AlibiPositionalBias(heads)
    add = scores.add
    ways = [
        Way("", add, lambda: (alibi_bias(at, keys, alibi_slopes(heads)),), only=ANEW),
        Way("", add, lambda: (alibi_bias(at, keys, slopes),), only=HELD),
        Way("x-transformers", add, lambda: (theirs.forward_custom_pos(at, keys),), SLOPES, only=ANEW),
        Way("x-transformers, which keeps it", lambda: scores + theirs(1, first + 1), only=HELD),
    ]
    return decoded("alibi", "alibi_bias", heads, first + 1, layers, ways)


def t5_peers(table, bidirectional):
    """T5's bias in transformers and in x-transformers, with this table."""
    heads = table.shape[1]
    config = peer("transformers").T5Config(num_heads=heads, d_model=8, is_decoder=not bidirectional)
    attention = peer("transformers.models.t5.modeling_t5").T5Attention
    layer = attention(config, has_relative_attention_bias=True, layer_idx=0)
    bias = peer("x_transformers.x_transformers").RelativePositionBias
    other = bias(scale=1.0, causal=not bidirectional, heads=heads)
    for each in (layer, other):
        each.relative_attention_bias.weight.data = table.data
    return layer, other


def t5(bidirectional):
    """Added to scores: others leave the heads last in memory, which costs only who adds it."""

    def case(batch, heads, tokens):
        table, at, scores = learnable(32, heads), torch.arange(tokens), torch.randn(heads, tokens, tokens)
        layer, other = t5_peers(table, bidirectional)
        ways = [
            Way(
                "",
                lambda by_offset: scores + t5_bias(at, at, by_offset),
                lambda: (t5_bias_by_offset(table, bidirectional=bidirectional),),
            ),
            Way("transformers' T5", lambda: scores + layer.compute_bias(tokens, tokens)[0]),
            Way("x-transformers", lambda: scores + other(tokens, tokens)),
        ]
        what = f"t5_bias added to scores, {'both directions' if bidirectional else 'causal'}"
        return square("t5_bias", what, heads, tokens, ways)

    return case


def t5_decoded(batch, heads, tokens, first, layers):
    at, keys, scores = torch.tensor([first]), torch.arange(first + 1), torch.randn(batch, heads, 1, first + 1)
    table = torch.randn(32, heads)
    layer, other = t5_peers(table, bidirectional=False)

    def by_offset():
        return t5_bias_by_offset(table, bidirectional=False)

    kept = by_offset()
    ways = [
        Way("", scores.add, lambda: (t5_bias(at, keys, by_offset()),), only=ANEW),
        Way("", scores.add, lambda: (t5_bias(at, keys, kept),), only=HELD),
        Way(
            "transformers' T5",
            scores.add,
            lambda: (layer.compute_bias(1, first + 1, past_seen_tokens=first),),
        ),
        Way("x-transformers, whose layers each make it", lambda: scores + other(1, first + 1)),
    ]
    return decoded("t5_bias", "t5_bias, causal", heads, first + 1, layers, ways)


def clipped(batch, heads, tokens):
    table, at = learnable(2 * 32 + 1, heads), torch.arange(tokens)
    return square(
        "clipped_bias", "clipped_bias", heads, tokens, [Way("", lambda: clipped_bias(at, at, table))]
    )


def kerple(function):
    def case(batch, heads, tokens):
        at = torch.arange(tokens)
        r1, r2 = (torch.rand(heads).add_(0.1).requires_grad_() for _ in range(2))
        ways = [Way("", lambda: function(at, at, r1, r2))]
        return square("kerple", function.__name__, heads, tokens, ways)

    return case


def fire(batch, heads, tokens):
    module, at = FireBias(heads), torch.arange(tokens)
    return square("fire", "FireBias", heads, tokens, [Way("", lambda: module(at, at))])


def sandwich(batch, heads, tokens):
    at, each, mods = torch.arange(tokens), torch.arange(heads)[:, None, None], peer("attn_gym.mods")

    def attention_gym():
        modify = mods.generate_sandwich_bias(heads, tokens)
        return modify(0.0, None, each, at[:, None], at)

    ways = [
        Way("", lambda: sandwich_bias(at, at, heads)),
        Way("attention-gym", attention_gym, less="positions from 0 on only, and angles in float32"),
    ]
    return square("sandwich", "sandwich_bias", heads, tokens, ways, 1e-1)


def forget_gates(batch, heads, tokens):
    x = learnable(batch, tokens, heads * DIM)
    gates = ForgetGates(heads * DIM, heads)
    theirs = peer("x_transformers.x_transformers").DataDependentAlibi(dim=heads * DIM, heads=heads)
    theirs.to_forget_gates[0].load_state_dict(gates.state_dict())
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    ways = [
        Way("", lambda: forgetting_bias(gates(x))),
        Way("x-transformers and a causal mask", lambda: theirs(x).masked_fill(later, -math.inf), less=DIGITS),
    ]
    return square("forgetting", "forgetting_bias of ForgetGates", heads, tokens, ways)


def of_swin(batch, heads, tokens):
    grid = tokens // 16, 16
    places = torch.cartesian_prod(*map(torch.arange, grid))
    theirs = peer("transformers.models.swin.modeling_swin").SwinRelativePositionBias(heads, grid)
    table = theirs.relative_position_bias_table
    ways = [
        Way("", lambda: swin_bias(places, places, table, grid)),
        Way("transformers' Swin", lambda: theirs()[0], less="the rows, which it keeps"),
    ]
    return square("swin_bias", "swin_bias", heads, grid[0] * 16, ways)


CASES = [
    alibi,
    alibi_symmetric,
    t5(bidirectional=True),
    t5(bidirectional=False),
    clipped,
    kerple(kerple_log_bias),
    kerple(kerple_power_bias),
    fire,
    sandwich,
    forget_gates,
    of_swin,
]
DECODED = [alibi_decoded, t5_decoded]
