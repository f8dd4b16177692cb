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
PACKAGE = "packages/check-positions/src/check_positions"
EXPLAINER, COMPARER = (f"{PACKAGE}/{name}.py" for name in ("explanation", "comparison"))
VIEWS = {"code": "Code", "explanation": "Explanation", "comparison": "Comparison with a second file"}
SPELLINGS = "docs/dialects.toml"  # of a released model's settings, as stacks were given them
RELEASED = "Llama 3.1"


def known():
    """Return what the script needs: the reader's table and measurements, and the words of both commands."""
    return {
        "table": tomllib.loads(_constant(READER, "TABLE")),
        "measured": _constant(READER, "MEASURED"),
        "explain": {"words": _constant(EXPLAINER, "WORDS"), "pages": _constant(EXPLAINER, "PAGES")},
        "compare": {
            "words": _constant(COMPARER, "WORDS"),
            "angle": _constant(COMPARER, "ANGLE"),
            "long": _constant(COMPARER, "LONG"),
        },
    }


def _constant(file, name):
    source = symbols.find(file, name)
    return ast.literal_eval("\n".join(source.lines).partition(" = ")[2])


@directive("config")
def config(page, argument, body):
    """Return the form without an answer: the script adds it, every word as text."""
    try:
        data = json.dumps(known(), ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        kinds = sorted(json.loads(_constant(READER, "MEASURED"))["models"])
        released = _released()
    except (symbols.SymbolError, OSError, ValueError) as error:
        raise DirectiveError(f"{READER}, {PACKAGE} or {SPELLINGS} cannot be read: {error}") from None
    options = "".join(
        f'<option data-text="{html.escape(text)}"{" selected" * (n == 0)}>{name}</option>'
        for n, (name, text) in enumerate(released)
    )
    classes = "".join(f"<option>{html.escape(kind)}</option>" for kind in kinds)
    views = "".join(
        f'<label><input type="radio" name="view" value="{name}"{" checked" * (n == 0)}> {words}</label>'
        for n, (name, words) in enumerate(VIEWS.items())
    )
    return [
        f'<section class="config" data-up="{page.up()}" data-search-exclude>'
        "<noscript><p>This box needs JavaScript. Without it, <code>python read_config.py config.json</code> "
        "gives the same answer.</p></noscript>"
        '<label for="config-kind">Known models</label>'
        f'<select id="config-kind" class="filter"><option value="">Choose one, or paste below</option>'
        f'<optgroup label="As released">{options}</optgroup>'
        f'<optgroup label="Defaults of a class">{classes}</optgroup></select>'
        '<label for="config-text">Your config.json: paste it over the example</label>'
        '<textarea id="config-text" rows="10" spellcheck="false" autocapitalize="off" autocomplete="off"'
        ' placeholder="{ … }"></textarea>'
        f"<fieldset><legend>Show</legend>{views}</fieldset>"
        '<div class="second" hidden><label for="config-second">The second config.json</label>'
        '<textarea id="config-second" rows="10" spellcheck="false" autocapitalize="off" autocomplete="off"'
        ' placeholder="{ … }"></textarea></div>'
        '<p><button type="button" name="clear">Clear</button> '
        '<button type="button" name="copy" disabled>Copy the answer</button> '
        '<button type="button" name="link">Copy a link to this model</button>'
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
