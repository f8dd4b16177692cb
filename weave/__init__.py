"""weave joins the prose in `docs/` with what running the code in `exhibits/` gives.

`mkdocs.yml` names this package as a Markdown extension. See CONTRIBUTING.md for
what a page can say, and `weave/extension.py` for where it is read.
"""


def makeExtension(**settings):
    """The Markdown extension, by the name that Python-Markdown looks for."""
    # Imported late: the processes that run exhibits import this package too,
    # and what they import is what an exhibit depends on.
    from weave.extension import WeaveExtension

    return WeaveExtension(**settings)
