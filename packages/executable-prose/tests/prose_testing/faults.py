"""Faults that a writer makes: what is written where, and the words that the message must hold.

A line is the files that are written (or, as None, removed; or made by a function) and the words; without
words the build succeeds.
Text alone is that of docs/attempt.md, whose third line it is.
"""

import os
import re
from functools import partial

PLACE = "docs/attempt.md:3: "
FENCE = "```"
LATIN = "# Trial\n\nGr\N{LATIN SMALL LETTER U WITH DIAERESIS}n\n".encode("latin-1")


def fence(first, body=""):
    return f"{FENCE}{first}\n{body}{FENCE}\n"


def exhibit(body, module="attempt", how="```exhibit {}.one\n```\n"):
    """An exhibit whose body begins on its second line, and a page that shows it.

    One that runs well has a module of its own: the store keeps a few results of each.
    """
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return {
        f"exhibits/{module}.py": f"def one():\n{lines}",
        "docs/attempt.md": f"# Trial\n\n{how.format(module)}",
    }


def link(target):
    return lambda path: path.symlink_to(target)


def lab(old, new, *words, file="labs/scaling.py"):
    """An edit of the lab, and what is said where its page names it."""
    return {file: (old, new)}, "docs/labs/scaling.md:5: lab 'scaling' failed: ", *words


DESCRIBED = "flowchart TB\n  accTitle: Trial\n  accDescr: It is tried.\n"
OUT = "this link leads out of the project, and what it leads to would be published: copy it here"
FIGURE = '"""A figure."""\nimport matplotlib.pyplot as plt\nreturn '
DRAWN = '"""A figure."""\nimport matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\n'
AT = "exhibit 'attempt.one' failed: "
OUTSIDE = "expected no writing outside of tempfile.gettempdir(), got"
CHANGE = ("The end.", "The end!")

DIRECTIVES = {
    "exhibit without a name": (fence("exhibit"), PLACE, "expected 'module.function'"),
    "exhibit unknown": (fence("exhibit lines.risin"), PLACE, "did you mean 'lines.rising'?"),
    "exhibit of no module": (fence("exhibit none.rising"), PLACE, "no file exhibits/none.py"),
    "exhibit shown in no known way": (fence("exhibit lines.rising show=all"), PLACE, "show=editable, got"),
    "exhibit that prints nothing": (fence("exhibit lines.rising show=output"), PLACE, "prints nothing"),
    "exhibit that draws nothing": (fence("exhibit words.spoken show=figure"), PLACE, "draws no figure"),
    "exhibit never closed": (f"{FENCE}exhibit lines.rising\n", PLACE, "never closed"),
    "claims never closed": (f"{FENCE}claims\n", PLACE, "never closed"),
    "claims in a list": (f"- {FENCE}claims\n", PLACE, "on lines of its own"),
    "exhibit in a list": (f"- {FENCE}exhibit lines.rising\n", PLACE, "on lines of its own"),
    "exhibit in a fence": (
        f"~~~text\n{fence('exhibit lines.rising')}~~~\n",
        "md:4: ",
        "take away the fence",
    ),
    "listing of no file": ('--8<-- "snippets/none.py"\n', PLACE, "snippets/none.py"),
    "listing of no symbol": ('--8<-- "snippets/scale.py@none"\n', PLACE, "'none'", "snippets/scale.py"),
    "listing without quotes": ("--8<-- snippets/scale.py\n", PLACE, "its file in quotes"),
    "listing in a fence": (fence("python", '--8<-- "snippets/scale.py"\n'), "md:4: ", "take away the fence"),
    "listing of what is no text": (
        {"snippets/a.bin": b"\x89PNG\xff", "docs/attempt.md": '# Trial\n\n--8<-- "snippets/a.bin"\n'},
        PLACE,
        "snippets/a.bin is no text in UTF-8: only text can be listed",
    ),
    "listing of what holds zeros": (
        {"snippets/a.bin": b"a = 1\0", "docs/attempt.md": '# Trial\n\n--8<-- "snippets/a.bin"\n'},
        PLACE,
        "snippets/a.bin is no text",
    ),
    "listing of what is hidden": (
        {".env": "KEY = 1\n", "docs/attempt.md": '# Trial\n\n--8<-- ".env"\n'},
        PLACE,
        ".env is hidden, or no file of the project: only what is public can be listed",
    ),
    "listing of a symbol in a hidden folder": (
        {".ci/a.py": "KEY = 1\n", "docs/attempt.md": '# Trial\n\n--8<-- ".ci/a.py@KEY"\n'},
        PLACE,
        ".ci/a.py is hidden",
    ),
    "listing of a link to what is hidden": (
        {".env": "KEY = 1\n", "a.py": link(".env"), "docs/attempt.md": '# Trial\n\n--8<-- "a.py"\n'},
        PLACE,
        "a.py is hidden",
    ),
    "listing without end": (
        {"snippets/long.py": 5_001 * "X = 1\n", "docs/attempt.md": '# Trial\n\n--8<-- "snippets/long.py"\n'},
        PLACE,
        "snippets/long.py has 5,001 lines, and a listing at most 5,000: list a part of it",
    ),
    "listing of a symbol without end": (
        {
            "snippets/long.py": "def long():\n" + 5_000 * "    X = 1\n",
            "docs/attempt.md": '# Trial\n\n--8<-- "snippets/long.py@long"\n',
        },
        PLACE,
        "'long' in snippets/long.py has 5,001 lines",
    ),
    "listing of a symbol in a long file": (
        {
            "snippets/long.py": "KEY = 1\n" + 5_000 * "X = 1\n",
            "docs/attempt.md": '# Trial\n\n--8<-- "snippets/long.py@KEY"\n',
        },
    ),
    "listing from outside": ('--8<-- "../../etc/passwd"\n', PLACE, "etc/passwd"),
    "value of no exhibit": ("`#!val none.rising.end`\n", PLACE, "no file exhibits/none.py"),
    "value of no key": ("`#!val lines.rising.start`\n", PLACE, "it returns end, tiny"),
    "value in no format": ("`#!val lines.rising.end .2q`\n", PLACE, "'.2q' cannot format"),
    "value rounded nowhere": ("`#!val lines.rising.end .2f above`\n", PLACE, "'.2f above' cannot format"),
    "value rounded to no digit": ("`#!val lines.rising.end up`\n", PLACE, "expected the digits to keep"),
    "value without a name": ("It is `#!val`.\n", PLACE, "'#!val' names nothing"),
    "value misspelt": ("It is `#!value lines.rising.end`.\n", PLACE, "'#!value lines.rising.end'"),
    "claim of no test": ("So `#!claim none`.\n", PLACE, "no test holds the claim 'none'"),
    "claim without a name": ("So `#!claim`.\n", PLACE, "'#!claim' names nothing"),
    "claim misspelt": ("So `#!claims scaling-scales`.\n", PLACE, "'#!claims scaling-scales'"),
    "claim that no page states": (
        {"tests/test_more.py": "@pytest.mark.claim('more', 'More.')\ndef test_more(): pass\n"},
        "docs/claims.md:3: ",
        "no page states the claim 'more' of tests/test_more.py:2",
    ),
    "claim in two wordings": (
        {"tests/test_more.py": "@pytest.mark.claim('scaling-scales', 'More.')\ndef test_more(): pass\n"},
        "in other words than",
        "tests/test_",
    ),
    "test that is no Python": ({"tests/test_more.py": "def test_(:\n"}, "tests/test_more.py:1"),
    "value in a wide format": (
        "`#!val lines.rising.end 999999999.2f`\n",
        PLACE,
        "at most 99 digits or letters",
    ),
    "value in a precise format": ("`#!val lines.rising.end .999999999f`\n", PLACE, "at most 99 digits"),
    "minutes with a number": ("It takes `#!minutes 3`.\n", PLACE, "'#!minutes 3'"),
    "lab without a name": (fence("lab"), PLACE, "no file labs/.py"),
    "lab unknown": (fence("lab none"), PLACE, "no file labs/none.py"),
    "lab by its file": (fence("lab labs/scaling.py"), PLACE, "no file labs/labs/scaling.py.py"),
    "diagram of nothing": (fence("mermaid"), PLACE, "the diagram cannot be drawn"),
    "diagram that is none": (fence("mermaid", "flowchurt LR\n  A --> B\n"), PLACE, "cannot be drawn"),
    "diagram without words": (fence("mermaid", "flowchart LR\n  A --> B\n"), PLACE, "accTitle"),
    "diagram beyond Mermaid's limit": (
        fence("mermaid", DESCRIBED + "".join(f"  A{n}[{60 * 'word '}]\n" for n in range(180))),
        PLACE,
        "a picture that says 'Maximum text size in diagram exceeded'",
        "shorten it, or draw two",
    ),
    "diagram of too many arrows": (
        fence("mermaid", DESCRIBED + 501 * "  A --> B\n"),
        PLACE,
        "cannot be drawn: Error: Edge limit exceeded",
    ),
    "diagram without a size": (fence("mermaid", DESCRIBED.replace("flowchart TB", "info")), PLACE, "no size"),
    "formula that is none": (r"Let $\frac{a}$ be." "\n", PLACE, "bad TeX"),
    "formula never closed": ("Let\n$$ x\nbe.\n", "docs/attempt.md:4: ", "$$ must begin and end a paragraph"),
}

