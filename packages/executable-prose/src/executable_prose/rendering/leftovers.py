"""Markup in a text that is read as it was written: nothing has made anything of it."""

import re

OPAQUE = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands for code, a formula, a picture, what was escaped
ESCAPE = "; a backslash before a sign, or backticks around all, show it"
KINDS = {
    "mark": (
        r"`*\s*#!\s*[A-Za-z]+",
        "a value, a claim or the minutes stand in single backticks, in Markdown",
    ),
    "link": (
        r"(?<![\w)\]])!?\[[^\[\]]*\]\((?=\S)|\]\]\((?=\S)"
        r"|(?<![\w)\]])!?\[[^\[\]]*[^\W\d_][^\[\]]*\]\[[^\[\]]*\]"
        r"|\([^()\n]*\)\[(?:https?:|[\w./-]+\.md\b)|\[[^\[\]]*\]\s\((?:https?:|[\w./-]+\.md\b)",
        "it has become no link: close it, or define the reference it names",
    ),
    "definition": (
        r"^[ \t]*(?:\*\[[^\[\]]+\]:|\[[^\[\]^\s][^\[\]]*\]:[ \t]*(?:<|#|https?:|[\w./-]+\.\w))",
        "put a definition on lines of its own, outside of HTML",
    ),
    "footnote": (r"\[\^[^\[\]\s]+\]", "no footnote of this page has this name"),
    "emphasis": (
        r"(?<![\w*])\*{2,3}(?=[^\s*])|(?<![\w*])\*\*\s[^*]*?[^\s*]\*\*(?![\w*])"
        rf"|(?<![\w*])\*(?=[\w{OPAQUE}])[^*\n]*[\w.!?){OPAQUE}]\*(?![\w*])|~~(?=\S)[^~\n]+~~",
        "emphasis ends in the paragraph in which it begins, and has no blank within its signs",
    ),
    "code": (r"```|`[^`\n]+`", "backticks begin and end code in Markdown, and not in HTML or titles"),
    "table": (
        r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$"
        r"|^[ \t]*\|[ \t]*:?-{2,}:?[ \t]*\|[ \t]*$"
        r"|^[ \t]*\|.*\|[ \t]*\n[ \t]*\|.*\|[ \t]*$",
        "a table has a blank line before it, and a second line with |---| for each of its columns",
    ),
    "list": (
        r"(?:\n[ \t]*[-*+][ \t]+\S[^\n]*){2}|(?:\n[ \t]*\d+[.)][ \t]+\S[^\n]*){2}",
        "a list has a blank line before it",
    ),
    "task": (r"\A\s*\[[ xX]\]\s", "boxes to tick are no part of Markdown here"),
    "heading": (r"\n[ \t]*#{1,6}[ \t]+\w", "a heading stands outside of HTML"),
    "box": (r"^[ \t]*(?:!!!|\?\?\?\+?)[ \t]*[\"\w]", 'a box begins as in !!! note "Title"'),
    "block": (
        r"^[ \t]*:{3,}[ \t]*\w|^[ \t]*/{3,}|^[ \t]*\.\.[ \t][\w-]+::|\{%|-8<|8<-",
        "no directive is written so: docs/pages.md of the engine has them all",
    ),
    "attributes": (
        r"\{:(?=[\s.#])|\{:?[ \t]*[#.][A-Za-z_][^{}\n]*\}",
        "attributes stand at the end of a line or touch what they are of",
    ),
    "tag": (r"<!--|<[A-Za-z][\w-]*\s+[\w-]+=[\"']", "this HTML never ends: close it"),
    "conflict": (r"^<{7}|^>{7}", "a merge has left it: choose one side"),
    "formula": (
        rf"(?<![\w$\\])\$(?=[^\s$\d])[^$\n]*(?<=[^\s$])\$(?![\w${OPAQUE}])|\\\([^\n]+?\\\)|\\begin\{{",
        "no formula is made here: it holds no code and no value, and stands outside of HTML",
    ),
    "icon": (r":(?:material|fontawesome|octicons|simple)-[\w-]+:", "icons are no part of Markdown here"),
}
ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, (pattern, _) in KINDS.items()), re.M)


def leftover(text: str) -> tuple[str, str] | None:
    """The first markup in a text, and what is wrong and to do; None if there is none."""
    if not (found := ANY.search(text)):
        return None
    shown = found[0].strip()
    _, cure = KINDS[found.lastgroup or ""]
    return shown, f"{_brief(shown)!r} would be shown as it stands: {cure}{ESCAPE}"


def _brief(text):
    first = text.split("\n")[0].replace(OPAQUE, "…")
    return first if len(first) <= 60 else f"{first[:60]}…"
