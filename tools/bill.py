"""The bill of materials of the site, CycloneDX in JSON: what it is built with, by the locks.

    python tools/bill.py > site/bom.json

The same locks give the same bytes. torch has builds for each system, and so no hash.
"""

import json
import re
import sys
from urllib.parse import quote

from executable_prose import project
from executable_prose.command import run
from tools import arguments

FILES = ("requirements.txt", "locks/site.txt")  # of the first torch alone, which is not locked
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?: *; *(?P<marker>[^\\\n]*[^\\\s]))?", re.M)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill():
    """All packages that are locked, as CycloneDX has them."""
    asked, locked = ((project.ROOT / file).read_text(encoding="utf-8") for file in FILES)
    torch = re.search(r"^torch==.*\n", asked, re.M)[0]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "positional-encoding-guide"}},
        "components": [_component(pin) for pin in re.split(r"\n(?=\S)", torch + locked.strip())],
    }


def _component(pin):
    """A package, from its lines in a lock; where it is needed stands in a property."""
    found = PIN.match(pin)
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    address = f"pkg:pypi/{name}@{quote(found['version'])}"
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": found["version"],
        "purl": address,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in HASH.findall(pin)],
        "properties": [{"name": "marker", "value": found["marker"]}] if found["marker"] else [],
    }


if __name__ == "__main__":
    arguments.none(__doc__)
    run(lambda: json.dump(bill(), sys.stdout, indent=1))
