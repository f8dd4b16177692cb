"""A decoder of x-transformers with rotary_xpos turns and scales its q and k by
xpos.py.

Nothing of it is in a checkpoint. x-transformers hands on angles and one scale,
which it inverts for keys: here that pair stands for the tables of both. The
centre cancels, so that any may be chosen. Other models of the library in the
process must be without rotary positions.
"""

from x_transformers import x_transformers

from snippets.xpos import apply_xpos, xpos_tables


class Tables:
    """Those of q, and by ** -1, as x-transformers asks for them, those of k."""

    def __init__(self, query, key):
        self.query, self.key = query, key

    def __pow__(self, exponent):
        return Tables(self.key, self.query)


def patch_model(model):
    rotary = model.attn_layers.rotary_pos_emb
    dim = 2 * len(rotary.inv_freq)

    def tables(positions):
        given = (
            xpos_tables(positions, dim, role, centre=0)
            for role in ("query", "key")
        )
        return positions, Tables(*given)

    rotary.forward = tables
    x_transformers.apply_rotary_pos_emb = lambda x, positions, tables: (
        apply_xpos(x, *tables.query)
    )
