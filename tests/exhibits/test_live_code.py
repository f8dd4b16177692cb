"""The code below a live figure, run beside copies of the snippets, gives what the sentence says and the
picture shows, wherever the controls stand.
"""

import ast
import functools
import importlib
import re
import shutil
import sys

import pytest
import textstat
import torch

from executable_prose import Live, symbols
from executable_prose.execution.results import exhibit_names
from executable_prose.execution.run_exhibit import seed
from executable_prose.figures import live_graph
from executable_prose.figures.live_html import FIELD, fill
from executable_prose.project import ROOT
from tests.docs.test_prose import CHAPTERS, JARGON, levels
from tests.rows import each_of

STOPS = 6  # at random, besides the ends, for each choice
NEAR = {"rtol": 2e-5, "atol": 2e-4}  # pages count in float64, the code mostly in float32
TOLD = Live.title
BOUNDS = {
    "down": r"at least|no(where)? (less|fewer) than|never (below|less than)",
    "up": r"at most|up to|no(where)? more than|never (above|more than)",
}


def source(name):
    module, _, function = name.partition(".")
    return "\n".join(symbols.find(f"exhibits/{module}.py", function).lines)


PLAIN = {name for page in CHAPTERS for name in re.findall(r"```exhibit (\S+)", dict(levels(page))["layman"])}
PLAIN |= {"front.who_bit_whom"}
LIVE = [name for name in exhibit_names() if re.search(r"live\(", source(name), re.IGNORECASE)]


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """The snippets as a reader has them: files in a folder on the path."""
    folder = tmp_path_factory.mktemp("copies")
    files = [shutil.copy(file, folder) for file in (ROOT / "snippets").glob("[!_]*.py")]
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield files
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) in map(str, files):
            del sys.modules[name]


@functools.cache
def exhibited(name):
    seed()
    module, _, function = name.partition(".")
    returned = getattr(importlib.import_module(f"exhibits.{module}"), function)()
    return next(part for part in returned if isinstance(part, Live))


def settings(live):
    """Each choice with every slider at its ends, and with all of them at random."""
    moved = live_graph.inputs(live)
    for number, chosen in enumerate(live_graph.combinations(live)):
        for values in live_graph.stops(moved, STOPS, seed=number):
            yield dict(zip(moved, values, strict=True)) | chosen


def run(code, names):
    """What the lines give that assign nothing, as numbers in a row; names takes what the others assign."""
    given = []
    for line in ast.parse(code).body:
        part = ast.unparse(line)
        if isinstance(line, ast.Expr):
            given.append(eval(part, names))
        else:
            exec(part, names)
    return numbers(given)


def numbers(given):
    if isinstance(given, torch.Generator):  # of a seed
        return []
    if isinstance(given, (list, tuple)):
        return [number for each in given for number in numbers(each)]
    return torch.as_tensor(given).detach().double().flatten().tolist()


def computed(live, made):
    """The function's numbers that the sentence says, in its order; none that picks words."""
    fields = [match["name"] for match in FIELD.finditer(live.says) if match["words"] is None]
    return [float(made[name]) for name in fields if name in made]


def typed(live, known):
    """All other numbers of the sentence, as text: those of controls, and what stands in it at every stop."""
    chosen = {name for name in live.controls if re.fullmatch(r"[\d.]+", str(known[name]))}
    kept = FIELD.sub(lambda field: fill(field[0], known) if field["name"] in chosen else "_", live.says)
    return [number.replace(",", "") for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", kept)]


def test_code_is_offered_but_in_plain_words_and_on_the_first_screen():
    assert {name for name in LIVE if not exhibited(name).call} == PLAIN & set(LIVE)


@pytest.mark.claim(
    "the-code-of-live-figures-gives-what-they-say",
    "The code that an interactive figure offers runs next to the copied files, and returns the numbers in "
    "the figure's sentence and the lines, bars or cells that it shows, at both ends of every control and "
    "at stops in between.",
)
@each_of("name", LIVE)
def test_the_code_gives_what_the_sentence_says_and_the_picture_shows(name, copies):
    live = exhibited(name)
    if name in PLAIN:
        assert not live.call and not live.draws and not live.given, "in plain words no code is offered"
        return
    assert live.draws or live.title != TOLD, "name what it draws of the code, or another title"
    assert not live.given or live.title != TOLD, "the code alone does not give it"
    for values in settings(live):
        tensors = {
            key: value if isinstance(value, str) else torch.tensor(value, dtype=torch.float64)
            for key, value in values.items()
        }
        made = live.function(**tensors)
        known = live.words(values) | {key: value.item() for key, value in made.items() if value.ndim == 0}
        code, names, where = fill(live.call, known), dict(live.given), f"{name} at {values}"
        if "raises an error" in fill(live.says, known):
            with pytest.raises((IndexError, ValueError)):
                run(code, names)
            continue
        torch.testing.assert_close(
            run(code, names), computed(live, made), **NEAR, msg=lambda m, w=where: f"{w}: {m}"
        )
        missing = [
            number for number in typed(live, known) if not re.search(rf"(?<![\w.]){number}(?![\w.])", code)
        ]
        assert not missing, f"{where}: the sentence says {missing}, the code does not"
        for artist, drawn in live.draws.items():
            wanted, seen = (
                torch.tensor(numbers(eval(drawn, names)), dtype=torch.float64),
                made[artist].double(),
            )
            if seen.numel() == 2 * len(wanted):  # of points, how high they are
                seen = seen[:, 1]
            torch.testing.assert_close(
                wanted, seen.flatten(), **NEAR, msg=lambda m, w=where, a=artist: f"{a} of {w}: {m}"
            )


@each_of("name", LIVE)
def test_a_bound_in_its_words_is_rounded_outwards(name):
    live = exhibited(name)
    wrong = []
    for text in (live.says, *live.texts.values()):
        for side, words in BOUNDS.items():
            for match in re.finditer(rf"\b(?:{words}) (\{{\w+:[^}}]*\}})", text):
                field = FIELD.fullmatch(match.groups()[-1])
                if field["name"] not in live.controls and field["side"] != side:
                    wrong.append(match[0])
    assert not wrong, f"expected ' up' or ' down' after the digits, got {wrong}"


@each_of("name", [name for name in LIVE if name in PLAIN])
def test_in_plain_words_a_figure_has_one_control_and_says_in_plain_words_what_is_seen(name):
    live = exhibited(name)
    (control,) = live.controls.values()
    for values in settings(live):
        made = live.function(**{key: torch.tensor(each).double() for key, each in values.items()})
        known = live.words(values) | {key: value.item() for key, value in made.items() if value.ndim == 0}
        words = [control.label, *(fill(text, known) for text in (live.says, *live.texts.values()))]
        assert not JARGON.findall(" ".join(words)), words
        assert textstat.flesch_kincaid_grade(words[1]) <= 9, words[1]
