"""What does context extension cost on texts that need none?

A model of chains as in extensions.py is evaluated without fine-tuning: with its own frequencies, with each
method at fixed factors, as a server applies it to every text, and with a factor that follows the length of
the text, chosen once for the whole text.
"""

from experiments.chain_models import ROPE_BASE, TRAIN_LENGTH, chain_decoder
from experiments.chains import EVAL_TEXTS, UPDATES, evaluation_texts, trained
from experiments.chains import provenance as provenance
from experiments.extensions import HEADS, WIDTH, by_position
from snippets import rope, rope_scaling

FACTORS = (2, 4, 8)


def frequencies_of(method, factor):
    """The frequencies and the attention factor of a method for a context that is so many times as long."""
    frequencies = rope.rope_frequencies(WIDTH, base=ROPE_BASE)
    if method == "position interpolation":
        return rope_scaling.position_interpolation(frequencies, factor), 1.0
    if method == "NTK-aware":
        return rope_scaling.ntk_aware(frequencies, factor), 1.0
    yarn = rope_scaling.yarn(frequencies, factor, TRAIN_LENGTH)
    return yarn, rope_scaling.yarn_attention_factor(factor)


METHODS = "position interpolation", "NTK-aware", "YaRN"


def ways():
    """For each way to serve the model the frequencies and the attention factor, by the length of a text."""
    plain = rope.rope_frequencies(WIDTH, base=ROPE_BASE)
    found = {"RoPE": lambda length: (plain, 1.0)}
    for method in METHODS:
        for factor in FACTORS:
            found[f"{method} by {factor}"] = lambda length, m=method, s=float(factor): frequencies_of(m, s)
        found[f"{method} by length"] = lambda length, m=method: frequencies_of(
            m, max(1.0, length / TRAIN_LENGTH)
        )
    return found


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS):
    """Train once, then evaluate in every way."""
    model = trained(chain_decoder("RoPE", seed, HEADS), seed, device, updates)
    texts = evaluation_texts(count)
    return {"excess_loss": {name: by_position(model, way, texts, device) for name, way in ways().items()}}
