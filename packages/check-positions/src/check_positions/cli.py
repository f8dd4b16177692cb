"""The command `positions`."""

import argparse
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from check_positions.config import (
    LIMIT,
    ConfigError,
    Description,
    describe_config,
    format_report,
)

GIB = 2**30
HUB = re.compile(r"[\w.-]+/[\w.-]+")
SECONDS, MEMORY = 300.0, 16.0
EXAMPLES = (
    "\nexamples:\n"
    "  positions check path/to/model           "
    "test the cache, the mask and the rotation of a model\n"
    "  positions config path/to/config.json    "
    "print the calls that a configuration describes\n"
    "  positions explain path/to/config.json   "
    "the same in sentences\n"
    "  positions compare a.json b.json         "
    "what differs, and what that does to numbers\n"
    '  positions census "Llama 3.1"            '
    "what the class of a model does by default\n"
    "\nexit code:\n"
    "  0 nothing is wrong   1 something was found   "
    "2 it could not be checked\n"
)
SOURCE = (
    "a config.json, a folder with one, or the name of a model on the "
    "Hugging Face Hub, such as owner/model"
)


class UnreadableError(Exception):
    """Report that nothing could be checked; the message gives the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Command-line arguments; None uses those of the process.

    Returns:
        The exit code: 0 if nothing is wrong, 1 if something was found, 2 if it
        could not be checked, 141 if the reader of the output has stopped
        reading.
    """
    given = _parser().parse_args(arguments)
    try:
        with _limits(given.seconds, given.memory):
            answer, shown, code = given.run(given)
        text = (
            json.dumps(answer, indent=1, default=str)
            if given.json
            else _coloured(shown)
        )
        return _printed(text + "\n", code)
    except UnreadableError as error:
        sys.stderr.write(f"positions: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "positions",
        description="Check, read, explain and compare what Transformers do "
        "with positions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    weights = f"{SOURCE}; the rotation of a folder with weights is measured"
    for name, run, about, sources in (
        ("check", _check,
         "test the cache, the mask and the rotation of a model",
         {"model": SOURCE}),
        ("config", _config,
         "print the calls that configurations describe",
         {"file": SOURCE}),
        ("explain", _explain,
         "say in sentences what a model does with positions",
         {"file": SOURCE}),
        ("compare", _compare,
         "compare two configurations, or one with a model that has weights",
         {"first": SOURCE, "second": weights}),
        ("census", _census,
         "print what the class of a model does by default",
         {"name": "a model or a model type"}),
    ):  # fmt: skip
        command = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}."
        )
        for source, wanted in sources.items():
            command.add_argument(
                source, help=wanted, nargs="+" if name == "config" else None
            )
        command.add_argument("--json", action="store_true", help="print JSON")
        limits = command.add_argument_group(
            "limits",
            "If one is exceeded, nothing is reported and the exit code is 2.",
        )
        limits.add_argument(
            "--seconds",
            type=float,
            default=SECONDS,
            help="time limit (default: %(default)g)",
        )
        limits.add_argument(
            "--memory",
            type=float,
            default=MEMORY,
            help="memory limit in GiB (default: %(default)g)",
        )
        command.set_defaults(run=run)
    return parser


# --- subcommands: each returns its answer, the same as text, and the exit code


def _check(given: argparse.Namespace) -> tuple[Any, str, int]:
    from check_positions.checker import check_transformers, report

    source = given.model.removeprefix("transformers:")
    findings = _asked(lambda: check_transformers(_place(source)))
    code = int(any(one.verdict == "fails" for one in findings))
    return [asdict(one) for one in findings], report(findings), code


def _config(given: argparse.Namespace) -> tuple[Any, str, int]:
    told = {source: _described(source) for source in given.file}
    shown = [format_report(each.parts) for each in told.values()]
    if len(told) > 1:
        shown = [
            f"{source}\n{text}"
            for source, text in zip(told, shown, strict=True)
        ]
    answer = {source: _answer(each) for source, each in told.items()}
    return answer, "\n".join(shown).rstrip(), max(map(_code, told.values()))


