"""```mermaid …```: a diagram, drawn."""

import re

from executable_prose.figures import mermaid
from executable_prose.registry import Parts, directive
from executable_prose.rendering.directives.code import DirectiveError
from executable_prose.rendering.page import Page


@directive("mermaid")
def diagram(page: Page, argument: str, body: list[str]) -> Parts:
    if mark := next((line for line in body if re.search(r"#!\s*(?:val|claim|minute)", line, re.I)), None):
        raise DirectiveError(f"a diagram shows {mark.strip()!r} as it stands: it holds no value and no claim")
    try:
        return [f'<div class="diagram">{mermaid.render(chr(10).join(body))}</div>']
    except mermaid.DiagramError as error:
        raise DirectiveError(f"the diagram cannot be drawn: {error}") from None
