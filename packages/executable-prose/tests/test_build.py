"""Whole builds of small projects: what runs again, what stops a build, what never harms the site."""

import base64
import hashlib
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from executable_prose.site import build
from prose_testing.projects import ENGINE, FILES, MATERIAL, Project, is_running, running_in, until

posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX's")

# Says where its process is, and takes its time when it is told to.
SLOW = """
    import os
    import tempfile
    import time
    from pathlib import Path


    def wait():
        Path(tempfile.gettempdir(), "pid").write_text(str(os.getpid()))
        time.sleep(SECONDS)
        print("waited")
    """


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    """A project and how its first build ended."""
    project = Project(tmp_path_factory.mktemp("house"))
    return project, project.build()


@pytest.fixture
def house(cold):
    """A built project; what a test writes into its docs, exhibits, snippets and tests is taken back."""
    project, done = cold
    assert done.code == 0, done.output
    rooms = ("docs", "exhibits", "snippets", "tests")
    before = {path: path.read_bytes() for room in rooms for path in project.root.joinpath(room).rglob("*.*")}
    yield project
    for room in rooms:
        for path in set(project.root.joinpath(room).rglob("*.*")) - before.keys():
            path.unlink()
    for path, content in before.items():
        path.write_bytes(content)


@pytest.fixture
def site(house):
    """The site of the project as it is, built again if a test has left another one."""
    done = house.build()
    assert (done.code, done.ran()) == (0, set())
    return house.site()


def test_a_first_build_runs_every_exhibit_and_says_so(cold):
    _, done = cold
    assert done.code == 0, done.output
    assert done.ran() == {"lines.rising", "words.spoken"}
    assert "2 exhibits ran, 0 cached" in done.output


def test_the_page_shows_all_that_it_asks_for(house):
    page = house.page()
    assert 'class="value number" title="computed by exhibits/lines.rising.end">2.00<' in page
    assert re.search(r'<a [^>]*class="claim"[^>]*href="claims/#scaling-scales"[^>]*>tested</a>', page)
    assert '<svg viewBox="0 0 316.8 194.4" class="figure" role="img" aria-label="A line that rises."' in page
    assert "up to 2.0" in page
    assert "seven &lt; eight" in page
    assert '<details class="note">' in page
    assert '<p class="place" data-search-exclude=""><code>snippets/scale.py</code>, lines 6 to 8</p>' in page
    assert re.search(r'<div class="diagram"><svg [^>]*role="img"', page)
    assert re.search(r"<figcaption>.*<strong>line</strong>.*<math>", page, re.S)
    assert 'id="scaling-scales"' in house.page("claims/index.html")


