"""```files```: every snippet in a table to filter and sort, by where it enters, and all as one archive."""

import html
import io
import re
import tomllib
import zipfile

from executable_prose import project, symbols, syntax
from executable_prose.reading import parsed
from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError
from guide import heads
from guide import reference as stored

NAME = "snippets.zip"
METHODS = "docs/guide/choosing.toml"  # says which models use a method
COLUMNS = ("File", "What it does", "Used in", "Checked against", "Lines", "Copies", "Relative to the fastest")
NUMBERS = COLUMNS[4:]


@directive("files")
def files(page, argument, body):
    """The archive, where the build writes it; then one table, which a script narrows and sorts."""
    try:
        groups = stored.groups()
        bodies = "".join(_group(page, title, names) for title, names in groups.items())
    except (symbols.SymbolError, stored.ResultsError) as error:
        raise DirectiveError(str(error)) from None
    heads = "".join(f'<th scope="col"{" data-number" * (head in NUMBERS)}>{head}</th>' for head in COLUMNS)
    count = sum(map(len, groups.values()))
    archive = f'<p>All of them: <a href="{page.up()}{NAME}">{NAME}</a>.</p>' * page.addresses["data"]
    return [
        f'{archive}<div class="register one" data-search-exclude><p class="counted"'
        f' data-filter="RoPE, rotary, YaRN, ALiBi, a model, a word">{count} files, by what they do.</p>'
        f'<table class="lines files"><thead><tr>{heads}</tr></thead>{bodies}</table></div>'
    ]


@files.as_text
def _as_text(copy, argument, body):
    """Each file with its page and what it is."""
    made = ["One archive of all: on [the page](files.md)."]
    for title, names in stored.groups().items():
        listed = ((name, stored.sentence(f"snippets/{name}.py")) for name in names)
        made += [
            "",
            f"## {title}",
            "",
            *(f"- [{name}.py](reference/{name}.md): {is_}" for name, is_ in listed),
        ]
    return made


def archive(files, site):
    """A zip of files as the site hands them out; its bytes are the same wherever and whenever it is made."""
    made = io.BytesIO()
    texts = {file.rpartition("/")[2]: heads.handed_out(heads.read(file), site) for file in sorted(files)}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, text in texts.items():
            entry = zipfile.ZipInfo(f"snippets/{name}")  # of 1980
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # as on Unix
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, text)
    return made.getvalue()


def _group(page, title, names):
    anchor = title.lower().replace(" ", "-")
    head = f'<tr class="group"><th colspan="7" scope="rowgroup" id="{anchor}">{title}</th></tr>'
    return f"<tbody>{head}{''.join(_row(page, name) for name in names)}</tbody>"


def _row(page, name):
    """A line of the table; a search finds it by what its page says of it, too."""
    cells = "".join(
        f'<td data-name="{head}">{cell}</td>' if cell else "<td></td>"
        for head, cell in zip(COLUMNS[1:], _cells(name), strict=True)
    )
    words = html.escape(_description(name))
    link = f'<a href="{page.up()}reference/{name}/">{name}.py</a>'
    return f'<tr data-words="{words}"><th scope="row">{link}</th>{cells}</tr>'


def _cells(name):
    file = f"snippets/{name}.py"
    packages = {peer.partition(".")[0].replace("_", "-") for peer, *_ in stored.peers(name)}
    against = ", ".join(sorted(packages)) or "its definition"
    lines = str(len(symbols.find(file).lines))
    return html.escape(stored.sentence(file)), _used(name), against, lines, *_speed(name)


def _used(name):
    """The models that a file's page names, or the page on choosing for its method."""
    if used := _front(name).get("used"):
        return used
    methods = parsed(tomllib.loads, project.ROOT / METHODS)["method"]
    used = next((row["used"] for row in methods if row["snippet"] == name), "")
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", used).strip("–")


def _description(name):
    return " ".join(_front(name).get("description", "").removesuffix("Copy the file.").split())


def _front(name):
    front, _ = parsed(syntax.front_matter, project.DOCS / f"reference/{name}.md")
    return front


def _speed(name):
    """The fewest copies of any work, and the range of all work beside the fastest that does the same."""
    rows = _held(stored.speed(name)[1])
    if not rows:
        return "", ""
    copies = min(row["copies"]["forward"] for row in rows)
    older = "*" if any(row["older"] for row in rows) else ""
    return f"{copies:.1f}{older}", _beside(rows)


def _held(rows):
    """Of work that is listed twice, with tables computed and with tables cached, the second."""
    held = {(row["what"], row["size"]) for row in rows if row["story"] == "held"}
    return [row for row in rows if row["story"] == "held" or (row["what"], row["size"]) not in held]


def _beside(rows):
    same = [[peer["forward"] for peer in row["peers"] if not peer["less"]] for row in rows]
    ratios = sorted(max(each) for each in same if each)
    return " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (*ratios[:1], *ratios[-1:])))
