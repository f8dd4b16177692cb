"""Chains once more, each time with one thing of the recipe changed. Do the findings hang on it?

    rate 0.001      another step size; in chains.py all have RATE
    long            LONGER times as many updates
    table x10       what the encoding learns takes steps ten times as large
    quiet, loud     what is added to the tokens is as loud as they are at the start
    near            FIRE's threshold is a quarter of the trained length, as in its paper
    in each layer   each layer has an encoding of its own

A method is the name of an encoding, or of what recent.py has, and the change. All else is as in chains.py.
"""

import torch

from experiments.chains import STATES, TEXTS, asked, asked_about, by_band, draw
from experiments.chains import provenance as provenance
from experiments.encodings import Added, make
from experiments.language import losses
from experiments.recent import ENCODINGS, layered
from experiments.recent import begun as modern
from experiments.regimes import ASKED, BATCH, CLIP, DIM, HEADS, LAYERS, RATE, TRAINED, UPDATES, decoder
from snippets.block import Encoding
from snippets.fire import FireBias

LONGER = 4
TABLES = {"table x3": 3, "table x10": 10}


def begun(name, change, seed):
    """The decoder before its training. Weights are those of chains.py, but for those of its encoding."""
    if name in ENCODINGS:
        return modern(name, seed)
    model = decoder(name, STATES, seed)
    if change == "in each layer":
        model.encoding = Encoding()
        return layered(model, [make(name, DIM, HEADS, ASKED, CLIP) for _ in range(LAYERS)])
    if change == "near":
        model.encoding.make = FireBias(HEADS, init_L=TRAINED / 4)
    if change in ("quiet", "loud"):
        as_loud(model)
    return model


@torch.no_grad()
def as_loud(model):
    """Have what is added to the tokens be as loud as they are, on average over the trained places."""
    plain = model.encoding.add
    tokens = (model.scale * model.tokens.weight).square().mean()
    added = plain(torch.zeros(1, TRAINED, DIM), torch.arange(TRAINED)[None]).square().mean()
    factor = (tokens / added).sqrt().item()
    if learned := list(model.encoding.parameters()):
        for each in learned:
            each.mul_(factor)
    else:
        model.encoding = Added(lambda x, at: x + factor * (plain(x, at) - x))


def train(model, batches, updates, device, rate, table):
    """Learn from batches of texts, each once; what the encoding learns, with so many times the step size."""
    model.to(device).train()
    own = [each for name, each in model.named_parameters() if "encoding" in name]
    others = [each for name, each in model.named_parameters() if "encoding" not in name]
    optimizer = torch.optim.AdamW([{"params": others}, {"params": own}], rate)
    most = [rate, table * rate]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, most, updates, pct_start=0.1)
    for texts in batches:
        loss = losses(model, texts.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def run(method, seed, device, updates=UPDATES, count=TEXTS):
    """Train one model and ask how far it is from the best possible."""
    name, change = method.split(", ")
    updates *= LONGER if change == "long" else 1
    rate = float(change.removeprefix("rate ")) if change.startswith("rate ") else RATE
    texts = draw(updates * BATCH, TRAINED + 1, seed)
    model = begun(name, change, seed)
    model = train(model, texts.split(BATCH), updates, device, rate, TABLES.get(change, 1))
    return {"above": {str(ASKED): by_band(asked_about(model, asked(count), device))}}
