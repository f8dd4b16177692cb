"""Notebooks of docs/notebooks/ on their pages: for mkdocs-jupyter, by way of nbconvert.

nbconvert looks for a template named `lab` in the folder where it runs before it takes its own. So `lab/` here
has the template of a notebook's page, and names the step below as the last before it.
"""

from mkdocs.structure.pages import Page
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_output

from weave import extension, labs, pages
from weave.directives.code import described, highlighted
from weave.directives.lab import offer
from weave.errors import WeaveError
from weave.results import Unavailable

BETWEEN = "<!-- cell -->"  # the cells of prose, which are converted as one page


class OnSite(Preprocessor):
    """Cells as they stand on the site, with the outputs that weave keeps by what the notebook used.

    Where the plugin has run the notebook in a kernel (`execute`), that has to have printed the same.
    """

    def preprocess(self, nb, resources):
        build, page = pages.BUILD, pages.BUILD.config._current_page
        name, executed = page.file.name, any(cell.get("execution_count") for cell in nb.cells)
        try:
            results = extension.RESULTS.get(f"lab-{name}")["solved"]
        except Unavailable as error:
            raise WeaveError(f"{labs.file(name)}: {error}") from None
        for cell, ours, result in zip(nb.cells, labs.cells(name), results, strict=True):
            if cell.cell_type == "code":
                if executed and (said := _said(cell.outputs)) != result["output"]:
                    place = f"{labs.file(name)}:{ours.line}"
                    raise WeaveError(f"{place}: Jupyter printed {said!r}, weave {result['output']!r}")
                cell.outputs = list(_outputs(result, ours.alt))
                cell.metadata |= {"html": highlighted(ours.lines), "line": ours.line}
        prose = [cell for cell in nb.cells if cell.cell_type == "markdown"]
        # The plugin has made no page of it. MkDocs does, and checks its links and anchors.
        page.markdown = f"\n\n{BETWEEN}\n\n".join(cell.source for cell in prose)
        Page.render(page, build.config, build.files)
        for cell, made in zip(prose, page.content.split(BETWEEN), strict=True):
            cell.metadata.html = made
        prose[0].metadata.html += offer(name, build.config.mdx_configs["weave"])
        return nb, resources


def _outputs(result, alternative):
    if result["output"]:
        yield new_output("stream", text=result["output"])
    if result["figure"]:
        yield new_output("display_data", {"image/svg+xml": described(result["figure"], alternative)})


def _said(outputs):
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")
