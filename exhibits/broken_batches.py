"""Bugs in released code: batches, windows and second code paths."""

import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import (
    DIM,
    WIDTH,
    angles,
    check_decoder,
    check_server,
    counted,
    look,
    turned,
    visible,
)
from snippets.check_positions import check_attention, check_rotation


def padding_counted():
    def broken(ids, real, memory):
        return (memory.length + torch.arange(ids.shape[1])).expand(ids.shape)

    def fixed(ids, real, memory):
        return memory.next_place + real.cumsum(-1) - 1

    table = torch.randn(64, WIDTH, generator=torch.Generator().manual_seed(1))

    def check(place):
        return check_server(place, lambda places: table[places.clamp(min=0)])

    return compare(broken, fixed, check, finds="alone_as_padded")


def one_padded_row_for_all():
    def own(ids, real, memory):  # ids below 10 are patches
        return memory.next_place - 1 + ((ids >= 10) & real).cumsum(-1)

    def broken(ids, real, memory):
        if not real.all() or not memory.real.all():  # anywhere in the batch
            return counted(ids, real, memory)
        return own(ids, real, memory)

    fixed = own  # the model counts patches and padding by itself

    return compare(broken, fixed, check_server, finds="alone_in_batch")


def one_row_of_new_tokens():
    """A kernel with a separate path for one new token per sequence."""

    def kernel(x, places):
        out = turned(x, places)
        if x.shape[2] == 1:
            out[1:] = 0  # its thread grid has no batch axis
        return out

    def attends(rotate):
        def attend(layer, q, k, v, places, real, cache):
            q, k = rotate(q, places), rotate(k, places)
            cache[layer] = cache[layer].plus(k, v, places, real)
            return look(q, cache[layer])

        return attend

    broken, fixed = attends(kernel), attends(turned)

    return compare(broken, fixed, check_decoder, finds="padded_as_steps")


def chunks_counted_from_the_padding():
    chunk = 8

    def chunked(number):
        def attend(layer, q, k, v, places, real, cache):
            q, k = turned(q, places), turned(k, places)
            cache[layer] = kept = cache[layer].plus(k, v, places, real)
            at = number(kept) // chunk  # (batch or 1, keys)
            same = at[:, None, -q.shape[2] :, None] == at[:, None, None]
            return look(q, kept, visible(kept, q.shape[2]) & same)

        return attend

    broken = chunked(lambda memory: torch.arange(memory.length)[None])
    fixed = chunked(lambda memory: memory.places)

    return compare(broken, fixed, check_decoder, finds="alone_as_padded")


def window_and_one():
    window = 4

    def broken(q, k, v, here, there):
        ago = here[:, None] - there
        shown = (ago >= 0) & (ago <= window)  # window + 1 keys
        return scaled_dot_product_attention(q, k, v, attn_mask=shown)

    def fixed(q, k, v, here, there):
        ago = here[:, None] - there
        shown = (ago >= 0) & (ago < window)
        return scaled_dot_product_attention(q, k, v, attn_mask=shown)

    def check(attend):
        return check_attention(attend, DIM, causal=True, window=window)

    return compare(broken, fixed, check, finds="hidden_keys")


def indexer_in_the_parents_layout():
    configuration = {"indexer_rope_interleave": True}

    def broken(x, positions):  # copied from another model
        return turned(x, positions, layout="half")

    def fixed(x, positions):
        interleaved = configuration["indexer_rope_interleave"]
        layout = "interleaved" if interleaved else "half"
        return turned(x, positions, layout=layout)

    def check(rotate):
        return check_rotation(rotate, DIM, layout="interleaved")

    return compare(broken, fixed, check, finds="as_configured")


