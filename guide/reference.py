"""What is known of a snippet beyond its text: its calls, its peers and its speed.

The calls are read from the file itself, the differences to peers and the speeds from stored results
that the tests keep (`make goldens`, `make bench`). A speed that is older than its code says so.
"""

import ast
import json
import re
import textwrap

from executable_prose import project, symbols
from executable_prose.execution.provenance import changed
from executable_prose.reading import parsed

RESULTS = "experiments/results"
SHOWN = ("__init__", "forward", "__call__")  # the methods that a reader calls without their name
FEATURES = {  # what a docstring lists after "Supports", and the head of its column
    "autocast": "autocast",
    "compile": "torch.compile",
    "export": "torch.export",
    "vmap": "vmap",
    "per-sample gradients": "per-sample gradients",
    "mps": "MPS",
    "no host-device sync": "no host–device sync",
}
SUPPORTS = re.compile(r"^Supports ((?:autocast|compile|vmap)\b[^.]*)\.$", re.M)
SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Note|Example|References):\n")


class ResultsError(Exception):
    """The stored results lack what the page needs; the message says what."""


def calls(file):
    """Yield each public function and class of a file: (name, lines of its signature, docstrings)."""
    source = symbols.find(file)
    for node in ast.parse("\n".join(source.lines)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, _signature(source.lines, node), list(_said(node))


def former_names(file):
    """Return the names that the last lines of a file keep for a release: {former: present}."""
    public, kept = {name for name, *_ in calls(file)}, {}
    for node in ast.parse("\n".join(symbols.find(file).lines)).body:
        if isinstance(node, ast.Assign) and getattr(node.value, "id", "") in public:
            kept[ast.unparse(node.targets[0])] = node.value.id
    return kept


def _said(node):
    """Yield the docstrings of a definition and of its methods: (name of the method, sections)."""
    for name, each in [("", node), *((each.name, each) for each in _methods(node))]:
        if docstring := ast.get_docstring(each):
            yield name, sections(docstring)


def features(docstring):
    """Return the features that a docstring lists after "Supports"; None if it lists none."""
    listed = SUPPORTS.search(docstring)
    return listed and re.split("[,;] ", " ".join(listed[1].split()))


def supports(file):
    """Yield each function and class of a file that lists what it supports: (name, features)."""
    for node in ast.parse("\n".join(symbols.find(file).lines)).body:
        docstring = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)
        if docstring and (listed := features(docstring)):
            yield node.name, listed


def sections(docstring):
    """Return the sections of a docstring in Google style: [(title, paragraphs)], "" for the description."""
    found = [("", [])]
    for paragraph in docstring.split("\n\n"):
        if heading := SECTION.match(paragraph):
            found.append((heading[1], []))
            paragraph = paragraph[heading.end() :]
        elif found[-1][0] and not paragraph.startswith(" "):
            found.append(("", []))
        title, paragraphs = found[-1]
        if SUPPORTS.fullmatch(paragraph):
            continue  # the page has a table of these
        paragraphs.append(textwrap.dedent(paragraph) if title else paragraph)
    return found


def entries(text):
    """Return the entries of Args or Raises: [(name, description)], each with its further lines indented."""
    return [entry.split(": ", 1) for entry in re.split(r"\n(?! )", text)]


def _methods(node):
    """Of a class those that a reader calls."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    called = [each for each in methods if each.name in SHOWN or not each.name.startswith("_")]
    return called if isinstance(node, ast.ClassDef) else []


def _signature(lines, node):
    """The lines before a definition's docstring, and for a class those of its public methods too."""
    head = lines[node.lineno - 1 : node.body[0].lineno - 1]
    return head + [line for method in _methods(node) for line in ["", *_signature(lines, method)]]


def groups():
    """The snippets by where they enter, in the order of the navigation: {title: names}."""
    found = {}
    for page, sections in project.pages_in_order():
        if page.startswith("reference/"):
            found.setdefault(sections[-1], []).append(page.removeprefix("reference/").removesuffix(".md"))
    return found


def sentence(file):
    """What a file is: the first paragraph of its docstring."""
    tree = ast.parse("\n".join(symbols.find(file).lines))
    return " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())


def peers(snippet):
    """(implementation, version, largest difference) for each peer that the tests compare it with."""
    known = _results("peers.json").get(snippet, {})
    return [(name, _version(name.partition(".")[0]), gap) for name, gap in sorted(known.items())]


def speed(snippet):
    """The machine that the speeds were taken on, and the rows of a snippet.

    Of the peers a row has those that are fastest in a column, of all and of those that do the same. `older`
    has what has changed since the row was measured.
    """
    known = _results("speed.json")
    rows = [row for row in known.get("rows", ()) if row["snippet"] == snippet]
    return known.get("machine"), [
        row | {"peers": _fastest(row), "older": changed(known["code"][row["what"]], "snippets")}
        for row in rows
    ]


def _fastest(row):
    same = [peer for peer in row["peers"] if not peer["less"]]
    first = {
        max(peers, key=lambda peer: peer[column])["name"]
        for column in row["microseconds"]
        for peers in (row["peers"], same)
        if peers
    }
    return [peer for peer in row["peers"] if peer["name"] in first]


def _version(package):
    """The version that the tests are pinned to."""
    pins = parsed(str, project.ROOT / "requirements-test.txt")
    pinned = re.search(rf"^{re.sub('[_-]', '[_-]', package)}==(\S+)", pins, re.M | re.I)
    if not pinned:
        raise ResultsError(f"requirements-test.txt pins no {package!r}, which {RESULTS}/peers.json names")
    return pinned[1]


def _results(name):
    try:
        return parsed(json.loads, project.ROOT / RESULTS / name)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{RESULTS}/{name} cannot be read: {error}") from None
