"""ViT of transformers gets its table, for pictures of any size, from
vit_table.py.

The table is vit.embeddings.position_embeddings of its checkpoint. transformers
resizes it as "bicubic" does.
"""

from snippets.vit_table import resize_table


def patch_model(model, convention):
    embeddings, size = model.vit.embeddings, model.config.patch_size
    side = model.config.image_size // size

    def resized(patches, height, width):
        table, to = (
            embeddings.position_embeddings,
            (height // size, width // size),
        )
        return resize_table(
            table, (side, side), to, convention=convention, extra=1
        )

    embeddings.interpolate_pos_encoding = resized
