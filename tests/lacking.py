"""What a method still lacks, as a newcomer adds it: every rule that can be read from the files alone.

make method NAME=my_method    prints the list; a test fails with it, for each snippet, until it is empty
"""

import ast
import io
import json
import keyword
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a file may import besides torch and the standard library: to draw takes a library that draws.
PACKAGED = ("check_positions", "read_config")  # copies of modules of a package, which has their tests
ALSO = {"visualize": ["matplotlib.axes", "matplotlib.colors", "matplotlib.figure"]}


def files(name):
    """The files that are a method's own."""
    return f"snippets/{name}.py", f"tests/snippets/test_{name}.py", f"docs/reference/{name}.md"


def lacking(name, root=ROOT):
    """All that a method lacks, a line each: the place, and what mends it."""
    for part in (lacking_in_snippet, lacking_in_tests, lacking_on_pages):
        yield from part(name, root)


def read(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def lacking_in_snippet(name, root):
    file = f"snippets/{name}.py"
    source = read(root / file)
    if not source:
        yield f"{file}: is not there"
        return
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield f"{file}:{error.lineno}: {error.msg}"
        return
    if not source.startswith("# SPDX-License-Identifier: 0BSD\n# From "):
        yield f"{file}:1: does not say where it is from; `make dates`"
    docstring = ast.get_docstring(tree) or ""
    if not docstring.partition("\n\n")[0].rstrip().endswith("."):
        yield f"{file}:1: the docstring has to say in a sentence what it is"
    if not re.search(r"^(Source: *\S|References:\n +\S)", docstring, re.M):
        yield f"{file}:1: `References:` must name where it comes from, or state that it has no paper"
    if not re.search(r"^ +>>> ", source, re.M):
        yield f"{file}: no docstring has an example with real numbers (>>>)"
    public = [n for n in tree.body if isinstance(n, DEFINITION) and not n.name.startswith("_")]
    if not public:
        yield f"{file}: no function and no class that a reader can call"
    for node in public:
        if not ast.get_docstring(node):
            yield f"{file}:{node.lineno}: {node.name} has no docstring"
    for n, what in sorted({*imports(name, tree), *state(tree), *style(source)}):
        yield f"{file}:{n}: {what}"


DEFINITION = (ast.FunctionDef, ast.ClassDef)
IMPORT = (ast.Import, ast.ImportFrom)


def nodes(tree, *kinds):
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def imports(name, tree):
    """It stands alone."""
    for node in nodes(tree, *IMPORT):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "a relative import; a copied file has no neighbours"
            continue
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        for module in names:
            top = module.partition(".")[0]
            if top != "torch" and top not in sys.stdlib_module_names and module not in ALSO.get(name, []):
                yield node.lineno, f"imports {module}; torch and the standard library have to do"


def is_command(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def former_names(tree):
    """The names that the last lines of a file keep for its definitions: {former: present}."""
    defined, found = {node.name for node in tree.body if isinstance(node, DEFINITION)}, {}
    for node in reversed([node for node in tree.body if not is_command(node)]):
        if not isinstance(node, ast.Assign) or getattr(node.value, "id", "") not in defined:
            break
        found[ast.unparse(node.targets[0])] = node.value.id
    return found


def state(tree):
    """It keeps nothing from one call to the next, and says nothing."""
    former = former_names(tree)
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in former:
            continue
        if not docstring and not is_command(node) and not isinstance(node, (*IMPORT, *DEFINITION)):
            try:
                assert isinstance(node, ast.Assign)
                hash(ast.literal_eval(node.value))  # neither made by a call nor one that can change
            except (AssertionError, TypeError, ValueError):
                yield (
                    node.lineno,
                    "only definitions, constants that cannot change, and last former names, may stand here",
                )
    for node in nodes(tree, ast.Global, ast.Nonlocal):
        yield node.lineno, "state that outlives a call"
    for call in nodes(tree, ast.Call):
        if getattr(call.func, "id", "") == "print":
            yield call.lineno, "prints"
    functions = nodes(tree, ast.FunctionDef)
    own = {node.name for node in nodes(tree, ast.ClassDef)}  # their objects may be told things
    arguments = [each for function in functions for each in function.args.args]
    told = {each.arg for each in arguments if getattr(each.annotation, "id", "") in own}
    for function in functions:
        for default in [*function.args.defaults, *filter(None, function.args.kw_defaults)]:
            if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call)):
                yield default.lineno, "a default that every call would share"
        for node in nodes(function, ast.Attribute) if function.name != "__init__" else []:
            if isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") not in told:
                yield node.lineno, "kept from one call to the next"


