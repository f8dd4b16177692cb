"""ViT of transformers knows the row and the column of each patch by
fourier.py, in place of a table.

The table is vit.embeddings.position_embeddings of its checkpoint, whose first
row, of the class token, which has no place, stays. The rest is learned anew.
"""

import torch

from snippets.fourier import FourierEncoding


def patch_model(model, **sizes):
    embeddings = model.vit.embeddings
    side = model.config.image_size // model.config.patch_size
    rows, columns = torch.meshgrid(
        torch.arange(side), torch.arange(side), indexing="ij"
    )
    # (patches, 2)
    coordinates = torch.stack((rows, columns), -1).flatten(0, 1).float()
    first = embeddings.position_embeddings[:, :1].detach()
    embeddings.fourier = FourierEncoding(
        axes=2, dim=model.config.hidden_size, **sizes
    )
    del embeddings.position_embeddings

    def encode(*_):
        embeddings.position_embeddings = torch.cat(
            (first, embeddings.fourier(coordinates)[None]), 1
        )

    embeddings.register_forward_pre_hook(encode)