PROSE = {
    "script": (
        "<script>x()</script>\n",
        PLACE,
        "no <script>: what a page does stands in a script of docs/assets",
    ),
    "handler": ('<p onclick="x()">Text</p>\n', PLACE, "no event handler", "docs/assets"),
    "address that runs": ("[Text](javascript:x())\n", PLACE, "no address that runs a script"),
    "address that holds a page": (
        "[Text](data:text/html,<b>x</b>)\n",
        PLACE,
        "no page within a link, it has 'data:text/html",
        "put the file into docs/",
    ),
    "two headings of one id": ("## One {: #same }\n\n## Two {: #same }\n", PLACE, "the id 'same' twice"),
    "a sign of control": (
        "Text\x1b[31m.\n",
        PLACE,
        "no sign that nobody sees, it has U+001B (a control char",
    ),
    "a sign that turns text": (
        "Text\u202e.\n",
        PLACE,
        "U+202E (RIGHT-TO-LEFT OVERRIDE): write it as code would, escaped",
    ),
    "a sign that turns text, by its number": ("Text&#x202E;.\n", PLACE, "U+202E"),
    "a sign that turns code": (fence("python", "x = 1  # \u2066a\n"), "md:4: ", "U+2066"),
    "a sign that turns a name": ('<p title="a\u202eb">Text</p>\n', PLACE, "U+202E"),
    "style": ("<style>p { color: red }</style>\n", PLACE, "docs/assets"),
    "frame": ('<iframe src="https://example.org"></iframe>\n', PLACE, "no <iframe>: link to it"),
    "image of another host": ("![A](https://example.org/a.png)\n", PLACE, "put the file into docs/"),
    "link to no file": ("[Text](none.md)\n", PLACE, "leads to no file of docs/"),
    "link to no heading": ("[Text](index.md#none)\n", PLACE, "does not contain an anchor '#none'"),
    "link from the root": ("[Text](/index.md)\n", PLACE, "absolute link"),
    "front matter that is no YAML": (
        {"docs/attempt.md": "---\ntitle: a: b\n---\n"},
        "attempt.md:2: ",
        "mapping",
    ),
    "front matter never closed": (
        {"docs/attempt.md": "---\ntitle: a\n\n# Trial\n"},
        "attempt.md:1: ",
        "ends it",
    ),
    "front matter that is a list": (
        {"docs/attempt.md": "---\n- a\n---\n# Trial\n"},
        "attempt.md:1: ",
        "list",
    ),
    "front matter without lines": ({"docs/attempt.md": "title: a\n\n# Trial\n"}, "attempt.md:1: ", "---"),
    "title that is no text": (
        {"docs/attempt.md": "---\nicon: a\ntitle: yes\n---\n# Trial\n"},
        "docs/attempt.md:3: ",
        "put it in quotes",
    ),
    "title that runs a script": (
        {"docs/attempt.md": "---\ntitle: </title><script>x()</script>\n---\n# Trial\n"},
        "attempt/index.html: the page has a script that no template holds, 'x()'",
        "docs/assets",
    ),
    "template that is none": (
        {"docs/attempt.md": "---\ntemplate: a.html\n---\n# Trial\n"},
        "docs/attempt.md:2: ",
        "all pages have the theme's template main.html",
    ),
    "not UTF-8": ({"docs/attempt.md": LATIN}, PLACE, "0xfc", "save it as UTF-8"),
    "byte order mark": ({"docs/attempt.md": "\ufeff# Trial\n"}, "attempt.md:1: ", "save it as UTF-8"),
    "UTF-16": ({"docs/attempt.md": "# Trial\n".encode("utf-16")}, "attempt.md:1: ", "save it as UTF-8"),
    "an exhibit that is not UTF-8": (
        {"exhibits/attempt.py": LATIN},
        "exhibits/attempt.py:3: ",
        "save it as UTF-8",
    ),
    "two pages of one address": (
        {"docs/attempt.md": "# One\n", "docs/attempt/index.md": "# Other\n"},
        "docs/attempt.md:1: ",
        "has the address of docs/attempt/index.md: rename one of them",
    ),
    "a README beside an index": ({"docs/README.md": "# Other\n"}, "README.md", "index.md"),
    "a page that is a folder": ({"docs/attempt.md/a.txt": "a"}, "docs/attempt.md:1: ", "is a folder"),
    "nested too deep": (
        {"docs/attempt.md": "# Trial\n\n" + "".join(f"{'    ' * n}- deep {n}\n" for n in range(300))},
        "docs/attempt.md:",
        "this is nested too deep: simplify it, or take it apart",
    ),
    "a page named with blanks": ({"docs/an attempt.md": "# Trial\n"},),
    "a page named beyond ASCII": ({"docs/\N{GREEK SMALL LETTER ALPHA}&'+.md": "# Trial\n"},),
    "a page of nothing": ({"docs/attempt.md": ""},),
    "no end of line": ({"docs/attempt.md": "# Trial\n\n" + fence("exhibit lines.rising").strip()},),
    "lines of Windows": (
        {"docs/attempt.md": ("# Trial\n\n" + fence("exhibit lines.rising")).replace("\n", "\r\n")},
    ),
    "tabs": ({"docs/attempt.md": '# Trial\n\n??? note "A box"\n\n\t```exhibit lines.rising\n\t```\n'},),
    "a link that leads nowhere": (
        {"docs/attempt.md": link("none.md")},
        "attempt.md:1: this link leads nowhere",
    ),
    "an image that leads nowhere": (
        {"docs/a/b.png": link("none.png")},
        "docs/a/b.png:1: this link leads nowhere",
    ),
    "a page that is a link out of the project": (
        {"docs/attempt.md": link("/etc/passwd")},
        "attempt.md:1: ",
        OUT,
    ),
    "an image that is a link out of the project": (
        {"docs/a/b.png": link("/etc/passwd")},
        "docs/a/b.png:1: ",
        OUT,
    ),
    "a folder that is a link out of the project": ({"docs/a": link("/etc")}, "docs/a:1: ", OUT),
    "a page that is a link to what is hidden": (
        {"docs/a.txt": link("../.cache/executable_prose")},
        "a.txt:1: ",
        OUT,
    ),
    "a template that is a link out of the project": (
        {"theme/a.txt": link("/etc/passwd")},
        "theme/a.txt:1: ",
        OUT,
    ),
    "a link within the project": ({"docs/a.txt": link("../snippets/scale.py")},),
    "a page that is a pipe": (
        {"docs/attempt.md": os.mkfifo},
        "attempt.md:1: ",
        "neither a file nor a folder",
    ),
    "a pipe beside pages": ({"docs/a/b.txt": os.mkfifo}, "docs/a/b.txt:1: ", "neither a file nor a folder"),
    "a megabyte": ({"docs/attempt.md": "# Trial\n\n" + "Words and words. " * 60_000},),
}

END = "`#!val lines.rising.end .2f`"
SHOWN = " would be shown as it stands: "
NEWLINE = "\n"
NO_YAML = "this front matter is not `name: value` in YAML"
# Code of what prose may not hold.
NAMED = "Code: `<script>`, `onclick=`.\n\n```html\n<script>x()</script> onclick javascript:x()\n```\n\n"


