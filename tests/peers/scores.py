"""Who else has positions inside the score."""

import math
import types

import torch
from torch import nn

from snippets.attention import attention, scaled_dot_product
from snippets.cope import cope_scores
from snippets.deberta import DebertaScores
from snippets.local_global import local_global_index, local_global_scores
from snippets.relative_logits import relative_logits
from snippets.shaw import shaw_scores, shaw_values
from snippets.sinks import sink_softmax
from snippets.temperature import log_temperature, scale_queries
from snippets.transformer_xl import transformer_xl_scores
from tests.peers import DIM, Case, Way, learnable, peer, score_size

CHECKED = "the check that no position is below zero"


def queries_and_keys(batch, heads, tokens):
    return learnable(batch, heads, tokens, DIM), learnable(batch, heads, tokens, DIM)


def wav2vec2_bert(table, clip):
    """The term of Shaw's keys in transformers: q and k to what is added to their scores."""
    modeling = peer("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    theirs = types.SimpleNamespace(
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        distance_embedding=nn.Embedding.from_pretrained(table.data, freeze=False),
        scaling=table.shape[-1] ** -0.5,
    )
    return lambda q, k: modeling._apply_relative_key_position_encoding(theirs, q, k)[1]


def shaw(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    clip, at = 16, torch.arange(tokens)
    table = learnable(2 * clip + 1, DIM)
    term = wav2vec2_bert(table, clip)
    ways = [
        Way("", lambda: shaw_scores(q, k, table, at, at)),
        Way("transformers' Wav2Vec2-BERT", lambda: scaled_dot_product(q, k) + term(q, k)),
    ]
    return Case("shaw", "shaw_scores", score_size(batch, heads, tokens), ways)


def shaw_of_values(batch, heads, tokens):
    clip, at = 16, torch.arange(tokens)
    weights = torch.rand(batch, heads, tokens, tokens, requires_grad=True)
    table = learnable(2 * clip + 1, DIM)
    ways = [Way("", lambda: shaw_values(weights, table, at, at))]
    return Case("shaw", "shaw_values", score_size(batch, heads, tokens), ways)


def xlnet(heads, dim, std=1.0):
    """XLNet's attention in transformers, with random weights."""
    config = peer("transformers").XLNetConfig(d_model=heads * dim, n_head=heads, dropout=0.0)
    made = peer("transformers.models.xlnet.modeling_xlnet").XLNetRelativeAttention(config)
    for weight in made.parameters():
        nn.init.normal_(weight, std=std)
    return made


def transformer_xl(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    v, theirs = learnable(batch, heads, tokens, DIM), xlnet(heads, DIM, std=0.1)
    rows = torch.randn(heads, 2 * tokens, DIM)  # distances tokens to 1 - tokens, as XLNet wants them
    hidden = torch.ones(tokens, tokens).triu(1)[:, :, None, None]

    def score(q, k):
        return transformer_xl_scores(q, k, rows[:, 1 : tokens + 1], theirs.r_w_bias, theirs.r_r_bias)

    def of_xlnet():
        heads_last = (x.permute(2, 0, 1, 3) for x in (q, k, v))
        for_each = rows.transpose(0, 1)[:, None].expand(-1, batch, -1, -1)
        return theirs.rel_attn_core(*heads_last, for_each, attn_mask=hidden).permute(1, 2, 0, 3)

    ways = [
        Way("", lambda: attention(q, k, v, score=score)[0]),
        Way("transformers' XLNet, which has rows for later keys too", of_xlnet),
    ]
    what = "attention with transformer_xl_scores"
    return Case("transformer_xl", what, score_size(batch, heads, tokens), ways, 1e-3)


def deberta_v2(dim, heads, span, **more):
    """DeBERTa-v2's attention in transformers, with both terms of distances."""
    config = peer("transformers").DebertaV2Config(
        hidden_size=dim,
        num_attention_heads=heads,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=span,
        **more,
    )
    return peer("transformers.models.deberta_v2.modeling_deberta_v2").DisentangledSelfAttention(config).eval()


def deberta(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    span, at, dim = 256, torch.arange(tokens), heads * DIM
    score, theirs = DebertaScores(dim, heads, span), deberta_v2(dim, heads, span)
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

    ways = [Way("", lambda: score(q, k, at, at)), Way("transformers' DeBERTa-v2", transformers)]
    return Case("deberta", "DebertaScores", score_size(batch, heads, tokens), ways, 1e-3)


def cope_peer(table, heads):
    """CoPE of x-transformers: scores, behind a causal mask, with what it adds to them."""
    theirs = peer("x_transformers.x_transformers").CoPE(table.shape[1], heads, max_pos=len(table))
    theirs.pos_emb.data = table.data

    def scores(q, k):
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(k.shape[-2] - q.shape[-2] + 1)
        masked = scaled_dot_product(q, k).masked_fill(later, -math.inf)
        return masked + theirs(q, masked)

    return scores


def cope(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    table = learnable(64, DIM)
    theirs = cope_peer(table, heads)
    ways = [Way("", lambda: cope_scores(q, k, table)), Way("x-transformers", lambda: theirs(q, k))]
    return Case("cope", "cope_scores", score_size(batch, heads, tokens), ways, 1e-3)


def local_global(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    window, width, rings, at = 16, 32, 8, torch.arange(tokens)
    tables = [learnable(2 * window + 1, DIM), learnable(2, rings, DIM)]
    ways = [Way("", lambda: local_global_scores(q, k, *tables, at, at, width))]
    return Case("local_global", "local_global_scores", score_size(batch, heads, tokens), ways)


def local_global_picks(batch, heads, tokens):
    at = torch.arange(tokens)
    ways = [Way("", lambda: local_global_index(at, at, window=16, width=32, far_buckets=8))]
    return Case("local_global", "local_global_index", f"{tokens} × {tokens}", ways)


def of_inkling(batch, heads, tokens):
    profiles, extent, at = 16, 512, torch.arange(tokens)  # as in its layers that see a window
    states, bank = learnable(batch, heads, tokens, profiles), learnable(profiles, extent)
    theirs = peer("transformers.models.inkling.modeling_inkling").InklingRelativeLogits(profiles, extent)
    theirs.proj.data = bank.data
    ways = [
        Way("", lambda: relative_logits(states, bank, at, at)),
        Way("transformers' Inkling", lambda: theirs(states.transpose(1, 2), at, at)),
    ]
    return Case("relative_logits", "relative_logits", f"{batch} × {heads} × {tokens} × {tokens}", ways)


def sinks_of_heads(batch, heads, tokens):
    q, k = queries_and_keys(batch, heads, tokens)
    v, sinks = learnable(batch, heads, tokens, DIM), learnable(heads)
    modeling = peer("transformers.models.gpt_oss.modeling_gpt_oss")
    layer = types.SimpleNamespace(sinks=sinks, num_key_value_groups=1, training=False)

    def theirs():
        made, _ = modeling.eager_attention_forward(layer, q, k, v, None, scaling=DIM**-0.5)
        return made.transpose(1, 2)

    ways = [
        Way("", lambda: sink_softmax(scaled_dot_product(q, k), sinks) @ v),
        Way("transformers' gpt-oss", theirs),
    ]
    return Case("sinks", "sink_softmax in attention", score_size(batch, heads, tokens), ways)


def temperature_of_queries(batch, heads, tokens):
    q, at = learnable(batch, heads, tokens, DIM), torch.arange(tokens)
    theirs = peer("transformers.models.ministral3.modeling_ministral3").get_llama_4_attn_scale

    def ours():
        return scale_queries(q, log_temperature(at, tokens // 4, 0.1, first=0, steps=True))

    ways = [
        Way("", ours),
        Way("transformers' Ministral 3", lambda: q * theirs(at[None], 0.1, tokens // 4), less=CHECKED),
    ]
    return Case("temperature", "log_temperature of queries", f"{batch} × {heads} × {tokens} × {DIM}", ways)


CASES = [
    shaw,
    shaw_of_values,
    transformer_xl,
    deberta,
    cope,
    of_inkling,
    sinks_of_heads,
    temperature_of_queries,
    local_global,
    local_global_picks,
]
