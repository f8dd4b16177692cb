"""BLOOM of transformers gets its bias from alibi.py; it is in no checkpoint.

BLOOM adds one row for all queries, here that of the last query. A row of
another query differs by one number, which the softmax does not see, and the
model hides later keys itself.
"""

from snippets.alibi import alibi_bias, alibi_slopes


def patch_model(model):
    def bias(attention_mask, num_heads, dtype):
        # -1 where padding stands before the text
        positions = attention_mask.cumsum(-1) - 1
        slopes = alibi_slopes(num_heads, attention_mask.device)
        # (batch, heads, 1, keys)
        made = alibi_bias(positions[:, -1:], positions, slopes, dtype)
        return made.flatten(0, 1)

    model.transformer.build_alibi_tensor = bias
