"""Marian of transformers gets its positions from sinusoidal.py, of any length.

It adds them in the layout sin_cos, the same in its encoder and in its decoder.
A checkpoint's model.encoder.embed_positions.weight and
model.decoder.embed_positions.weight hold that very table.
"""

import torch

from snippets.sinusoidal import sinusoidal_encoding


def patch_model(model):
    dim = model.config.d_model

    def encode(shape, past_key_values_length=0, position_ids=None):
        if position_ids is None:
            position_ids = (
                torch.arange(shape[1], device=model.device)
                + past_key_values_length
            )
        return sinusoidal_encoding(
            position_ids, dim, dtype=model.dtype, layout="sin_cos"
        )

    model.model.encoder.embed_positions.forward = encode
    model.model.decoder.embed_positions.forward = encode