def style(source):
    """It fits the page and hides no cache."""
    for n, line in enumerate(source.splitlines(), 1):
        if len(line) > 80:
            yield n, "more than 80 columns, which is what a page shows"
        if re.search(r"\b(lru_)?cache\(|@cache", line):
            yield n, "a hidden cache; what can be used again is an argument"
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        raw = token.string[:1] in "rR"
        if token.type == tokenize.STRING and '"""' in token.string[:5] and "\\" in token.string and not raw:
            yield token.start[0], "a backslash in a docstring; begin it with r"


def lacking_in_tests(name, root):
    if name in PACKAGED:
        return
    own = root / "tests" / "snippets" / f"test_{name}.py"
    every = [
        path for path in own.parent.glob("test_*.py") if re.search(rf"\bsnippets\.{name} import", read(path))
    ]
    file = own.relative_to(root).as_posix()
    if not every:
        yield f"{file}: no test imports snippets.{name}"
    text = read(own)
    if "same_as(" in text and name not in json.loads(read(root / "experiments" / "results" / "peers.json")):
        yield f"{file}: peers.json does not have it; `make goldens`"
    stated = "".join(map(read, (root / "docs").rglob("*.md")))
    for id in dict.fromkeys(re.findall(r'mark\.claim\(\s*"([\w-]+)"', text)):
        if f"#!claim {id}`" not in stated:
            yield f"{file}: no page states its claim; write `#!claim {id}` behind the sentence"


def lacking_on_pages(name, root):
    page, docs = f"reference/{name}.md", root / "docs"
    if f"```reference snippets/{name}.py\n" not in read(docs / page):
        yield f"docs/{page}: has to show the file, by ```reference snippets/{name}.py"
    if f"- {page}" not in read(root / "mkdocs.yml"):
        yield f"mkdocs.yml: `nav` has to name {page}"
    if not re.search(rf"\b{name}\.py\b", read(root / "CHANGES.md")):
        yield f"CHANGES.md: does not say that {name}.py was added"
    if f"](reference/{name}/)" not in read(docs / "llms.txt"):
        yield f"docs/llms.txt: does not list {page}; `make goldens`"
    if not any(f"/{page})" in read(chapter) for chapter in (docs / "guide").glob("*.md")):
        yield f"docs/guide/: no chapter says when to use it and links to ../{page}"
    docstring = read(root / f"snippets/{name}.py").partition('"""')[2].partition('"""')[0]
    sources = re.split(r"\n(?:Source: |References:\n)", docstring)[-1]
    for paper in dict.fromkeys(re.findall(r"arXiv:(\d+\.\d+)", sources)):
        if paper not in read(docs / "bibliography.md"):
            yield f"docs/bibliography.md: does not have arXiv:{paper}, which the snippet names"


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise SystemExit(f"NAME has to be a Python identifier in lower case, such as fourier; got {name!r}")
    if name == "torch" or name in sys.stdlib_module_names:
        raise SystemExit(f"{name} is taken by a module that a copied {name}.py would hide")
    print("It lacks:", *(list(lacking(name)) or ["nothing"]), sep="\n  ")


if __name__ == "__main__":
    main()
