"""The commands; `executable-prose` is short for the module:

python -m executable_prose serve      read the site as you write; takes what `mkdocs serve` takes
python -m executable_prose build      build it into site/, strictly, whole or not at all; or into a folder
python -m executable_prose results    bring what examples and labs give up to date
python -m executable_prose claims     list the claims, who holds and who states them; fails if one lacks
"""

import sys

from executable_prose import hidden

COMMANDS = {
    "serve": "site.serve",
    "build": "site.build",
    "results": "execution.results",
    "claims": "claims",
}
HELP = ("-h", "--help")


def main() -> None:
    """End the process as the command does that its arguments name."""
    hidden.check(".")
    from executable_prose import command  # now: what these import may have been hidden

    command.run(_chosen)


def _chosen():
    import importlib
    import inspect

    from executable_prose import project

    name, *arguments = sys.argv[1:] or [""]
    if name in ("", *HELP) or (name != "serve" and any(each in HELP for each in arguments)):
        print(__doc__.strip())
        return 0 if name else 2
    if name not in COMMANDS:
        return f"expected one of {', '.join(COMMANDS)}, got {name!r}"
    hidden.check(project.ROOT)  # a folder around this one
    command = importlib.import_module(f"executable_prose.{COMMANDS[name]}").main
    try:
        inspect.signature(command).bind(*arguments)
    except TypeError:
        return f"{name} takes no such arguments: {' '.join(arguments)}"
    return command(*arguments)


if __name__ == "__main__":
    main()
