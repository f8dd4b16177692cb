"""```census```: a table of every model type of the census but composites, to be narrowed and sorted.

The rows also come as data/census.json, with a dictionary of their fields, and as data/census.csv.
"""

import csv
import html
import io
import json
import tomllib

from executable_prose import project
from executable_prose.reading import parsed
from executable_prose.registry import built, directive
from experiments.census.rows import FIELDS, UNSURE, census, composites, digest, rows, words

DATA = "data/census"
NAMES = "docs/models.toml"
SOURCE = "https://github.com/huggingface/transformers/blob/v{version}/src/{file}#L{line}"
OF_A_ROW = {
    "reads": "input: text, images, videos, sound, (time) series, vectors of a model, or unknown",
    "layers": "number of layers with attention that were measured; null if not all layers were built",
    "part_of": "the composite models that contain this type",
    "dates": "on its documentation page: released on, paper, added; with the commit of the page",
    "switches": "conditions under which the code rotates, and whether the default meets them; null: unknown",
    "filled": "keys that the default leaves empty, and the values with which the model was measured",
    "not_measured": "the reason why it could not be measured",
    "facts": "value: null if unknown or disputed; witness: its source; agrees: null without a second source",
}
INPUTS = {
    "text": "Text input",
    "pictures": "Image input",
    "films": "Video input",
    "sound": "Audio input",
    "series": "Time series input",
    "vectors": "Embeddings of another model as input",
    "unknown": "Not measured",
}
FILTERS = {  # by the fact that it shows
    "rotation": "rotation",
    "layout": "layout",
    "base": "base",
    "windows": "window",
    "bare": "nope-layers",
    "scaling": "scaling",
    "added": "added",
    "biased": "bias",
}


SAYS = {  # what a choice says, without and with
    "rotation": ("no rotation", "rotates"),
    "windows": ("no window", "windows"),
    "bare": ("no NoPE layer", "NoPE layers"),
}


COLUMNS = ("Model type", "Positions", "Layout", "Base", "Scaling", "Window", "Context", "Date")
NUMBERS = ("Base", "Window", "Context")  # sorted as numbers
ADDED = {"learned": "learned table", "fixed": "fixed table", "convolution": "convolution"}
BIASED = {"linear": "linear bias", "table": "bias table"}
OPEN = "?"  # in a cell: unknown or disputed


@directive("census")
def table(page, argument, body):
    """One block of HTML, so that a script can narrow and sort it."""
    heads = "".join(f'<th scope="col"{" data-number" * (head in NUMBERS)}>{head}</th>' for head in COLUMNS)
    groups = []
    for given, heading in INPUTS.items():
        found = sorted((row for row in rows() if row.reads == given), key=lambda row: row.kind.lower())
        group = f'<tr class="group"><th colspan="9" scope="rowgroup">{heading}</th></tr>'
        groups += [f"<tbody>{group}{''.join(map(_row, found))}</tbody>"] if found else []
    kinds = {"input": [*INPUTS], **{kind: _choices(name) for name, kind in FILTERS.items()}}
    data = " ".join(f'data-{kind}="{_all(values)}"' for kind, values in kinds.items())
    return [
        '<div class="register many" data-search-exclude>'
        f'<p class="counted" data-filter="A model, a class, a word" data-named {data}>'
        f"{len(rows())} model types, by input.</p>"
        f'<table class="lines models"><thead><tr>{heads}<th scope="col" class="whole-row">All facts</th></tr>'
        f"</thead>{''.join(groups)}</table></div>",
        _downloads(page),
    ]


@table.as_text
def _(copy, argument, body):
    return [f"- `{row.kind}` ({row.reads}): {'; '.join(words(row))}" for row in rows()]


@directive("census-fields")
def fields(page, argument, body):
    """The data and its dictionary, a list."""
    lists = ["".join(f"<li><code>{name}</code>: {html.escape(said)}</li>" for name, said in each.items())
             for each in (OF_A_ROW, FIELDS)]  # fmt: skip
    return [_downloads(page), f"<p>Of a row:</p><ul>{lists[0]}</ul><p>Facts:</p><ul>{lists[1]}</ul>"]


@fields.as_text
def _(copy, argument, body):
    return [f"- `{name}`: {meaning}" for name, meaning in (OF_A_ROW | FIELDS).items()]


@built
def write(site):
    """The data, for programs and for those who cite it."""
    (site / DATA).parent.mkdir(exist_ok=True)
    (site / f"{DATA}.json").write_text(json.dumps(_published()), encoding="utf-8")
    (site / f"{DATA}.csv").write_text(_spreadsheet(), encoding="utf-8")


def _downloads(page):
    links = " and ".join(f'<a href="{page.up()}{DATA}.{kind}">{kind.upper()}</a>' for kind in ("json", "csv"))
    return f"<p>For programs: all of it as {links}.</p>"


def _row(row):
    data = {"input": [row.reads], **{kind: _values(row, name) for name, kind in FILTERS.items()}}
    names = names_of(row.kind)
    data |= {"names": names} if names else {}
    filters = " ".join(f'data-{kind}="{_all(values)}"' for kind, values in data.items())
    source = f' href="{_source(row)}"' if row.file else ""
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row))
    return (
        f'<tr {filters}><th scope="row"><a id="{row.kind}"{source}>{row.kind}</a></th>{cells}'
        f'<td class="whole-row"><details><summary>All facts: {row.kind}</summary>'
        f"<p>{html.escape(_told(row))}</p></details></td></tr>"
    )


