"""A generator: a small decoder learns Python's own library, byte by byte,
and then writes on from a prompt.

With each encoding it is asked how well it predicts text that it has never
seen, and what it writes: at several temperatures, and past the length that
it was trained on.
"""

import math
import re
from functools import cache

import torch
from torch.nn.functional import cross_entropy

from experiments import corpus
from experiments.encodings import make
from snippets.block import Decoder, Encoding

DIM, HEADS, LAYERS = 64, 4, 2
TRAINED, ASKED, BIN = 128, 512, 16  # lengths; positions in one figure
BATCH, UPDATES, RATE = 8, 800, 5e-3
WINDOWS, SAMPLES = 48, 12  # held-out windows; texts at each temperature
TEMPERATURES = (0.0, 0.4, 0.8, 1.2)
PROMPT, LINE = b"def ", b"import "
NEW_LINE = ord("\n")


def decoder(name, seed):
    """The same weights for every encoding, but for its own. The learned table
    has a row for each trained position and no more.
    """
    torch.manual_seed(seed)
    scale = math.sqrt(DIM)
    made = Decoder(Encoding(), corpus.VOCABULARY, DIM, HEADS, LAYERS, scale)
    made.encoding = make(name, DIM, HEADS, TRAINED, clip=32)
    return made


def read(model, ids, past=None, first=0):
    """Scores of the next byte after each of ids, whose positions count from
    first, and the new past.
    """
    positions = torch.arange(first, first + ids.shape[1], device=ids.device)
    return model(ids, positions[None], torch.ones_like(positions)[None], past)


def losses(model, windows):
    """The loss at each position: (batch, length - 1)."""
    scores, _ = read(model, windows[:, :-1])
    answers = windows[:, 1:].flatten()
    loss = cross_entropy(scores.flatten(0, 1), answers, reduction="none")
    return loss.unflatten(0, (len(windows), -1))


def train(model, seed, device, updates):
    """Learn from windows of the corpus, in an order that the seed decides."""
    model.to(device).train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, updates, pct_start=0.1)
    text, _ = corpus.corpus()
    for _ in range(updates):
        windows = corpus.windows(text, BATCH, TRAINED + 1, generator)
        loss = losses(model, windows.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def pick(scores, temperature, generator=None):
    """A token for each row of scores: the likeliest if temperature is 0, else
    drawn at random, by the softmax of scores / temperature.
    """
    if temperature == 0:
        return scores.argmax(-1, keepdim=True)
    chances = (scores.double() / temperature).softmax(-1)
    return torch.multinomial(chances, 1, generator=generator)


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
    """Whether a token just past the trained length is refused."""
    try:
        write(model, PROMPT, 1, 0, most=TRAINED - len(PROMPT) + 2)
    except ValueError:
        return True
    return False


WORD = re.compile(rb"[A-Za-z]{4,}")


@cache
def vocabulary():
    """The words of the corpus: all that it has of four letters and more."""
    return frozenset(WORD.findall(corpus.corpus()[0].byte().numpy().tobytes()))


def words(texts):
    """How many different words of the corpus each stretch of TRAINED bytes
    holds, in the mean over the texts. Repeating oneself does not count.
    """
    found = [
        [
            len(vocabulary().intersection(WORD.findall(text, at, at + TRAINED)))
            for at in range(0, len(text), TRAINED)
        ]
        for text in texts
    ]
    return [round(sum(each) / len(texts), 2) for each in zip(*found, strict=True)]


@torch.no_grad()
def ends(model):
    """The mean chance of END where a held-out file ends, and just before."""
    text = corpus.corpus()[1]
    places = (text == corpus.END).nonzero()
    places = places[places >= TRAINED][:, None]
    rows = text[places - TRAINED + torch.arange(TRAINED)]
    rows = rows[(rows != corpus.END).all(1)]
    scores = torch.cat([read(model, row[None])[0] for row in rows])
    chances = scores.softmax(-1)[..., corpus.END]
    return [chances[:, -1].mean().item(), chances[:, :-1].mean().item()]


def show(text):
    """Bytes as text. What is no ASCII and no line feed becomes a dot."""
    return "".join(chr(byte) if byte == NEW_LINE or 32 <= byte < 127 else "·" for byte in text)


def run(method, seed, device, updates=UPDATES, count=WINDOWS, rows=SAMPLES):
    """Train one model; then let it predict and write."""
    model = train(decoder(method, seed), seed, device, updates)
    return examine(model.cpu(), seed, count, rows)


@torch.no_grad()
def examine(model, seed, count, rows):
    """All that is kept of a model, up to the last position that it takes."""
    refused = refuses(model)
    length = TRAINED if refused else ASKED
    generator = torch.Generator().manual_seed(0)
    held_out = corpus.windows(corpus.corpus()[1], count, ASKED + 1, generator)
    asked = held_out[:, : length + 1]
    loss = torch.cat([losses(model, each[None]) for each in asked]).mean(0)
    order = torch.rand(held_out.shape, generator=generator).argsort(-1)
    real = {"held out": held_out, "shuffled": held_out.gather(-1, order)}
    texts = {name: [bytes(row[:-1]) for row in text.tolist()] for name, text in real.items()}
    most = length - len(PROMPT)
    for heat in TEMPERATURES:
        texts[str(heat)] = write(model, PROMPT, rows, seed, most=most, temperature=heat)
    lines = write(model, LINE, 6, seed, most=30, temperature=0.8, end=NEW_LINE)
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "loss": [round(each, 4) for each in loss.unflatten(0, (-1, BIN)).mean(-1).tolist()],
        "refused": refused,
        "ends": [float(f"{chance:.3g}") for chance in ends(model)],
        "words": {name: words(some) for name, some in texts.items()},
        "texts": {str(heat): show(texts[str(heat)][0]) for heat in TEMPERATURES},
        "lines": [show(line) for line in lines],
    }


def provenance():
    return {"corpus": corpus.provenance()}
