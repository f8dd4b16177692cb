"""GPT-2 of transformers gets its bias from kerple.py, and has no other
positions.

No checkpoint has it: what the bias learns is learned with the rest. A model of
transformers adds a mask of four axes to its scores as it is, so that the bias
can be the mask, where it hides later keys.
"""

import torch

from snippets.kerple import KerpleLog


def patch_model(model):
    model.bias = KerpleLog(model.config.n_head)
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )

    def logits(ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        later = positions > positions[:, None]
        mask = model.bias(positions, positions).masked_fill(later, -torch.inf)
        return model(ids, attention_mask=mask[None]).logits

    return logits
