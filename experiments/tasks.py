"""Three tasks that need order, each learned to a criterion and asked at up to eight times the trained length.

    copying   repeat a random text after the word that asks for it
    recall    two marks stand anywhere, a value after each; say the value of the mark that is asked for
    counting  say how many ticks came since the last reset, which stands anywhere

Each task has a decoder of its own. It learns until it is right at the trained length, or for MOST updates.
"""

import torch
from torch.nn.functional import cross_entropy

from experiments.encodings import make
from snippets.block import Decoder, Encoding

LETTERS = 8  # 0 to 7: what is copied, and the noise and the values of recall
DIGITS = 8  # the answer n in counting is token 8 + n
TICKS = 9  # at most
REPEAT, TICK, RESET, PAUSE, MARK, OTHER, ASK, ASK_OTHER = range(18, 26)
VOCABULARY = 26
NOTHING = -100  # where no answer is judged

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32
SHORTEST, LONGEST = 8, 32  # of the training
LENGTHS = (32, 64, 128, 256)  # asked about
BATCH, MOST, RATE = 32, 4000, 2e-3
EVERY, ENOUGH = 100, 0.99  # after so many updates: are so many of the answers right at LONGEST?
ROWS = 128  # asked about, of each task and length


def copying(rows, length, generator):
    """Random letters, REPEAT, all but the last again: tokens and what to answer.

    Both are (rows, length), and one shorter where length is odd.
    """
    text = torch.randint(LETTERS, (rows, length // 2), generator=generator)
    tokens = torch.cat((text, torch.full((rows, 1), REPEAT), text[:, :-1]), 1)
    return tokens, torch.cat((torch.full_like(text, NOTHING), text), 1)


def recall(rows, length, generator):
    """Noise, two marks in it, a value after each; one is asked for at the end, and either at random before.

    Marks stand at even places, so that none stands where another's value does.
    """
    tokens = torch.randint(LETTERS, (rows, length), generator=generator)
    pairs = torch.rand((rows, (length - 1) // 2), generator=generator).argsort(-1)
    places = 2 * pairs[:, :2]
    values = tokens.gather(1, places + 1)
    tokens.scatter_(1, places, torch.tensor([[MARK, OTHER]]).expand(rows, -1))
    place = torch.arange(length)
    which = torch.randint(2, (rows, length), generator=generator)
    known = place > places.gather(1, which) + 1
    written = (torch.cat((places, places + 1), 1)[..., None] == place).any(1)
    asked = torch.rand((rows, length), generator=generator) < 0.1
    asked = (asked | (place == length - 1)) & known & ~written
    tokens = torch.where(asked, torch.where(which == 0, ASK, ASK_OTHER), tokens)
    return tokens, torch.where(asked, values.gather(1, which), NOTHING)


def counting(rows, length, generator):
    """Ticks and pauses with one RESET; after it each token asks how many ticks came since.

    At most TICKS follow, so that a longer text asks for no number that was not trained.
    """
    reset = torch.randint(length - 1, (rows, 1), generator=generator)
    place = torch.arange(length)
    order = torch.rand((rows, length), generator=generator)
    order = order.masked_fill(place <= reset, 2).argsort(-1).argsort(-1)  # places after the reset come first
    ticks = torch.randint(TICKS + 1, (rows, 1), generator=generator)
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


def train(model, task, seed, device, updates):
    """Learn a task at random lengths, in an order that the seed decides; after how many updates it could it.

    None if it could not.
    """
    model.to(device).train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, updates, pct_start=0.1)
    for update in range(1, updates + 1):
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        tokens, answers = (each.to(device) for each in task(BATCH, length, generator))
        said = scores(model, tokens).flatten(0, 1)
        loss = cross_entropy(said, answers.flatten(), ignore_index=NOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if update % EVERY == 0 and right(model, task, LONGEST, ROWS, device, generator) >= ENOUGH:
            return update
    return None


@torch.no_grad()
def right(model, task, length, rows, device, generator):
    """The share of right answers: of all letters in copying, of the last answer in the others."""
    tokens, answers = task(rows, length, generator)
    if task is not copying:
        answers[:, :-1] = NOTHING
    judged = answers != NOTHING
    said = torch.cat([scores(model, part.to(device)).argmax(-1).cpu() for part in tokens.split(16)])
    return (said == answers)[judged].float().mean().item()


def run(method, seed, device, updates=MOST, rows=ROWS):
    """Train a model on each task until it is learned, and ask it at every length."""
    found = {"learned": {}, "accuracy": {}}
    for name, task in TASKS.items():
        model = decoder(method, seed)
        found["learned"][name] = train(model, task, seed, device, updates)
        model.eval()
        found["accuracy"][name] = [
            round(right(model, task, length, rows, device, torch.Generator().manual_seed(length)), 4)
            for length in LENGTHS
        ]
    return found
