"""What directives become: functions of a page, the argument and the body that return parts.

Parts are HTML, or lists of Markdown lines.
"""

from weave.directives.changes import changes
from weave.directives.claims import claims
from weave.directives.diagram import mermaid
from weave.directives.exhibit import exhibit
from weave.directives.files import files
from weave.directives.lab import lab
from weave.directives.reference import reference

FENCES = {each.__name__: each for each in (changes, claims, exhibit, files, lab, mermaid, reference)}
