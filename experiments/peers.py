"""What is timed: for each snippet the same work, done by it and by its peers.

The peers are libraries of requirements-test.txt. The same work begins with the same inputs and ends
with the same numbers, which check_same makes sure of. Nobody may keep a result from one call to the
next: peers that do are told not to. Where a peer does less, its `less` says what it leaves out or
makes coarser, and the snippet need not be as fast.
"""

import dataclasses
import math
import types
from collections.abc import Callable

import torch
from attn_gym import mods
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import DebertaV2Config, GPT2Config, LlamaConfig, T5Config, XLNetConfig, masking_utils
from transformers.cache_utils import DynamicLayer
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as wav2vec2_bert
from transformers.models.whisper import modeling_whisper as whisper
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention
from x_transformers import x_transformers

from snippets.alibi import alibi_bias, alibi_bias_symmetric
from snippets.attention import SelfAttention, attention, scaled_dot_product
from snippets.block import Decoder, Encoding
from snippets.clipped_bias import clipped_bias
from snippets.cope import cope_scores
from snippets.deberta import DebertaScores
from snippets.decoding import KeyValueCache, attend, document_positions, visible
from snippets.embed import Embed
from snippets.fire import FireBias
from snippets.gated_encoding import gated_encoding
from snippets.kerple import kerple_log_bias, kerple_power_bias
from snippets.learned import AddLearned
from snippets.local_global import local_global_rows, local_global_scores
from snippets.rope import apply_rope, rope_frequencies
from snippets.rope_scaling import llama3, longrope, yarn
from snippets.sandwich import sandwich_bias
from snippets.shaw import shaw_scores, shaw_values
from snippets.sinusoidal import sinusoidal_encoding, sinusoidal_encoding_t2t
from snippets.t5_bias import t5_bias
from snippets.transformer_xl import transformer_xl_scores
from snippets.xpos import apply_xpos

DIM = 64  # of a head
BASE = 10000.0
FLOAT32 = "angles in float32, which are coarser far out"
HEADS = 8


@dataclasses.dataclass
class Way:
    """One way to do the work. backward differentiates the outputs by the leaves."""

    name: str
    run: Callable[[], torch.Tensor | tuple[torch.Tensor, ...]]
    leaves: list[torch.Tensor] = dataclasses.field(default_factory=list)
    less: str = ""


@dataclasses.dataclass
class Case:
    snippet: str
    what: str
    size: str
    ours: Way
    peers: list[Way] = dataclasses.field(default_factory=list)
    floor: list[torch.Tensor] = dataclasses.field(default_factory=list)  # as large as what comes out
    close: float = 1e-4  # how far the peers' numbers may be from ours


def learnable(*shape):
    return torch.randn(shape, requires_grad=True)


def wants_grad(*modules):
    return [parameter for module in modules for parameter in module.parameters()]


def outputs(way):
    made = way.run()
    return list(made) if isinstance(made, (tuple, list)) else [made]


def check_same(case):
    """AssertionError unless the peers' numbers are the snippet's."""
    with torch.no_grad():
        ours = outputs(case.ours)
        for peer in case.peers:
            for expected, made in zip(ours, outputs(peer), strict=True):
                assert made.shape == expected.shape, (case.what, peer.name)
                seen = expected > -1e29  # some hide a key by -inf, some by a large number
                far = (made.double() - expected.double())[seen].abs().max().item()
                assert far <= case.close, f"{case.what}, {peer.name}: {far}"


# --- turning q and k, from positions to turned vectors


def turning(batch, heads, tokens):
    return learnable(batch, heads, tokens, DIM), learnable(batch, heads, tokens, DIM)


