"""GPT-2 of transformers adds to each token as much of its sinusoid as
gated_encoding.py lets through.

No checkpoint has the gate: it is learned with the rest. Give the model what
this returns as inputs_embeds, in place of ids; what it would add for positions
is then 0.
"""

import functools

import torch

from snippets.embed import Embed
from snippets.gated_encoding import AddGated
from snippets.sinusoidal import sinusoidal_encoding


def patch_model(model):
    dim = model.config.n_embd
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )
    model.gate = AddGated(dim, functools.partial(sinusoidal_encoding, dim=dim))
    return Embed(model.transformer.wte, model.gate)
