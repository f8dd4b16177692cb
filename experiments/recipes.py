"""Eight methods of chains.py, each with one thing of the recipe changed. preregistration.toml says what for.

one head               one head of DIM channels in each layer, where there are HEADS narrower ones
step size 0.001        a third of the step size
4x updates             four times as many updates, on texts that are as new
base 500,000           of RoPE alone

A method is the name of an encoding and a change. All else is as in chains.py.
"""

from experiments.chain_models import LARGE_BASE, chain_decoder, rope
from experiments.chains import EVAL_LENGTH, EVAL_TEXTS, LEARNING_RATE, UPDATES, evaluate, trained
from experiments.chains import provenance as provenance
from experiments.models import HEADS

STEP_SIZE = 0.001
TIMES = 4
ONE_HEAD, SMALL_STEPS, LONGER = "one head", "step size 0.001", "4x updates"
LARGER_BASE = "base 500,000"


def changed_decoder(name, change, seed):
    """The decoder before training; its weights are those of chains.py, but for those of its encoding."""
    model = chain_decoder(name, seed, heads=1 if change == ONE_HEAD else HEADS)
    if change == LARGER_BASE:
        model.encoding = rope(base=LARGE_BASE)
    return model


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS):
    """Train one model and evaluate it as it is."""
    name, change = method.split(", ", 1)
    updates *= TIMES if change == LONGER else 1
    step_size = STEP_SIZE if change == SMALL_STEPS else LEARNING_RATE
    model = trained(changed_decoder(name, change, seed), seed, device, updates, step_size)
    return {"excess_loss": {str(EVAL_LENGTH): evaluate(model, device, count)}}
