"""Llama of transformers turns its q and k by rope.py, with the checkpoint as
it is.

Its q_proj and k_proj lie in the layout half. The angles are float64 now;
tables are made once for all layers, as before. All Llamas in the process share
the function that is replaced, so patch the other ones, too.
"""

from transformers.models.llama import modeling_llama

from snippets.rope import apply_rope, rope_frequencies, rope_tables


def patch_model(model):
    base = model.config.rope_parameters["rope_theta"]
    frequencies = rope_frequencies(model.config.head_dim, base)

    def turn(q, k, cos, sin):
        return apply_rope(q, cos, sin, "half"), apply_rope(k, cos, sin, "half")

    model.model.rotary_emb.forward = lambda x, position_ids: rope_tables(
        position_ids, frequencies
    )
    modeling_llama.apply_rotary_pos_emb = turn
