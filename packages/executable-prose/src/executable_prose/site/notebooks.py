"""Notebooks of docs/notebooks/ on their pages: for mkdocs-jupyter, by way of nbconvert.

nbconvert looks for a template named `lab` below JUPYTER_PATH before it takes its own. So `jupyter/` of the
engine has the template of a notebook's page, and names the step below as the last before it.
"""

import os
from typing import TYPE_CHECKING

from mkdocs.structure.pages import Page
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_output

from executable_prose import labs, project
from executable_prose.errors import BuildFault
from executable_prose.outcome import Unavailable
from executable_prose.rendering.directives.code import described, highlighted
from executable_prose.rendering.directives.lab import offer
from executable_prose.rendering.page import Addresses
from executable_prose.site import host

if TYPE_CHECKING:
    from executable_prose.site.shared import Build

BETWEEN = "<!-- cell -->"  # the cells of prose, which are converted as one page


class OnSite(Preprocessor):
    """Cells as they stand on the site, with the outputs that are kept by what the notebook used.

    Where the plugin has run the notebook in a kernel (`execute`), that has to have printed the same.
    """

    build: "Build | None" = None  # nbconvert itself makes the step, so the build is handed to its class

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        build = self.build.host
        page = host.current_page(build.config)
        name, executed = page.file.name, any(cell.get("execution_count") for cell in nb.cells)
        try:
            results = self.build.results.get(f"lab-{name}")["solved"]
        except Unavailable as error:
            raise BuildFault(f"{labs.file(name)}: {error}") from None
        for cell, ours, result in zip(nb.cells, labs.cells(name), results, strict=True):
            if cell.cell_type == "code":
                if executed and (said := _said(cell.outputs)) != result["output"]:
                    place = f"{labs.file(name)}:{ours.line}"
                    raise BuildFault(f"{place}: Jupyter printed {said!r}, the build {result['output']!r}")
                cell.outputs = list(_outputs(result, ours.alt))
                cell.metadata |= {"html": highlighted(ours.lines), "line": ours.line}
        prose = [cell for cell in nb.cells if cell.cell_type == "markdown"]
        # The plugin has made no page of it. MkDocs does, and checks its links and anchors.
        page.markdown = f"\n\n{BETWEEN}\n\n".join(cell.source for cell in prose)
        Page.render(page, build.config, build.files)
        for cell, made in zip(prose, page.content.split(BETWEEN), strict=True):
            cell.metadata.html = made
        own = build.config.mdx_configs[project.ENGINE.name]
        addresses = Addresses(
            repository=own.get("repository") or "", site=own.get("site") or "", data=bool(own.get("data"))
        )
        prose[0].metadata.html += offer(name, addresses)
        return nb, resources


def prepare(build: "Build") -> None:
    """Let nbconvert, which makes exporters and steps by itself, find the template and the build."""
    OnSite.build = build
    own = str(project.ENGINE / "jupyter")
    paths = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    os.environ["JUPYTER_PATH"] = os.pathsep.join([own, *(path for path in paths if path not in ("", own))])


def _outputs(result, alternative):
    if result["output"]:
        yield new_output("stream", text=result["output"])
    if result["figure"]:
        yield new_output("display_data", {"image/svg+xml": described(result["figure"], alternative)})


def _said(outputs):
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")