def test_a_page_has_a_copy_in_plain_markdown_and_a_card(house):
    copy = house.page("index.md")
    assert "The line ends at 2.00. It doubles,\nas [a test](claims/#scaling-scales) and" in copy
    assert "**The line**\n\n*Figure: A line that rises.*\n\nThe **line** of $x^2$." in copy
    assert "seven < eight" in copy and "def scaled" in copy and "flowchart LR" in copy
    assert house.page("claims/index.md").endswith("- Scaling doubles.\n")
    assert (house.root / "site" / "card.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_an_edited_constant_changes_what_uses_it_and_nothing_else(house, site):
    house.edit("snippets/scale.py", "2.0", "3.0")
    done = house.build()
    assert done.ran() == {"lines.rising"}
    assert "1 exhibits ran, 1 cached" in done.output
    page = house.page()
    assert ">3.00<" in page
    assert "up to 3.0" in page
    assert "up to 2.0" not in page
    assert "3.0" in house.page("reference/scale/index.html")
    house.edit("snippets/scale.py", "3.0", "2.0")
    done = house.build()
    assert done.ran() == set()
    assert house.site() == site


FENCE = "```"


def test_one_message_with_page_line_and_cause_stops_the_build(house):
    """The table of faults is tried without a process of its own."""
    before, cause = house.site(), "exhibit 'bad.one' failed: RuntimeError: out of luck (at exhibits/bad.py:2)"
    house.write({"exhibits/bad.py": "def one():\n    raise RuntimeError('out of\\nluck')\n"})
    front = "---\ntitle: Trial\n---\n\n# Trial\n\nText.\n\n"
    house.write({"docs/attempt.md": f"{front}{FENCE}exhibit bad.one\n{FENCE}\n"})
    done = house.build()
    assert done.code != 0
    assert f" docs/attempt.md:9: {cause}" in done.output
    assert done.output.count("docs/attempt.md:9") == done.output.count(cause) == 1
    assert "Traceback" not in done.output
    assert house.site() == before
    assert not list(house.root.glob(".site-*"))


@pytest.mark.parametrize("command", ["build", "results", "serve"])
def test_what_is_no_utf_8_is_named_with_its_line(house, command):
    (house.root / "docs/attempt.md").write_bytes("# Trial\n\nGrün\n".encode("latin-1"))
    done = house.run(ENGINE, command)
    assert done.code == 1
    assert "docs/attempt.md:3: the file holds the byte 0xfc, which is no UTF-8: save it" in done.output
    assert "Traceback" not in done.output


def test_each_page_has_the_policy_of_its_scripts(house):
    house.write(
        {
            "theme/main.html": FILES["theme/main.html"].replace(
                "{{ page.content", "<script>x=1</script>{{ page.content"
            )
        }
    )
    assert house.build().code == 0
    house.write({"theme/main.html": FILES["theme/main.html"]})
    made = base64.b64encode(hashlib.sha256(b"x=1").digest()).decode()
    assert f"script-src 'self' 'sha256-{made}'; " in house.page("claims/index.html").partition("<title>")[0]


def test_plain_mkdocs_stops_too(house):
    house.write({"docs/attempt.md": "# Trial\n\n`#!val lines.rising.start`\n"})
    done = house.run("mkdocs", "build", "--strict", "--site-dir", ".cache/other")
    assert done.code != 0
    assert "docs/attempt.md:3: exhibit 'lines.rising' returns no value 'start'" in done.output
    assert "Traceback" not in done.output


def test_a_build_elsewhere_leaves_the_site_alone(house, site):
    house.write({"docs/more.md": "# More\n"})
    assert house.build("elsewhere").code == 0
    assert house.site() == site
    assert set(house.site("elsewhere")) == {*site, "more/index.html", "more/index.md"}


# Builds that are interrupted, and builds at the same time


def start_slow_build(house, seconds):
    """Start a build that waits in an exhibit; the process of the build and that of the exhibit."""
    shutil.rmtree(house.temporary, ignore_errors=True)  # where a killed one may have left its own
    house.write(
        {
            "exhibits/slow.py": SLOW.replace("SECONDS", str(seconds)),
            "docs/slow.md": f"# Slow\n\n{FENCE}exhibit slow.wait\n{FENCE}\n",
        }
    )
    process = house.start("executable_prose", "build")
    exhibit = int(until(lambda: house.left_by_an_exhibit("pid")))
    return process, exhibit


@pytest.mark.slow
@posix
def test_a_killed_build_harms_nothing_and_leaves_nobody_behind(house, site):
    process, exhibit = start_slow_build(house, 300)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert house.site() == site
    until(lambda: not is_running(exhibit), 20)
    (left,) = house.root.glob(".site-*")
    os.utime(left, (0, 0))
    house.write({"exhibits/slow.py": SLOW.replace("SECONDS", "0")})
    assert house.build().code == 0
    after = house.site()
    for path in house.entries():
        path.unlink()
    assert house.build().code == 0
    assert house.site() == after
    assert "waited" in house.page("slow/index.html")
    assert not left.exists(), "the next build clears away what the killed one left"


@pytest.mark.slow
@posix
def test_an_interrupted_build_ends_without_a_traceback_and_takes_its_processes_along(house, site):
    process, exhibit = start_slow_build(house, 300)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in output
    until(lambda: not is_running(exhibit) and not running_in(house.root), 20)
    assert house.site() == site
    assert not list(house.root.glob(".site-*"))


@pytest.mark.slow
def test_two_builds_at_once_both_succeed(house):
    for path in house.entries():
        path.unlink()
    both = [house.start("executable_prose", "build") for _ in range(2)]
    for process in both:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    together = house.site()
    done = house.build()
    assert done.ran() == set()
    assert house.site() == together
    assert not list(house.root.glob(".site-*"))


# Putting a site in its place


def folders(tmp_path, *names):
    made = []
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "page").write_text(name)
        made.append(folder)
    return made


