"""Three tasks that need order, each evaluated at up to eight times the longest training length.

    copying   repeat a random text after the word that asks for it
    recall    two marks stand at even positions, a value after each; say the value of one of them
    counting  say how many ticks came since the last reset, which stands anywhere

Each task has a decoder of its own, trained for the same number of updates with every encoding.
"""

import torch
from torch.nn.functional import cross_entropy

from experiments.models import decoder, logits, train

LETTERS = 8  # 0 to 7: what is copied, and the noise and the values of recall
DIGITS = 8  # the answer n in counting is token 8 + n
TICKS = 9  # at most
REPEAT, TICK, RESET, PAUSE, MARK, OTHER, ASK, ASK_OTHER = range(18, 26)
VOCABULARY = 26
NO_ANSWER = -100  # where none is scored

SHORTEST, LONGEST = 8, 32  # of the training
EVAL_LENGTHS = (32, 64, 128, 256)
BATCH_SIZE, UPDATES, LEARNING_RATE = 32, 4000, 2e-3
EVAL_TEXTS = 2000  # of each task and length, the same for every model
LEARNED = 0.99  # of the answers at LONGEST are right


def copying(rows, length, generator):
    """Random letters, REPEAT, all but the last again: tokens and what to answer.

    Both are (rows, length), and one shorter where length is odd.
    """
    text = torch.randint(LETTERS, (rows, length // 2), generator=generator)
    tokens = torch.cat((text, torch.full((rows, 1), REPEAT), text[:, :-1]), 1)
    return tokens, torch.cat((torch.full_like(text, NO_ANSWER), text), 1)


def recall(rows, length, generator):
    """Noise with two marks in it and a value after each; the end asks for one of them, chosen at random.

    Marks are at even positions, so that none is where another mark's value is.
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
    return tokens, torch.where(asked, values.gather(1, which), NO_ANSWER)


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
    return tokens, torch.where(place >= reset, DIGITS + count, NO_ANSWER)


TASKS = {"copying": copying, "recall": recall, "counting": counting}


def batches(task, seed, updates):
    """Texts of random lengths and their answers, in an order that the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(updates):
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        yield task(BATCH_SIZE, length, generator)


def answer_loss(model, tokens, answers):
    return cross_entropy(logits(model, tokens).flatten(0, 1), answers.flatten(), ignore_index=NO_ANSWER)


@torch.no_grad()
def accuracy(model, task, length, texts, device):
    """The fraction of right answers: of all letters in copying, of the last answer in the others."""
    tokens, answers = task(texts, length, torch.Generator().manual_seed(length))
    if task is not copying:
        answers[:, :-1] = NO_ANSWER
    scored = answers != NO_ANSWER
    said = torch.cat([logits(model, part.to(device)).argmax(-1).cpu() for part in tokens.split(20)])
    return round((said == answers)[scored].float().mean().item(), 4)


def run(method, seed, device, updates=UPDATES, texts=EVAL_TEXTS):
    """Train a model on each task, and evaluate it at every length: the fractions of right answers."""
    found = {}
    for name, task in TASKS.items():
        model = decoder(method, VOCABULARY, seed, max(EVAL_LENGTHS))
        train(model, batches(task, seed, updates), device, updates, LEARNING_RATE, answer_loss)
        found[name] = [accuracy(model, task, length, texts, device) for length in EVAL_LENGTHS]
    return {"accuracy": found}
