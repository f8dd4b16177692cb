"""T5 of transformers gets its bias from t5_bias.py, made by offset before and
not for each token.

The tables are
encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight of its
checkpoint, and the same of its decoder. Patch the model after training: the
bias by offset is made once and does not follow the table, and a second step of
training would find its graph gone.
"""

import torch

from snippets.t5_bias import t5_bias, t5_bias_by_offset


def patch_model(model):
    for stack, bidirectional in ((model.encoder, True), (model.decoder, False)):
        # its bias serves all layers
        attention = stack.block[0].layer[0].SelfAttention
        table, most = (
            attention.relative_attention_bias.weight,
            attention.relative_attention_max_distance,
        )
        attention.compute_bias = bias_of(
            t5_bias_by_offset(table, most, bidirectional)
        )


def bias_of(by_offset):
    def bias(query_length, key_length, device=None, past_seen_tokens=0):
        queries = torch.arange(query_length, device=device) + past_seen_tokens
        return t5_bias(
            queries, torch.arange(key_length, device=device), by_offset
        )[None]

    return bias
