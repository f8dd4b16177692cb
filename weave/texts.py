"""What weave reads as text has to be text."""

from weave import project

READ = (
    "mkdocs.yml",
    "docs/**/*.md",
    "docs/**/*.py",
    "exhibits/*.py",
    "snippets/*.py",
    "labs/*.py",
    "labs/*.toml",
    "tests/**/test_*.py",
)


def unreadable():
    """The place of the first byte that is no text, and what to do; None if all is text."""
    for path in (path for pattern in READ for path in sorted(project.ROOT.glob(pattern))):
        try:
            if not path.read_bytes().decode().startswith("\N{BYTE ORDER MARK}"):
                continue
            line, why = 1, "begins with a byte order mark"
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            why = f"holds the byte 0x{error.object[error.start]:02x}, which is no UTF-8"
        file = path.relative_to(project.ROOT).as_posix()
        return f"{file}:{line}: the file {why}: save it as UTF-8, without a byte order mark"
    return None
