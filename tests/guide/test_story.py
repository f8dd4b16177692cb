"""How long the story in plain words is, which the front page says."""

import re

import pytest

from executable_prose.rendering.directives.code import DirectiveError
from guide import story

CHAPTER = """# {title}

Words that lead in.
{{ .lede }}

??? level-layman "In plain words: it"

    {words}

    [Next: more]({to}){{ .next }}

??? level-basic "Basic: it"

    Not of the story.
"""


@pytest.fixture
def docs(tmp_path, monkeypatch):
    (tmp_path / "guide").mkdir()
    monkeypatch.setattr(story.project, "DOCS", tmp_path)

    def chapter(name, to, words="word"):
        text = CHAPTER.format(title=name, to=to, words=words)
        (tmp_path / "guide" / f"{name}.md").write_text(text, encoding="utf-8")

    (tmp_path / "index.md").write_text("# Home\n", encoding="utf-8")
    return chapter


def test_the_story_goes_where_each_chapter_leads(docs):
    docs("one", "two.md", words="word " * 400)
    docs("two", "../index.md")
    docs("aside", "one.md", words="word " * 4000)
    told = story.chapters("guide/one.md")
    assert list(told) == ["guide/one.md", "guide/two.md"]
    assert "Words that lead in." in told["guide/one.md"] and "Not of" not in "".join(told.values())
    lines = ["- {chapters} chapters, {minutes} minutes", "{other}"]
    assert story._filled("guide/one.md", lines) == ["- 2 chapters, 2 minutes", "{other}"]


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda docs: docs("one", "one.md"), "comes back to docs/guide/one.md"),
        (lambda docs: docs("none", "one.md"), "docs/guide/one.md tells nothing in plain words"),
        (lambda docs: docs("one", "two.md){ .other }["), "docs/guide/one.md tells the story and has no"),
    ],
)
def test_a_story_that_leads_nowhere_is_refused(docs, write, says):
    write(docs)
    with pytest.raises(DirectiveError, match=re.escape(says)):
        story._filled("guide/one.md", [])
