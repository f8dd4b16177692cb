"""```register```: bugs in released code, from docs/broken/register.toml.

Without an argument, the directive shows an index of all entries, with a filter by text, stage and library.
With an id, it shows that entry, on the page of its stage. All entries are also written to data/broken.json.
"""

import html
import json
import re
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass

from executable_prose import project
from executable_prose.claims import title
from executable_prose.reading import parsed
from executable_prose.registry import built, directive
from executable_prose.rendering.directives.code import DirectiveError

FILE = "docs/broken/register.toml"
DATA = "data/broken.json"
CHECKER = "reference/check_positions.md"
OWN = "exhibits/_image_checks.py"  # defines the checks that CHECKER does not have
# How a reader asks a check of their own model or code.
ON_A_MODEL = "`positions check path/to/model`"
ON_A_ROTATION = "`check_rotation(rotate, dim, settings=settings)`"
ON_AN_ATTENTION = "`check_attention(attend, dim, causal=True)`"
OF_A_MODEL = [
    "finite",
    "same_twice",
    "no_peeking",
    "alone_in_batch",
    "alone_as_padded",
    "padded_as_steps",
    "alone_as_packed",
    "moved_as_here",
    "whole_as_steps",
    "whole_as_chunks",
    "past_limits",
    "begins",
    "saved_and_loaded",
    "started_on_meta",
    "layers_as_configured",
]
OF_A_ROTATION = [
    "norm_kept",
    "one_layout",
    "precise_angles",
    "offsets_alone",
    "place_alone",
    "reaches",
    "longest",
    "float64",
    "as_configured",
]
OF_AN_ATTENTION = ["adds_up", "hidden_keys", "rows_alone", "bias"]
COMMANDS = (
    dict.fromkeys(OF_A_MODEL, ON_A_MODEL)
    | dict.fromkeys(OF_A_ROTATION, f"{ON_A_ROTATION} with your rotation")
    | dict.fromkeys(OF_AN_ATTENTION, f"{ON_AN_ATTENTION} with your attention function")
    | {"as_configured": f"{ON_A_MODEL}, or {ON_A_ROTATION} with your rotation"}
)
STAGES = {  # from loading a checkpoint to serving; each has a page, docs/broken/<stage>.md
    "conversion": "Weight conversion",
    "configuration": "Configuration",
    "scaling": "Context extension",
    "start": "Initialisation and loading",
    "training": "Training",
    "batches": "Serving: batches, windows, kernels",
    "caches": "Serving: KV caches",
    "images": "Images and video",
}


@dataclass(frozen=True)
class Entry:
    """An entry; the first lines of docs/broken/register.toml explain the fields."""

    id: str
    exhibit: str
    stage: str
    title: str
    symptom: str
    messages: list[str]
    libraries: list[str]
    check: str
    hides: str
    cause: str
    fix: str
    threads: list[dict[str, str]]
    stands: str
    learn: str

    @property
    def page(self):
        return f"broken/{self.stage}.md"


def entries():
    """Return all entries, sorted by stage."""
    try:
        return parsed(_entries, project.ROOT / FILE)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DirectiveError(f"{FILE} cannot be read: {error}") from None


def _entries(text):
    found = [_entry(row) for row in tomllib.loads(text).get("entry", [])]
    for id, count in Counter(entry.id for entry in found).items():
        if count > 1:
            raise DirectiveError(f"{FILE} has {count} entries {id!r}")
    return sorted(found, key=lambda entry: list(STAGES).index(entry.stage))


def _entry(row):
    name = row.get("id", "without an id")
    fields = set(Entry.__dataclass_fields__)
    if wrong := fields ^ set(row):
        told = ", ".join(f"{'lacks' if field in fields else 'has'} {field}" for field in sorted(wrong))
        raise DirectiveError(f"{FILE}: entry {name} {told}")
    if row["stage"] not in STAGES:
        stages = ", ".join(STAGES)
        raise DirectiveError(f"{FILE}, entry {name}: stage must be one of {stages}, got {row['stage']!r}")
    for thread in row["threads"]:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread.get("name", "")):
            raise DirectiveError(f"{FILE}, entry {name}: thread must be owner/repo#number, got {thread}")
    return Entry(**row)


@directive("register")
def register(page, asked, body):
    """Return the index of all entries, with links to their pages, or the entry with this id."""
    if not asked:
        return [_index(page, entries())]
    entry = _find(asked)
    if page.path() != entry.page:
        raise DirectiveError(f"{FILE}: entry {asked} belongs on docs/{entry.page}")
    return [_facts(entry, page.to)]


