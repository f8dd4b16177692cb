"""The page's side of a live figure: its controls, the words for what it shows, and what moves it.

All of it stands in the page from the start. Without scripts the controls are hidden, cards are words, and the
figure is a picture like any other; assets/live.js gives them a hand.
"""

import html
import json
import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

FIELD = re.compile(
    r"\{(?P<name>\w+)(?:\|(?P<words>[^}]*)|:(?P<comma>,?)(?:\.(?P<digits>\d+)f(?: (?P<side>up|down))?)?)?\}"
)
ROUNDED = {None: ROUND_HALF_UP, "up": ROUND_CEILING, "down": ROUND_FLOOR}
BUTTONS = 4  # options at most that have a button each


def fill(text: str, values: Mapping[str, Any]) -> str:
    """A format string of numbers and of texts, as live.js fills it too."""

    def one(match):
        value = values[match["name"]]
        if match["words"] is not None:
            words = match["words"].split("|")
            return words[min(round(value), len(words) - 1)]
        if isinstance(value, str):
            return value
        number = Decimal(repr(float(value)) if match["digits"] is None or match["side"] else value)
        if match["digits"] is None:
            number = number.normalize()
        else:
            number = number.quantize(Decimal(1).scaleb(-int(match["digits"])), ROUNDED[match["side"]])
        number = format(number + 0, f"{match['comma'] or ''}f")  # 0: never -0
        return number.replace("-", "\N{MINUS SIGN}") if match["comma"] else number

    return FIELD.sub(one, text)


def cards(name: str, live: dict[str, Any]) -> str:
    """What stands above the picture: rows of cards to put in order. Without scripts they are words."""
    rows = ""
    for key, each in live["controls"].items():
        buttons = "".join(
            f'<button type="button" disabled>{html.escape(card)}</button>' for card in each.get("cards", ())
        )
        if buttons:
            named = f'id="{name}.{key}" aria-label="{html.escape(each["label"])}"'
            rows += f'<span class="cards" role="group" {named} data-search-exclude>{buttons}</span>'
    return rows


def shown(name: str, live: dict[str, Any]) -> str:
    """What follows the picture: the other controls, what is seen now, its code, and the graphs."""
    sliders, choices = "", ""
    plays = next((key for key, each in live["controls"].items() if "low" in each), None)
    for key, each in live["controls"].items():
        if "low" in each:
            sliders += _slider(f"{name}.{key}", each, key == plays)
        elif "options" in each:
            choices += _choice(f"{name}.{key}", each)
    drags = any(each.get("drag") for each in live["controls"].values())
    hint = "<p>Drag inside the figure, or set the value here.</p>" if drags else ""
    says, call = (html.escape(fill(live[part], live["values"])) for part in ("says", "call"))
    code = (
        f'<details class="code"><summary>{html.escape(live["title"])}</summary>'
        f'<div class="highlight" id="{name}.call"><pre><code>{call}</code></pre></div></details>'
    ) * bool(call)
    sent = {key: part for key, part in live.items() if key not in ("values", "title")}
    data = json.dumps(sent, separators=(",", ":"), ensure_ascii=False)
    data = data.replace("Infinity", "1e999").replace("</", "<\\/")
    return (
        f'<section class="live" data-search-exclude>{hint}<div class="sliders">{sliders}</div>{choices}'
        f'<p class="says" aria-live="polite">{says}</p>{code}'
        f'<script type="application/json">{data}</script></section>'
    )


def _slider(key, control, plays):
    """A range, and perhaps a button beside it: one that moves it by a step, or one that plays it."""
    label = html.escape(control["label"])
    low, high, start = (control[part] for part in ("low", "high", "start"))
    if control["log"]:
        low, high, start = (math.log10(value) for value in (low, high, start))
    step = "any" if control["log"] else f"{control['step']:g}"
    text = html.escape(fill(control["shows"], {"value": control["start"]}))
    button = ""
    if control["button"]:
        button = f'<button type="button" class="next">{html.escape(control["button"])}</button>'
    elif plays:
        sign = "\N{BLACK RIGHT-POINTING TRIANGLE}"
        button = f'<button type="button" class="play" aria-label="Play: {label}">{sign}</button>'
    return (
        f'<div><label for="{key}">{label}</label><span class="now" aria-hidden="true">{text}</span>'
        f'<input type="range" id="{key}" min="{low:g}" max="{high:g}" step="{step}" value="{start:g}"'
        f' aria-valuetext="{text}">{button}</div>'
    )


def _choice(key, control):
    """A button for each option, or a list of many."""
    label = html.escape(control["label"])
    options = [(html.escape(option), option == control["start"]) for option in control["options"]]
    if len(options) > BUTTONS:
        listed = "".join(f"<option{' selected' * chosen}>{option}</option>" for option, chosen in options)
        return f'<label for="{key}">{label}</label><select id="{key}">{listed}</select>'
    buttons = "".join(
        f'<button type="button" value="{option}" aria-pressed="{str(chosen).lower()}">{option}</button>'
        for option, chosen in options
    )
    return (
        f'<span id="{key}.label">{label}</span>'
        f'<div role="group" id="{key}" aria-labelledby="{key}.label">{buttons}</div>'
    )
