"""Qwen2-VL or Qwen3-VL of transformers gets the rotation of its text part from
mrope.py.

The layout is "chunks" in Qwen2-VL and Qwen2.5-VL, "interleaved" in Qwen3-VL.
transformers has positions as (3, batch, tokens), and each pair's cosine in
both halves of the channels.
"""

import torch

from snippets.mrope import mrope_tables, pair_axes
from snippets.rope import rope_frequencies


def patch_model(model, layout):
    text = model.model.language_model
    config = text.config
    head_dim = (
        getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads
    )
    frequencies = rope_frequencies(
        head_dim, config.rope_parameters["rope_theta"]
    )
    axes = pair_axes(text.rotary_emb.mrope_section, layout)

    def tables(x, position_ids):
        if position_ids.ndim == 2:  # text alone
            position_ids = position_ids.expand(3, -1, -1)
        halves = mrope_tables(position_ids.movedim(0, -1), frequencies, axes)
        return tuple(torch.cat((half, half), -1).to(x.dtype) for half in halves)

    text.rotary_emb.forward = tables
