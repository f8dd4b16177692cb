"""Files by others that the site contains, with their licences."""

from importlib.metadata import metadata, version

THEME = "mkdocs-material"


def shipped():
    theme = metadata(THEME)
    terms = theme["License-Expression"] or theme["License"]
    lines = (
        ("Styles, scripts", f"Material for MkDocs {version(THEME)}", terms),
        ("The search", "MiniSearch 7.2.0", "MIT"),
        (
            "Icons",
            "Material Design Icons, as that theme brings them",
            "Apache-2.0",
        ),
        ("The mark of Git", "Font Awesome Free, likewise", "CC BY 4.0"),
        ("Letters in titles", "cut from Literata", "OFL-1.1"),
        ("Letters in text", "cut from Figtree", "OFL-1.1"),
        ("Letters in formulas", "cut from STIX Two Math", "OFL-1.1"),
        (
            "What runs changed code",
            "MicroPython 1.27.0",
            "MIT; parts PSF-2.0, Zlib, BSD-3-Clause",
        ),
        (
            "Text that small models read",
            "the source of Python's library",
            "PSF-2.0",
        ),
    )
    print("| What | From | Terms |")
    print("|---|---|---|")
    for line in lines:
        print("|", *(f"{cell} |" for cell in line))
    return {"theme": version(THEME)}
