"""DINOv3 of transformers gets its rotation from axial_rope.py.

Places are the centres of patches, and the model leaves class and register
tokens as they are. transformers has each pair's cosine in both halves of the
channels.
"""

import math

import torch

from snippets.axial_rope import (
    axial_frequencies,
    axial_rope_tables,
    patch_coordinates,
)


def patch_model(model):
    config, size = model.config, model.config.patch_size
    dim = config.hidden_size // config.num_attention_heads
    frequencies = (
        2 * math.pi * axial_frequencies(dim, "each", config.rope_theta)
    )

    def tables(picture):
        rows, columns = (side // size for side in picture.shape[-2:])
        halves = axial_rope_tables(
            patch_coordinates(rows, columns), frequencies
        )
        return tuple(
            torch.cat((half, half), -1).to(picture.dtype) for half in halves
        )

    model.rope_embeddings.forward = tables
