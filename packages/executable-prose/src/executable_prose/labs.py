"""Labs: a file of cells becomes a page and two notebooks; one in docs/notebooks/, one of each.

The file is Python in jupytext's percent format and runs from top to bottom. A cell
begins with `# %%`, for prose with `# %% [markdown]`; `tags=["starter"]` and
`alt="…"` may follow. The engine's docs say what the tags mean.
"""

import json
import posixpath
import re
import tomllib
from typing import NamedTuple

from executable_prose import project
from executable_prose.reading import parsed
from executable_prose.registry import ADDED

HEAD = re.compile(r"^# %%(?P<kind> \[markdown\])?(?P<options>.*)$")
OPTION = re.compile(r' (?P<key>\w+)=(?P<value>\[[^\]]*\]|"(?:[^"\\]|\\.)*")')
BRANCH = "notebooks"  # where what is published lies, for Colab and Binder
TAGS = ("starter", "solution", "judge", "check")
LINK = re.compile(r"\]\((?P<path>[^():#\s]+)\.md(?P<anchor>#[\w-]+)?\)")


class LabError(Exception):
    """The lab cannot be read; the message says what is wrong, and where."""


class Cell(NamedTuple):
    prose: bool
    tag: str  # one of TAGS, or ""
    alt: str  # what its figure shows, in words
    line: int  # of its first line, in the file
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def file(name: str) -> str:
    notebook = f"docs/notebooks/{name}.py"
    return notebook if (project.ROOT / notebook).is_file() else f"{project.settings().labs}/{name}.py"


def place(name: str) -> str:
    """The page of a lab or a notebook, relative to docs/, without the end of its name."""
    return file(name).removeprefix("docs/").removesuffix(".py")


def mistakes(name: str) -> str:
    """The mistakes that the lab's checks name; they are edits of its solutions."""
    return f"{project.settings().labs}/{name}.toml"


def check_mistakes(name: str) -> None:
    """Refuse a mistake that is no edit of the solution of its step."""
    file = mistakes(name)
    if not (project.ROOT / file).is_file():
        return
    text = (project.ROOT / file).read_text(encoding="utf-8")
    try:
        steps = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{file}: {error}") from None
    solutions = [cell.text for cell in cells(name) if cell.tag == "solution"]
    for step, listed in steps.items():
        lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip() == f"[[{step}]]"]
        solution = "".join(each for each in solutions if f"def {step}(" in each)
        if not (solution and lines):
            raise LabError(f"{file}: expected [[function]] of a solution, got {step!r}")
        for line, each in zip(lines, listed, strict=True):
            if set(each) != {"was", "ways"}:
                raise LabError(f"{file}:{line}: a mistake has was and ways, got {', '.join(each)}")
            for way in each["ways"]:
                if set(way) != {"now", "says"}:
                    raise LabError(f"{file}:{line}: a way has now and says, got {', '.join(way)}")
            if (count := solution.count(each["was"])) != 1:
                what = f"expected {each['was']!r} once in the solution of {step}"
                raise LabError(f"{file}:{line}: {what}, got it {count} times")


def names() -> list[str]:
    """Every lab: the files in their folder that begin with a cell."""
    found = sorted((project.ROOT / project.settings().labs).glob("[!.]*.py"))
    return [path.stem for path in found if path.read_text(encoding="utf-8").startswith("# %%")]


def notebooks() -> list[str]:
    """Every lab, and every notebook of docs/notebooks/."""
    return names() + sorted(path.stem for path in (project.DOCS / "notebooks").glob("[!.]*.py"))


def published(name: str) -> list[tuple[str, bool, str]]:
    """The files that a lab or a notebook is offered as: their names, whether solved, what they are called."""
    if name not in names():
        return [(f"{name}.ipynb", True, "notebook")]
    return [
        (f"{name}.ipynb", False, "exercise notebook"),
        (f"{name}-solution.ipynb", True, "solution notebook"),
    ]


