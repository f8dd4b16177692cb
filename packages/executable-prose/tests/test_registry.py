"""What a site adds: its own fences on pages and in their copies, its files, and how it hands files out."""

import pytest

from prose_testing.projects import Project

ADDED = '''
    """What this site adds."""

    from executable_prose import built, directive
    from executable_prose.errors import BuildFault
    from executable_prose.registry import Files, files
    from executable_prose.rendering.directives.code import DirectiveError


    @directive("parts")
    def parts(page, argument, body):
        if not body:
            raise DirectiveError("expected a line for each part")
        return [f'<p class="count">{len(body)} of {argument}</p>', [f"- *{line}*" for line in body]]


    @parts.as_text
    def _told(copy, argument, body):
        return [f"{argument}: {', '.join(body)}"]


    @directive("silent")
    def silent(page, argument, body):
        return ["<hr>"]


    @built
    def count(site):
        pages = len([*site.rglob("index.html")])
        if pages > 3:
            raise BuildFault(f"expected at most 3 pages, got {pages}")
        (site / "pages.txt").write_text(str(pages), encoding="utf-8")


    @files
    class Shown(Files):
        def page(self, file):
            return "scale.md" if file == "snippets/scale.py" else None

        def handed_out(self, text, site):
            return text.replace("SCALE", f"SCALE_OF_{len(site)}")
    '''
PAGE = """\
# Home

```parts a machine
wheel
axle
```

```silent
```

--8<-- "snippets/scale.py"
"""
FILES = {
    "extra.py": ADDED,
    "snippets/scale.py": "SCALE = 2.0\n",
    "docs/index.md": PAGE,
    "docs/scale.md": '# Scale\n\n--8<-- "snippets/scale.py"\n',
    "theme/main.html": "<!doctype html>{{ page.content }}\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A built site with a module of its own."""
    project = Project(tmp_path_factory.mktemp("added"), files=FILES)
    project.edit("pyproject.toml", 'additions = ""', 'additions = "extra"')
    done = project.build()
    assert done.code == 0, done.output
    return project


def test_a_fence_of_its_own_becomes_html_and_markdown_on_its_page(project):
    page = project.page()
    assert '<p class="count">2 of a machine</p>' in page
    assert "<li><em>wheel</em></li>\n<li><em>axle</em></li>" in page
    assert "<hr>" in page and "```" not in page


def test_in_the_copy_of_its_page_it_says_what_it_says_there_or_stands_as_written(project):
    copy = project.page("index.md")
    assert "# Home\n\na machine: wheel, axle\n\n```silent\n```\n" in copy


def test_a_function_is_called_with_the_built_site(project):
    assert project.page("pages.txt") == "2"


def test_files_are_handed_out_and_linked_as_it_says(project):
    page = project.page()
    assert '<a href="scale/"><code>snippets/scale.py</code></a>, lines 1 to 1' in page
    assert "SCALE_OF_21 " in page, "by the address that mkdocs.yml gives"
    assert 'download="scale.py"' in project.page("scale/index.html")
    assert "SCALE_OF_0 = 2.0" in project.page("index.md")


def test_what_it_refuses_stops_the_build_with_page_and_line(project):
    before = project.site()
    project.edit("docs/index.md", "wheel\naxle\n", "")
    done = project.build()
    project.write({"docs/index.md": PAGE})
    assert done.code != 0 and project.site() == before
    assert "docs/index.md:3: expected a line for each part" in done.output


def test_what_it_refuses_of_the_whole_site_stops_the_build(project):
    before = project.site()
    project.write({f"docs/{name}.md": f"# {name}\n" for name in ("a", "b")})
    done = project.build()
    assert done.code != 0 and project.site() == before
    assert "expected at most 3 pages, got 4" in done.output and "Traceback" not in done.output


def test_a_module_that_is_not_there_is_told(tmp_path):
    project = Project(tmp_path, files={"docs/index.md": "# Home\n", "theme/main.html": "{{ page.content }}"})
    project.edit("pyproject.toml", 'additions = ""', 'additions = "nowhere"')
    done = project.build()
    assert done.code != 0
    assert "nowhere" in done.output
    assert "Traceback" not in done.output
