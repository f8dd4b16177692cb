"""GPT-2 of transformers gets its bias from fire.py, and has no other
positions.

No checkpoint has it: what the bias learns is learned with the rest. A model of
transformers adds a mask of four axes to its scores as it is, so that the bias,
which hides later keys, can be the mask.
"""

import torch

from snippets.fire import FireBias


def patch_model(model):
    model.bias = FireBias(model.config.n_head)
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )

    def logits(ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return model(
            ids, attention_mask=model.bias(positions, positions)[None]
        ).logits

    return logits