def cells(name: str) -> list[Cell]:
    """The cells of a lab, prose without its comment signs."""
    source = file(name)
    path = project.ROOT / source
    if not path.is_file():
        raise LabError(f"no file {source}")
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # as the parser counts them
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    if starts[:1] != [0]:
        raise LabError(f"a lab begins with a cell, '# %% [markdown]' (at {source}:1)")
    return [
        _cell(source, start, lines[start:end])
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def _cell(source, start, lines):
    """One cell from its lines, the first of them its head; `start` is how many lines stand before it."""
    head, where = HEAD.match(lines[0]), f"(at {source}:{start + 1})"
    tag, alt = _options(head["options"], lines[0], where)
    first = next((n for n, line in enumerate(lines[1:], 1) if line), len(lines))
    body = "\n".join(lines[first:]).rstrip("\n").split("\n")
    if body == [""]:
        raise LabError(f"the cell is empty {where}")
    number = start + first + 1
    if head["kind"]:
        body = [_prose_line(line, f"(at {source}:{n})") for n, line in enumerate(body, number)]
    elif all(not line.strip() or line.lstrip().startswith("#") for line in body):
        raise LabError(f"expected code, the cell has only comments {where}")
    return Cell(bool(head["kind"]), tag, alt, number, body)


def _options(text, head, where):
    """The tag and the words for a figure that a head gives."""
    try:
        options = {option["key"]: json.loads(option["value"]) for option in OPTION.finditer(text)}
    except ValueError:
        options = {"unreadable": True}
    tags, alt = options.pop("tags", []), options.pop("alt", "")
    known = tags in ([], *([tag] for tag in TAGS)) and isinstance(alt, str)
    if OPTION.sub("", text).strip() or options or not known:
        ways = ", ".join(f'tags=["{tag}"]' for tag in TAGS)
        raise LabError(f'a cell takes alt="…" and one of {ways}, got {head!r} {where}')
    return "".join(tags), alt


def _prose_line(line, where):
    if line != "#" and not line.startswith("# "):
        raise LabError(f"a line of prose begins with '# ' {where}")
    return line[2:]


def notebook(name: str, solved: bool, site: str) -> str:
    """The lab as the text of a notebook that needs no other file; with the solution or with the starter.

    `site` is the address of the home page, which links to our pages begin with.
    """
    left_out = "starter" if solved else "solution"
    shown = [cell for cell in cells(name) if cell.tag != left_out]
    title, rest = shown[0], shown[1:]
    made = [_prose(f"{_addressed(name, title.text, site)}\n\n{_before(name, solved, site)}")]
    made += [_written(path, site) for path in files(name)]
    if (project.ROOT / mistakes(name)).is_file():
        made += [_written(mistakes(name), site), _file(f"{name}.py", _solutions(name))]
    for cell in rest:
        made.append(_prose(_addressed(name, cell.text, site)) if cell.prose else _code(cell))
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    whole = {
        "cells": made,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, ensure_ascii=False) + "\n"


def files(name: str) -> list[str]:
    """The files of ours that a lab imports, relative to the root, in that order."""
    found = {f"{match['room']}/{match['file']}.py": None for match in _ours().finditer(_python(name))}
    return list(found)


def _ours():
    """What imports a file that a notebook can bring along."""
    rooms = "|".join(project.settings().notebooks.brings)
    return re.compile(rf"^from (?P<room>{rooms})\.(?P<file>\w+) import ", re.M)


def _python(name):
    """The code of a lab; an import of ours in a form that a notebook could not have is refused."""
    ours, text = _ours(), []
    rooms = re.compile(rf"\b(?:import|from) +(?:{'|'.join(project.settings().rooms)})\b")
    for cell in cells(name):
        if cell.prose:
            continue
        for number, line in enumerate(cell.lines, cell.line):
            if rooms.search(line) and not ours.match(line):
                where = f"(at {file(name)}:{number})"
                room = project.settings().notebooks.brings[0]
                raise LabError(f"expected 'from {room}.x import y' at the margin, got {line!r} {where}")
        text.append(cell.text)
    return "\n".join(text)


def _before(name, solved, site):
    """What a notebook says of itself: where it is from, and what it needs."""
    asked = project.settings().notebooks
    which = f"the {'solution' if solved else 'exercise'} of the lab" if name in names() else "the notebook"
    return (
        f"**Before you start.** This is {which} at <{site}{place(name)}/>. It needs\n\n"
        f"```\npip install {' '.join(needed())}\n```\n\n"
        f"on Python {asked.python} or newer, and nothing else: the first cells below write the files that "
        f"it uses beside it. It is tried with {asked.needs[0]} {asked.oldest}, too. Run the cells in their "
        "order."
    )


def needed() -> list[str]:
    """What a notebook needs, each package with its version."""
    pins = parsed(str, project.ROOT / "requirements.txt")
    return [_pin(package, pins) for package in project.settings().notebooks.needs]


def _pin(package, pins):
    found = re.search(rf"^{package}==\S+", pins, re.M)
    if not found:
        raise LabError(f"expected a line '{package}==…', which notebooks ask for (at requirements.txt:1)")
    return found[0]


def _written(path, site):
    text = (project.ROOT / path).read_text(encoding="utf-8")
    return _file(posixpath.basename(path), ADDED.files.handed_out(text, site))


def _file(path, text):
    """A cell that writes a file beside the notebook."""
    return _cell_of_code(f"%%writefile {path}\n" + text.rstrip("\n"), folded=True)


def _solutions(name):
    """The solutions of a lab as a file of cells, which the checks edit to know a mistake."""
    solved = [cell.text for cell in cells(name) if cell.tag == "solution"]
    return "# The solutions, which the checks compare with.\n\n" + "\n\n\n".join(
        f'# %% tags=["solution"]\n{text}' for text in solved
    )


def _addressed(name, text, site):
    """Prose for a notebook: links to our pages lead to the site."""

    def address(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place(name)), link["path"]))
        if not (project.DOCS / f"{path}.md").is_file():
            return link[0]
        folder = path.removesuffix("index")
        return f"]({site}{folder}{'/' if folder == path else ''}{link['anchor'] or ''})"

    return LINK.sub(address, text).replace('<details markdown="1">', "<details>")


def _code(cell):
    return _cell_of_code(_ours().sub(r"from \g<file> import ", cell.text), [cell.tag], cell.tag == "judge")


def _prose(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _cell_of_code(text, tags=("",), folded=False):
    metadata = {"tags": list(tags)} if any(tags) else {}
    if folded:
        metadata["jupyter"] = {"source_hidden": True}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": text,
    }
