"""Inkling-2 of transformers gets its bias from relative_logits.py.

In a layer of your own, RelativeLogits takes three tensors of each self_attn:
r_proj.weight, rel_logits_proj.proj and rel_l2_clip.scale. In layers without a
window the model multiplies the states, between the two calls, by its number
for long texts.
"""

from snippets.relative_logits import clip_norm, relative_logits


def patch_model(model):
    for layer in model.model.layers:
        clip, bias = (
            layer.self_attn.rel_l2_clip,
            layer.self_attn.rel_logits_proj,
        )
        clip.forward = clipped(clip)
        bias.forward = mixed(bias)


def clipped(clip):
    return lambda states: clip_norm(
        states.float() * clip.scale.float(), clip.threshold
    ).to(states.dtype)


def mixed(bias):
    def forward(states, query_positions, key_positions):
        return relative_logits(
            states.transpose(1, 2), bias.proj, query_positions, key_positions
        )

    return forward
