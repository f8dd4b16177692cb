"""XLNet of transformers, from left to right, scores by transformer_xl.py.

In each layer of its checkpoint r is W, r_w_bias is u and r_r_bias is v. XLNet
has a row more than there are distances, the first.
"""

from snippets.transformer_xl import transformer_xl_scores


def patch_model(model):
    for layer in model.transformer.layer:
        layer.rel_attn.rel_attn_core = core_of(layer.rel_attn)


def core_of(attention):
    def core(q, k, v, rows, **_):
        # (batch, heads, tokens, dim)
        q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
        # (heads, keys, dim), the same for each text
        rows = rows[1:, 0].transpose(0, 1)
        scores = transformer_xl_scores(
            q, k, rows, attention.r_w_bias, attention.r_r_bias
        )
        return (scores.softmax(-1) @ v).permute(2, 0, 1, 3)

    return core
