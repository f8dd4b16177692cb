"""How a build is stopped: by one exception."""

from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException


class BuildFault(PluginError, SuperFencesException, InlineHiliteException):
    """Something on a page cannot be made; the message starts with the page and line.

    MkDocs prints a PluginError as one line instead of a traceback. SuperFences and
    InlineHilite swallow every exception of a formatter that is not one of their own.
    """