def names_of(kind):
    """Names of released models that run the code of a type, from docs/models.toml."""
    return parsed(tomllib.loads, project.ROOT / NAMES)["names"].get(kind, [])


def _told(row):
    """All that is known of a row, as sentences."""
    dates = "".join(f" {_DATED[name]} {row.dates[name][0]}." for name in _DATED if name in row.dates)
    whole = f" Part of {', '.join(row.part_of)}." if row.part_of else ""
    names = names_of(row.kind)
    run = f" Used by {', '.join(names)}." if names else ""
    return f"{'; '.join(words(row))}.{dates}{whole}{run}"


def _cells(row):
    """Return the cells after the name."""
    known = {name: row.value(name) for name in FIELDS}
    date = next((row.dates[name][0] for name in _DATED if name in row.dates), "")
    return (
        _positions(row, known),
        _listed(known["layout"], str),
        _listed(known["base"], "{:,.0f}".format),
        _listed(known["scaling"], str),
        _window(row, known),
        f"{known['context']:,}" if known["context"] else "",
        date,
    )


def _positions(row, known):
    """How positions enter, in a few words."""
    if known["attention"] == "no":
        return "no attention"
    found = [_turns(row, known)] if known["rotation"] == "yes" else []
    found += [ADDED[known["added"]]] if known["added"] in ADDED else []
    found += [BIASED[known["biased"]]] if known["biased"] in BIASED else []
    found += ["inside the score"] if known["in_score"] == "yes" else []
    if found:
        return " + ".join(found)
    marks = {known[name] for name in ("rotation", "added", "biased", "in_score")}
    return next((word for word in ("disputed", "unknown") if word in marks), "none")


def _turns(row, known):
    """RoPE, whether of whole heads and in which layers."""
    share, bare = known["share"], known["bare"]
    partly = "partial " if isinstance(share, list) and share != [1.0] else ""
    some = f" in {row.layers - len(bare)} of {row.layers} layers" if isinstance(bare, list) and bare else ""
    return f"{partly}RoPE{some}"


def _listed(value, said):
    if value in UNSURE:
        return OPEN
    return ", ".join(map(said, value or ()))


def _window(row, known):
    """Its length where the configuration names one, and in how many layers."""
    value = known["windows"]
    if not value or value in UNSURE:
        return OPEN if value else ""
    layers = f"{len(value)} of {row.layers} layers" if row.layers else f"{len(value)} layers"
    return f"{known['window']:,} in {layers}" if known["window"] else layers


_DATED = {"released": "Released", "paper": "Paper"}


def _values(row, name):
    """What a row is found by: a list's values, or whether it has any."""
    value = row.value(name)
    if value is None or value in UNSURE:
        return [value or "none"]
    if name in SAYS:
        return [SAYS[name][bool(value) and value != "no"]]
    if isinstance(value, list):
        return [f"{each:,.0f}" if isinstance(each, float) else each for each in value] or ["none"]
    return [value]


def _choices(name):
    found = {value for row in rows() for value in _values(row, name)}
    return sorted(found, key=lambda value: (value in (*UNSURE, "none"), len(value), value))


def _all(values):
    return html.escape("|".join(values))


def _source(row):
    return SOURCE.format(version=census()["transformers"], file=row.file, line=row.line)


def _published():
    return {
        "transformers": census()["transformers"],
        "digest": digest(),
        "licence": "CC BY 4.0",
        "fields": OF_A_ROW | FIELDS,
        "models": {
            row.kind: {
                "class": row.cls,
                "source": _source(row) if row.file else None,
                "reads": row.reads,
                "layers": row.layers,
                "part_of": row.part_of,
                "dates": row.dates,
                "switches": row.switches,
                "filled": row.filled,
                "not_measured": row.why or None,
                "facts": {name: _stated(fact) for name, fact in row.facts.items()},
            }
            for row in rows()
        },
        "composites": composites(),
    }


def _stated(fact):
    unsure = fact["value"] in UNSURE
    status = {"value": None, "status": fact["value"]} if unsure else {"status": "stated"}
    return fact | status


def _spreadsheet():
    """A row a model; each fact has a column of values and one of witnesses."""
    written = io.StringIO()
    heads = [head for name in FIELDS for head in (name, f"{name}_witness", f"{name}_agrees")]
    out = csv.writer(written)
    firsts = ["model", "class", "source", "reads", "layers", "not_measured", "released", "paper", "added_on"]
    out.writerow([*firsts, *heads])
    for row in rows():
        dates = [row.dates.get(name, [""])[0] for name in ("released", "paper")]
        facts = [row.facts.get(name, {}) for name in FIELDS]
        cells = [cell for fact in facts for cell in (_cell(fact.get("value")), *_witness(fact))]
        known = [row.kind, row.cls, _source(row) if row.file else "", row.reads, row.layers, row.why]
        out.writerow([*known, *dates, row.dates.get("added", ""), *cells])
    return written.getvalue()


def _cell(value):
    return (
        " ".join(f"{each:.10g}" if isinstance(each, float) else str(each) for each in value)
        if isinstance(value, list)
        else value
    )


def _witness(fact):
    agrees = {True: "yes", False: "no", None: ""}[fact.get("agrees")]
    return fact.get("witness", ""), agrees