def headed(front):
    return {"docs/attempt.md": f"---\n{front}\n---\n\n# Trial\n"}


def left(text, shown, place=PLACE):
    """Markup that nothing has made anything of, and what of it is named."""
    return text, f"{place}{shown!r}{SHOWN}"


MARKUP = {
    "a value in a title": (headed(f"title: Ends at {END}"), "docs/attempt.md:2: in the title, ", "#!val"),
    "a value in a description": (
        headed(f"title: A\ndescription: At {END}"),
        "attempt.md:3: in the description, ",
    ),
    "emphasis in a title": (headed('title: "**Bold**"'), "attempt.md:2: in the title, '**'" + SHOWN),
    "code in a title": (headed('title: "The `scale`"'), "attempt.md:2: in the title, '`scale`'" + SHOWN),
    "a link in a description": (
        headed("description: See [it](index.md)"),
        "attempt.md:2: in the description, ",
    ),
    "a key misspelt": (
        headed("glosary: false"),
        "docs/attempt.md:2: nothing reads 'glosary'; did you mean 'glossary'?",
    ),
    "a key in capitals": (
        headed("title: A\nDescription: b"),
        "attempt.md:3: nothing reads 'Description'",
        "'description'",
    ),
    "a glossary that is neither": (
        headed("glossary: flase"),
        "attempt.md:2: glossary is true or false, got 'flase'",
    ),
    "keys of a site's own": (headed("title: A * b, x[0] and a_b\naside: true\nversions: 2\nhide: [toc]"),),
    "a value in HTML": left(f"<div>\nIt is {END}.\n</div>\n", "`#!val", "docs/attempt.md:4: "),
    "a value in a box of HTML": left(
        f"<details><summary>A</summary>\n\nIt is {END}.\n\n</details>\n", "`#!val", "docs/attempt.md:5: "
    ),
    "emphasis in HTML": left("<div>\nSo **bold** it is.\n</div>\n", "**", "docs/attempt.md:4: "),
    "a link in HTML": left("<p>See [it](index.md).</p>\n", "[it]("),
    "code in HTML": left("<p>See `it`.</p>\n", "`it`"),
    "a heading in HTML": left("<div>\n## Part\n</div>\n", "## P", "docs/attempt.md:4: "),
    "a formula in HTML": left("<p>See $x^2$.</p>\n", "$x^2$"),
    "a list in HTML": left("<div>\n- one\n- two\n</div>\n", "- one", "docs/attempt.md:4: "),
    "a value in code by indentation": (
        f"    It is {END}.\n",
        PLACE,
        "these lines are code, for they are indented by four columns: indent them less",
    ),
    "a claim in code by indentation, in a list": (
        "- One\n\n        So `#!claim scaling-scales`.\n",
        "docs/attempt.md:5: these lines are code",
    ),
    "a value in a diagram": (
        fence("mermaid", DESCRIBED + f'  A["{END}"]\n'),
        PLACE,
        "a diagram shows ",
        "as it stands: it holds no value and no claim",
    ),
    "a value between two backticks": (
        f"It is `{END}`.\n",
        PLACE,
        "nothing is filled in; did you mean `#!val …`, in single backticks?",
    ),
    "a claim between two backticks": ("So ``#!claim scaling-scales``.\n", PLACE, "did you mean `#!claim …`"),
    "a value in a formula": (f"Let $x = {END}$ be.\n", PLACE, SHOWN + "no formula is made here"),
    "code in a formula": ("Let $`x`$ be.\n", PLACE, SHOWN + "no formula is made here"),
    **{
        f"a value by the name of {name}": (f"It is `{name} lines.rising.end .2f`.\n", PLACE, "`#!val …`")
        for name in ("#!vla", "#!Val", "#! val", "#!vall", "#!VAL", ":::val")
    },
    "a claim by another name": ("So `#!clam scaling-scales`.\n", PLACE, "did you mean `#!claim …`"),
    "minutes by another name": ("It takes `#!minuts`.\n", PLACE, "did you mean `#!minutes …`"),
    "code of no language": (
        "Call `#!pyhton f(x)`.\n",
        PLACE,
        "in '#!pyhton f(x)' 'pyhton' is no language, and would not be shown",
    ),
    "code of a language, and of none": ("`#!python f(x)`, `#!/bin/sh -e`, `#!important`, `` #!val a.b ``\n",),
    "a value without backticks": left("It is #!val lines.rising.end.\n", "#!val"),
    "an exhibit in braces": (
        fence("{.exhibit lines.rising}"),
        PLACE,
        "a directive has no braces: write ```exhibit",
    ),
    "a lab in braces alone": (fence("{lab} scaling"), PLACE, "a directive has no braces: write ```lab"),
    "an exhibit misspelt in braces": (fence("{ .exhbit a }"), PLACE, "did you mean 'exhibit'?"),
    "an exhibit in capitals": (fence("Exhibit lines.rising"), PLACE, "did you mean 'exhibit'?"),
    "a fence of nothing": (fence("figure lines.rising"), PLACE, "no directive is named 'figure'"),
    "an exhibit in a definition": (
        f"Term\n:   {FENCE}exhibit lines.rising\n    {FENCE}\n",
        "docs/attempt.md:4: ",
        "must stand on lines of its own",
    ),
    "an exhibit in a footnote": (
        f"A[^1].\n\n[^1]: {FENCE}exhibit lines.rising\n",
        ":5: ",
        "on lines of its own",
    ),
    "a directive with colons": left("::: exhibit lines.rising\n", "::: e"),
    "a directive of another kind": left(".. exhibit:: lines.rising\n", ".. exhibit::"),
    "a block that is none": left("/// captoin\nWords.\n///\n", "///"),
    "a template's sign": left("{% include 'a' %}\n", "{%"),
    "a reference to nothing": left("See [text][nowhere].\n", "[text][nowhere]"),
    "a reference to nothing by its text": left("See [text][].\n", "[text][]"),
    "an image of nothing": left("See ![text][nowhere].\n", "![text][nowhere]"),
    "a link with a blank": left("See [text] (index.md).\n", "[text] (index.md"),
    "a link that is not closed": left("See [text](index.md.\n", "[text]("),
    "a link with its parts exchanged": left("See (text)[index.md].\n", "(text)[index.md"),
    "a footnote of nothing": left("So it is[^none].\n", "[^none]"),
    "a footnote of nothing in a heading": left("## So it is[^none]\n", "[^none]"),
    "a footnote of nothing in a caption": (
        fence("exhibit lines.rising", "So it is[^none].\n"),
        f"docs/attempt.md:4: '[^none]'{SHOWN}",
    ),
    "a footnote of nothing in a table": left(
        "| a |\n|---|\n| b[^none] |\n", "[^none]", "docs/attempt.md:5: "
    ),
    "a definition after text": left("<p>A.\n[a]: index.md</p>\n", "[a]: index.m", "docs/attempt.md:4: "),
    "emphasis never closed": left("So **bold it is.\n", "**"),
    "emphasis with a blank": left("So ** bold** it is.\n", "** bold**"),
    "emphasis over two paragraphs": left("So **bold\n\nit** is.\n", "**"),
    "words struck out": left("So ~~not~~ it is.\n", "~~not~~"),
    "a table of too few columns": left("| a | b |\n|--|\n| 1 | 2 |\n", "| a | b |"),
    "a table without a second line": left("| a | b |\n| 1 | 2 |\n", "| a | b |"),
    "a table after text": left(
        "Text:\n| a | b |\n|---|---|\n| 1 | 2 |\n", "| a | b |", "docs/attempt.md:4: "
    ),
    "a list after text": left("Text:\n- one\n- two\n", "- one", "docs/attempt.md:4: "),
    "a numbered list after text": left("Text:\n1. one\n2. two\n", "1. one", "docs/attempt.md:4: "),
    "boxes to tick": left("- [ ] one\n- [x] two\n", "[ ]"),
    "attributes of nothing": left("Text {: .class } goes on.\n", "{:"),
    "a box misspelt": left('!!!"Title"\n    Text.\n', '!!!"'),
    "a comment never closed": left("Text.\n\n<!-- And\n\nmore.\n", "<!--", "docs/attempt.md:5: "),
    "HTML never closed": left('Text <b class="x and more.\n', '<b class="'),
    "a sign that is none": ("One&nbps;two.\n", PLACE, "'&nbps;' would be shown as it stands"),
    "a merge never ended": left("<<<<<<< HEAD\nOne.\n", "<<<<<<<"),
    "an icon": left("So :material-check: it is.\n", ":material-check:"),
    "words for a picture": left('<img alt="**A**" src="../assets/figures.css">\n', "**"),
    "an element never closed": (
        f"<div>\n\nSo **bold** it is {END}.\n",
        PLACE,
        "<div> is never closed, or too late: write </div> where it ends",
    ),
    "a box never closed": ("<details><summary>A</summary>\n\nText.\n", PLACE, "<details> is never closed"),
    "an element never closed in a line": ("So <b>bold it is.\n", PLACE, "<b> is never closed"),
    "an element closed in another paragraph": ("So <b>bold\n\nit</b> is.\n", PLACE, "<b> is never closed"),
    "elements that cross": ("So <b><i>it</b></i> is.\n", PLACE, "<i> is never closed, or too late"),
    "an element closed twice": ("So <b>it</b></b> is.\n", PLACE, "</b> closes no element"),
    "a paragraph never closed": ("<p>Text.\n\nMore.\n", PLACE, "<p> is never closed"),
    "an end of nothing": ("Text.\n\n</div>\n", "docs/attempt.md:5: </div> closes no element"),
    "an element that closes itself": (
        '<a id="x"/> Text.\n',
        PLACE,
        "<a/> opens an element that nothing closes",
    ),
    "what looks like an element": ("A List<int> it is.\n", PLACE, "<int> is never closed"),
    "a page in HTML": (
        '<p><a href="index.md">it</a></p>\n',
        PLACE,
        "the link 'index.md' leads to no page of the site",
    ),
    "a page in HTML in a line": (
        'See <a href="index.md">it</a>.\n',
        PLACE,
        "the link 'index.md' leads to no page",
    ),
    "an image of nothing in HTML": (
        '<p><img alt="a" src="none.png"></p>\n',
        PLACE,
        "'none.png' leads to no page",
    ),
    "an image of nothing in HTML in a line": (
        'So <img alt="a" src="none.png">.\n',
        PLACE,
        "'none.png' leads to",
    ),
    "images of nothing": ('<img alt="a" srcset="none.png 1x">\n', PLACE, "the link 'none.png'"),
    "a film of nothing": ('<video poster="none.png"></video>\n', PLACE, "the link 'none.png'"),
    "an id of nothing in HTML": (
        '<a href="#none">it</a>\n',
        PLACE,
        "the link '#none' leads to no id of this page",
    ),
    "a page out of the site in HTML": ('<a href="../../..">it</a>\n', PLACE, "leads to no page of the site"),
    "a page from the root in HTML": ('<a href="/none/">it</a>\n', PLACE, "leads to no page of the site"),
    "a folder in HTML": ('<a href="../labs/">it</a>\n', PLACE, "leads to no page of the site"),
    "a link to nothing": ("See [it]().\n", PLACE, "the href of <a> is empty"),
    "an image without a name": ('<img alt="a" src="">\n', PLACE, "the src of <img> is empty"),
    "an address without a host": ("See [it](https:example.org).\n", PLACE, "names no host: write https://"),
    "an address misspelt": ("See [it](htpps://example.org).\n", PLACE, "did you mean 'https'?"),
    "an id of a listing": (
        '## Highlight 1\n\n--8<-- "snippets/scale.py"\n',
        f"{PLACE}the page has the id 'highlight-1' twice",
    ),
    "an id in HTML twice": ('<p id="a">A</p>\n\n<p id="a">B</p>\n', PLACE, "the id 'a' twice"),
    "an id of a heading in HTML": ('## Part\n\n<p id="part">A</p>\n', "the id 'part' twice"),
    "a figure twice": (
        2 * (fence("exhibit lines.rising") + "\n"),
        "docs/attempt.md:6: the page shows the figure of exhibit 'lines.rising' twice: link to the first",
    ),
    "signs that are text": (
        "\\*\\*no bold\\*\\*, \\[text\\](index.md), \\`no code\\`, a\\_b, \\#!val, "
        "&#42;&#42;a&#42;&#42;, &lt;!-- &amp;nbsp;\n\n"
        "a ** b, 2**3, a * b * c, a lone *, 0.83** and 0.91*, ** p < 0.01, a[i][j], [0, 1], [0, 1)(x), "
        "[Smith] [Jones], f(x)[0], [1] (see), |x| < |y|, a --> b, <-- c, a | b, 10:30:00, C:\\\\a, A & B\n\n"
        "It costs $5 and $6, or $5–$10, US$ 5, $HOME and $PATH.\n\n"
        "Wrapped, and then a dash\n- so - and then\n4. Then 1 or\nso. Well.\n\n"
        "Really??? Yes!!! ... {a, b}, {1.5}, #1, # of heads, 50 % and {\n\n"
        "| # heads | a \\| b | `x|y` |\n|---|:--:|--:|\n| - | -- | #!/bin/sh |\n\n"
        f"$a[^2](x)_{{**}}$, It costs ${END[:0]}5.\n\n$$\nx[^1] | y\n$$\n",
    ),
    "signs in code": (
        "`**bold**`, `[a](b)`, `[^1]`, `[a][b]`, ``a `b` c``, `#!python f(**x)`, `|---|`, <kbd>[</kbd>`](`, "
        "<code>**a** [^1]</code>, <pre>| a |\n| b |</pre>\n\n"
        f"{FENCE}python\nf(**x)  # [^1], [a](b) `#!x`\n{FENCE}\n\n    **a** [b](c) [^1]\n\n"
        f"{FENCE}{FENCE}markdown\n{END} [a][b] [^1] <div>\n{FENCE}{FENCE}\n",
    ),
    "HTML that is whole": (
        '<div markdown="1">\n\nSo **bold** it is, {end}.\n\n- one\n- two\n\n</div>\n\n'
        '<ul><li>A<li>B</ul>\n\n<details markdown="1"><summary>A</summary>\n\nText.\n\n</details>\n\n'
        'H<sub>2</sub>O<br>and<br/><img alt="" src="a.svg"> <a id="x"></a>[it](#x) <a href="#x">it</a> '
        '<a href="..">home</a> <a href="../labs/scaling/#lab-scale">lab</a> <a href="./">here</a> '
        '<a href="../assets/figures.css">a</a> <a href="mailto:a@example.org">a</a> <a href="#">up</a> '
        '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg> <!-- **a** [b](c) -->\n\n'
        "<table><tr><td>**</td></tr></table>\n".replace("{end}", END),
    ),
}
MARKUP["HTML that is whole"] = (
    {
        "docs/attempt/a.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
        "docs/attempt.md": "# Trial\n\n" + MARKUP["HTML that is whole"][0].replace("{end}", END),
    },
)