def rope_interleaved(batch, heads, tokens):
    q, k = both = turning(batch, heads, tokens)
    positions, frequencies = torch.arange(tokens), rope_frequencies(DIM)
    lucidrains = RotaryEmbedding(DIM, cache_if_possible=False)
    rotary = x_transformers.RotaryEmbedding(DIM)

    def exact():
        return positions.double()[:, None] * frequencies

    def ours():
        return tuple(apply_rope(x, positions, frequencies, "interleaved") for x in both)

    def rotary_embedding_torch():
        return tuple(lucidrains.rotate_queries_or_keys(x) for x in both)

    def rotary_embedding_torch_exact():
        angles = exact().float().repeat_interleave(2, -1)
        return tuple(apply_rotary_emb(angles, x) for x in both)

    def x_transformers_rotary():
        angles, _ = rotary(positions)
        return tuple(x_transformers.apply_rotary_pos_emb(x, angles) for x in both)

    def gptj_exact():
        angles = exact()
        sin, cos = angles.sin().float()[None], angles.cos().float()[None]
        turned = (gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos) for x in both)
        return tuple(x.transpose(1, 2) for x in turned)

    return Case(
        "rope",
        "apply_rope, interleaved, q and k",
        f"{batch} × {heads} × {tokens} × {DIM}",
        Way("", ours, [q, k]),
        [
            Way("rotary-embedding-torch", rotary_embedding_torch, [q, k], FLOAT32),
            Way("x-transformers", x_transformers_rotary, [q, k], FLOAT32),
            Way("rotary-embedding-torch, float64 angles", rotary_embedding_torch_exact, [q, k]),
            Way("transformers' GPT-J, float64 angles", gptj_exact, [q, k]),
        ],
        [q, k],
        1e-3,
    )


def rope_half(batch, heads, tokens):
    q, k = both = turning(batch, heads, tokens)
    positions, frequencies = torch.arange(tokens), rope_frequencies(DIM)
    rope_type = {"rope_type": "default", "rope_theta": BASE}
    config = LlamaConfig(hidden_size=DIM, num_attention_heads=1, rope_parameters=rope_type)
    rotary = llama.LlamaRotaryEmbedding(config)

    def ours():
        return tuple(apply_rope(x, positions, frequencies, "half") for x in both)

    def llama_rope():
        return llama.apply_rotary_pos_emb(q, k, *rotary(q, positions[None]))

    def llama_exact():
        angles = positions.double()[None, :, None] * frequencies
        angles = torch.cat((angles, angles), -1)
        return llama.apply_rotary_pos_emb(q, k, angles.cos().float(), angles.sin().float())

    return Case(
        "rope",
        "apply_rope, half, q and k",
        f"{batch} × {heads} × {tokens} × {DIM}",
        Way("", ours, [q, k]),
        [
            Way("transformers' LLaMA", llama_rope, [q, k], FLOAT32),
            Way("transformers' LLaMA, float64 angles", llama_exact, [q, k]),
        ],
        [q, k],
        1e-3,
    )


