"""Texts in which all that came before helps, and whose optimal loss is known exactly.

Markov chains that must be learned from the text itself, as in Edelman et al. 2024, arXiv:2402.11004. There
are more states here, and in each text a state is followed by few of them: each text samples its transition
probabilities from a Dirichlet distribution. The Bayes-optimal predictor counts what has followed the current
state so far and adds PRIOR to each count. The longer the text, the better its prediction; so all of the text
helps, always.

A model is evaluated by its excess loss at each position: its expected loss less the optimal one, in nats.
"""

import hashlib

import torch
from torch.nn.functional import one_hot

from experiments.chain_models import (
    BY_LAYER,
    EVAL_LENGTH,
    STATES,
    TRAIN_LENGTH,
    LogTemperature,
    chain_decoder,
)
from experiments.models import logits, train, windowed

PRIOR = 0.1
BATCH_SIZE, UPDATES, LEARNING_RATE = 8, 6000, 3e-3
EVAL_TEXTS = 48  # the same for every model
BANDS = ((0, 16), (16, 32), (32, 64), (64, 128), (128, 256), (256, 512), (512, 1024))  # of positions
WINDOWS = (
    32,
    64,
    128,
    EVAL_LENGTH,
)  # states that a layer sees, with the current one; the last hides none


def sample_chains(count, length, seed):
    """Texts, each from a chain of its own: (count, length). All first states are equally likely."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transitions = torch.distributions.Dirichlet(torch.full((STATES,), PRIOR))
        below = transitions.sample((count, STATES)).cumsum(-1)[..., :-1]
        uniform = torch.rand(length, count, 1)
    rows = torch.arange(count)
    states = [(STATES * uniform[0, :, 0]).long()]
    for each in uniform[1:]:
        states.append((each > below[rows, states[-1]]).sum(-1))
    return torch.stack(states, 1)


def evaluation_texts(count=EVAL_TEXTS):
    """The texts that every model is evaluated on: (count, EVAL_LENGTH + 1)."""
    return sample_chains(count, EVAL_LENGTH + 1, seed=9000)


def counting_predictions(texts, window=EVAL_LENGTH):
    """The probabilities of the next state by counting in the last so many: (texts, positions, STATES).

    With no state hidden they are Bayes-optimal.
    """
    position = torch.arange(texts.shape[1] - 1)
    distance = position[:, None] - position
    seen = (distance > 0) & (distance < window)
    found = []
    for part in texts.split(8):
        current, following = part[:, :-1], one_hot(part[:, 1:], STATES).float()
        same = (current[:, :, None] == current[:, None, :]) & seen
        counts = PRIOR + same.float() @ following
        found.append(counts / counts.sum(-1, keepdim=True))
    return torch.cat(found)


def optimal_loss(texts):
    """The expected loss of the Bayes-optimal predictor at each position: (texts, positions)."""
    optimal = counting_predictions(texts)
    return -(optimal * optimal.log()).sum(-1)


def excess_loss(log_probabilities, texts):
    """The expected loss of these predictions less the optimal one, at each position: (texts, positions)."""
    optimal = counting_predictions(texts)
    return (optimal * (optimal.log() - log_probabilities)).sum(-1)


@torch.no_grad()
def model_excess_loss(model, texts, device):
    """The excess loss of a model at each position: (texts, positions), on the CPU."""
    found = []
    for part in texts.split(8):
        scores = logits(model, part[:, :-1].to(device))
        found.append(excess_loss(scores.log_softmax(-1).cpu(), part))
    return torch.cat(found)


def band_means(values):
    """The mean over each band of positions, for each text: from the end of a band to a list of numbers."""
    return {
        str(end): [round(each, 4) for each in values[:, first:end].mean(-1).tolist()] for first, end in BANDS
    }


def evaluate(model, device, count):
    """The excess loss of a model by band, on the texts of the evaluation."""
    return band_means(model_excess_loss(model, evaluation_texts(count), device))


def trained(model, seed, device, updates=UPDATES, learning_rate=LEARNING_RATE):
    """Train on texts of TRAIN_LENGTH, each seen once, in an order that the seed decides."""
    texts = sample_chains(updates * BATCH_SIZE, TRAIN_LENGTH + 1, seed)
    return train(model, zip(texts.split(BATCH_SIZE)), device, updates, learning_rate)


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS):
    """Train one model, and evaluate it as it is and with a window or a temperature at test time."""
    model = trained(chain_decoder(method, seed), seed, device, updates)
    found = {str(EVAL_LENGTH): evaluate(model, device, count)}
    if method not in BY_LAYER:
        encoding = model.encoding
        for window in WINDOWS[:-1]:
            model.encoding = windowed(encoding, window)
            found[str(window)] = evaluate(model, device, count)
    if method == "window + NoPE layer":
        model.blocks[-1].encoding = LogTemperature()
        found["temperature"] = evaluate(model, device, count)
    return {"excess_loss": found}


def provenance():
    return {"texts": hashlib.sha256(evaluation_texts().byte().numpy().tobytes()).hexdigest()}
