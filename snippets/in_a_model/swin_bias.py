"""Swin of transformers gets its bias from swin_bias.py.

Its tables are relative_position_bias_table in relative_position_bias of each
attention, as SwinBias has them.
"""

import torch

from snippets.swin_bias import swin_bias


def patch_model(model):
    for stage in model.swin.encoder.layers:
        for block in stage.blocks:
            of = block.attention.relative_position_bias
            of.forward = looked_up(of)


def looked_up(of):
    def forward():
        places = torch.cartesian_prod(*map(torch.arange, of.window_size))
        return swin_bias(
            places, places, of.relative_position_bias_table, of.window_size
        )[None]

    return forward
