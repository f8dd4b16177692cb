"""Three tasks that need order, asked at the length of the training and at up to eight times that length.

    copying   repeat a random text after the word that asks for it
    recall    say which value came after the mark, however long ago
    counting  say how many ticks came since the last reset

One small decoder learns all three at once. Its answers are judged where there is something to say.
"""

import torch
from torch.nn.functional import cross_entropy

from experiments.encodings import make
from snippets.block import Decoder, Encoding

LETTERS = 8  # 0 to 7: what is copied, and the noise and the values of recall
DIGITS = 8  # the answer n in counting is token 8 + n
MOST = 9  # ticks
REPEAT, MARK, ASK, TICK, RESET, PAUSE = range(18, 24)
VOCABULARY = 24
NOTHING = -100  # where no answer is judged

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32
SHORTEST, LONGEST = 8, 32  # of the training
LENGTHS = (32, 64, 128, 256)  # asked about
BATCH, UPDATES, RATE = 32, 2400, 2e-3
ROWS = 128  # asked about, of each task and length


def copying(rows, length, generator):
    """Random letters, REPEAT, all but the last again: tokens and what to answer.

    Both are (rows, length), and one shorter where length is odd.
    """
    text = torch.randint(LETTERS, (rows, length // 2), generator=generator)
    tokens = torch.cat((text, torch.full((rows, 1), REPEAT), text[:, :-1]), 1)
    return tokens, torch.cat((torch.full_like(text, NOTHING), text), 1)


def recall(rows, length, generator, first=None):
    """Noise with one MARK and a value after it; the value is asked for at the end, and at random before.

    first is the place of the mark, random if None.
    """
    tokens = torch.randint(LETTERS, (rows, length), generator=generator)
    if first is None:
        mark = torch.randint(length - 2, (rows, 1), generator=generator)
    else:
        mark = torch.full((rows, 1), first)
    place = torch.arange(length)
    asked = torch.rand((rows, length), generator=generator) < 0.1
    asked = (asked | (place == length - 1)) & (place > mark + 1)
    value = tokens.gather(1, mark + 1)
    tokens = torch.where(asked, ASK, tokens).scatter(1, mark, MARK)
    return tokens, torch.where(asked, value, NOTHING)


def counting(rows, length, generator, first=None):
    """Ticks and pauses with one RESET; after it each token asks how many ticks came since.

    At most MOST ticks follow, so that a longer text asks for no number that was not trained.
    """
    if first is None:
        reset = torch.randint(length - 1, (rows, 1), generator=generator)
    else:
        reset = torch.full((rows, 1), first)
    place = torch.arange(length)
    order = torch.rand((rows, length), generator=generator)
    order = order.masked_fill(place <= reset, 2).argsort(-1).argsort(-1)  # places after the reset come first
    ticks = torch.randint(MOST + 1, (rows, 1), generator=generator)
    before = torch.rand((rows, length), generator=generator) < 0.2
    tick = torch.where(place < reset, before, (order < ticks) & (place > reset))
    tokens = torch.where(tick, TICK, PAUSE).scatter(1, reset, RESET)
    count = (tick & (place > reset)).cumsum(-1)
    return tokens, torch.where(place >= reset, DIGITS + count, NOTHING)


TASKS = {"copying": copying, "recall": recall, "counting": counting}


def decoder(name, seed):
    """A decoder whose weights, but for those of its encoding, are the same for every encoding."""
    torch.manual_seed(seed)
    made = Decoder(Encoding(), VOCABULARY, DIM, HEADS, LAYERS, scale=DIM**0.5)
    made.encoding = make(name, DIM, HEADS, max(LENGTHS), CLIP)
    return made


def scores(model, tokens):
    positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
    return model(tokens, positions, torch.ones_like(positions))[0]


def train(model, seed, device, updates):
    """Learn the tasks in turn, at random lengths, in an order that the seed decides."""
    model.to(device).train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, updates, pct_start=0.1)
    for update in range(updates):
        make = list(TASKS.values())[update % len(TASKS)]
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        tokens, answers = (each.to(device) for each in make(BATCH, length, generator))
        said = scores(model, tokens).flatten(0, 1)
        loss = cross_entropy(said, answers.flatten(), ignore_index=NOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model, make, length, rows, device):
    """The share of right answers: of all letters in copying, of the last answer in the others."""
    generator = torch.Generator().manual_seed(length)
    if make is copying:
        tokens, answers = make(rows, length, generator)
    else:
        tokens, answers = make(rows, length, generator, first=0)
        answers[:, :-1] = NOTHING
    judged = answers != NOTHING
    said = torch.cat([scores(model, each[None].to(device)).argmax(-1).cpu() for each in tokens])
    return (said == answers)[judged].float().mean().item()


def run(method, seed, device, updates=UPDATES, rows=ROWS):
    """Train one model on the three tasks and ask it at every length."""
    model = train(decoder(method, seed), seed, device, updates)
    return {
        "accuracy": {
            name: [round(accuracy(model, make, length, rows, device), 4) for length in LENGTHS]
            for name, make in TASKS.items()
        }
    }
