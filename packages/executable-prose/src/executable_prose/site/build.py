"""Build the site aside and put it in place only when it is whole.

python -m executable_prose build [folder [zensical]]

The folder is replaced whole. So it is a new or empty one, or a site that was built before, and it lies
outside of the project, in its .cache/, or where site/ does.

What the machine refuses is told in a line, not in a traceback.
"""

import _thread
import contextlib
import gc
import glob
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from mkdocs.commands import build as mkdocs
from mkdocs.config import load_config

from executable_prose import input_checks, project, registry
from executable_prose.command import temporary
from executable_prose.errors import BuildFault
from executable_prose.site import (
    ahead,
    assets,
    csp,
    figure_files,
    markdown_copies,
    process,
    social_cards,
    styles,
)
from executable_prose.site.shared import Build

ATTEMPTS = 3  # to build from one state of the project
DAY = 24 * 60 * 60  # seconds
MARK = ".executable-prose-site"  # in every folder that a build may remove: a site, and what it is made in
SAYS = "python -m executable_prose build made this folder, and removes it when it makes another one.\n"
BEFORE = {"index.html", "index.md", "card.png", "data"}  # what sites have that are older than the mark


def make(site: Path, zensical: bool = False, build: Build | None = None) -> int:
    """Build strictly into `site` by MkDocs or Zensical; on any error it stays as it was. The exit code."""
    _refuse(site, zensical)
    site = site.resolve()
    site.parent.mkdir(parents=True, exist_ok=True)
    _tidy(site)
    build = build or Build()
    changed: list[str] = []
    # Beside the site, and so on its disk: it can be put in place at once.
    with temporary(f".{site.name}-", site.parent) as folder:
        _mark(folder)
        process.OWN_READS.made = folder
        for _ in range(ATTEMPTS):
            made, before = Path(tempfile.mkdtemp(dir=folder)), _states()
            if code := _whole(made, zensical, build):
                return code
            if not (changed := _changed(before) or build.changed()):
                _mark(made)
                _swap(made, site, folder)
                return 0
            if read := sorted(process.files().keys() & set(changed)):  # this process may keep what it was
                sys.exit(
                    f"{read[0]}, which the site's own code is or reads, changed during the build: build again"
                )
            print(
                f"WARNING -  {changed[0]} changed during the build; building again",
                file=sys.stderr,
            )
            build.begin()
    sys.exit(
        f"{changed[0]} changed during each of {ATTEMPTS} builds: find out what writes to it, and build again"
    )


def _whole(made, zensical, build):
    """Make the whole site in a folder and return the exit code."""
    os.environ.update(_environment())
    if code := _by_zensical(made) if zensical else _by_mkdocs(made, build):
        return code
    registry.load(project.settings().additions)
    assets.write(made)
    markdown_copies.write(made, build.results)
    social_cards.write(made, build.results)
    figure_files.write(made, build.results)
    # Stemmers of other languages, a megabyte under other licences: no page asks for one.
    shutil.rmtree(made / "assets/javascripts/lunr", ignore_errors=True)
    try:
        for add in registry.ADDED.built:
            add(made)
        csp.write(made)
    except BuildFault as error:
        error.show()
        return 1
    styles.shorten(made)
    return 0


def _states():
    """Return the digests of the files that MkDocs reads and copies; `Build.changed` compares all others."""
    said = project.configuration()
    names = [name for name in (project.CONFIGURATION, "pyproject.toml", said.get("INHERIT")) if name]
    for folder in filter(None, (project.DOCS.name, project.templates())):
        files = (path for path in (project.ROOT / folder).rglob("*") if path.is_file())
        names += [path.relative_to(project.ROOT).as_posix() for path in files if not _is_hidden(path)]
    return {name: project.digest(name) for name in names}


def _is_hidden(path):
    return any(part.startswith(".") for part in path.relative_to(project.ROOT).parts)


def _changed(before):
    """Return the names of the files whose digests differ now."""
    now = _states()
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


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


def _by_mkdocs(site, build):
    """As its own command does, which hands no build to pages."""
    said = logging.StreamHandler()
    said.setFormatter(logging.Formatter("%(levelname)-8s-  %(message)s"))
    log = logging.getLogger("mkdocs")
    log.setLevel(logging.INFO)
    log.addHandler(said)
    try:
        with contextlib.chdir(project.ROOT):
            config = build.into(load_config("mkdocs.yml", strict=True, site_dir=str(site)))
            config.plugins.on_startup(command="build", dirty=False)
            try:
                with ahead.in_two_processes(build):
                    mkdocs.build(config)
            finally:
                config.plugins.on_shutdown()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    finally:
        log.removeHandler(said)
    return 0


def _by_zensical(site):
    """It builds within the project alone, where mkdocs.yml says."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = os.environ | {"SITE_DIR": str(site.relative_to(project.ROOT))}
    return subprocess.run(command, cwd=project.ROOT, env=environment, check=False).returncode


def _tidy(site):
    """Remove what killed builds have left; a folder younger than a day may be another build's."""
    for folder in site.parent.glob(f".{glob.escape(site.name)}-*"):
        with contextlib.suppress(FileNotFoundError):  # that other build may end just now
            if (folder / MARK).is_file() and time.time() - folder.stat().st_mtime > DAY:
                shutil.rmtree(folder, ignore_errors=True)


def _environment():
    """The same sources give the same bytes: the site's date is that of the last commit.

    Pages may link to their Markdown copies and to the data of figures, and nbconvert need not try each of its
    ways to export.
    """
    git = ["git", "-C", str(project.ROOT), "log", "-1", "--format=%ct"]
    try:
        date = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no Git here
        date = ""
    if not date and (project.ROOT / ".git").exists() and "SOURCE_DATE_EPOCH" not in os.environ:
        undated = "Git does not tell that of the last commit; SOURCE_DATE_EPOCH sets one"
        print(f"WARNING -  the site bears the date 1970-01-01: {undated}", file=sys.stderr)
    added = dict.fromkeys(("MARKDOWN_COPIES", "FIGURE_DATA"), "true")
    ours = {"SOURCE_DATE_EPOCH": date or "0", "NBCONVERT_DISABLE_CONFIG_EXPORTERS": "1"}
    return ours | added | os.environ


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


def main(folder: str = "", host: str = "") -> str | int:
    """The command `build`."""
    if folder.startswith("-"):
        return f"expected a folder to build into, got {folder!r}"
    if host not in ("", "zensical"):
        return f"expected 'zensical' or nothing after the folder, got {host!r}"
    process.watch()
    target = Path(folder) if folder else project.ROOT / "site"
    sys.unraisablehook = _unraisable
    # Looking for garbage takes a tenth of a build in which nothing changed, and finds nothing worth it.
    gc.disable()
    return _refuse(target) or input_checks.fault() or make(target, host == "zensical")
