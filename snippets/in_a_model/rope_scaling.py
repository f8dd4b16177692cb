"""Llama of transformers, stretched or with p-RoPE, gets its frequencies from
rope_scaling.py.

They are in no checkpoint. What config.json says in rope_scaling, called
rope_parameters since, goes to llama3, yarn and proportional by other names.
With mscale, as DeepSeek has it, YaRN's attention factor is another.
"""

from snippets.rope import rope_frequencies
from snippets.rope_scaling import (
    llama3,
    position_interpolation,
    proportional,
    yarn,
    yarn_attention_factor,
)


def patch_model(model):
    given, rotary = model.config.rope_parameters, model.model.rotary_emb
    unstretched = rope_frequencies(model.config.head_dim, given["rope_theta"])
    if given["rope_type"] == "proportional":
        turning = proportional(unstretched, given["partial_rotary_factor"])
        rotary.inv_freq = position_interpolation(
            turning, given.get("factor", 1.0)
        ).float()
        return
    how_far = given["factor"], given["original_max_position_embeddings"]
    if given["rope_type"] == "llama3":
        ramp = {
            "low": given["low_freq_factor"],
            "high": given["high_freq_factor"],
        }
        frequencies = llama3(unstretched, *how_far, **ramp)
    else:
        ramp = {
            key: given[key]
            for key in ("beta_fast", "beta_slow", "truncate")
            if key in given
        }
        frequencies = yarn(unstretched, *how_far, **ramp)
        scaling = given.get("attention_factor") or yarn_attention_factor(
            given["factor"]
        )
        rotary.attention_scaling = scaling
    rotary.inv_freq = frequencies.float()