def xpos(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    positions = torch.arange(tokens)
    lucidrains = RotaryEmbedding(DIM, use_xpos=True, cache_if_possible=False)
    rotary = x_transformers.RotaryEmbedding(DIM, use_xpos=True)

    def ours():
        return tuple(apply_xpos(x, positions, role, tokens // 2) for x, role in ((q, "query"), (k, "key")))

    def x_transformers_xpos():
        angles, scale = rotary(positions)
        turned = x_transformers.apply_rotary_pos_emb(q, angles, scale)
        return turned, x_transformers.apply_rotary_pos_emb(k, angles, scale**-1)

    return Case(
        "xpos",
        "apply_xpos, q and k",
        f"{batch} × {heads} × {tokens} × {DIM}",
        Way("", ours, [q, k]),
        [
            Way("rotary-embedding-torch", lambda: lucidrains.rotate_queries_and_keys(q, k), [q, k], FLOAT32),
            Way("x-transformers", x_transformers_xpos, [q, k], FLOAT32),
        ],
        [q, k],
        2e-2,
    )


# --- added to embeddings


def sinusoids(batch, heads, tokens):
    dim, positions = heads * DIM, torch.arange(tokens)
    scaled = x_transformers.ScaledSinusoidalEmbedding(dim)
    nothing = torch.zeros(1, tokens, dim)

    def halves(table):
        return table.unflatten(-1, (2, -1)).mT.flatten(-2)

    return Case(
        "sinusoidal",
        "sinusoidal_encoding",
        f"{tokens} × {dim}",
        Way("", lambda: sinusoidal_encoding(positions, dim)),
        [
            Way(
                "transformers' GPT-J",
                lambda: halves(gptj.create_sinusoidal_positions(tokens, dim)),
                [],
                FLOAT32,
            ),
            Way("x-transformers", lambda: halves(scaled(nothing)) * dim**0.5, [], FLOAT32),
        ],
        [torch.zeros(tokens, dim)],
        1e-3,
    )


def sinusoids_t2t(batch, heads, tokens):
    dim, positions = heads * DIM, torch.arange(tokens)
    m2m_100 = M2M100SinusoidalPositionalEmbedding.get_embedding

    return Case(
        "sinusoidal",
        "sinusoidal_encoding_t2t",
        f"{tokens} × {dim}",
        Way("", lambda: sinusoidal_encoding_t2t(positions, dim)),
        [
            Way("transformers' M2M100", lambda: m2m_100(tokens, dim), [], FLOAT32),
            Way("transformers' Whisper", lambda: whisper.sinusoids(tokens, dim), [], FLOAT32),
        ],
        [torch.zeros(tokens, dim)],
        1e-3,
    )


def learned(batch, heads, tokens):
    dim = heads * DIM
    x, positions = learnable(batch, tokens, dim), torch.arange(tokens)
    add = AddLearned(tokens, dim)
    embedding = nn.Embedding.from_pretrained(add.table.data, freeze=False)
    absolute = x_transformers.AbsolutePositionalEmbedding(dim, tokens)
    absolute.emb.weight.data = add.table.data * dim**0.5

    return Case(
        "learned",
        "AddLearned",
        f"{batch} × {tokens} × {dim}",
        Way("", lambda: add(x, positions), [x, add.table]),
        [
            Way(
                "torch.nn.Embedding, added",
                lambda: x + embedding(positions),
                [x, embedding.weight],
                "the range of the positions, where the snippet names what the table lacks",
            ),
            Way("x-transformers", lambda: x + absolute(x, positions), [x, absolute.emb.weight]),
        ],
        [x],
    )


def embed(batch, heads, tokens):
    dim, words = heads * DIM, 4096
    ids, positions = torch.randint(words, (batch, tokens)), torch.arange(tokens)
    ours = Embed(nn.Embedding(words, dim), AddLearned(tokens, dim), scale=dim**0.5)
    word, place = (nn.Embedding.from_pretrained(w.data, freeze=False) for w in wants_grad(ours))

    return Case(
        "embed",
        "Embed with AddLearned",
        f"{batch} × {tokens} × {dim}, {words} words",
        Way("", lambda: ours(ids, positions), wants_grad(ours)),
        [
            Way(
                "torch.nn.Embedding, twice",
                lambda: dim**0.5 * word(ids) + place(positions),
                [word.weight, place.weight],
                "the range of the positions, where the snippet names what the table lacks",
            )
        ],
        [torch.zeros(batch, tokens, dim)],
    )


def gated(batch, heads, tokens):
    dim = heads * DIM
    x, table = learnable(batch, tokens, dim), learnable(tokens, dim)
    weight, bias = learnable(dim), learnable()
    leaves = [x, table, weight, bias]
    return Case(
        "gated_encoding",
        "gated_encoding",
        f"{batch} × {tokens} × {dim}",
        Way("", lambda: gated_encoding(*leaves), leaves),
        [],
        [x],
    )


# --- biases


def bias_size(heads, tokens):
    return f"{heads} × {tokens} × {tokens}"


def alibi_symmetric(batch, heads, tokens):
    positions, peer = torch.arange(tokens), x_transformers.AlibiPositionalBias(heads)
    return Case(
        "alibi",
        "alibi_bias_symmetric",
        bias_size(heads, tokens),
        Way("", lambda: alibi_bias_symmetric(positions, positions, heads)),
        [Way("x-transformers", lambda: peer.forward_custom_pos(positions, positions))],
        [torch.zeros(heads, tokens, tokens)],
    )


def alibi_causal(batch, heads, tokens):
    positions, peer = torch.arange(tokens), x_transformers.AlibiPositionalBias(heads)

    def masked():
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        return peer.forward_custom_pos(positions, positions).masked_fill(later, -math.inf)

    return Case(
        "alibi",
        "alibi_bias",
        bias_size(heads, tokens),
        Way("", lambda: alibi_bias(positions, positions, heads)),
        [Way("x-transformers and a causal mask", masked)],
        [torch.zeros(heads, tokens, tokens)],
    )


def t5(bidirectional):
    def case(batch, heads, tokens):
        table, positions = learnable(32, heads), torch.arange(tokens)
        config = T5Config(num_heads=heads, d_model=8, is_decoder=not bidirectional)
        layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        weight = layer.relative_attention_bias.weight
        other = x_transformers.RelativePositionBias(scale=1.0, causal=not bidirectional, heads=heads)
        for embedding in (layer, other):
            embedding.relative_attention_bias.weight.data = table.data
        return Case(
            "t5_bias",
            f"t5_bias, {'both directions' if bidirectional else 'causal'}",
            bias_size(heads, tokens),
            Way("", lambda: t5_bias(positions, positions, table, bidirectional=bidirectional), [table]),
            [
                Way("transformers' T5", lambda: layer.compute_bias(tokens, tokens)[0], [weight]),
                Way("x-transformers", lambda: other(tokens, tokens), [other.relative_attention_bias.weight]),
            ],
            [torch.zeros(heads, tokens, tokens)],
        )

    return case


def clipped(batch, heads, tokens):
    table, positions = learnable(2 * 32 + 1, heads), torch.arange(tokens)
    return Case(
        "clipped_bias",
        "clipped_bias",
        bias_size(heads, tokens),
        Way("", lambda: clipped_bias(positions, positions, table), [table]),
        [],
        [torch.zeros(heads, tokens, tokens)],
    )


def kerple(function):
    def case(batch, heads, tokens):
        positions = torch.arange(tokens)
        r1, r2 = (torch.rand(heads).add_(0.1).requires_grad_() for _ in range(2))
        return Case(
            "kerple",
            function.__name__,
            bias_size(heads, tokens),
            Way("", lambda: function(positions, positions, r1, r2), [r1, r2]),
            [],
            [torch.zeros(heads, tokens, tokens)],
        )

    return case


def fire(batch, heads, tokens):
    module, positions = FireBias(heads), torch.arange(tokens)
    return Case(
        "fire",
        "FireBias",
        bias_size(heads, tokens),
        Way("", lambda: module(positions, positions), wants_grad(module)),
        [],
        [torch.zeros(heads, tokens, tokens)],
    )


def sandwich(batch, heads, tokens):
    positions, each = torch.arange(tokens), torch.arange(heads)[:, None, None]

    def attention_gym():
        modify = mods.generate_sandwich_bias(heads, tokens)
        return modify(0.0, None, each, positions[:, None], positions)

    return Case(
        "sandwich",
        "sandwich_bias",
        bias_size(heads, tokens),
        Way("", lambda: sandwich_bias(positions, positions, heads)),
        [Way("attention-gym", attention_gym, [], "positions from 0 on only, and angles in float32")],
        [torch.zeros(heads, tokens, tokens)],
        1e-1,
    )


# --- inside the score


def score_size(batch, heads, tokens):
    return f"{batch} × {heads} × {tokens} × {tokens}, heads of {DIM}"


def shaw(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    clip, positions = 16, torch.arange(tokens)
    table = learnable(2 * clip + 1, DIM)
    embedding = nn.Embedding.from_pretrained(table.data, freeze=False)
    theirs = types.SimpleNamespace(
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        distance_embedding=embedding,
        scaling=DIM**-0.5,
    )

    def wav2vec2():
        _, relative = wav2vec2_bert._apply_relative_key_position_encoding(theirs, q, k)
        return scaled_dot_product(q, k) + relative

    return Case(
        "shaw",
        "shaw_scores",
        score_size(batch, heads, tokens),
        Way("", lambda: shaw_scores(q, k, table, positions, positions), [q, k, table]),
        [Way("transformers' Wav2Vec2-BERT", wav2vec2, [q, k, embedding.weight])],
    )


def shaw_v(batch, heads, tokens):
    clip, positions = 16, torch.arange(tokens)
    weights = torch.rand(batch, heads, tokens, tokens, requires_grad=True)
    table = learnable(2 * clip + 1, DIM)
    return Case(
        "shaw",
        "shaw_values",
        score_size(batch, heads, tokens),
        Way("", lambda: shaw_values(weights, table, positions, positions), [weights, table]),
    )


def transformer_xl(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    v = learnable(batch, heads, tokens, DIM)
    config = XLNetConfig(d_model=heads * DIM, n_head=heads, dropout=0.0)
    theirs = XLNetRelativeAttention(config)
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.1)
    content, place = theirs.r_w_bias, theirs.r_r_bias
    rows = torch.randn(heads, 2 * tokens, DIM)  # distances tokens to 1 - tokens, as XLNet wants them
    ours_rows = rows[:, 1 : tokens + 1]
    hidden = torch.ones(tokens, tokens).triu(1)[:, :, None, None]

    def ours():
        def score(q, k):
            return transformer_xl_scores(q, k, ours_rows, content, place)

        return attention(q, k, v, score=score)[0]

    def xlnet():
        heads_last = (x.permute(2, 0, 1, 3) for x in (q, k, v))
        theirs_rows = rows.transpose(0, 1)[:, None].expand(-1, batch, -1, -1)
        output = theirs.rel_attn_core(*heads_last, theirs_rows, attn_mask=hidden)
        return output.permute(1, 2, 0, 3)

    leaves = [q, k, v, content, place]
    return Case(
        "transformer_xl",
        "attention with transformer_xl_scores",
        score_size(batch, heads, tokens),
        Way("", ours, leaves),
        [Way("transformers' XLNet, which has rows for later keys too", xlnet, leaves)],
        close=1e-3,
    )


def deberta(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    span, positions, dim = 256, torch.arange(tokens), heads * DIM
    score = DebertaScores(dim, heads, span)
    config = DebertaV2Config(
        hidden_size=dim,
        num_attention_heads=heads,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=span,
    )
    theirs = DisentangledSelfAttention(config).eval()
    theirs.pos_key_proj.weight.data = score.project_key.weight.data
    theirs.pos_query_proj.weight.data = score.project_query.weight.data
    for project in (theirs.pos_key_proj, theirs.pos_query_proj):
        if project.bias is not None:
            nn.init.zeros_(project.bias)
    table = score.table.data.clone().requires_grad_()

    def transformers():
        flat = q.flatten(0, 1), k.flatten(0, 1)
        bias = theirs.disentangled_attention_bias(*flat, None, table, 3)
        return (flat[0] @ flat[1].mT / math.sqrt(3 * DIM) + bias).unflatten(0, (batch, heads))

    return Case(
        "deberta",
        "DebertaScores",
        score_size(batch, heads, tokens),
        Way("", lambda: score(q, k, positions, positions), [q, k, *wants_grad(score)]),
        [
            Way(
                "transformers' DeBERTa-v2",
                transformers,
                [q, k, table, theirs.pos_key_proj.weight, theirs.pos_query_proj.weight],
            )
        ],
        close=1e-3,
    )


def cope(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    table = learnable(64, DIM)
    theirs = x_transformers.CoPE(dim=DIM, heads=heads, max_pos=64)
    theirs.pos_emb.data = table.data
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)

    def lucidrains():
        scores = scaled_dot_product(q, k).masked_fill(later, -math.inf)
        return scores + theirs(q, scores)

    return Case(
        "cope",
        "cope_scores",
        score_size(batch, heads, tokens),
        Way("", lambda: cope_scores(q, k, table), [q, k, table]),
        [Way("x-transformers", lucidrains, [q, k, theirs.pos_emb])],
        close=1e-3,
    )


def local_global(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    window, width, rings, positions = 16, 32, 8, torch.arange(tokens)
    tables = [learnable(2 * window + 1, DIM), learnable(2, rings, DIM)]
    return Case(
        "local_global",
        "local_global_scores",
        score_size(batch, heads, tokens),
        Way("", lambda: local_global_scores(q, k, *tables, positions, positions, width), [q, k, *tables]),
    )


def local_global_picks(batch, heads, tokens):
    positions = torch.arange(tokens)
    return Case(
        "local_global",
        "local_global_rows",
        f"{tokens} × {tokens}",
        Way("", lambda: local_global_rows(positions, positions, window=16, width=32, rings=8)),
        [],
        [torch.zeros(tokens, tokens, dtype=torch.int64)],
    )


# --- in use


def packed(batch, tokens):
    """Documents of 100 tokens, one after the other in each row, and their positions."""
    documents = (torch.arange(tokens) // 100).expand(batch, -1).contiguous()
    return document_positions(documents), documents


def mask(batch, heads, tokens):
    positions, documents = packed(batch, tokens)

    def transformers():
        same = masking_utils.packed_sequence_mask_function(documents)
        function = masking_utils.and_masks(masking_utils.causal_mask_function, same)
        made = masking_utils.sdpa_mask(
            batch, tokens, tokens, mask_function=function, allow_is_causal_skip=False
        )
        return made[:, 0]

    return Case(
        "decoding",
        "visible, packed rows",
        f"{batch} × {tokens} × {tokens}",
        Way("", lambda: visible(positions, positions, documents, documents)),
        [
            Way(
                "transformers' sdpa_mask",
                transformers,
                [],
                "keys that do not stand in the order of their positions, as in a cache with padding",
            )
        ],
        [torch.zeros(batch, tokens, tokens, dtype=torch.bool)],
    )


def attending(batch, heads, tokens):
    q, k = turning(batch, heads, tokens)
    v = learnable(batch, heads, tokens, DIM)
    positions, documents = packed(batch, tokens)
    seen = visible(positions, positions, documents, documents)
    return Case(
        "decoding",
        "attend",
        score_size(batch, heads, tokens),
        Way("", lambda: attend(q, k, v, seen), [q, k, v]),
        [
            Way(
                "torch's scaled_dot_product_attention",
                lambda: scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None]),
                [q, k, v],
            )
        ],
    )


def caching(batch, heads, tokens):
    k, v = (torch.randn(batch, heads, tokens, DIM) for _ in range(2))
    new = [torch.randn(batch, heads, 1, DIM) for _ in range(2)]
    at, documents = torch.arange(tokens).expand(batch, -1), torch.ones(batch, tokens, dtype=torch.int64)
    cache = KeyValueCache(k, v, at, documents)
    now = at[:, -1:] + 1, documents[:, :1]

    def ours():
        longer = cache.extend(*new, *now)
        return longer.k, longer.v

    def transformers():
        layer = DynamicLayer()
        layer.keys, layer.values, layer.is_initialized = k, v, True
        return layer.update(*new)

    return Case(
        "decoding",
        "KeyValueCache, one more token",
        f"{batch} × {heads} × {tokens} × {DIM}, k and v",
        Way("", ours),
        [
            Way(
                "transformers' DynamicLayer",
                transformers,
                [],
                "positions and documents, which it does not keep",
            )
        ],
        [k, v],
    )


class Learned(Encoding):
    def __init__(self, tokens, dim):
        super().__init__()
        self.add = AddLearned(tokens, dim)

    def embed(self, x, positions):
        return self.add(x, positions)


def decoder(batch, heads, tokens):
    dim, words = heads * DIM, 1024
    ids, at = torch.randint(words, (batch, tokens)), torch.arange(tokens).expand(batch, -1)
    documents = torch.ones_like(at)
    ours = Decoder(Learned(tokens, dim), words, dim, heads, layers=1)
    peers = []
    for kind, less in (("eager", ""), ("sdpa", "the tensor of scores, which an encoding may change")):
        config = GPT2Config(
            vocab_size=words,
            n_positions=tokens,
            n_embd=dim,
            n_layer=1,
            n_head=heads,
            activation_function="gelu",
            attn_implementation=kind,
            bos_token_id=0,
            eos_token_id=0,
        )
        theirs = GPT2LMHeadModel(config).eval()
        like(ours, theirs.transformer)

        def gpt2(theirs=theirs):
            return theirs(ids, attention_mask=documents, position_ids=at).logits

        peers.append(Way(f"transformers' GPT-2, {kind}", gpt2, wants_grad(theirs), less))
    return Case(
        "block",
        "Decoder of one layer, learned positions",
        f"{batch} × {tokens} × {dim}, {heads} heads, {words} words",
        Way("", lambda: ours(ids, at, documents)[0], wants_grad(ours)),
        peers,
        close=1e-3,
    )


def like(ours, gpt2):
    """Give GPT-2 the weights of a decoder with learned positions."""
    with torch.no_grad():
        gpt2.wte.weight.copy_(ours.tokens.weight)
        gpt2.wpe.weight.copy_(ours.encoding.add.table)
        for old, new in zip(ours.blocks, gpt2.h, strict=True):
            new.attn.c_attn.weight.copy_(old.project.weight.T)
            new.attn.c_proj.weight.copy_(old.merge.weight.T)
            for a, b in ((old.network[0], new.mlp.c_fc), (old.network[2], new.mlp.c_proj)):
                b.weight.copy_(a.weight.T)
                b.bias.copy_(a.bias)


def self_attention(batch, heads, tokens):
    dim = heads * DIM
    x = learnable(batch, tokens, dim)
    ours = SelfAttention(dim, heads)
    theirs = nn.MultiheadAttention(dim, heads, bias=False, batch_first=True)
    theirs.in_proj_weight.data = ours.project.weight.data
    theirs.out_proj.weight.data = ours.merge.weight.data
    return Case(
        "attention",
        "SelfAttention, with the weights of each head",
        f"{batch} × {tokens} × {dim}, {heads} heads",
        Way("", lambda: ours(x), [x, *wants_grad(ours)]),
        [
            Way(
                "torch.nn.MultiheadAttention",
                lambda: theirs(x, x, x, average_attn_weights=False),
                [x, *wants_grad(theirs)],
                "a query that sees no key, which gets NaN",
            )
        ],
    )


# --- frequencies, once for a model


def stretching(kind, ours, **parameters):
    def case(batch, heads, tokens):
        dim = 64 * batch
        frequencies, length = rope_frequencies(dim), {"original_max_position_embeddings": 4096}
        given = {"rope_type": kind, "rope_theta": BASE, **length, **parameters}
        if kind == "longrope":
            given |= {f"{name}_factor": [1.5] * (dim // 2) for name in ("short", "long")}
        config = LlamaConfig(
            hidden_size=dim, num_attention_heads=1, max_position_embeddings=32768, rope_parameters=given
        )
        function = ROPE_INIT_FUNCTIONS[kind]
        return Case(
            "rope_scaling",
            kind,
            f"dim {dim}",
            Way("", lambda: ours(frequencies)),
            [Way("transformers", lambda: function(config, "cpu", seq_len=8192)[0], [], "float32 throughout")],
        )

    return case


CASES = [
    rope_interleaved,
    rope_half,
    xpos,
    sinusoids,
    sinusoids_t2t,
    learned,
    embed,
    gated,
    alibi_causal,
    alibi_symmetric,
    t5(bidirectional=True),
    t5(bidirectional=False),
    clipped,
    kerple(kerple_log_bias),
    kerple(kerple_power_bias),
    fire,
    sandwich,
    shaw,
    shaw_v,
    transformer_xl,
    deberta,
    cope,
    local_global,
    local_global_picks,
    mask,
    attending,
    caching,
    self_attention,
    decoder,
    stretching("yarn", lambda w: yarn(w, 8.0, 4096), factor=8.0),
    stretching(
        "llama3", lambda w: llama3(w, 8.0, 4096), factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0
    ),
    stretching(
        "longrope",
        lambda w: longrope(w, torch.full((len(w),), 1.5), torch.full((len(w),), 1.5), 4096, 8192),
        factor=8.0,
    ),
]
SIZES = [(1, HEADS, 256), (2, HEADS, 1024)]  # batch, heads, tokens
