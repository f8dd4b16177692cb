"""Llama of transformers reads packed rows as decoding.py has them: documents
end to end, none sees another.

Give the model what this returns beside its ids: positions that begin again,
and a mask of four axes.
"""

from snippets.decoding import document_positions, visible


def packed(documents):
    positions = document_positions(documents)
    seen = visible(positions, positions, documents, documents)
    return {"position_ids": positions, "attention_mask": seen[:, None]}
