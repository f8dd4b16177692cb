"""Files of a project that hide modules which Python and this engine import.

It imports nothing that could be hidden.
"""

import os
import sys

NEEDED = {
    *("PIL", "click", "contourpy", "cycler", "dateutil", "fontTools", "ghp_import", "jinja2", "kiwisolver"),
    *("markdown", "markupsafe", "material", "math_core", "matplotlib", "mergedeep", "mermaidx", "mkdocs"),
    *(
        "novasvg",
        "numpy",
        "packaging",
        "pathspec",
        "platformdirs",
        "pygments",
        "pymdownx",
        "pyparsing",
        "six",
    ),
    *("tqdm", "watchdog", "yaml"),
}


def check(folder: str | os.PathLike) -> None:
    """End the process with a line if a module in a folder, from which Python imports, hides another one."""
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        module, suffix = os.path.splitext(name)  # noqa: PTH122
        package = os.path.isfile(os.path.join(folder, name, "__init__.py"))  # noqa: PTH113, PTH118
        if (suffix == ".py" or package) and (module in sys.stdlib_module_names or module in NEEDED):
            sys.exit(
                f"{name}:1: this hides the module {module!r}, which Python or the engine needs: rename it"
            )
