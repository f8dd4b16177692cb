"""Build the site aside and put it in place only when it is whole.

python -m weave.build [folder [zensical]]

The folder is replaced whole. So it is a new or empty one, or a site that was built before, and it lies
outside of the project, in its .cache/, or where site/ does.

What the machine refuses is told in a line, not in a traceback.
"""

import _thread
import contextlib
import gc
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from mkdocs.__main__ import cli

from weave import cards, changes, copies, heads, policy, project, texts, twins
from weave.errors import WeaveError, in_a_line
from weave.extension import RESULTS
from weave.results import Unavailable, exhibit_names

DAY = 24 * 60 * 60  # seconds
MARK = ".weave-site"  # in every folder that a build may remove: a site, and what it is made in
SAYS = "python -m weave.build made this folder, and removes it when it makes another one.\n"
BEFORE = {"index.html", "index.md", "card.png", "data"}  # what sites have that are older than the mark


def build(site, zensical=False):
    """Build strictly into `site` by MkDocs or Zensical; on any error it stays as it was. The exit code."""
    _refuse(site, zensical)
    site = site.resolve()
    site.parent.mkdir(parents=True, exist_ok=True)
    _tidy(site)
    # Beside the site, and so on its disk: it can be put in place at once.
    with tempfile.TemporaryDirectory(prefix=f".{site.name}-", dir=site.parent) as folder:
        _mark(Path(folder))
        made = Path(folder) / "site"
        code = _by_zensical(made) if zensical else _by_mkdocs(made)
        if code == 0:
            twins.write(made)
            cards.write(made)
            _write_data(made)
            # Stemmers of other languages, a megabyte under other licences: no page asks for one.
            shutil.rmtree(made / "assets/javascripts/lunr", ignore_errors=True)
            try:
                changes.write(made, heads.address(os.environ.get("SITE_URL", "")))
                copies.write(made)
                policy.write(made)
            except (WeaveError, changes.ChangesError) as error:
                WeaveError(str(error)).show()
                return 1
            _drop_comments(made)
            _mark(made)
            _swap(made, site, Path(folder))
    return code


def _refuse(site, zensical=False):
    """End the process with a line if no site may replace what `site` is, or lies in."""
    if why := _kept(site, zensical):
        sys.exit(f"cannot build into {str(site)!r}: {why}: name a new folder, such as .cache/other")


def _kept(site, zensical):
    """Why a folder is none to build into, else None."""
    if site.is_symlink():
        return "it is a link"
    place = site.resolve()
    if place.exists():
        if not place.is_dir():
            return "it is a file"
        if any(map(place.samefile, (project.ROOT, *project.ROOT.parents))):
            return "it holds the project"
        names = {path.name for path in place.iterdir()}
        if names and not (MARK in names or names >= BEFORE):
            return f"it holds files and no {MARK}, so it is no site that was built before"
        if ".git" in names:
            return "it is a repository"
    # As the system tells folders apart, which may see no difference between docs and DOCS.
    around = (folder for folder in place.parents if folder.exists() and folder.samefile(project.ROOT))
    if root := next(around, None):
        first, *more = place.relative_to(root).parts
        if (first == ".cache") != bool(more):
            return "it belongs to the project"
    return "Zensical builds within the project alone" if zensical and not root else None


def _mark(folder):
    (folder / MARK).write_text(SAYS, encoding="utf-8")


def _by_mkdocs(site):
    os.environ.update(_environment())
    try:
        with contextlib.chdir(project.ROOT):
            cli.main(["build", "--strict", "--site-dir", str(site)], "mkdocs", standalone_mode=False)
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


def _by_zensical(site):
    """It builds within the project alone, where mkdocs.yml says."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = _environment() | {"SITE_DIR": str(site.relative_to(project.ROOT))}
    return subprocess.run(command, cwd=project.ROOT, env=environment, check=False).returncode


def _write_data(site):
    """What each figure shows, for those who want to draw it themselves."""
    (site / "data").mkdir()
    for name in exhibit_names():
        try:
            data = RESULTS.get(name).get("data")
        except Unavailable as error:  # of an exhibit that no page shows
            sys.exit(str(error))
        if data:
            (site / "data" / f"{name}.csv").write_text(data, encoding="utf-8")


def _drop_comments(site):
    """Take the comments out of our styles: no reader of a page needs them."""
    for sheet in site.glob("assets/*.css"):
        sheet.write_text(re.sub(r"/\*.*?\*/\s*", "", sheet.read_text("utf-8"), flags=re.S), "utf-8")


def _tidy(site):
    """Remove what killed builds have left; a folder younger than a day may be another build's."""
    for folder in site.parent.glob(f".{glob.escape(site.name)}-*"):
        with contextlib.suppress(FileNotFoundError):  # that other build may end just now
            if (folder / MARK).is_file() and time.time() - folder.stat().st_mtime > DAY:
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
    if not date and (project.ROOT / ".git").exists() and "SOURCE_DATE_EPOCH" not in os.environ:
        undated = "Git does not tell that of the last commit; SOURCE_DATE_EPOCH sets one"
        print(f"WARNING -  the site bears the date 1970-01-01: {undated}", file=sys.stderr)
    ours = {"SOURCE_DATE_EPOCH": date or "0", "TWINS": "true", "NBCONVERT_DISABLE_CONFIG_EXPORTERS": "1"}
    return ours | os.environ


def _swap(made, site, folder):
    """Put `made` where `site` is. Another build may do so at the same time: the last one stays."""
    for attempt in range(20):
        try:
            _refuse(site)  # it may have become another folder while this one was made
            if site.exists():
                site.rename(folder / f"before-{attempt}")
            made.rename(site)
            return
        except OSError:
            if attempt == 19:
                raise


def _unraisable(what):
    """An interrupt while an object is deleted can stop nothing: what comes next is stopped."""
    if what.exc_type is KeyboardInterrupt:
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(what)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else project.ROOT / "site"
    sys.unraisablehook = _unraisable
    # Looking for garbage takes a tenth of a build in which nothing changed, and finds nothing worth it.
    gc.disable()
    with in_a_line():
        sys.exit(_refuse(target) or texts.fault() or build(target, "zensical" in sys.argv[2:]))
