"""What this site adds to executable_prose: levels, the pages of snippets and files, what became of copies.

pyproject.toml names additions.py; mkdocs.yml names this package as a Markdown extension, for levels.
"""


def makeExtension(**settings):
    """The Markdown extension, by the name that Python-Markdown looks for."""
    from guide.levels import LevelsExtension  # tools that import other parts need no Markdown

    return LevelsExtension(**settings)
