"""Pages whose listings, figures, numbers and claims are made by tested code, while the site is built.

`mkdocs.yml` names this package as a Markdown extension. What an example returns to make its figure live, and
what a site adds to what its pages can say, is all that other code imports.
"""

NAMES = {
    "Live": "figures.live",
    "Slider": "figures.live",
    "Choice": "figures.live",
    "Order": "figures.live",
    "directive": "registry",
    "built": "registry",
}


def __getattr__(name):
    """Imported late: what is imported here, all that examples compute would depend on."""
    if name not in NAMES:
        raise AttributeError(f"executable_prose has no {name!r}; it has {', '.join(NAMES)}")
    import importlib

    return getattr(importlib.import_module(f"executable_prose.{NAMES[name]}"), name)


def makeExtension(**settings: object) -> object:
    """The Markdown extension, by the name that Python-Markdown looks for."""
    from executable_prose.rendering.extension import PageExtension
    from executable_prose.site.shared import alone

    return PageExtension(**settings | {"build": settings.get("build") or alone()})
