"""MkDocs as a command, for weave/build.py: what the machine refuses is told in a line, not in a traceback.

python -m weave.quiet build
"""

import contextlib
import errno
import sys

REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def in_a_line():
    """End the process with a line about a file that cannot be written, and with none after an interrupt."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        sys.exit(
            f"the build cannot write: {error}: make room, or allow writing to .cache/ and beside the site"
        )


def _unraisable(what):
    """An interrupt while an object is deleted can stop nothing; the command that waits had it too."""
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)


if __name__ == "__main__":
    sys.unraisablehook = _unraisable
    with in_a_line():
        import gc

        # Looking for garbage takes a tenth of a build in which nothing changed, and finds nothing worth it.
        gc.disable()
        from mkdocs.__main__ import cli

        cli(prog_name="mkdocs")
