"""A site that MkDocs and Zensical build, which succeeds Material for MkDocs: both have to give the same."""

from bs4 import BeautifulSoup


class Both:
    """Both sites of a project."""

    def __init__(self, project):
        self.project = project
        for command in (["mkdocs", "build", "--strict", "--site-dir", "mkdocs-site"], ["zensical", "build"]):
            done = project.run(*command)
            assert done.code == 0, done.output

    def pages(self, name="index.html"):
        """The contents of a page, of MkDocs and of Zensical."""
        for site in ("mkdocs-site", "site"):
            # Zensical reads this mark itself, and Material's search plugin does.
            text = self.project.page(name, site).replace(' data-search-exclude=""', "")
            text = text.replace(" data-search-exclude", "")
            yield BeautifulSoup(text, "html.parser").select_one("article, main")

    def check(self, what, count=None, page="index.html"):
        """The elements that a selector finds on a page, so many and at least one, are the same in both."""
        mkdocs, zensical = (page.select(what) for page in self.pages(page))
        assert mkdocs
        assert count is None or len(mkdocs) == count
        assert [str(element) for element in mkdocs] == [str(element) for element in zensical]