def indexer_in_two_layouts():
    top = 32  # keys that the indexer selects

    def sparse(layout_of_one):  # layout in the single-token path
        def attend(layer, q, k, v, places, real, cache):
            layout = layout_of_one if q.shape[2] == 1 else "half"
            asks, k = turned(q, places, layout=layout), turned(k, places)
            cache[layer] = cache[layer].plus(k, v, places, real)
            shown = visible(cache[layer], q.shape[2])
            scores = asks @ cache[layer].k.mT
            scores = scores.masked_fill(~shown, -torch.inf)
            best = scores.topk(min(top, scores.shape[-1])).values
            shown = shown & (scores >= best[..., -1:])
            return look(turned(q, places), cache[layer], shown)

        return attend

    def check(attend):
        return check_decoder(attend, limits={"top-k": top})

    broken, fixed = sparse("interleaved"), sparse("half")
    return compare(broken, fixed, check, finds="past_limits")


def sinks_the_kernel_lacks():
    sinks = torch.tensor([[[1.0]], [[3.0]]])  # a trained logit for each head

    def broken(q, k, v, here, there):
        shown = there <= here[:, None]
        return scaled_dot_product_attention(q, k, v, attn_mask=shown)

    def fixed(q, k, v, here, there):
        shown = there <= here[:, None]
        scores = (q @ k.mT / DIM**0.5).masked_fill(~shown, -torch.inf)
        total = torch.logaddexp(scores.logsumexp(-1, keepdim=True), sinks)
        return (scores - total).exp() @ v

    def check(attend):
        return check_attention(attend, DIM, causal=True, sinks=True)

    return compare(broken, fixed, check, finds="adds_up")


def causal_from_the_top_left():
    def broken(q, k, v, here, there):
        shown = torch.ones(len(here), len(there)).tril().bool()
        return scaled_dot_product_attention(q, k, v, attn_mask=shown)

    def fixed(q, k, v, here, there):
        shown = there <= here[:, None]
        return scaled_dot_product_attention(q, k, v, attn_mask=shown)

    def check(attend):
        return check_attention(attend, DIM, causal=True)

    return compare(broken, fixed, check, finds="rows_alone")


def causal_from_the_top_left_in_torch():
    def broken(q, k, v, here, there):
        return scaled_dot_product_attention(q, k, v, is_causal=True)

    def fixed(q, k, v, here, there):
        bias = causal_lower_right(len(here), len(there))
        return scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def check(attend):
        return check_attention(attend, DIM, causal=True)

    return compare(broken, fixed, check, finds="rows_alone")


def causal_only_without_a_cache():
    def broken(layer, q, k, v, places, real, cache):
        q, k = turned(q, places), turned(k, places)
        first = cache[layer].length == 0
        cache[layer] = kept = cache[layer].plus(k, v, places, real)
        shown = (
            visible(kept, q.shape[2]) if first else kept.real[:, None, None]
        )
        return look(q, kept, shown)

    def fixed(layer, q, k, v, places, real, cache):
        q, k = turned(q, places), turned(k, places)
        cache[layer] = kept = cache[layer].plus(k, v, places, real)
        return look(q, kept, visible(kept, q.shape[2]))

    return compare(broken, fixed, check_decoder, finds="whole_as_chunks")


def table_kept_without_its_offset():
    kept = {}

    def broken(x, positions):
        table = kept.setdefault(len(positions), angles(positions))
        return turned(x, positions, lambda at, dim: table)

    def fixed(x, positions):
        table = kept.setdefault(tuple(positions.tolist()), angles(positions))
        return turned(x, positions, lambda at, dim: table)

    def check(rotate):
        return check_rotation(rotate, DIM)

    return compare(broken, fixed, check, finds="place_alone")


def drafts_one_ahead():
    """The draft model alone: verification of its drafts hides the bug."""

    def broken(ids, real, memory):  # adds one, then runs
        drafts = memory.length > 0 and ids.shape[1] == 1
        return counted(ids, real, memory) + (1 if drafts else 0)

    def fixed(ids, real, memory):  # runs, then adds one
        return counted(ids, real, memory)

    return compare(broken, fixed, check_server, finds="whole_as_steps")
