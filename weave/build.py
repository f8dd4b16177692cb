"""Build the site aside and put it in place only when it is whole.

python -m weave.build [folder]
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weave.project import ROOT

DAY = 24 * 60 * 60  # seconds


def build(site):
    """Build strictly into `site`; on any error `site` stays as it was. The exit code of MkDocs."""
    aside = ROOT / ".cache"
    aside.mkdir(exist_ok=True)
    if _disk(site) != _disk(aside):
        raise SystemExit(
            f"{site} is on another disk than {aside}, where the site is made, so it could not be put in place"
            " at once: name a folder on the same disk, and copy it"
        )
    _tidy(aside)
    with tempfile.TemporaryDirectory(prefix="build-", dir=aside) as folder:
        made = Path(folder) / "site"
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(made)]
        code = subprocess.run(command, cwd=ROOT, env=_dated(), check=False).returncode
        if code == 0:
            _swap(made, site, Path(folder))
    return code


def _disk(path):
    """The disk that a folder is on, or will be on once it is made."""
    while not path.exists():
        path = path.parent
    return path.stat().st_dev


def _tidy(aside):
    """Remove what killed builds have left; a folder younger than a day may be another build's."""
    for folder in aside.glob("build-*"):
        with contextlib.suppress(FileNotFoundError):  # that other build may end just now
            if time.time() - folder.stat().st_mtime > DAY:
                shutil.rmtree(folder, ignore_errors=True)


def _dated():
    """The same sources give the same bytes: the site's date is that of the last commit."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        date = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no Git here
        date = ""
    return {"SOURCE_DATE_EPOCH": date or "0"} | os.environ


def _swap(made, site, folder):
    """Put `made` where `site` is. Another build may do so at the same time: the last one stays."""
    for attempt in range(20):
        try:
            if site.exists():
                site.rename(folder / f"before-{attempt}")
            made.rename(site)
            return
        except OSError:
            if attempt == 19:
                raise


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    try:
        sys.exit(build(target.resolve()))
    except KeyboardInterrupt:
        sys.exit(130)
