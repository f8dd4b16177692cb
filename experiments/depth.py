"""Chains with more layers than two, so that no positional encoding can have learned the task.

A method is the name of an encoding, the layers and, where the usual updates did not do, that they are four
times as many. All else is as in chains.py.
"""

from experiments.chain_models import chain_decoder
from experiments.chains import EVAL_LENGTH, EVAL_TEXTS, UPDATES, evaluate, trained
from experiments.chains import provenance as provenance
from experiments.recipes import LONGER, TIMES


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS):
    """Train one model and evaluate it as it is."""
    name, layers, *change = method.split(", ")
    updates *= TIMES if change == [LONGER] else 1
    model = chain_decoder(name, seed, layers=int(layers.split()[0]))
    model = trained(model, seed, device, updates)
    return {"excess_loss": {str(EVAL_LENGTH): evaluate(model, device, count)}}
