"""Real text in which far text must help: the alphabet has to be learned from the text itself.

The corpus of language.py, but in each window the 26 letters are exchanged among themselves, each time in
another way, small and capital ones alike. What a letter stands for can be told from this window alone.
Whether that is worth something far back, a model tells that was trained on windows of the full length.
"""

import torch

from experiments import corpus, language
from experiments.regimes import ASKED, TRAINED, UPDATES, decoder, sizes, train, windowed

ALPHABET = 26
WINDOWS = (TRAINED, ASKED)  # bytes seen, the one that asks included; the last hides nothing
EACH = language.EACH  # windows of a held-out file
provenance = language.provenance


def cipher(windows, generator):
    """Each window in an alphabet of its own; what is no letter stays."""
    order = torch.rand((len(windows), ALPHABET), generator=generator).argsort(-1)
    table = torch.arange(corpus.VOCABULARY).repeat(len(windows), 1)
    for first in map(ord, "aA"):
        table[:, first : first + ALPHABET] = first + order
    return table.gather(1, windows)


def batches(updates, batch, length, generator):
    """Random windows of the part to train on, each in an alphabet of its own."""
    for _ in range(updates):
        yield cipher(corpus.windows(corpus.corpus()[0], batch, length + 1, generator), generator)


def asked(each=EACH):
    """The windows that every model is asked about: (windows, ASKED)."""
    windows = corpus.spread(corpus.corpus()[1], each, ASKED).flatten(0, 1)
    return cipher(windows, torch.Generator().manual_seed(9))


def run(method, seed, device, updates=UPDATES, each=EACH):
    """Train one model and ask it for the same bytes, with ever more before them."""
    name, batch, length = sizes(method)
    texts = batches(updates, batch, length, torch.Generator().manual_seed(seed))
    model = train(decoder(name, corpus.VOCABULARY, seed), texts, updates, device)
    encoding, found = model.encoding, {}
    for window in WINDOWS:
        model.encoding = windowed(encoding, window)
        found[str(window)] = language.by_context(model, asked(each), device)
    return {"far": found}