# What a page is refused for while it is read, besides what stands above: no site is built for these.
PAGES = {
    "code to change that is no program": (
        fence("exhibit words.given show=editable"),
        f"{PLACE}exhibit 'words.given' is no program without its first line: 'return'",
    ),
    "a figure without words": (
        fence("exhibit lines.dumb"),
        f"{PLACE}exhibit 'lines.dumb' draws a figure but has no docstring, whose first paragraph is the "
        "figure's text alternative (at exhibits/lines.py:9)",
    ),
    "a table that is none": (
        fence("exhibit words.spoken show=table"),
        f"{PLACE}exhibit 'words.spoken' prints no table: each line must begin with |",
    ),
    "an exhibit with a strange option": (
        fence("exhibit lines.rising fold=yes"),
        f"{PLACE}expected 'module.function'",
    ),
    "an exhibit with a word too many": (
        fence("exhibit lines.rising output"),
        f"{PLACE}expected 'module.function'",
    ),
    "a symbol misspelt": (
        '--8<-- "snippets/scale.py@scalde"\n',
        f"{PLACE}no symbol 'scalde' in snippets/scale.py; it has BASE, scaled",
    ),
    "a listing with more behind it": (
        '--8<-- "snippets/scale.py" and more\n',
        f"{PLACE}'--8<-- \"snippets/scale.py\" and more' must stand on lines",
    ),
    "a claim in a second line": (
        "Text that\nstates `#!claim it-trebles`.\n",
        "docs/attempt.md:4: no test holds the claim 'it-trebles'",
    ),
    "minutes without their end": ("It is `#!minute`.\n", f"{PLACE}'#!minute' names nothing: expected #!val"),
    **{
        f"the value {name}": (f"Text\nand `#!val {name}`.\n", f"docs/attempt.md:4: {message}")
        for name, message in {
            "lines.rising.edn": (
                "exhibit 'lines.rising' returns no value 'edn'; it returns end, tiny, big, count, share, yes"
            ),
            "lines.both.end": "exhibit 'lines.both' returns no value 'end'; it returns none",
            "lines.rising.end .2q": "value 'lines.rising.end' is 0.61803, which '.2q' cannot format: ",
            "words.spoken.method .2f": (
                "value 'words.spoken.method' is 'one-three', which '.2f' cannot format"
            ),
            "lines.rising.end up": (
                "value 'lines.rising.end' is 0.61803, which 'up' cannot format: expected the digits to keep "
                "before 'up', as in '.2f up'"
            ),
            "lines.rising.end .2f above": (
                "value 'lines.rising.end' is 0.61803, which '.2f above' cannot format"
            ),
            "lines.rising.end .2q up": "value 'lines.rising.end' is 0.61803, which '.2q up' cannot format",
            "words.spoken.method .2f up": (
                "value 'words.spoken.method' is 'one-three', which '.2f up' cannot format: only a finite "
                "number"
            ),
            "lines.rising.yes .0f down": (
                "value 'lines.rising.yes' is True, which '.0f down' cannot format: only a finite number"
            ),
        }.items()
    },
    **{
        f"bad TeX {tex} in {form!r}": (
            form.replace("TEX", tex),
            f"docs/attempt.md:{4 if form.startswith('$$') else 3}: bad TeX in {tex!r}: character ",
        )
        for tex in (r"\frca{a}{b}", r"\frac{a}", "x^{2", "{x}}", r"\left( x", "x_1_2")
        for form in ("Let $TEX$ be.", "- Let $TEX$ be.", "$$\nTEX\n$$")
    },
    **{
        f"a formula that would stay TeX: {text!r}": (
            text,
            f"docs/attempt.md:{line}: $$ must begin and end a paragraph of its own",
        )
        for text, line in (
            *(("Text\n$$\nx\n$$", 4), ("Text $$\nx\n$$", 3)),
            *(("$$\nx\n$$\nText", 3), ("- Text\n  $$\n  x\n  $$", 4)),
        )
    },
    **{
        f"a link to no file: {text!r}": (
            text,
            f"docs/attempt.md:{line}: the link {target!r} leads to no file of docs/",
        )
        for text, line, target in (
            ("Text\nand [a](none.md).", 4, "none.md"),
            ("Text\nand [a](none.md#there).", 4, "none.md#there"),
            ('Text\nand [a](none.md "title").', 4, "none.md"),
            ("[a][b]\n\nnone\n\n[b]: none.md", 7, "none.md"),
            ("![a](none.png)", 3, "none.png"),
            ('??? note "A box"\n\n    [a](none.md)', 5, "none.md"),
        )
    },
    **{
        f"{directive!r} within {first!r}": (
            f"{first}\nx\n{directive}\n{re.match('`+|~+', first)[0]}",
            f"docs/attempt.md:5: {directive.split(NEWLINE)[0].strip()!r}{SHOWN}take away the fence",
        )
        for first in ("```python", "```", "~~~text", "```exhibit lines.rising", "```` {.md}")
        for directive in (
            *('--8<-- "snippets/scale.py"', '  -8<- "a.py"', ';--8<-- "a.py"', "--8<--"),
            "~~~~ exhibit a.b\n~~~~",
        )
    },
    **{
        f"never closed: {text!r}": (
            text,
            f"docs/attempt.md:{line}: the block that begins here is never closed",
        )
        for text, line in (
            ("```python\nx = 1", 3),
            ("````\n```\n", 3),
            ('??? note "A box"\n\n    ```mermaid\n    x\n\ny', 5),
        )
    },
    **{
        f"{directive!r} behind {marker!r}": (f"{marker}{directive}", PLACE, "must stand on lines of its own")
        for marker in ("> ", "- ", "1. ", "* - ")
        for directive in ("```exhibit lines.rising\n```", '--8<-- "snippets/scale.py"', "~~~ claims\n~~~")
    },
    "an id of a heading and of a paragraph": (
        "## One {: #same }\n\nText.\n{: #same }\n",
        f"{PLACE}the page has the id 'same",
        "' twice: give",
    ),
    **{
        f"front matter {front!r}": ({"docs/attempt.md": f"{front}\n# Trial\n"}, f"docs/attempt.md:{said}")
        for front, said in {
            "---\n---\n": f"1: {NO_YAML}: no second line of --- ends it",
            "---\njust words\n---\n": f"1: {NO_YAML}: it is str",
            "---\ntitle: x\n\tsub: y\n---\n": f"3: {NO_YAML}: mapping",
            "---\ndate: 2024-13-99\n---\n": f"1: {NO_YAML}: month must be",
            "\n---\ntitle: x\n---\n": f"2: {NO_YAML}",
            "---\nhide: [toc]\ntitle: 3\n---\n": "3: the title is 3, which is no text: put it in quotes",
            "Note: a thing\n": "1: 'Note: a thing' would be taken for front matter and not be shown",
        }.items()
    },
    **{
        f"prose with {text!r}": (f"{NAMED}{text}", f"docs/attempt.md:{line}: prose may hold ", words)
        for line, rows in {
            9: {
                "<script>x()</script>": "no <script>: what a page does stands in a script of docs/assets",
                "A <script src='/x.js'></script> within.": "no <script>",
                "<!-- <script>x()</script> -->": "no <script>",
                "<!-- --!><script>x()</script> -->": "no <script>",
                "<style>p { color: red }</style>": (
                    "no <style>: how a page looks stands in a style sheet of docs/assets"
                ),
                '<link rel="stylesheet" href="https://example.org/x.css">': "no <link>",
                '<iframe src="https://example.org"></iframe>': "no <iframe>: link to it",
                '<object data="x.svg"></object>': "no <object>",
                '<base href="https://example.org/">': "no <base>",
                '<p onclick="x()">y</p>': (
                    "no event handler, it has onclick=: let a script of docs/assets listen"
                ),
                'A <b OnMouseOver="x()">word</b>.': "no event handler, it has onmouseover=",
                '<div markdown onclick="x()">\n\nText.\n\n</div>': "no event handler",
                "[a](javascript:x())": "no address that runs a script, it has 'javascript:x()'",
                "[a](java&#115;cript:x())": "no address that runs a script",
                '<a href="&#1; java\nscript:x()">a</a>': "no address that runs a script",
                "[a](data:text/html,<b>)": "no page within a link, it has 'data:text/html",
                "<map><area alt='a' href=' DATA:text/html,b'></map>": "no page within a link",
                "A \x1b[1m word.": "no sign that nobody sees, it has U+001B (a control character): write it",
                "A \u202e word.": "no sign that nobody sees, it has U+202E (RIGHT-TO-LEFT OVERRIDE)",
                "A &#x2067; word.": "it has U+2067 (RIGHT-TO-LEFT ISOLATE)",
                "`x = 1 \u2066`": "it has U+2066",
                '<p title="a&#8238;b">c</p>': "it has U+202E",
                "![a](https://example.org/a.png)": (
                    "no <img> from another host, it has 'https://example.org/a.png': put"
                ),
                "![a](//example.org/a.png)": "no <img> from another host",
                '<img alt="a" src="\\\\example.org/a.png">': "no <img> from another host",
                '<img alt="a" srcset="assets/a.png 1x, https://example.org/a.png 2x">': (
                    "no <img> from another host"
                ),
                "<video src='http://example.org/a.mp4'></video>": "no <video> from another host",
                "<svg><use href='https://example.org/a.svg#a'/></svg>": "no <use> from another host",
                "<svg><image xlink:href='//example.org/a.svg'/></svg>": "no <image> from another host",
                '<form action="https://example.org"><button>a</button></form>': "no <form> from another host",
                '<p style="background: url(https://example.org/a.png)">a</p>': (
                    "no style that loads, it has style="
                ),
            },
            10: {
                "Text.\n{: onclick='x()' }": "no event handler, it has onclick=",
                "```python\nx = 1  # \u2069\n```": "it has U+2069",
                "Text.\n{: style='background: URL(//example.org)' }": "no style that loads",
                '??? note "A box"\n    <script>x()</script>': "no <script>",
                "```exhibit lines.rising\nA <b onclick='x()'>word</b>.\n```": "no event handler",
            },
            11: {
                "| a |\n|---|\n| <b onclick='x()'>c</b> |": "no event handler",
            },
        }.items()
        for text, words in rows.items()
    },
}

