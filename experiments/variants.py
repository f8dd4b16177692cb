"""What becomes of two models of language.py if one thing about their encoding is another?

RoPE with a window: trained as there, then asked with no key seen that stands so many bytes back or farther.
xPos with a slow fade: trained as there, with a fade made for eight times the trained length.
"""

import math

import torch

from experiments import corpus, language
from experiments.encodings import Rope, make
from experiments.language import ASKED, CLIP, DIM, EACH, HEADS, UPDATES
from snippets.rope import rope_frequencies

WINDOWS = (32, 64, 128, ASKED)  # bytes seen, the one that asks included; the last hides nothing
SLOWER = 8
provenance = language.provenance


class Windowed(Rope):
    def __init__(self, window):
        super().__init__(rope_frequencies(DIM // HEADS, base=10000))
        self.window = window

    def bias(self, query_positions, key_positions):
        back = query_positions[:, None, :, None] - key_positions[:, None, None, :]
        return torch.zeros_like(back, dtype=torch.float32).masked_fill(back >= self.window, -math.inf)


def windowed(seed, device, updates, far):
    """The losses of the same bytes by window, then by the bytes read before them."""
    model = language.train(language.decoder("RoPE", seed), seed, device, updates)
    found = {}
    for window in WINDOWS:
        model.encoding = Windowed(window).to(device)
        found[str(window)] = language.by_context(model, far, device)
    return found


def slow_fade(seed, device, updates, far):
    """The losses of the same bytes by the bytes read before them."""
    model = language.decoder("none", seed)
    model.encoding = make("xPos", DIM, HEADS, SLOWER * ASKED, CLIP)
    return language.by_context(language.train(model, seed, device, updates), far, device)


VARIANTS = {"RoPE with a window": windowed, "xPos with a slow fade": slow_fade}


def run(method, seed, device, updates=UPDATES, each=EACH):
    far = corpus.spread(corpus.corpus()[1], each, ASKED).flatten(0, 1)
    return {"far": VARIANTS[method](seed, device, updates, far)}
