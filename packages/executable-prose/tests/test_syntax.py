"""What a page says beyond Markdown, as its only reader has it."""

import pytest

from executable_prose import syntax

DIRECTIVES = ("exhibit", "mermaid")
PAGE = """# Title

```exhibit a.b show=code
The **caption**.
```

- Item

    ```mermaid
    flowchart
      indented
    ```

  --8<-- "code/one.py@Name"
Prose.
--8<-- "code/two.py"
"""


def read(text, directives=()):
    return list(syntax.checked(text, directives) if directives else syntax.blocks(text))


def refusal(text):
    with pytest.raises(syntax.PageError) as error:
        read(text, DIRECTIVES)
    return error.value.args


def test_blocks_have_their_lines_and_together_are_the_page():
    blocks = read(PAGE, DIRECTIVES)
    assert [line for block in blocks for line in block.lines] == PAGE.split("\n")
    starts = [sum(len(each.lines) for each in blocks[:number]) + 1 for number in range(len(blocks))]
    assert [block.line for block in blocks] == starts
    assert [(block.kind, block.line) for block in blocks if block.kind] == [
        ("exhibit", 3),
        ("mermaid", 9),
        ("--8<--", 14),
        ("--8<--", 16),
    ]
    assert all(len(block.lines) == 1 for block in blocks if block.kind is None)


def test_a_fence_has_its_argument_and_its_body_without_its_indentation():
    exhibit, mermaid, *_ = (block for block in read(PAGE) if block.kind)
    assert (exhibit.argument, exhibit.body, exhibit.indent) == ("a.b show=code", ["The **caption**."], "")
    assert (mermaid.argument, mermaid.body, mermaid.indent) == ("", ["flowchart", "  indented"], "    ")


def test_a_listing_has_its_file_and_perhaps_its_symbol():
    *_, one, two = (block for block in read(PAGE) if block.kind)
    assert (one.argument, one.symbol, one.indent) == ("code/one.py", "Name", "  ")
    assert (two.argument, two.symbol, two.indent) == ("code/two.py", None, "")


@pytest.mark.parametrize(
    ("fence", "inside", "end"),
    [
        ("````markdown", "```exhibit a.b\n```", "````"),
        ("~~~text", "```\n````", "~~~"),
        ("```", "~~~", "```"),
        ("```text", "``", "`````"),
        ("```text", "``` not an end", "  ```  "),
        ("```` {.python .numbered}", "```", "````"),
    ],
)
def test_a_fence_ends_with_as_many_of_its_signs_and_not_before(fence, inside, end):
    block, after = read(f"{fence}\n{inside}\n{end}\nAfter.")
    assert (block.body, after.lines) == (inside.split("\n"), ["After."])


@pytest.mark.parametrize("text", ["```three ticks``` in a line", "`` ` ``", "--8<--", '--8<-- "a.py" more'])
def test_what_only_begins_like_a_block_is_prose(text):
    assert [block.kind for block in read(text)] == [None]


@pytest.mark.parametrize("text", ["```text\nx", "````\n```\n", "~~~exhibit a.b\n```", "  ```mermaid\n  x"])
def test_a_fence_that_nothing_closes_is_refused_with_its_line(text):
    assert refusal(f"# Title\n\n{text}") == (3, "the block that begins here is never closed")


@pytest.mark.parametrize("directive", ["```exhibit a.b\n```", "~~~ mermaid\n~~~", '--8<-- "a.py"', ";--8<--"])
@pytest.mark.parametrize("fence", ["````text", "````", "~~~~python"])
def test_a_directive_that_a_fence_would_show_is_refused_with_its_own_line(fence, directive):
    line, why = refusal(f"{fence}\nx\n{directive}\n{fence[:4]}")
    assert line == 3
    assert why.startswith(f"{directive.split(chr(10))[0]!r} would be shown as it stands: take away the fence")


@pytest.mark.parametrize("marker", ["> ", "- ", "1. ", "* - "])
@pytest.mark.parametrize("directive", ["```exhibit a.b", '--8<-- "a.py"'])
def test_a_directive_behind_a_marker_is_refused(marker, directive):
    line, why = refusal(f"Text.\n{marker}{directive}\n```")
    assert (line, why) == (
        2,
        f"{(marker + directive)!r} must stand on lines of its own, its file in quotes",
    )


@pytest.mark.parametrize("kind", syntax.SHOWN)
def test_a_fence_for_showing_may_hold_any_directive(kind):
    (block,) = read(f"````{kind}\n{PAGE}````", DIRECTIVES)
    assert "\n".join(block.body) == PAGE.removesuffix("\n")


def test_a_fence_of_a_kind_that_is_no_directive_may_stand_anywhere():
    assert len(read("````text\n```python\n```\n````\n> ```python", DIRECTIVES)) == 2


# What a page names

NAMES = """
Up to `#!val a.b.end .2f up`, in
`#!val
c.d.e-f`, as told `#!claim it-is` twice `#!claim it-is` and `#!claim
it-was`.

```exhibit e.f show=output
Where `#!val g.h.i` is `#!claim it-will-be`.
```

    ```lab one
    ```

```mermaid
flowchart
  a --> b
```
"""


def test_a_page_names_what_it_shows_in_prose_captions_and_fences():
    assert syntax.exhibits(NAMES) == ["e.f"]
    assert syntax.named(NAMES) == {"a.b", "c.d", "e.f", "g.h", "lab-one"}
    assert syntax.cited(NAMES) == ["it-is", "it-was", "it-will-be"]
    assert syntax.diagrams(NAMES) == ["flowchart\n  a --> b"]


def test_exhibits_stand_in_the_order_of_the_page():
    assert syntax.exhibits("```exhibit b.b\n```\n```exhibit a.a\n```\n```exhibit\n```") == ["b.b", "a.a", ""]


@pytest.mark.parametrize(
    "shown",
    [
        f"````markdown{NAMES}````",
        f"~~~md{NAMES}~~~",
        "````text\n`#!val a.b.c` `#!claim d`\n````",
        "``#!val a.b.c`` and ``#!claim d``",
        "```python\n# `#!val a.b.c` `#!claim d`\n```",
    ],
)
def test_what_code_only_shows_is_not_named(shown):
    assert syntax.named(shown) == set()
    assert syntax.cited(shown) == syntax.exhibits(shown) == syntax.diagrams(shown) == []


# Front matter


def test_front_matter_is_apart_from_the_page():
    assert syntax.front_matter("---\ntitle: A\nhide: [toc]\n---\n# A\n") == (
        {"title": "A", "hide": ["toc"]},
        "# A\n",
    )
    assert syntax.front_matter("# A\n") == ({}, "# A\n")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("---\ntitle: x\n# A\n", 1, "no second line of --- ends it"),
        ("---\nwords\n---\n", 1, "it is str"),
        ("---\nok: 1\ntitle: a: b\n---\n", 3, "mapping values are not allowed"),
        ("---\ndate: 2024-13-99\n---\n", 1, "month must be"),
    ],
)
def test_what_is_no_front_matter_is_told_with_its_line(text, line, why):
    found, said = syntax.front_matter_fault(text)
    assert found == line and why in said