EXHIBITS = {
    "is a pipe": (
        {"exhibits/attempt.py": os.mkfifo},
        "exhibits/attempt.py:1: ",
        "neither a file nor a folder",
    ),
    "is read as UTF-8 and declares another encoding": (
        {"exhibits/attempt.py": "#!/usr/bin/python\n# -*- coding: latin-1 -*-\ndef one(): pass\n"},
        "exhibits/attempt.py:2: the file is read as UTF-8 and declares 'latin-1': remove that",
    ),
    "is read as UTF-8 and declares it": ({"exhibits/attempt.py": "# vim: set fileencoding=utf8 :\nX = 1\n"},),
    "has a comment further down": ({"exhibits/attempt.py": "X = 1\n# coding: latin-1\n"},),
    "raises": (
        exhibit("raise RuntimeError('out of\\nluck')"),
        PLACE,
        AT,
        "out of luck (at exhibits/attempt.py:2)",
    ),
    "is no Python": (
        {**exhibit("pass"), "exhibits/attempt.py": "def one(:\n"},
        PLACE,
        AT,
        "exhibits/attempt.py:1",
    ),
    "imports what is not there": (
        exhibit("import nowhere"),
        PLACE,
        "No module named 'nowhere' (at exhibits/attempt.py:2)",
    ),
    "returns a list": (exhibit("return [1]"), PLACE, "it returned list (at exhibits/attempt.py:1)"),
    "returns NaN": (
        exhibit("return {'a': float('nan')}"),
        PLACE,
        "must be finite, it is nan (at exhibits/attempt.py:1)",
    ),
    "returns a name that is none": (exhibit("return {'a b': 1}"), PLACE, "must be a word, it is 'a b'"),
    "exits": (
        exhibit("import sys\nsys.exit(3)"),
        PLACE,
        "expected it to return, got SystemExit: 3 (at exhibits/attempt.py:3)",
    ),
    "exits as if all were well": (
        exhibit("raise SystemExit(0)"),
        PLACE,
        "expected it to return, got SystemExit: 0 (at exhibits/attempt.py:2)",
    ),
    "exits while it is imported": (
        {**exhibit("pass"), "exhibits/attempt.py": "X = 1\nexit(X)\ndef one(): pass\n"},
        PLACE,
        "expected it to return, got SystemExit: 1 (at exhibits/attempt.py:2)",
    ),
    "ends its process": (
        exhibit("import os\nos._exit(0)"),
        PLACE,
        "its process ended before the exhibit returned (at exhibits/attempt.py:1)",
    ),
    "ends its process while it is imported": (
        {**exhibit("pass"), "exhibits/attempt.py": "import os\nos._exit(3)\n\ndef one(): pass\n"},
        PLACE,
        "its process died with exit code 3 (at exhibits/attempt.py:4)",
    ),
    "interrupts itself": (
        exhibit("raise KeyboardInterrupt"),
        PLACE,
        "expected it to return, got KeyboardInterrupt: (at exhibits/attempt.py:2)",
    ),
    "raises what is no Exception": (
        exhibit("class Odd(BaseException): pass\nraise Odd('luck')"),
        PLACE,
        "expected it to return, got Odd: luck (at exhibits/attempt.py:3)",
    ),
    "raises what has no words": (
        exhibit("class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd"),
        PLACE,
        AT,
        "Odd, of which str() raises ZeroDivisionError (at exhibits/attempt.py:4)",
    ),
    "raises what exits when it is told": (
        exhibit("class Odd(Exception):\n    def __str__(self): raise SystemExit(3)\nraise Odd"),
        PLACE,
        AT,
        "Odd, of which str() raises SystemExit (at exhibits/attempt.py:4)",
    ),
    "raises words without end": (
        exhibit("raise ValueError('x' * 5_000_000)"),
        PLACE,
        AT,
        "xxx... (at exhibits/attempt.py:2)",
    ),
    "raises what has a cell of its own": (
        exhibit("class Odd(Exception):\n    cell = 'a'\nraise Odd('luck')"),
        PLACE,
        AT,
        "Odd: luck (at exhibits/attempt.py:4)",
    ),
    "returns what raises when it is shown": (
        exhibit(
            "class Odd(float):\n    def item(self): raise SystemExit(3)\n    shape = ()\nreturn {'a': Odd()}"
        ),
        PLACE,
        "expected it to return, got SystemExit: 3 (at exhibits/attempt.py:3)",
    ),
    "is deleted below": (
        {**exhibit("pass"), "exhibits/attempt.py": "X = 1\ndef one():\n    pass\ndel one\n"},
        PLACE,
        AT,
        "has no attribute 'one' (at exhibits/attempt.py:2)",
    ),
    "runs a loop of asyncio": (
        exhibit("import asyncio\nasync def wait(): pass\nasyncio.run(wait())"),
        PLACE,
        "expected no event loop of asyncio, which opens a socket, got socket.__new__ "
        "(at exhibits/attempt.py:4)",
    ),
    "waits for a process that C has started": (
        exhibit(
            "import ctypes, os\np = ctypes.CDLL(None).fork()\np or os._exit(0)\nos.waitpid(p, 0)\nprint()",
            "forked",
        ),
    ),
    "leaves a process that C has started": (
        exhibit("import ctypes, time\nif ctypes.CDLL(None).fork() == 0:\n    time.sleep(120)"),
        PLACE,
        "expected work in one process, but it started another one (at exhibits/attempt.py:1)",
    ),
    "removes the folder that it works in": (
        exhibit("import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())\neval('1 / 0')"),
        PLACE,
        "ZeroDivisionError: division by zero (at exhibits/attempt.py:5)",
    ),
    "raises a SyntaxError in no file": (
        exhibit("raise SyntaxError('odd', (3, 1, 1, 'x'))"),
        PLACE,
        "SyntaxError: odd",
        "(at exhibits/attempt.py:2)",
    ),
    "is killed": (
        exhibit("import os\nos.kill(os.getpid(), 9)"),
        PLACE,
        "exit code -9: was it killed",
        "(at exhibits/attempt.py:1)",
    ),
    "crashes": (
        exhibit("import ctypes\nctypes.string_at(0)"),
        PLACE,
        "exit code -11 (at exhibits/attempt.py:3)",
    ),
    "recurses": ({**exhibit("one()")}, PLACE, "RecursionError", "(at exhibits/attempt.py:2)"),
    "starts a program": (
        exhibit("import os\nos.system('true')"),
        PLACE,
        "got os.system (at exhibits/attempt.py:3)",
    ),
    "leaves a thread": (
        exhibit("import threading\nthreading.Thread(target=print).start()"),
        PLACE,
        "expected work in one thread, got Thread-",
    ),
    "writes into the project": (
        exhibit("open('a', 'w')"),
        PLACE,
        f"{OUTSIDE} open of 'a' (at exhibits/attempt.py:2)",
    ),
    "talks to the network": (
        exhibit("import socket\nsocket.socket()"),
        PLACE,
        "expected no network, got socket.__new__ (at exhibits/attempt.py:3)",
    ),
    "prints without end": (
        exhibit("while True:\n    print('x' * 99_999)"),
        PLACE,
        "at most 1,000,000 characters of output (at exhibits/attempt.py:3)",
    ),
    "takes too much memory": (
        exhibit("return {'a': len(bytearray(5 << 30))}"),
        PLACE,
        "expected at most 4 GiB of memory, got MemoryError: (at exhibits/attempt.py:2)",
    ),
    "returns a number without end": (
        exhibit("return {'a': 10**5000}"),
        PLACE,
        AT,
        "value 'a' must have at most 4,096 bits, it has 16,610 (at exhibits/attempt.py:1)",
    ),
    "returns a text without end": (
        exhibit("return {'a': 'x' * 2_000_000}"),
        PLACE,
        AT,
        "value 'a' must have at most 1,000,000 characters, it has 2,000,000 (at exhibits/attempt.py:1)",
    ),
    "prints half a character": (
        exhibit("print('a' + chr(0xD800))"),
        PLACE,
        AT,
        "expected text, got '\\ud800', half of a character (at exhibits/attempt.py:1)",
    ),
    "returns half a character": (
        exhibit("return {'a': chr(0xDFFF)}"),
        PLACE,
        AT,
        "expected text, got '\\udfff', half of a character (at exhibits/attempt.py:1)",
    ),
    "raises half a character": (
        exhibit("raise ValueError(chr(0xD800))"),
        PLACE,
        AT,
        "ValueError: \\ud800 (at",
    ),
    "returns classes of its own": (
        exhibit(
            "import enum\nclass Name(str, enum.Enum):\n    A = 'b'\nclass Count(int):\n    pass\n"
            "print()\nreturn {'a': Name.A, 'b': Count(3), 'c': type('F', (float,), {})(0.5)}"
        ),
    ),
    "fails, and no page shows it": (
        {"exhibits/attempt.py": "def one():\n    raise RuntimeError('no')\n"},
        AT,
        "RuntimeError: no (at exhibits/attempt.py:2)",
    ),
    "is a coroutine": (
        {**exhibit("pass"), "exhibits/attempt.py": "async def one():\n    pass\n"},
        PLACE,
        "expected a plain function, but 'one' in exhibits/attempt.py is a coroutine (async def)",
    ),
    "is a class": (
        {**exhibit("pass"), "exhibits/attempt.py": "class one:\n    pass\n"},
        PLACE,
        "expected a plain function, but 'one' in exhibits/attempt.py is no function",
    ),
    "closes all files": (
        exhibit("import os\nos.closerange(3, 999)"),
        PLACE,
        AT,
        "it closed files that it had not opened",
    ),
    "draws without words": (
        exhibit("import matplotlib.pyplot as plt\nreturn plt.subplots()[0]"),
        PLACE,
        "has no docstring",
        "(at exhibits/attempt.py:1)",
    ),
    "prints where an object lies in memory": (
        exhibit("print(object())"),
        PLACE,
        "expected the same text in each run, got '<object object at 0x",
        "an address in memory. Print what the object holds, or its name (at exhibits/attempt.py:1)",
    ),
    "prints a sign of control": (
        exhibit("print('a\\x1b[1mb')", "control"),
        PLACE,
        "what is shown here may hold no sign that nobody sees, it has U+001B",
    ),
    "prints what turns text": (exhibit("print('a\\u202eb')", "turned"), PLACE, "RIGHT-TO-LEFT OVERRIDE"),
    "returns what turns text": (
        exhibit("return {'a': 'b\\u202ec'}", "value", "`#!val {}.one.a`\n"),
        PLACE,
        "a value may hold no sign that nobody sees, it has U+202E",
    ),
    "prints a script as a table": (
        exhibit(
            "print('| a |\\n|---|\\n| <script>x()</script> |')", "rows", "```exhibit {}.one show=table\n```\n"
        ),
        PLACE,
        "no <script>",
    ),
    "draws a link that runs": (
        exhibit(DRAWN + "axes.scatter([0], [0], urls=['javascript:x()'])\nreturn figure"),
        PLACE,
        "expected a link to a page, got the url 'javascript:x()' of an artist (at exhibits/attempt.py:",
    ),
    "draws too many points": (
        exhibit(DRAWN + "axes.scatter(range(20_000), range(20_000))\nreturn figure"),
        PLACE,
        "at most 500,000 characters of SVG, got",
        "draw fewer points",
        "(at exhibits/attempt.py:",
    ),
    "a snippet that is broken": ({"snippets/scale.py": "def scaled(:\n"}, "snippets/scale.py:1"),
    "draws wider than a page": (
        exhibit(FIGURE + "plt.subplots(figsize=(8, 3))[0]"),
        PLACE,
        "expected a figure at most 4.4 inches wide and at least 0.17 wide and high, got 8 by 3: set its ",
    ),
    "draws what a page is wide": (exhibit(FIGURE + "plt.subplots(figsize=(4.4, 9))[0]", "wide"),),
    "draws what is narrower": (exhibit(FIGURE + "plt.subplots(figsize=(2, 1))[0]", "narrow"),),
    "draws wider after it was drawn": (
        exhibit(DRAWN + "figure.set_figwidth(4.5)\nreturn figure"),
        PLACE,
        "got 4.5 by 2.7",
    ),
    "draws nothing": (exhibit(FIGURE + "plt.figure()"), PLACE, "the figure shows nothing"),
    "draws axes that are off": (
        exhibit(DRAWN + "axes.axis('off')\nreturn figure"),
        PLACE,
        "the figure shows nothing",
    ),
    "draws axes that cannot be seen": (
        exhibit(DRAWN + "axes.set_visible(False)\nreturn figure"),
        PLACE,
        "the figure shows nothing",
    ),
    "draws a line of NaN without axes": (
        exhibit(DRAWN + "axes.axis('off')\naxes.plot([0, 1], 2 * [float('nan')])\nreturn figure"),
        PLACE,
        "the figure shows nothing",
    ),
    "draws NaN within axes": (
        exhibit(DRAWN + "axes.plot([0, 1], 2 * [float('nan')])\nreturn figure", "nans"),
    ),
    "draws a strip": (
        exhibit(FIGURE + "plt.subplots(figsize=(4.4, 0.01))[0]"),
        PLACE,
        "got 4.4 by 0.01",
    ),
    "draws beside the figure": (
        exhibit(DRAWN + "axes.set_position([0.5, 0.1, 0.9, 0.8])\nreturn figure"),
        PLACE,
        "beyond the right edge of the figure, where it would be cut off",
    ),
    "draws a legend beside the figure": (
        exhibit(DRAWN + "figure.text(1.1, 0.5, 'words')\nreturn figure"),
        PLACE,
        "beyond the right edge of the figure",
    ),
    "draws words over the top": (
        exhibit(DRAWN + "figure.text(0.5, 1.1, 'words')\nreturn figure"),
        PLACE,
        "beyond the top edge of the figure",
    ),
    "draws a line that leaves its axes": (
        exhibit(DRAWN + "axes.plot([0, 1, 99])\naxes.set(xlim=(0, 1), ylim=(0, 1))\nreturn figure", "leaves"),
    ),
    "returns what rounds to zero": (
        exhibit("return {'a': -0.0001}", "zero", "`#!val {0}.one.a .1f` `#!val {0}.one.a .1f up`\n"),
    ),
}

