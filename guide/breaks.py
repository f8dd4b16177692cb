"""Where code in a cell of a table may break: after an underscore, a dot or a slash, not in a word."""

import re

from markdown.postprocessors import Postprocessor

CELL = re.compile(r"<(t[dh])\b[^>]*>.*?</\1>", re.S)
CODE = re.compile(r"<code>([^<]*)</code>")
AFTER = re.compile(r"(?<=\w[_./])(?=\w)")


class Breaks(Postprocessor):
    """Put `<wbr>` into identifiers; the style sheet forbids other breaks in them."""

    def run(self, text):
        return CELL.sub(lambda cell: CODE.sub(_broken, cell[0]), text)


def _broken(code):
    return f"<code>{AFTER.sub('<wbr>', code[1])}</code>"
