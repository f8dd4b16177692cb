"""Who else has what stands around an encoding: masks, caches, attention, a decoder."""

import math

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import SelfAttention
from snippets.block import Decoder, Encoding
from snippets.decoding import KeyValueCache, attend, attention_mask, document_positions
from snippets.learned import AddLearned
from tests.peers import DIM, Case, Way, learnable, peer, score_size


def packed(batch, tokens):
    """Documents of 100 tokens, one after the other in each row, and their positions."""
    documents = (torch.arange(tokens) // 100).expand(batch, -1).contiguous()
    return document_positions(documents), documents


def mask(batch, heads, tokens):
    positions, documents = packed(batch, tokens)
    theirs = peer("transformers.masking_utils")

    def transformers():
        same = theirs.packed_sequence_mask_function(documents)
        function = theirs.and_masks(theirs.causal_mask_function, same)
        made = theirs.sdpa_mask(batch, tokens, tokens, mask_function=function, allow_is_causal_skip=False)
        return made[:, 0]

    less = "keys that do not stand in the order of their positions, as in a cache with padding"
    ways = [
        Way("", lambda: attention_mask(positions, positions, documents, documents)),
        Way("transformers' sdpa_mask", transformers, less=less),
    ]
    return Case("decoding", "attention_mask, packed rows", f"{batch} × {tokens} × {tokens}", ways)


def attending(what, row=slice(None), biased=False, group=1):
    """attend with positions of each text, or of row 0 for all, with ALiBi added, with fewer key heads."""

    def case(batch, heads, tokens):
        q = learnable(batch, heads, tokens, DIM)
        k, v = (learnable(batch, heads // group, tokens, DIM) for _ in range(2))
        positions, documents = (each[row] for each in packed(batch, tokens))
        seen = attention_mask(positions, positions, documents, documents)
        bias = alibi_bias(positions, positions, alibi_slopes(heads)) if biased else None
        mask = seen[..., None, :, :] if bias is None else bias.masked_fill(~seen[..., None, :, :], -math.inf)
        mask = mask[(None,) * (4 - mask.ndim)]  # which the kernel wants

        def torchs():
            return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=group > 1)

        less = "bias and mask, which it is given as one" if biased else ""
        ways = [
            Way("", lambda: attend(q, k, v, seen, bias)),
            Way("torch's scaled_dot_product_attention", torchs, less=less),
        ]
        return Case("decoding", what, score_size(batch, heads, tokens), ways)

    return case


def caching(batch, heads, tokens):
    k, v = (torch.randn(batch, heads, tokens, DIM) for _ in range(2))
    new = [torch.randn(batch, heads, 1, DIM) for _ in range(2)]
    at, documents = torch.arange(tokens).expand(batch, -1), torch.ones(batch, tokens, dtype=torch.int64)
    cache = KeyValueCache(k, v, at, documents)
    now = at[:, -1:] + 1, documents[:, :1]
    layer = peer("transformers.cache_utils").DynamicLayer()
    layer.is_initialized = True

    def ours():
        longer = cache.extend(*new, *now)
        return longer.k, longer.v

    def transformers():
        layer.keys, layer.values = k, v
        return layer.update(*new)

    ways = [
        Way("", ours),
        Way(
            "transformers' DynamicLayer", transformers, less="positions and documents, which it does not keep"
        ),
    ]
    size = f"{batch} × {heads} × {tokens} × {DIM}, k and v"
    return Case("decoding", "KeyValueCache, one more token", size, ways)


def self_attention(batch, heads, tokens):
    dim = heads * DIM
    x, ours = learnable(batch, tokens, dim), SelfAttention(dim, heads)
    theirs = nn.MultiheadAttention(dim, heads, bias=False, batch_first=True)
    theirs.in_proj_weight.data = ours.project.weight.data
    theirs.out_proj.weight.data = ours.merge.weight.data
    ways = [
        Way("", lambda: ours(x)),
        Way(
            "torch.nn.MultiheadAttention",
            lambda: theirs(x, x, x, average_attn_weights=False),
            less="a query that sees no key, which gets NaN",
        ),
    ]
    size = f"{batch} × {tokens} × {dim}, {heads} heads"
    return Case("attention", "SelfAttention, with the weights of each head", size, ways)


class Learned(Encoding):
    def __init__(self, tokens, dim):
        super().__init__()
        self.add = AddLearned(tokens, dim)

    def embed(self, x, positions):
        return self.add(x, positions)


def gpt2(ours, heads, **more):
    """GPT-2 of transformers, with the weights of a decoder that has learned positions."""
    table = ours.encoding.add.table
    config = peer("transformers").GPT2Config(
        vocab_size=len(ours.tokens.weight),
        n_positions=len(table),
        n_embd=table.shape[1],
        n_layer=len(ours.blocks),
        n_head=heads,
        activation_function="gelu",
        bos_token_id=0,
        eos_token_id=0,
        **more,
    )
    model = peer("transformers.models.gpt2.modeling_gpt2").GPT2LMHeadModel(config)
    model = model.to(table.dtype).eval()
    gpt = model.transformer
    with torch.no_grad():
        gpt.wte.weight.copy_(ours.tokens.weight)
        gpt.wpe.weight.copy_(table)
        for old, new in zip(ours.blocks, gpt.h, strict=True):
            new.attn.c_attn.weight.copy_(old.project.weight.T)
            new.attn.c_proj.weight.copy_(old.merge.weight.T)
            for bias in (new.attn.c_attn.bias, new.attn.c_proj.bias):
                bias.zero_()
            for a, b in ((old.network[0], new.mlp.c_fc), (old.network[2], new.mlp.c_proj)):
                b.weight.copy_(a.weight.T)
                b.bias.copy_(a.bias)
    return model


def decoder(batch, heads, tokens):
    dim, words = heads * DIM, 1024
    ids, at = torch.randint(words, (batch, tokens)), torch.arange(tokens).expand(batch, -1)
    documents = torch.ones_like(at)
    ours = Decoder(Learned(tokens, dim), words, dim, heads, layers=1)

    def way(kind, less=""):
        theirs = gpt2(ours, heads, attn_implementation=kind)
        call = {"attention_mask": documents, "position_ids": at}
        return Way(f"transformers' GPT-2, {kind}", lambda: theirs(ids, **call).logits, less=less)

    ways = [
        Way("", lambda: ours(ids, at, documents)[0]),
        way("eager"),
        way("sdpa", "the tensor of scores, which an encoding may change"),
    ]
    size = f"{batch} × {tokens} × {dim}, {heads} heads, {words} words"
    return Case("block", "Decoder of one layer, learned positions", size, ways, 1e-3)


CASES = [
    mask,
    attending("attend"),
    attending("attend, one mask for all texts", row=0),
    attending("attend, one mask and ALiBi for all texts", row=0, biased=True),
    attending("attend, one mask for all texts, two heads to a key head", row=0, group=2),
    caching,
    self_attention,
    decoder,
]