ONE = "@pytest.mark.claim('scaling-scales', 'Scaling doubles.')\n"
NEVER = "this test of the claim 'scaling-scales' never runs: "


def held(text, file="tests/test_more.py"):
    return {file: f"import pytest\n{text}"}


def never(text, line, *words, file="tests/test_more.py"):
    """Another test of the claim that the project has."""
    return held(text, file), f"{file}:{line}: {NEVER}", *words


TEST = f"{ONE}def test_more(): pass\n"
CLAIMS = {
    "a test that is skipped": never(
        f"@pytest.mark.skip\n{TEST}", 4, "skip stands in line 2: take it or the claim away"
    ),
    "a test that is skipped for a reason": never(
        f"{ONE}@pytest.mark.skip(reason='a')\ndef test_a(): pass\n", 4
    ),
    "a test that is skipped somewhere": never(f"@pytest.mark.skipif(True, reason='a')\n{TEST}", 4, "skipif"),
    "a test that may fail": never(f"@pytest.mark.xfail\n{TEST}", 4, "xfail"),
    "a test that is skipped by a mark of its file": never(
        f"mark = pytest.mark.skip\n@mark\n{TEST}", 5, "line 2"
    ),
    "a test that unittest skips": never(f"import unittest\n@unittest.skip('a')\n{TEST}", 5, "skip"),
    "a test one of whose cases is skipped": never(
        f"@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.skip)])\n{TEST}", 4, "skip"
    ),
    "a test without a case": never(
        f"@pytest.mark.parametrize('a', [])\n{TEST}", 4, "parametrized with no case"
    ),
    "a test without a case of its file": never(
        f"CASES = ()\n@pytest.mark.parametrize('a', argvalues=CASES)\n{TEST}", 5, "parametrized with no case"
    ),
    "a test that skips itself": never(f"{ONE}def test_a():\n    pytest.skip('a')\n", 3, "skip"),
    "a test that returns": never(
        f"{ONE}def test_a():\n    return\n    assert 0\n", 3, "it returns at line 4"
    ),
    "a file that is skipped": never(f"pytestmark = [pytest.mark.skip]\n{TEST}", 4, "skip stands in line 2"),
    "a file that skips itself": never(f"pytest.skip('a', allow_module_level=True)\n{TEST}", 4, "skip"),
    "a file that needs a package": never(f"a = pytest.importorskip('a')\n{TEST}", 4, "importorskip"),
    "a class that is skipped": never(
        f"@pytest.mark.skip\nclass TestA:\n    {ONE}    def test_a(self): pass\n",
        5,
        "skip",
    ),
    "a class that is not collected": never(f"class Scaling:\n    {ONE}    def test_a(self): pass\n", 4),
    "a class that is made": never(
        f"class TestA:\n    def __init__(self): pass\n    {ONE}    def test_a(self): pass\n", 5, "__init__"
    ),
    "a class that says it is no test": never(
        f"class TestA:\n    __test__ = False\n    {ONE}    def test_a(self): pass\n", 5, "__test__"
    ),
    "a test that says it is none": never(f"{TEST}test_more.__test__ = False\n", 3, "line 4 sets __test__"),
    "a test that is misspelt": never(
        f"{ONE}def tast_more(): pass\n",
        3,
        "pytest collects what is named test…, and not 'tast_more': rename it",
    ),
    "a fixture": never(f"@pytest.fixture\n{ONE}def test_a(): pass\n", 4, "it is a fixture"),
    "a test that another hides": never(
        f"{TEST}def test_more(): pass\n", 3, "'test_more' gets a value more than once, in lines 3, 4"
    ),
    "a test that an import hides": never(f"{TEST}from os import sep as test_more\n", 3, "more than once"),
    "a test that is removed": never(f"{TEST}del test_more\n", 3, "more than once"),
    "a folder that pytest passes over": never(
        TEST, 3, "folders named 'build'", file="tests/build/test_more.py"
    ),
    "a file that pytest ignores": (
        {**held(TEST), "tests/conftest.py": "collect_ignore = ['test_more.py']\n"},
        f"tests/test_more.py:3: {NEVER}collect_ignore in tests/conftest.py names its file",
    ),
    "files that pytest ignores": (
        {**held(TEST), "tests/conftest.py": "collect_ignore_glob = ['test_m*']\n"},
        f"tests/test_more.py:3: {NEVER}collect_ignore",
    ),
    "tests that run": (
        held(
            "import unittest\nslow = pytest.mark.slow\nCASES = [1]\nskip = 1\n\n\ndef test_skip():\n"
            f"    pytest.skip('a')\n\n\n@slow\n@pytest.mark.parametrize('a', CASES)\n{TEST}\n\n"
            f"class TestB:\n    {ONE}    def test_a(self):\n        return\n\n"
            f"    def helper(self):\n        pytest.skip('a')\n\n\n"
            f"class C(unittest.TestCase):\n    {ONE}    def test_a(self): pass\n"
        ),
    ),
}

