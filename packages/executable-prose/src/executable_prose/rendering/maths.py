"""Formulas: TeX becomes MathML while the site is built."""

import html
import re
from xml.etree.ElementTree import Element

from markdown.postprocessors import Postprocessor
from markdown.treeprocessors import Treeprocessor
from math_core import LatexError, LatexToMathML

from executable_prose.errors import BuildFault


class Dollars(Treeprocessor):
    """Refuse a formula of its own that has no blank line before and after it: it would stay TeX."""

    def run(self, root: Element) -> None:
        for element in root.iter():
            for text in (element.text or "", element.tail or ""):
                if "$$" in text:
                    formula = text[text.index("$$") :].strip()
                    where = self.md.page.where(formula, formula.split("\n")[0])
                    raise BuildFault(f"{where}: $$ must begin and end a paragraph of its own")


class Mathematics(Postprocessor):
    """Convert arithmatex's generic form into MathML; what touches a formula stays on its line."""

    MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>([^\s<>]*)', re.S)
    CONVERTER = LatexToMathML(fancy_error=False)

    def run(self, text: str) -> str:
        parts, end = [], 0
        for match in self.MARKED.finditer(text):
            before = re.search(r"[^\s<>]*\Z", text[max(end, match.start() - 20) : match.start()])[0]  # type: ignore[index]
            parts += [text[end : match.start() - len(before)], self._convert(before, *match.groups()[1:])]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _convert(self, before, kind, tex, after):
        tex = html.unescape(tex).strip()
        try:
            mathml = self.CONVERTER.convert_with_local_state(tex, displaystyle=kind == "[")
        except LatexError as error:
            where = self.md.page.where(tex.split("\n")[0])
            raise BuildFault(f"{where}: bad TeX in {tex!r}: character {error}") from None
        if (
            kind == "["
        ):  # a wide formula scrolls in its own box; its letters in a row are nothing to search for
            return f'{before}<div class="formula" data-search-exclude>{mathml}</div>{after}'
        return f'<span class="whole">{before}{mathml}{after}</span>' if before or after else mathml
