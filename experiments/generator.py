"""A generator: a small decoder learns Python's own library, byte by byte,
and then writes on from a prompt.

With each encoding it is evaluated on text that it has never seen, and writes
at several temperatures, past the length that it was trained on.
"""

import math
import re
from functools import cache

import torch

from experiments import corpus, language
from experiments.models import decoder, next_token_losses, train

TRAIN_LENGTH, EVAL_LENGTH, BIN = 128, 512, 16  # the last: positions in one mean
BATCH_SIZE, UPDATES, LEARNING_RATE = 8, 800, 5e-3
WINDOWS, SAMPLES = 48, 12  # held-out windows; texts at each temperature
TEMPERATURES = (0.0, 0.4, 0.8, 1.2)
PROMPT, LINE = b"def ", b"import "
NEW_LINE = ord("\n")


def byte_decoder(name, seed):
    """The same weights for every encoding, but for its own. The learned table
    has a row for each position of the training and no more.
    """
    return decoder(name, corpus.VOCABULARY, seed, TRAIN_LENGTH)


def read(model, ids, past=None, first=0):
    """Scores of the next byte after each of ids, whose positions count from
    first, and the new past.
    """
    positions = torch.arange(first, first + ids.shape[1], device=ids.device)
    return model(ids, positions[None], torch.ones_like(positions)[None], past)


def trained(model, seed, device, updates):
    """Train on windows of the corpus, in an order that the seed decides."""
    batches = language.training_windows(seed, updates, BATCH_SIZE, TRAIN_LENGTH)
    return train(model, batches, device, updates, LEARNING_RATE)


def pick(scores, temperature, generator=None):
    """A token for each row of scores: the likeliest if temperature is 0, else
    sampled from the softmax of scores / temperature.
    """
    if temperature == 0:
        return scores.argmax(-1, keepdim=True)
    probabilities = (scores.double() / temperature).softmax(-1)
    return torch.multinomial(probabilities, 1, generator=generator)


@torch.no_grad()
def generate(model, prompt, most, temperature=1.0, end=None, generator=None):
    """Write on: (batch, tokens) becomes (batch, tokens + at most `most`).

    A row that has written the token end goes on with nothing else, and when
    all have, that is all. Each token is read once, at the position where it
    stands; its keys and values are kept.
    """
    if prompt.ndim != 2 or prompt.dtype != torch.int64 or not prompt.numel():
        given = f"{prompt.dtype} {tuple(prompt.shape)}"
        raise ValueError(f"prompt must be int64 (batch, tokens), got {given}")
    if most < 0:
        raise ValueError(f"most must be at least 0, got {most}")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    vocabulary = model.tokens.num_embeddings
    if end is not None and not 0 <= end < vocabulary:
        raise ValueError(f"end must be 0 to {vocabulary - 1}, got {end}")
    text, past, known = prompt, None, 0
    ended = torch.zeros_like(prompt[:, :1], dtype=torch.bool)
    for _ in range(most):
        scores, past = read(model, text[:, known:], past, first=known)
        known = text.shape[1]
        token = pick(scores[:, -1], temperature, generator)
        if end is not None:
            token = token.masked_fill(ended, end)
            ended = ended | (token == end)
        text = torch.cat((text, token), 1)
        if ended.all():
            break
    return text


def write(model, prompt, rows, seed, **options):
    """Texts that begin with the same prompt, as a list of bytes."""
    prompt = torch.tensor([list(prompt)]).expand(rows, -1)
    generator = torch.Generator().manual_seed(seed)
    texts = generate(model, prompt, generator=generator, **options)
    return [bytes(text) for text in texts.tolist()]


def refuses(model):
    """Whether a token just past the training length is refused."""
    try:
        write(model, PROMPT, 1, 0, most=TRAIN_LENGTH - len(PROMPT) + 2)
    except ValueError:
        return True
    return False


WORD = re.compile(rb"[A-Za-z]{4,}")


@cache
def vocabulary():
    """The words of the corpus: all that it has of four letters and more."""
    return frozenset(WORD.findall(corpus.corpus()[0].byte().numpy().tobytes()))


def words(texts):
    """How many different words of the corpus each stretch of TRAIN_LENGTH bytes
    holds, in the mean over the texts. Repeating oneself does not count.
    """
    found = [
        [
            len(vocabulary().intersection(WORD.findall(text, at, at + TRAIN_LENGTH)))
            for at in range(0, len(text), TRAIN_LENGTH)
        ]
        for text in texts
    ]
    return [round(sum(each) / len(texts), 2) for each in zip(*found, strict=True)]


@torch.no_grad()
def ends(model):
    """The mean probability of END where a held-out file ends, and just before."""
    text = corpus.corpus()[1]
    positions = (text == corpus.END).nonzero()
    positions = positions[positions >= TRAIN_LENGTH][:, None]
    rows = text[positions - TRAIN_LENGTH + torch.arange(TRAIN_LENGTH)]
    rows = rows[(rows != corpus.END).all(1)]
    scores = torch.cat([read(model, row[None])[0] for row in rows])
    probabilities = scores.softmax(-1)[..., corpus.END]
    return [probabilities[:, -1].mean().item(), probabilities[:, :-1].mean().item()]


def show(text):
    """Bytes as text. What is no ASCII and no line feed becomes a dot."""
    return "".join(chr(byte) if byte == NEW_LINE or 32 <= byte < 127 else "·" for byte in text)


def run(method, seed, device, updates=UPDATES, count=WINDOWS, rows=SAMPLES):
    """Train one model; then let it predict and write."""
    model = trained(byte_decoder(method, seed), seed, device, updates)
    return evaluate(model.cpu(), seed, count, rows)


@torch.no_grad()
def evaluate(model, seed, count, rows):
    """All that is kept of a model, up to the last position that it takes."""
    refused = refuses(model)
    length = TRAIN_LENGTH if refused else EVAL_LENGTH
    generator = torch.Generator().manual_seed(0)
    held_out = corpus.windows(corpus.corpus()[1], count, EVAL_LENGTH + 1, generator)
    read_whole = held_out[:, : length + 1]
    loss = torch.cat([next_token_losses(model, each[None]) for each in read_whole]).mean(0)
    order = torch.rand(held_out.shape, generator=generator).argsort(-1)
    real = {"held out": held_out, "shuffled": held_out.gather(-1, order)}
    texts = {name: [bytes(row[:-1]) for row in text.tolist()] for name, text in real.items()}
    most = length - len(PROMPT)
    for temperature in TEMPERATURES:
        texts[str(temperature)] = write(model, PROMPT, rows, seed, most=most, temperature=temperature)
    lines = write(model, LINE, 6, seed, most=30, temperature=0.8, end=NEW_LINE)
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "loss_by_position": [round(each, 4) for each in loss.unflatten(0, (-1, BIN)).mean(-1).tolist()],
        "refused": refused,
        "ends": [float(f"{each:.3g}") for each in ends(model)],
        "words": {name: words(some) for name, some in texts.items()},
        "texts": {str(each): show(texts[str(each)][0]) for each in TEMPERATURES},
        "lines": [show(line) for line in lines],
    }


def provenance():
    return {"corpus": corpus.provenance()}