def _explain(given: argparse.Namespace) -> tuple[Any, str, int]:
    from check_positions.explanation import explain

    told = _described(given.file)
    lines = explain(told)
    return {**_answer(told), "lines": lines}, "\n".join(lines), _code(told)


def _compare(given: argparse.Namespace) -> tuple[Any, str, int]:
    from check_positions.comparison import WORDS, compare, compare_with_model

    first, second = _described(given.first), _described(given.second)
    differences = _asked(lambda: compare(first, second))
    guessed = [told.model_type for told in (first, second) if told.guess]
    shown = [f"! {WORDS['guess'].format(kind=kind)}" for kind in guessed]
    shown += [str(each) for each in differences]
    shown += [WORDS["same"]] * (not differences)
    folder, findings = Path(given.second), []
    if folder.is_dir() and any(folder.glob("*.safetensors")):
        findings = _asked(lambda: compare_with_model(first, folder))
        shown += [
            "",
            "The weights of the second model, measured against the first "
            "configuration:",
            *map(str, findings),
        ]
    found = bool(differences) or any(one.verdict == "fails" for one in findings)
    answer = {
        "guessed": guessed,
        "differences": [asdict(each) for each in differences],
        "findings": [asdict(each) for each in findings],
    }
    return answer, "\n".join(shown), int(found)


def _census(given: argparse.Namespace) -> tuple[Any, str, int]:
    from check_positions.census import census, find, nearest

    kinds, models = find(given.name), census()["models"]
    if not kinds:
        near = (
            f"; the nearest names are {', '.join(nearest(given.name))}"
            if nearest(given.name)
            else ""
        )
        raise UnreadableError(
            f"NAME must be a model of the census, got {given.name!r}{near}"
        )
    shown = [
        f"Measured in transformers {census()['transformers']}. Every value is "
        "the default of the class; the config.json of a release may set others."
    ]
    for kind in kinds:
        row = models[kind]
        names = f" ({', '.join(row['names'])})" if row["names"] else ""
        shown += [
            "",
            f"{kind}{names}: {row['reads']}",
            *(f"  {words}" for words in row["words"]),
        ]
    return {kind: models[kind] for kind in kinds}, "\n".join(shown), 0


# --- reading files


def _described(source: str) -> Description:
    try:
        return describe_config(_text(_file(source)))
    except ConfigError as error:
        raise UnreadableError(f"{source} cannot be read: {error}") from None


def _answer(told: Description) -> dict[str, Any]:
    return {**told._asdict(), "kinds": [kind._asdict() for kind in told.kinds],
            "parts": [part._asdict() for part in told.parts]}  # fmt: skip


def _code(told: Description) -> int:
    if not told.known:
        return 2
    return int(told.guess or bool(told.faults))


def _text(file: Path) -> str:
    try:
        if file.exists() and not file.is_file():
            raise UnreadableError(f"{file} must be a regular file")
        if (size := file.stat().st_size) > 4 * LIMIT:
            raise UnreadableError(
                f"{file} must have at most {4 * LIMIT} bytes, got {size}: "
                "is it a config.json?"
            )
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(
            f"{file} cannot be read: {error.strerror or error}"
        ) from None
    except UnicodeDecodeError:
        raise UnreadableError(
            f"{file} must be text in UTF-8; is it a config.json?"
        ) from None


def _file(source: str) -> Path:
    place = _place(source)
    return place / "config.json" if place.is_dir() else place