LEFT = "a program left this here, and it would be published: remove or rename it"
LITTER = {
    **{
        f"{name} beside pages": ({f"docs/{name}": "# Draft\n"}, f"docs/{name}:1: {LEFT}")
        for name in (
            *("index.md~", "#index.md#", "index.md.orig", "a.md.bak", "a.rej", "a.tmp", "4913", "Thumbs.db"),
            *("~$a.docx", "a.md.~1~", "a.sync-conflict-1.md", "a_LOCAL_123.md", "__pycache__/a.pyc"),
        )
    },
    "a copy beside templates": ({"theme/main.html~": "a"}, f"theme/main.html~:1: {LEFT}"),
    "an editor's lock beside pages": ({"docs/.#index.md": link("me@host.1:2")},),
    "an editor's lock of code": ({"snippets/.#scale.py": link("me@host.1:2")},),
    "an editor's lock of a lab": ({"labs/.#scaling.py": link("me@host.1:2")},),
    "a draft that is hidden": ({"docs/.draft.md": "# Draft `#!val none`\n"},),
    "names of their own": ({"docs/a-4913.txt": "a", "docs/template.txt": "a", "docs/c#.txt": "a"},),
}

MISTAKES = "labs/scaling.toml"
mistake = partial(lab, file=MISTAKES)
LABS = {
    "raises": lab(
        "    return x / 2", "    raise ValueError('half')", "ValueError: half (at labs/scaling.py:"
    ),
    "is no Python": lab("    return x / 2", "    return x /", "SyntaxError", "labs/scaling.py:"),
    "exits": lab(
        "    return x / 2",
        "    raise SystemExit(3)",
        "expected it to return, got SystemExit: 3 (at labs/scaling.py:21), in the cell at labs/",
    ),
    "starts a program": lab("    return x / 2", "    import os; os.system('a')", "got os.system (at labs/"),
    "leaves a thread": lab(
        "    return x / 2",
        "    import threading; threading.Thread(target=print).start()",
        "expected work in one thread",
    ),
    "writes into the project": lab(
        "    return x / 2", "    open('a', 'w')", f"{OUTSIDE} open of 'a' (at labs/"
    ),
    "talks to the network": lab("    return x / 2", "    import socket; socket.socket()", "no network"),
    "prints without end": lab("    return x / 2", "    while True: print('x' * 99_999)", "at most 1,000,000"),
    "recurses": lab("    return x / 2", "    return half(x)", "RecursionError"),
    "has an unknown tag": (
        {"labs/scaling.py": ('tags=["judge"]', 'tags=["jugde"]')},
        "docs/labs/scaling.md:5: ",
        "labs/scaling.py:",
    ),
    "begins with no cell": (
        {"labs/scaling.py": "import torch\n"},
        "docs/labs/scaling.md:5: ",
        "labs/scaling.py",
    ),
    "ends in a value": lab(
        "passed = check_half(half)", "half(2.0)", "it ends in a value that a notebook would show"
    ),
    "draws without words": lab(' alt="A line that falls."', "", 'needs alt="'),
    "has words without a figure": lab("plt.plot([half(2.0), 0])", "", "draws no figure"),
    "links to no file": (
        {"labs/scaling.py": ("../index.md", "../none.md")},
        "labs/scaling.py:",
        "leads to no file of docs/",
    ),
    "has a script in its prose": (
        {"labs/scaling.py": ("Divide by", "<script>x()</script>")},
        "labs/scaling.py:",
        "no <script>",
    ),
    "is not UTF-8": ({"labs/scaling.toml": LATIN}, "labs/scaling.toml:3: ", "save it as UTF-8"),
    "has a mistake that fits nothing": mistake(
        '"x / 2"', '"x / 3"', f"{MISTAKES}:1: expected 'x / 3' once in the solution of half, got it 0 times"
    ),
    "has a mistake that fits twice": mistake(
        '"x / 2"', '"x"', f"{MISTAKES}:1: expected 'x' once in the solution of half, got it 2 times"
    ),
    "has a mistake of no step": mistake(
        "[[half]]", "[[third]]", f"{MISTAKES}: expected [[function]] of a solution, got 'third'"
    ),
    "has a mistake without words": mistake(
        "says =", "say =", f"{MISTAKES}:1: a way has now and says, got now, say"
    ),
    "has mistakes that are no TOML": mistake('"x / 2"', '"x / 2', f"{MISTAKES}: ", "line 2, column"),
}

CONFIGURATION = {
    "is no YAML": ({"mkdocs.yml": "site_name: [\n"}, "mkdocs.yml"),
    "is gone": ({"mkdocs.yml": None}, "mkdocs.yml"),
    "names an extension that is none": ({"mkdocs.yml": ("  - abbr\n", "  - abbbr\n")}, "abbbr"),
    "names a page that is none": ({"mkdocs.yml": ("plugins: []", "nav: [none.md]\nplugins: []")}, "none.md"),
}
