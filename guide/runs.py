"""```runs```: the dictionary of the table of all training runs, which comes as data/runs.csv."""

import html
import re

from executable_prose.registry import built, directive
from experiments.table import FIELDS, as_csv

DATA = "data/runs.csv"


@directive("runs")
def fields(page, argument, body):
    """A link to the table, and its columns, a list."""
    lines = (f"<li><code>{name}</code>: {_marked(meaning)}</li>" for name, meaning in FIELDS.items())
    return [
        f'<p><a href="{page.up()}{DATA}" download>runs.csv</a>, with these columns:</p>',
        f"<ul>{''.join(lines)}</ul>",
    ]


@fields.as_text
def _(copy, argument, body):
    return [f"- `{name}`: {meaning}" for name, meaning in FIELDS.items()]


def _marked(words):
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(words))


@built
def write(site):
    """The table, for programs and for those who cite it."""
    (site / DATA).parent.mkdir(exist_ok=True)
    (site / DATA).write_text(as_csv(), encoding="utf-8")
