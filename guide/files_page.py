"""```files```: every snippet, by where it enters, and all as one archive."""

import io
import zipfile

from executable_prose import symbols
from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError
from guide import heads
from guide import reference as stored

NAME = "snippets.zip"


@directive("files")
def files(page, argument, body):
    """The archive, where the build writes it; then a table for each group."""
    try:
        groups = stored.groups()
        parts = [[f"## {title}", "", *_table(page, names)] for title, names in groups.items()]
    except (symbols.SymbolError, stored.ResultsError) as error:
        raise DirectiveError(str(error)) from None
    if not page.addresses["data"]:
        return parts
    return [
        f'<p>All of them: <a href="{page.up()}{NAME}">{NAME}</a>.</p>',
        *parts,
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


def _table(page, names):
    return [
        "| File | Lines | Checked against | Copies | Beside the fastest |",
        "|---|--:|---|--:|--:|",
        *(f"| {' | '.join(_cells(page, name))} |" for name in names),
    ]


def _cells(page, name):
    file = f"snippets/{name}.py"
    what = f"[{name}.py]({page.to(heads.reference_page(file))})<br>{stored.sentence(file)}"
    packages = {peer.partition(".")[0].replace("_", "-") for peer, *_ in stored.peers(name)}
    against = ", ".join(sorted(packages)) or "its definition"
    against = f"<span>{against}</span>"  # where no word is one of the glossary's
    return what, str(len(symbols.find(file).lines)), against, *_speed(name)


def _speed(name):
    """The fewest copies of any work, and the range of all work beside the fastest that does the same."""
    rows = _held(stored.speed(name)[1])
    if not rows:
        return "–", "–"
    copies = min(row["copies"]["forward"] for row in rows)
    older = " *(before a change)*" if any(row["older"] for row in rows) else ""
    return f"{copies:.1f}{older}", _beside(rows)


def _held(rows):
    """Of work that is listed twice, with tables computed and with tables cached, the second."""
    held = {(row["what"], row["size"]) for row in rows if row["story"] == "held"}
    return [row for row in rows if row["story"] == "held" or (row["what"], row["size"]) not in held]


def _beside(rows):
    same = [[peer["forward"] for peer in row["peers"] if not peer["less"]] for row in rows]
    ratios = sorted(max(each) for each in same if each)
    return " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (*ratios[:1], *ratios[-1:]))) or "–"
