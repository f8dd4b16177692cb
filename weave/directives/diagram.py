"""```mermaid …```: a diagram, drawn."""

from weave import diagrams
from weave.directives.code import DirectiveError


def mermaid(page, argument, body):
    try:
        return [f'<div class="diagram">{diagrams.render(chr(10).join(body))}</div>']
    except diagrams.DiagramError as error:
        raise DirectiveError(f"the diagram cannot be drawn: {error}") from None