def _place(source: str) -> Path:
    """Return the path of a source; a config.json on the Hub is downloaded."""
    place = Path(source)
    if place.exists() or not HUB.fullmatch(source) or place.suffix == ".json":
        if place.is_dir() and not (place / "config.json").is_file():
            held = (
                ", ".join(sorted(each.name for each in place.iterdir())[:5])
                or "nothing"
            )
            raise UnreadableError(
                f"{source} must be a folder with a config.json; it has {held}"
            )
        if not place.exists():
            raise UnreadableError(f"{source} does not exist; expected {SOURCE}")
        return place
    try:
        return _downloaded(source)
    except ImportError:
        wanted = (
            "to read models of the Hub, install check-positions[transformers]"
        )
        raise UnreadableError(
            f"{source} does not exist here; {wanted}"
        ) from None
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        raise UnreadableError(
            f"{source} does not exist here, and its config.json cannot be "
            f"downloaded: {said}"
        ) from None


def _downloaded(source: str) -> Path:
    """Return the path of a config.json of the Hub, downloaded or cached.

    One request without a retry comes first. Without a network, the download
    would retry for 20 seconds before it fails.
    """
    from huggingface_hub import (
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
        try_to_load_from_cache,
    )
    from huggingface_hub.errors import HfHubHTTPError

    try:
        get_hf_file_metadata(hf_hub_url(source, "config.json"))
    except HfHubHTTPError:  # the Hub refuses: a cached file may be outdated
        raise
    except Exception:
        cached = try_to_load_from_cache(source, "config.json")
        if not isinstance(cached, str):
            raise
        return Path(cached)
    return Path(hf_hub_download(source, "config.json"))


def _asked(run: Callable[[], list[Any]]) -> list[Any]:
    """Return what a function returns; errors of a model become sentences."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        with suppress(ImportError):
            import transformers

            transformers.utils.logging.disable_progress_bar()
        return run()
    except UnreadableError:
        raise
    except ImportError as error:
        raise UnreadableError(
            f"{error}; install check-positions[transformers]"
        ) from None
    except (
        Exception
    ) as error:  # transformers may raise any error for a configuration
        named = (
            "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        )
        raise UnreadableError(f"{named}{error}") from None


# --- output and limits


@contextmanager
def _limits(seconds: float, memory: float) -> Iterator[None]:
    """Stop the process at a limit, and show the time on a terminal."""
    done = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(done, seconds, memory), daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(done: threading.Event, seconds: float, memory: float) -> None:
    begun, shown = time.monotonic(), False
    while not done.wait(0.2):
        passed = time.monotonic() - begun
        if passed > seconds:
            _stop(
                f"stopped after {seconds:g} seconds, without a result; "
                "allow more with --seconds"
            )
        if (used := _memory()) > memory:
            _stop(
                f"stopped at {used:.1f} GiB of memory, more than {memory:g}; "
                "allow more with --memory"
            )
        if passed > 2 and sys.stderr.isatty():
            sys.stderr.write(f"\rpositions: working, {passed:.0f} s ")
            shown = True
    if shown:
        sys.stderr.write("\r\033[K")


def _stop(why: str) -> None:
    sys.stderr.write(f"\npositions: {why}\n")
    sys.stderr.flush()
    os._exit(2)  # the model may be inside a call that no exception ends


def _memory() -> float:
    """Return the largest memory of this process so far in GiB.

    It is 0 where the system does not say, as on Windows.
    """
    with suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / GIB if sys.platform == "darwin" else used / 2**20
    return 0.0


def _coloured(text: str) -> str:
    """Colour verdicts and notes on a terminal, unless NO_COLOR is set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    for pattern, colour in (
        (r"^fails\b|^no\b", 31),
        (r"^passes\b", 32),
        (r"^! .*|^inconclusive\b", 33),
    ):
        text = re.sub(
            pattern, rf"\033[{colour}m\g<0>\033[0m", text, flags=re.MULTILINE
        )
    return text


def _printed(text: str, code: int) -> int:
    """Print the text and return the exit code, or another if printing fails."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(
            text.encode(encoding, "backslashreplace").decode(encoding)
        )
        sys.stdout.flush()
    except OSError as error:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), 1
        )  # Python flushes stdout once more at exit
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(f"positions: cannot write: {error.strerror}\n")
        return 2
    return code
