"""GPT-2 of transformers gets its bias from clipped_bias.py, and has no other
positions.

No checkpoint has the table: it is learned with the rest. A model of
transformers adds a mask of four axes to its scores as it is, so that the bias
can be the mask, where it hides later keys.
"""

import torch

from snippets.clipped_bias import ClippedBias


def patch_model(model, max_distance):
    model.bias = ClippedBias(model.config.n_head, max_distance)
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )

    def logits(ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        later = positions > positions[:, None]
        mask = model.bias(positions, positions).masked_fill(later, -torch.inf)
        return model(ids, attention_mask=mask[None]).logits

    return logits
