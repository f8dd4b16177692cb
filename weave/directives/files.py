"""```files```: every snippet, by where it enters, and all with check.py and their versions as one archive."""

import base64
import io
import zipfile

from weave import copies, heads, symbols
from weave import reference as known
from weave.directives.code import DirectiveError, reference_page

NAME = "snippets.zip"


def files(page, argument, body):
    """The archive, in its own link as it needs no server; then a table for each group."""
    try:
        groups = known.groups()
        parts = [[f"## {title}", "", *_table(page, names)] for title, names in groups.items()]
    except (symbols.SymbolError, known.LedgerError) as error:
        raise DirectiveError(str(error)) from None
    listed = [f"snippets/{name}.py" for names in groups.values() for name in names]
    data = archive([*listed, heads.CHECK], page.addresses["site"])
    address = f"data:application/zip;base64,{base64.b64encode(data).decode()}"
    link = f'<a href="{address}" download="{NAME}">{NAME}</a>, {len(data) // 1000} kB'
    if page.addresses["data"]:
        link += f'. Their versions: <a href="{page.up()}{copies.LIST}">{copies.LIST}</a>'
    return [f"<p>All of them: {link}.</p>", *parts]


def archive(files, site):
    """A zip of files as the site hands them out and of the list of their versions.

    Of the same history it has the same bytes, wherever and whenever it is made.
    """
    made = io.BytesIO()
    texts = {file.rpartition("/")[2]: heads.handed_out(heads.read(file), site) for file in sorted(files)}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, text in (texts | {copies.LIST: copies.text()}).items():
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
    what = f"[{name}.py]({page.to(reference_page(file))})<br>{known.sentence(file)}"
    packages = {peer.partition(".")[0].replace("_", "-") for peer, *_ in known.peers(name)}
    against = ", ".join(sorted(packages)) or "its definition"
    against = f"<span>{against}</span>"  # where no word is one of the glossary's
    return what, str(len(symbols.find(file).lines)), against, *_speed(name)


def _speed(name):
    """The fewest copies of any work, and the range of all work beside the fastest that does the same."""
    _, rows = known.speed(name)
    held = {(row["what"], row["size"]) for row in rows if row["story"] == "held"}
    rows = [row for row in rows if row["story"] == "held" or (row["what"], row["size"]) not in held]
    same = [[peer["forward"] for peer in row["peers"] if not peer["less"]] for row in rows]
    ratios = sorted(max(each) for each in same if each)
    copies = min((row["copies"]["forward"] for row in rows), default=None)
    beside = " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (*ratios[:1], *ratios[-1:])))
    older = " *(before a change)*" if any(row["older"] for row in rows) else ""
    return "–" if copies is None else f"{copies:.1f}{older}", beside or "–"
