"""Llama of transformers reads packed rows as decoding.py has them: documents
end to end, none sees another.

Give the model what this returns beside its ids: positions that begin again,
and a mask of four axes.
"""

from snippets.decoding import attention_mask, document_positions


def packed(documents):
    positions = document_positions(documents)
    seen = attention_mask(positions, positions, documents, documents)
    return {"position_ids": positions, "attention_mask": seen[:, None]}
