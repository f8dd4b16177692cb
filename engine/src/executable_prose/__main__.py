"""The commands; `executable-prose` is short for the module:

python -m executable_prose serve      read the site as you write; takes what `mkdocs serve` takes
python -m executable_prose build      build it into site/, strictly, whole or not at all; or into a folder
python -m executable_prose results    bring what examples and labs give up to date
python -m executable_prose claims     list the claims, who holds and who states them; fails if one lacks
"""

import importlib
import inspect
import sys

COMMANDS = {
    "serve": "site.serve",
    "build": "site.build",
    "results": "execution.results",
    "claims": "claims",
}


def main() -> None:
    name, *arguments = sys.argv[1:] or [""]
    if name in ("", "-h", "--help") or ("--help" in arguments[:1] and name != "serve"):
        print(__doc__.strip())
        sys.exit(0 if name else 2)
    if name not in COMMANDS:
        sys.exit(f"expected one of {', '.join(COMMANDS)}, got {name!r}")
    command = importlib.import_module(f"executable_prose.{COMMANDS[name]}").main
    try:
        inspect.signature(command).bind(*arguments)
    except TypeError:
        sys.exit(f"{name} takes no such arguments: {' '.join(arguments)}")
    sys.exit(command(*arguments))


if __name__ == "__main__":
    main()
