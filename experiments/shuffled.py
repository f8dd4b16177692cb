"""The control for language.py: the bytes of each window come in a random order, in training and after.

There is no order to know about, so that an encoding can only be in the way.
"""

from experiments import language

provenance = language.provenance


def run(method, seed, device, updates=language.UPDATES, count=language.WINDOWS):
    model = language.trained(language.byte_decoder(method, seed), seed, device, updates, shuffled=True)
    return language.evaluate(model, language.heldout_windows(count, shuffled=True), device)
