"""Texts in which all that stands before helps, and how good a guess can be is known exactly.

Markov chains that must be learned from the text itself, as in Edelman et al. 2024, arXiv:2402.11004. There
are more states here, and in each text a state is followed by few of them: each text draws the chances of
what follows a state from a Dirichlet distribution. Who counts what followed the present state so far, and
adds PRIOR to each count, guesses as well as can be: that is Bayes' rule. The more text, the better that
guess; so far text always helps a little.

A model is asked how far its chances are from those, at each place: the loss that it must expect beyond
the best possible, in nats.
"""

import hashlib

import torch
from torch.nn.functional import one_hot

from experiments.regimes import ASKED, UPDATES, by_window, decoder, sizes, train

STATES, PRIOR = 16, 0.1
TEXTS = 48  # asked about, the same for every model
BANDS = ((0, 16), (16, 32), (32, 64), (64, 128), (128, 256), (256, 512), (512, 1024))  # of places


def draw(count, length, seed):
    """Texts, each a chain of its own: (count, length). All first states are equally likely."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        following = torch.distributions.Dirichlet(torch.full((STATES,), PRIOR))
        below = following.sample((count, STATES)).cumsum(-1)[..., :-1]
        luck = torch.rand(length, count, 1)
    rows = torch.arange(count)
    states = [(STATES * luck[0, :, 0]).long()]
    for each in luck[1:]:
        states.append((each > below[rows, states[-1]]).sum(-1))
    return torch.stack(states, 1)


def asked(count=TEXTS):
    """The texts that every model is asked about: (count, ASKED + 1)."""
    return draw(count, ASKED + 1, seed=9000)


def counted(texts, seen=ASKED):
    """The chances of each next state, by counting in the last so many states: (texts, places, STATES).

    If nothing is left out, they are the best possible.
    """
    place = torch.arange(texts.shape[1] - 1)
    back = place[:, None] - place
    read = (back > 0) & (back < seen)
    found = []
    for part in texts.split(8):
        now, then = part[:, :-1], one_hot(part[:, 1:], STATES).float()
        alike = (now[:, :, None] == now[:, None, :]) & read
        row = PRIOR + alike.float() @ then
        found.append(row / row.sum(-1, keepdim=True))
    return torch.cat(found)


def floor(texts):
    """The best possible loss, to be expected at each place: (texts, places)."""
    best = counted(texts)
    return -(best * best.log()).sum(-1)


def above(chances, texts):
    """By how much the loss to be expected with these logarithms of chances exceeds it: (texts, places)."""
    best = counted(texts)
    return (best * (best.log() - chances)).sum(-1)


@torch.no_grad()
def asked_about(model, texts, device):
    """How far a model is from the best possible at each place: (texts, places), on the CPU."""
    found = []
    for part in texts.split(8):
        ids = part[:, :-1].to(device)
        at = torch.arange(ids.shape[1], device=device)[None]
        scores, _ = model(ids, at, torch.ones_like(at))
        found.append(above(scores.log_softmax(-1).cpu(), part))
    return torch.cat(found)


def by_band(values):
    """The mean over each band of places, for each text: from the end of a band to a list of numbers."""
    return {
        str(end): [round(each, 4) for each in values[:, first:end].mean(-1).tolist()] for first, end in BANDS
    }


def run(method, seed, device, updates=UPDATES, count=TEXTS):
    """Train one model and ask how far it is from the best possible."""
    name, batch, length = sizes(method)
    texts = draw(updates * batch, length + 1, seed)
    model = train(decoder(name, STATES, seed), texts.split(batch), updates, device)
    return {"above": by_window(model, lambda each: by_band(asked_about(each, asked(count), device)))}


def provenance():
    return {"texts": hashlib.sha256(asked().byte().numpy().tobytes()).hexdigest()}
