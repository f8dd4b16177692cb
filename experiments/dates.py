"""Dates in German and in American English: a text that must be reordered to be translated.

Four styles of CLDR, as Babel writes them: from "21.11.26" and "11/21/26" to "Samstag, 21. November 2026"
and "Saturday, November 21, 2026". Each digit is a token, so that nothing but order tells a day from a month.
"""

import re
from datetime import date
from functools import cache
from hashlib import sha256

import torch
from babel.dates import format_date
from torch.nn.utils.rnn import pad_sequence

LANGUAGES = ("de", "en_US")
STYLES = ("short", "medium", "long", "full")
DAYS = range(date(1950, 1, 1).toordinal(), date(2050, 1, 1).toordinal())  # no two have one short text
HELD_OUT = 10  # one date in so many is trained on in no style
PAD, START, END = range(3)
LONGEST = 16  # tokens of a text, with START and END


def texts(day, style):
    """A date in German and in English."""
    return tuple(format_date(day, style, language) for language in LANGUAGES)


def is_held_out(day):
    """By the date alone, so that it is held out in every style."""
    return sha256(day.isoformat().encode()).digest()[0] % HELD_OUT == 0


def items(count, held_out, generator):
    """Random dates of one side, the styles in turn: pairs of German and English."""
    found = []
    while len(found) < count:
        drawn = torch.randint(len(DAYS), (), generator=generator)
        day = date.fromordinal(DAYS[drawn])
        if is_held_out(day) == held_out:
            found.append(texts(day, STYLES[len(found) % len(STYLES)]))
    return found


def mirrored(count):
    """Short texts that are another date's if one reads them from their end, each next to that other one.

    Not only of dates held out: there are too few. As items, and all of them if count is large.
    """
    short = dict(texts(date.fromordinal(day), "short") for day in DAYS)
    firsts = [text for text in sorted(short) if text < text[::-1] and text[::-1] in short]
    step = max(1, 2 * len(firsts) // count)
    both = [each for text in firsts[::step] for each in (text, text[::-1])]
    return [(text, short[text]) for text in both[:count]]


def tokens(text):
    """Words, and every other character alone. Joined, they are the text.

    >>> tokens("3. April 2026")
    ['3', '.', ' ', 'April', ' ', '2', '0', '2', '6']
    """
    return re.findall(r"[^\W\d]+|.", text)


@cache
def vocabulary():
    """The tokens of both languages, by id; one year has them all. PAD, START and END have no text."""
    year = [date.fromordinal(day) for day in DAYS[-365:]]
    both = [text for day in year for style in STYLES for text in texts(day, style)]
    return ["", "", "", *sorted({token for text in both for token in tokens(text)})]


def batch(of_texts, before=(), after=()):
    """Ids, with padding on the right: (texts, tokens).

    ValueError: a token that no date has; a text that is empty or too long.
    """
    ids = {token: id for id, token in enumerate(vocabulary()) if token}
    rows = []
    for text in of_texts:
        split = tokens(text)
        if unknown := set(split) - set(ids):
            raise ValueError(f"{text!r} has unknown tokens {sorted(unknown)}")
        if not 1 <= len(split) <= LONGEST - 2:
            raise ValueError(f"a text must have 1 to {LONGEST - 2} tokens, {text!r} has {len(split)}")
        rows.append(torch.tensor([*before, *(ids[token] for token in split), *after]))
    return pad_sequence(rows, batch_first=True, padding_value=PAD)
