"""Build the site aside and put it in place only when it is whole.

python -m weave.build [folder [zensical]]
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weave import cards, policy, project, quiet, texts, twins
from weave.extension import RESULTS
from weave.results import exhibit_names

DAY = 24 * 60 * 60  # seconds


def build(site, zensical=False):
    """Build strictly into `site` by MkDocs or Zensical; on any error it stays as it was. The exit code."""
    site.parent.mkdir(parents=True, exist_ok=True)
    _tidy(site)
    # Beside the site, and so on its disk: it can be put in place at once.
    with tempfile.TemporaryDirectory(prefix=f".{site.name}-", dir=site.parent) as folder:
        made = Path(folder) / "site"
        command = [sys.executable, "-m", "weave.quiet", "build", "--strict", "--site-dir", str(made)]
        environment = _environment()
        if zensical:  # it builds within the project alone, where mkdocs.yml says
            command[2:] = ["zensical", "build", "--strict"]
            environment["SITE_DIR"] = str(made.relative_to(project.ROOT))
        code = subprocess.run(command, cwd=project.ROOT, env=environment, check=False).returncode
        if code == 0:
            twins.write(made)
            cards.write(made)
            _write_data(made)
            # Stemmers of other languages, a megabyte under other licences: no page asks for one.
            shutil.rmtree(made / "assets/javascripts/lunr", ignore_errors=True)
            policy.write(made)
            _drop_comments(made)
            _swap(made, site, Path(folder))
    return code


def _write_data(site):
    """What each figure shows, for those who want to draw it themselves."""
    (site / "data").mkdir()
    for name in exhibit_names():
        if data := RESULTS.get(name).get("data"):
            (site / "data" / f"{name}.csv").write_text(data, encoding="utf-8")


def _drop_comments(site):
    """Take the comments out of our styles: no reader of a page needs them."""
    for sheet in site.glob("assets/*.css"):
        sheet.write_text(re.sub(r"/\*.*?\*/\s*", "", sheet.read_text("utf-8"), flags=re.S), "utf-8")


def _tidy(site):
    """Remove what killed builds have left; a folder younger than a day may be another build's."""
    for folder in site.parent.glob(f".{site.name}-*"):
        with contextlib.suppress(FileNotFoundError):  # that other build may end just now
            if time.time() - folder.stat().st_mtime > DAY:
                shutil.rmtree(folder, ignore_errors=True)


def _environment():
    """The same sources give the same bytes: the site's date is that of the last commit.

    Pages may link to their twins, and nbconvert need not try each of its ways to export.
    """
    git = ["git", "-C", str(project.ROOT), "log", "-1", "--format=%ct"]
    try:
        date = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no Git here
        date = ""
    ours = {"SOURCE_DATE_EPOCH": date or "0", "TWINS": "true", "NBCONVERT_DISABLE_CONFIG_EXPORTERS": "1"}
    return ours | os.environ


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
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else project.ROOT / "site"
    with quiet.in_a_line():
        sys.exit(texts.fault() or build(target.resolve(), "zensical" in sys.argv[2:]))