def test_a_swap_replaces_the_whole_site(tmp_path):
    made, site, aside = folders(tmp_path, "made", "site", "aside")
    build._mark(site)
    (site / "old").write_text("")
    build._swap(made, site, aside)
    assert [path.name for path in site.iterdir()] == ["page"]
    assert (site / "page").read_text() == "made"


def test_a_swap_works_where_there_is_no_site_yet(tmp_path):
    made, aside = folders(tmp_path, "made", "aside")
    build._swap(made, tmp_path / "site", aside)
    assert (tmp_path / "site" / "page").read_text() == "made"


def test_a_swap_succeeds_although_another_build_put_its_site_there_meanwhile(tmp_path, monkeypatch):
    made, other, aside = folders(tmp_path, "made", "other", "aside")
    build._mark(other)
    site = tmp_path / "site"
    rename = build.Path.rename

    def late(self, target):
        if self == made and other.exists():
            rename(other, site)
        return rename(self, target)

    monkeypatch.setattr(build.Path, "rename", late)
    build._swap(made, site, aside)
    assert (site / "page").read_text() == "made"


KEPT = {
    ".": "it holds the project",
    "..": "it holds the project",
    "/": "it holds the project",
    "docs/..": "it holds the project",
    "docs": "it holds files and no .executable-prose-site",
    "docs/": "it holds files and no .executable-prose-site",
    "docs/../snippets": "it holds files and no .executable-prose-site",
    "docs/new": "it belongs to the project",
    "docs/new/deeper": "it belongs to the project",
    "docs/../snippets/new": "it belongs to the project",
    ".git": "it holds files and no .executable-prose-site",
    ".git/new": "it belongs to the project",
    ".cache": "it holds files and no .executable-prose-site",
    ".cache/executable_prose": "it holds files and no .executable-prose-site",
    "site/new": "it belongs to the project",
    "mkdocs.yml": "it is a file",
    "mkdocs.yml/new": "it belongs to the project",
    "link-to-docs": "it is a link",
    "link-to-docs/new": "it belongs to the project",
    "link-to-new": "it is a link",
    "link-to-site": "it is a link",
    "../link-to-all": "it is a link",
    "../link-to-all/docs": "it holds files and no .executable-prose-site",
    "../link-to-all/docs/new": "it belongs to the project",
    "../outside": "it holds files and no .executable-prose-site",
    "../published": "it is a repository",
    "../new zensical": "Zensical builds within the project alone",
}
FREE = (
    "site",
    "older",
    "new",
    "empty",
    "link-to-all/new",
    ".cache/new",
    ".cache/new zensical",
    "docs/../new",
    "../new",
    "../new/deeper",
    "../link-to-all/site",
)


@pytest.fixture
def yard(here, monkeypatch):
    """A project in a folder of its own with a site, and other folders and links in it and beside it."""
    root = here.root / "project"
    monkeypatch.setattr(build.project, "ROOT", root)
    files = (
        "docs/a.md",
        "snippets/a.py",
        ".git/HEAD",
        ".cache/executable_prose/a.json",
        "mkdocs.yml",
        "../outside/mine",
    )
    site, published = (
        ("site/index.html", f"site/{build.MARK}"),
        (f"../published/{build.MARK}", "../published/.git"),
    )
    older = ("older/index.html", "older/index.md", "older/card.png", "older/data/a.csv")
    for name in (*files, *site, *published, *older):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "empty").mkdir()
    for name, target in (("docs", "docs"), ("new", "new"), ("site", "site"), ("all", "..")):
        (root / f"link-to-{name}").symlink_to(target)
    (here.root / "link-to-all").symlink_to("project")
    monkeypatch.chdir(root)
    return root


