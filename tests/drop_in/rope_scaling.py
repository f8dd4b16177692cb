"""Llama 3.1 of transformers gets its frequencies from rope_scaling.py; they are in no checkpoint.

What config.json says in rope_scaling, called rope_parameters since, goes to llama3 by other names.
"""

from snippets.rope import rope_frequencies
from snippets.rope_scaling import llama3


def put_into(model):
    given = model.config.rope_parameters
    frequencies = llama3(
        rope_frequencies(model.config.head_dim, given["rope_theta"]),
        given["factor"],
        given["original_max_position_embeddings"],
        low=given["low_freq_factor"],
        high=given["high_freq_factor"],
    )
    model.model.rotary_emb.inv_freq = frequencies.float()
