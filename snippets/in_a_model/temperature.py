"""Ministral 3 of transformers gets the factors of its queries from
temperature.py.

The model multiplies its queries by what this returns, in its own dtype. Any
other Ministral 3 in the process takes it too.
"""

from transformers.models.ministral3 import modeling_ministral3

from snippets.temperature import log_temperature


def factors(positions, strength, length):
    return log_temperature(positions, length, strength, first=0, steps=True)[
        :, None, :, None
    ]


def patch_model(model):
    modeling_ministral3.get_llama_4_attn_scale = factors