@posix
@pytest.mark.parametrize("target", KEPT)
def test_what_is_no_site_is_not_replaced(yard, target):
    folder, _, zensical = target.partition(" ")
    for each in (Path(folder), yard / folder):
        with pytest.raises(SystemExit) as ended:
            build.make(each, zensical)
        said = f"cannot build into {str(each)!r}: {KEPT[target]}"
        assert str(ended.value).startswith(said)
        assert str(ended.value).endswith(": name a new folder, such as .cache/other")


@posix
@pytest.mark.parametrize("target", FREE)
def test_a_site_or_a_new_folder_may_be_replaced(yard, target):
    folder, _, zensical = target.partition(" ")
    for each in (Path(folder), yard / folder):
        assert build._kept(each, zensical) is None


def test_the_project_is_known_where_the_system_sees_no_difference_of_case(yard, monkeypatch):
    """As on macOS and Windows."""
    for name in ("stat", "listdir"):
        asked = getattr(os, name)

        def ask(path, *how, asked=asked, **more):
            if isinstance(path, (str, Path)):
                path = re.sub("DOCS|PROJECT", lambda found: found[0].lower(), str(path))
            return asked(path, *how, **more)

        monkeypatch.setattr(os, name, ask)
    assert build._kept(yard / "DOCS", False).startswith("it holds files")
    assert build._kept(yard / "DOCS" / "new", False) == "it belongs to the project"
    assert build._kept(yard.parent / "PROJECT" / "docs" / "new", False) == "it belongs to the project"
    assert build._kept(yard.parent / "PROJECT", False) == "it holds the project"


@pytest.mark.parametrize(
    "change", ["mark.unlink()", "site.rename(site.with_name('x')), site.write_text('mine')"]
)
def test_a_folder_that_changed_while_the_site_was_made_is_not_replaced(tmp_path, change):
    made, site, aside = folders(tmp_path, "made", "site", "aside")
    build._mark(site)
    eval(change, {"site": site, "mark": site / build.MARK})
    before = list(tmp_path.rglob("*"))
    with pytest.raises(SystemExit, match="cannot build into"):
        build._swap(made, site, aside)
    assert before == list(tmp_path.rglob("*"))


def test_only_old_folders_of_builds_are_cleared_away(tmp_path):
    old, young, other = folders(tmp_path, ".site-old", ".site-young", "other")
    build._mark(old)
    build._mark(young)
    (mine,) = folders(tmp_path, ".site-of-mine")
    for folder in (old, other, mine):
        os.utime(folder, (0, 0))
    build._tidy(tmp_path / "site")
    assert [folder.exists() for folder in (old, young, other, mine)] == [False, True, True, True]


def test_the_date_of_a_build_is_that_of_the_last_commit_or_none(monkeypatch, tmp_path):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr(build.project, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert build._environment()["SOURCE_DATE_EPOCH"] == "0"
    monkeypatch.setenv("PATH", "")
    assert build._environment()["SOURCE_DATE_EPOCH"] == "0"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "12")
    assert build._environment()["SOURCE_DATE_EPOCH"] == "12"


# Two folders


def test_two_cold_builds_in_different_folders_are_the_same_bytes(tmp_path_factory):
    """With the real theme, and a space in one folder's name."""
    names = ("one", "a b")
    projects = [Project(tmp_path_factory.mktemp(name), theme=MATERIAL) for name in names]
    for process in [project.start("executable_prose", "build") for project in projects]:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        assert "2 exhibits ran, 0 cached" in output
    one, another = (project.site() for project in projects)
    assert "sitemap.xml.gz" in one
    assert one == another
