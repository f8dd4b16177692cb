"""GPT-2 of transformers gets its bias from sandwich.py, and has no other
positions.

Nothing of it is learned, and no checkpoint has it. A model of transformers
adds a mask of four axes to its scores as it is, so that the bias can be the
mask, where it hides later keys.
"""

import torch

from snippets.sandwich import sandwich_bias


def patch_model(model):
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )

    def logits(ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        later = positions > positions[:, None]
        mask = sandwich_bias(
            positions, positions, model.config.n_head
        ).masked_fill(later, -torch.inf)
        return model(ids, attention_mask=mask[None]).logits

    return logits