@register.as_text
def _as_text(copy, asked, body):
    if asked:
        entry = _find(asked)
        return [f"## {entry.title}", *_facts(entry, lambda page: page)[1:]]
    return [f"- [{entry.title}]({entry.page}#{entry.id}): {entry.symptom}" for entry in entries()]


@built
def write(site):
    """Write all entries as JSON, if the project has a register."""
    if not (project.ROOT / FILE).exists():
        return
    rows = [asdict(entry) | {"address": f"broken/{entry.stage}/#{entry.id}"} for entry in entries()]
    (site / DATA).parent.mkdir(exist_ok=True)
    (site / DATA).write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


def _find(asked):
    known = entries()
    for entry in known:
        if entry.id == asked:
            return entry
    raise DirectiveError(f"{FILE} has no entry {asked!r}; it has {', '.join(entry.id for entry in known)}")


def _index(page, known):
    """Return one block of HTML, which a script filters; the site search finds entries on their own pages."""
    counts = Counter(name for entry in known for name in entry.libraries)
    often = sorted((name for name, count in counts.items() if count > 1), key=str.lower)
    rows = []
    for stage, heading in STAGES.items():
        rows.append(f'<h3><a href="{page.up()}broken/{stage}/">{heading}</a></h3>')
        rows += [_row(page, entry) for entry in known if entry.stage == stage]
    return (
        '<div class="register" data-search-exclude>'
        '<p class="counted" data-filter="Symptom, library or error message"'
        f' data-stage="{_all(STAGES.values())}" data-library="{_all(often)}">{len(known)} entries,'
        f" from weight conversion to serving.</p>{''.join(rows)}</div>"
        f'<p>For programs: <a href="{page.up()}{DATA}">all entries as JSON</a>.</p>'
    )


def _row(page, entry):
    errors = "".join(f" <code>{html.escape(message)}</code>" for message in entry.messages)
    return (
        f'<p data-stage="{_all([STAGES[entry.stage]])}" data-library="{_all(entry.libraries)}">'
        f'<a href="{page.up()}broken/{entry.stage}/#{entry.id}">{html.escape(entry.title)}</a>.'
        f" <em>{html.escape(', '.join(entry.libraries))}</em>"
        f'<span class="more" hidden> {_html(entry.symptom)}{errors}</span></p>'
    )


def _all(values):
    return html.escape("|".join(values))


def _html(words):
    """Convert a sentence whose only Markdown is inline code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))


def _facts(entry, to):
    """Return Markdown: the heading and all fields of the entry."""
    errors = " ".join(_code(message) for message in entry.messages)
    page, _, anchor = entry.learn.partition("#")
    learn = f"[{title(page)}]({to(page)}{'#' + anchor if anchor else ''})"
    checker = f"[check_positions.py]({to(CHECKER)})"
    known = parsed(str, project.ROOT / "snippets/check_positions.py")
    of = checker if f'"{entry.check}"' in known else f"this page (`{OWN}`)"
    return [
        *(f"## {entry.title} {{: #{entry.id} }}", ""),
        *(f"**Symptom.** {entry.symptom} {errors}".rstrip(), ""),
        *(f"**Cause.** {entry.cause}", ""),
        *(f"**Fix.** {entry.fix}", ""),
        *(f"**When it stays hidden.** {entry.hides}", ""),
        *(f"**Found in** {_threads(entry)}", ""),
        *(f"**Status.** {entry.stands}", ""),
        *([f"**Find it in your model.** {COMMANDS[entry.check]}.", ""] if entry.check in COMMANDS else []),
        *(f"**Check.** `{entry.check}` of {of}. **Background:** {learn}.", ""),
    ]


def _threads(entry):
    """Return links to the threads, with dates and versions."""
    if not entry.threads:
        return f"{', '.join(entry.libraries)}; no thread reports it."
    return "; ".join(_thread(**thread) for thread in entry.threads) + "."


def _thread(name, date, version=""):
    owner, number = name.split("#")
    address = f"https://github.com/{owner}/issues/{number}"
    return f"[{owner.partition('/')[2]}#{number}]({address}), {date}{', ' + version if version else ''}"


def _code(message):
    """Return inline code in Markdown, also for text that contains backticks."""
    return f"`` {message} ``" if "`" in message else f"`{message}`"
