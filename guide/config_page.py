"""```config```: a box for a config.json, which a script of the page reads; nothing in it is sent or run."""

import ast
import html
import json
import tomllib

from executable_prose import project, symbols
from executable_prose.reading import parsed
from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError

READER = "snippets/read_config.py"
SPELLINGS = "docs/dialects.toml"  # of a released model's settings, as stacks were given them
RELEASED = "Llama 3.1"


def known():
    """Return what the file to copy has, for the script: its table, and the text of what was measured."""
    table, measured = (_constant(name) for name in ("TABLE", "MEASURED"))
    return {"table": tomllib.loads(table), "measured": measured}


def _constant(name):
    source = symbols.find(READER, name)
    return ast.literal_eval("\n".join(source.lines).partition(" = ")[2])


@directive("config")
def config(page, argument, body):
    """Return the form without an answer: the script adds it, every word as text."""
    try:
        data = json.dumps(known(), ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        kinds = sorted(json.loads(_constant("MEASURED"))["models"])
        released = _released()
    except (symbols.SymbolError, OSError, ValueError) as error:
        raise DirectiveError(f"{READER} or {SPELLINGS} cannot be read: {error}") from None
    options = "".join(
        f'<option data-text="{html.escape(text)}"{" selected" * (n == 0)}>{name}</option>'
        for n, (name, text) in enumerate(released)
    )
    classes = "".join(f"<option>{html.escape(kind)}</option>" for kind in kinds)
    return [
        '<section class="config" data-search-exclude>'
        "<noscript><p>This box needs JavaScript. Without it, <code>python read_config.py config.json</code> "
        "gives the same answer.</p></noscript>"
        '<label for="config-kind">Known models</label>'
        f'<select id="config-kind" class="filter"><option value="">Choose one, or paste below</option>'
        f'<optgroup label="As released">{options}</optgroup>'
        f'<optgroup label="Defaults of a class">{classes}</optgroup></select>'
        '<label for="config-text">Your config.json: paste it over the example</label>'
        '<textarea id="config-text" rows="10" spellcheck="false" autocapitalize="off" autocomplete="off"'
        ' placeholder="{ … }"></textarea>'
        '<p><button type="button" name="clear">Clear</button> '
        '<button type="button" name="copy" disabled>Copy all code</button>'
        ' <span role="status"></span></p>'
        '<div class="answer"></div>'
        f'<script type="application/json">{data}</script></section>'
        f'<script type="module" src="{page.up()}assets/config_page.js"></script>'
    ]


@config.as_text
def _as_text(copy, argument, body):
    return [
        "The page itself has a box for a config.json; `python read_config.py config.json` prints the same."
    ]


def _released():
    """One model's settings in each dialect of a config.json."""
    cases = parsed(tomllib.loads, project.ROOT / SPELLINGS)["case"]
    small = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
    for case in cases:
        if case["name"].startswith(RELEASED) and "left out" not in case["name"] and "no " not in case["name"]:
            yield case["name"], json.dumps(small | json.loads(case["config"]), indent=2)
