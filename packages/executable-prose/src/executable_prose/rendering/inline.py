"""What stands within sentences: values, claims, the minutes."""

import decimal
import difflib
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.postprocessors import Postprocessor
from markdown.util import AtomicString
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from executable_prose import project
from executable_prose.claims import ClaimError
from executable_prose.errors import BuildFault
from executable_prose.outcome import Result, Unavailable
from executable_prose.rendering.page import Page
from executable_prose.rendering.prose import unseen

BOUND = re.compile(r"(?:(?P<how>\S+)\s+)?(?P<direction>up|down)")  # a format, rounded to one side
ROUNDED = {"up": decimal.ROUND_CEILING, "down": decimal.ROUND_FLOOR}
WIDEST = 99  # digits or letters of a value
Placed = tuple[ElementTree.Element | str, int, int]  # what stands for a text, and from where to where


class Minutes(InlineProcessor):
    """How long the page takes to read, prose only, at 200 words a minute."""

    def handleMatch(self, match: re.Match[str], data: str) -> Placed:
        return str(Page.minutes(self.md.page.text)), match.start(0), match.end(0)


class Value(InlineProcessor):
    """A number that an exhibit returned, as the page wants it formatted."""

    def handleMatch(self, match: re.Match[str], data: str) -> Placed:
        try:
            text = formatted(self.md.page.result, match[1], match[2] or "")
        except (Unavailable, ValueError) as error:
            raise BuildFault(f"{self.md.page.where(match[0], match[1])}: {error}") from None
        if why := unseen(text):
            raise BuildFault(f"{self.md.page.where(match[0], match[1])}: a value may hold no {why}")
        title = f"computed by {project.settings().examples}/{match[1]}"
        element = ElementTree.Element("span", {"class": "value", "title": title})
        number = re.fullmatch(r"(?P<sign>[+-]?)(?P<digits>[\d.,_]+%?)(?:e(?P<power>[+-]\d+))?", text)
        if number:
            text = number["sign"].replace("-", "−") + number["digits"]
        if number and number["power"]:
            text += " × 10"
            raised = ElementTree.SubElement(element, "sup")
            raised.text = AtomicString(str(int(number["power"])).replace("-", "−"))
        if number:
            element.set("class", "value number")
        element.text = AtomicString(text)
        return element, match.start(0), match.end(0)


def formatted(result: Callable[[str], Result], name: str, how: str) -> str:
    """A value `module.exhibit.key` as a page wants it; `result` gives what an exhibit gave.

    After the format, `up` or `down` keeps a bound on its safe side: at most .13 up, at least .12 down.
    """
    exhibit, _, key = name.rpartition(".")
    values = result(exhibit)["values"]
    if key not in values:
        known = ", ".join(values) or "none"
        raise Unavailable(f"exhibit {exhibit!r} returns no value {key!r}; it returns {known}")
    if isinstance(value := values[key], str) and not how:
        return value
    try:
        if any(int(size) > WIDEST for size in re.findall(r"\d+", how)):
            raise ValueError(f"expected at most {WIDEST} digits or letters")
        if bound := BOUND.fullmatch(how):
            return _rounded(value, **bound.groupdict())
        return format(value, _without_minus_zero(how) if isinstance(value, float) else how)
    except ValueError as error:
        text = f"value {name!r} is {value!r}, which {how!r} cannot format: {error}"
        raise ValueError(text) from None


def _rounded(value, how, direction):
    """A number in a format, exactly on one side of it or equal."""
    if not how:
        raise ValueError(f"expected the digits to keep before {direction!r}, as in '.2f {direction}'")
    if isinstance(value, (bool, str)) or not math.isfinite(value):
        raise ValueError(f"only a finite number can be rounded {direction}")
    with decimal.localcontext(rounding=ROUNDED[direction]):
        return format(decimal.Decimal(repr(value)), _without_minus_zero(how))


def _without_minus_zero(how):
    """A format in which no number that is rounded to zero keeps its sign."""
    return re.sub(r"^(?:.?[<>=^])?+[-+ ]?+(?!z)", r"\g<0>z", how)


class ClaimMark(InlineProcessor):
    """A small mark that links a sentence to the claim that a test holds."""

    def handleMatch(self, match: re.Match[str], data: str) -> Placed:
        try:
            claims = self.md.page.claims
        except ClaimError as error:
            raise BuildFault(f"{self.md.page.where(match[0], match[1])}: {error}") from None
        if match[1] not in claims:
            raise BuildFault(
                f"{self.md.page.where(match[0], match[1])}: no test holds the claim {match[1]!r}"
            )
        statement = claims[match[1]].statement.replace("`", "")  # an attribute holds no code
        mark = ElementTree.Element(
            "a", {"class": "claim", "href": f"{self.md.page.to('claims.md')}#{match[1]}"}
        )
        if self.md.page.first(match[1]):  # what the claims page links back to
            mark.set("id", f"states-{match[1]}")
        mark.set("title", statement)
        mark.set("aria-label", f"Tested claim: {statement}")
        mark.set("data-search-exclude", "")
        mark.text = AtomicString("tested")
        return mark, match.start(0), match.end(0)


class Nameless(InlineProcessor):
    """Refuse a value, a claim or the minutes that nothing above has read."""

    def handleMatch(self, match: re.Match[str], data: str) -> Placed:
        where, forms = self.md.page.where(match[0]), "#!val module.exhibit.key, #!claim id or #!minutes"
        raise BuildFault(f"{where}: {match[1].strip()!r} names nothing: expected {forms}")


class UnknownCode(InlineProcessor):
    """Refuse code that names its language by a word that is none: the word would not be shown."""

    KNOWN = ("val", "claim", "minutes")

    def __init__(self, pattern: str, md: Markdown) -> None:
        super().__init__(pattern, md)
        self.compiled_pattern = re.compile(pattern, re.S)

    def handleMatch(  # type: ignore[override]
        self, match: re.Match[str], data: str
    ) -> tuple[None, None, None]:
        if why := self._fault(match["word"], match["more"]):
            code = match[0].strip("`").strip()
            raise BuildFault(f"{self.md.page.where(match[0], code)}: in {code!r} {why}")
        return None, None, None

    def _fault(self, word, more):
        if near := difflib.get_close_matches(word.lower(), self.KNOWN, n=1, cutoff=0.6):
            if word not in self.KNOWN and _is_language(word):
                return None
            return f"nothing is filled in; did you mean `#!{near[0]} …`, in single backticks?"
        if not more or (word and _is_language(word)):
            return None
        return f"{word!r} is no language, and would not be shown: name one, or put a blank first in ``…``"


def _is_language(word):
    try:
        return bool(get_lexer_by_name(word))
    except ClassNotFound:
        return False


class Marks(Postprocessor):
    """Keep a mark on the line of the word or formula that it follows."""

    SPACE = re.compile(r'(?P<formula></math>(</span>)?)?\s+(?=<a [^>]*\bclass="claim")')

    def run(self, text: str) -> str:
        # Beside a formula, a no-break space alone does not hold.
        joined = "\\g<formula>\N{WORD JOINER}\N{NO-BREAK SPACE}"
        return self.SPACE.sub(lambda m: m.expand(joined if m["formula"] else "\N{NO-BREAK SPACE}"), text)
