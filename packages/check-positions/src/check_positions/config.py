r"""Print the position-encoding calls of the model that a config.json describes.

    python read_config.py config.json

The answer contains the base, the layout, the rotated fraction of each head, the
frequency scaling with all its arguments, the windows, and the layers that do
not rotate, as calls of this guide's files in the order of a model's code; then
unknown and contradictory settings, and how other libraries read such a file.

The program first decides whether the model rotates queries and keys: by a table
of measurements of each model_type, and by keys such as position_embedding_type.
If nothing is rotated, there are no calls of a rotation. If the code that reads
the file is unknown, or does not read one of its positional keys, the calls are
comments: a guess from the keys. No config.json specifies the layout: it was
measured in the code of each known model_type.

Nothing in the file is run. The exit code is 1 if there are no calls other than
comments, and 2 if the file cannot be read. Needs only Python 3.11 or newer.

References:
    Configurations and models of github.com/huggingface/transformers at v5.23.0,
    each of which was run; the angles of other libraries were measured.
"""

import argparse
import functools
import io
import json
import math
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

LIMIT = 1_000_000  # maximum number of characters
DEEPEST = 40  # maximum depth of brackets
WIDE = 76  # columns of a line of code
BLANK = r"[ \t\n\r]*"
NUMBER = (  # with the two that Python writes and JSON does not have
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity"
)
TEXT = (
    r'"[^"\\\x00-\x1f]*'
    r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
)
WORD = "true|false|null"
PLACES = ("given", "rope")
BEGINS = (("title", ""), ("fact", "- "), ("text", "- "), ("mind", "! "))
LAYOUTS = ("half", "interleaved")
CLASS = r"(For[A-Z][A-Za-z0-9_]*|LMHeadModel|Model)\Z"
UNSEEN = (
    r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class Part(NamedTuple):
    """Hold one part of an answer: its kind and its text.

    Attributes:
        kind: "title", "fact", "code", "guess" (code in comments), "shell",
            "text" or "mind" (a note).
        text: The text, of one line or more.
    """

    kind: str
    text: str


class Number(NamedTuple):
    """Hold a number of the file: its spelling and its value."""

    text: str
    value: float


class LayerKind(NamedTuple):
    """Hold what the layers of one kind do with positions.

    Attributes:
        kind: The kind, as in layer_types, such as "full_attention".
        layers: Numbers of these layers, from 0; empty if the file does not give
            the number of layers.
        head: Number of channels of a query head; 0 if unknown.
        turned: Number of channels of a head that are rotated; 0 if none are.
        settings: The rotation, with the keys of rope_parameters of transformers
            5; empty if nothing is rotated.
        window: Number of keys that a token sees, itself included; 0 for all.
        chunk: Number of tokens in each chunk, if a token sees only its own
            chunk; 0 otherwise.
    """

    kind: str
    layers: list[int]
    head: int
    turned: int
    settings: dict[str, Any]
    window: int
    chunk: int


class Description(NamedTuple):
    """Hold what a config.json says about positions, for a program.

    Attributes:
        model_type: The model type whose code reads the file, or words that say
            that it is unknown.
        encoding: "rope", "alibi", "t5", "learned", or "none" if queries and
            keys are not rotated.
        layout: "half" or "interleaved"; "" if nothing is rotated or the layout
            is unknown.
        kinds: The kinds of layers; empty unless `encoding` is "rope".
        longest: Number of positions that the file names; 0 if it names none.
        known: Whether the code that reads the file was measured.
        guess: Whether the answer is a guess from the keys, because the code is
            unknown or does not read all positional keys of the file.
        faults: Missing or contradictory settings, which prevent an answer.
        notes: Other remarks, such as keys that are not read.
        parts: The answer of `read_config`.
    """

    model_type: str
    encoding: str
    layout: str
    kinds: list[LayerKind]
    longest: int
    known: bool
    guess: bool
    faults: list[str]
    notes: list[str]
    parts: list[Part]


class ConfigError(Exception):
    """Report that the text cannot be read; the message gives the reason."""


@functools.cache
def table() -> dict[str, Any]:
    """Return the known keys, their valid values, the rules and the messages.

    Returns:
        The contents of `TABLE`, by section.
    """
    return tomllib.loads(TABLE)


@functools.cache
def _known(measured: str) -> Any:
    return _Json(measured, table()["words"]).whole()


def read_config(text: str) -> list[Part]:
    """Return the position-encoding calls that a config.json describes.

    Text that is no valid config.json raises no error: the answer then gives the
    reason.

    Args:
        text: Contents of a config.json.

    Returns:
        The parts of the answer, in the order in which to show them.

    Example:
        >>> config = '{"model_type": "gptj", "n_embd": 64, "n_head": 2}'
        >>> read_config(config)[0].text
        'gptj: RoPE, layout interleaved'
    """
    try:
        return _opened(text).answer()
    except ConfigError as error:
        unread = table()["words"]["unread"]
        return [Part("title", unread), Part("mind", str(error))]


def describe_config(text: str) -> Description:
    """Return what a config.json says about positions, layer kind by layer kind.

    Args:
        text: Contents of a config.json.

    Returns:
        The description.

    Raises:
        ConfigError: If the text is no JSON object, or too long or too deep.

    Example:
        >>> config = '{"model_type": "llama", "num_hidden_layers": 2}'
        >>> (kind,) = describe_config(config).kinds
        >>> kind.layers, kind.turned, kind.settings["rope_theta"]
        ([0, 1], 128, 10000.0)
    """
    return _opened(text).description()


def _opened(text: str) -> "_Reading":
    words = table()["words"]
    read = _Json(text.removeprefix("\ufeff"), words)
    given = read.whole()
    if not isinstance(given, dict):
        raise ConfigError(_fill(words["no_object"], got=_shown(given)))
    return _Reading(given, read.twice, table(), _known(MEASURED))


def format_report(parts: list[Part]) -> str:
    """Format the answer for a terminal.

    Code is indented, and a note begins with an exclamation mark.

    Args:
        parts: Parts of an answer from `read_config`.

    Returns:
        The text, which ends with a line break.

    Example:
        >>> format_report([Part("mind", "invalid JSON")]).strip()
        '! invalid JSON'
    """
    made = ""
    for kind, text in parts:
        begin = dict(BEGINS).get(kind, "    ")
        lines = [f"{begin}{line}".rstrip() for line in text.split("\n")]
        made += "\n" * (kind == "title" and made > "") + "\n".join(lines) + "\n"
    return made


class _Json:
    """Read JSON, keep the spelling of numbers, and list repeated names."""

    def __init__(self, text: str, words: dict[str, str]):
        self.text, self.words = text, words
        self.twice = list[str]()
        self.at = [0]  # index of the next character

    def whole(self) -> Any:
        if len(self.text) > LIMIT:
            said = {"limit": LIMIT, "got": len(self.text)}
            raise ConfigError(_fill(self.words["too_long"], **said))
        made = self._value(0)
        if self.at[0] < len(self.text):
            raise self._fault(self.words["end"])
        return made

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise ConfigError(_fill(self.words["too_deep"], deepest=DEEPEST))
        self._take(BLANK)
        if self._take(r"\{"):
            made: Any = self._members(depth)
        elif self._take(r"\["):
            made = self._items(depth)
        elif text := self._take(TEXT):
            made = json.loads(text)
        elif text := self._take(NUMBER):
            made = Number(text, float(text))
        elif text := self._take(WORD):
            made = {"true": True, "false": False, "null": None}[text]
        else:
            raise self._fault(self.words["a_value"])
        self._take(BLANK)
        return made

    def _items(self, depth: int) -> list[Any]:
        made: list[Any] = []
        self._take(BLANK)
        while made or not self._take(r"\]"):
            made.append(self._value(depth + 1))
            if self._take(r"\]"):
                break
            self._need(",", ", or ]")
        return made

    def _members(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        self._take(BLANK)
        while made or not self._take(r"\}"):
            self._take(BLANK)
            name = json.loads(self._need(TEXT, self.words["a_name"]))
            self._take(BLANK)
            self._need(":", ":")
            if name in made:
                self.twice.append(name)
            made[name] = self._value(depth + 1)
            if self._take(r"\}"):
                break
            self._need(",", ", or }")
        return made

    def _take(self, pattern: str) -> str:
        """Return the text that matches a pattern here and skip it, or ""."""
        found = re.compile(pattern).match(self.text, self.at[0])
        self.at[0] = found.end() if found else self.at[0]
        return found[0] if found else ""

    def _need(self, pattern: str, expected: str) -> str:
        if not (taken := self._take(pattern)):
            raise self._fault(expected)
        return taken

    def _fault(self, expected: str) -> ConfigError:
        at = self.at[0]
        before, here = self.text[:at], self.text[at : at + 1]
        said = {"line": before.count("\n") + 1, "expected": expected}
        column = len(before) - before.rfind("\n")
        got = _shown(here) if here else self.words["end"]
        words = self.words["no_json"]
        return ConfigError(_fill(words, column=column, got=got, **said))


class _Reading:
    """Hold one configuration, and the results found in it so far."""

    def __init__(
        self,
        given: dict[str, Any],
        twice: list[str],
        table: dict[str, Any],
        known: dict[str, Any],
    ):
        self.table, self.known = table, known
        self.vocabulary = {
            key for check in table["value"] for key in check["keys"].split()
        }
        self.besides = {*table["sizes"].split(), *table["others"].split()}
        self.facts, self.faults, self.minds = (list[str]() for _ in range(3))
        self.imports: dict[str, list[str]] = {}  # names by file
        self.built, self.forward = list[str](), list[str]()
        self.scores = {"by": "", "cap": ""}  # if they are unusual
        self.bare_by = {"key": ""}  # the key that lists layers without rotation
        self.of_class = set[str]()  # kinds with the dictionary of the class
        self.blocks: list[Part] = []
        # Of each kind of layers: rotated channels, channels and settings.
        self.rotations: dict[str, tuple[int, int, dict[str, Any]]] = {}
        self.groups: list[LayerKind] = []
        self.read = list[str]()
        for name in twice:
            self._mind("twice", key=_shown(name))
        self.given = dict(self._part(given))
        kind = self.given.get("model_type")
        named = isinstance(kind, str)
        if named and kind in known["wholes"]:  # without a part for text
            self._fact("whole", kind=kind, part=known["wholes"][kind])
            kind = known["wholes"][kind]
        if not named or not self._is_known(kind):
            kind = self._by_architecture(given) or kind
        row = known["models"].get(kind) if isinstance(kind, str) else None
        self.row: dict[str, Any] = row or {}
        unknown = _shown(kind) if named else self._told("no_type")
        self.kind = str(kind) if self._is_known(kind) else unknown
        self.what = self._measured()  # a layout, or another encoding
        self.rotates = self.row.get("family", "rope") == "rope" and (
            bool(self.row) or self.what in ("", *LAYOUTS)
        )
        self.passed: dict[str, Any] = {}  # keys that this program does not read
        self.used = set[float]()  # numbers in calls
        self.taken = set[str]()  # keys on which calls depend
        self.file = dict(self.given)
        self._sift()
        self.ropes = self._ropes()
        self._sift_ropes()

    def answer(self) -> list[Part]:
        self._values()
        family = self.row.get("family", "rope")
        why = self._nothing_rotates()
        self._rules(bool(why))
        signs = any(self._key(key) for key in self.table["signs"])
        if not (self.row or why or signs):
            self._fault("no_keys" if self.passed else "no_signs")
        if why:
            self._scores_by(0)
        elif not self.faults:
            self._rope() if family == "rope" else self._template(family)
        guess = self._name_passed() or not self.row
        if not (self.row or why):
            known = self.what in LAYOUTS
            name = "measured_only" if known else "unknown_type"
            self._mind(name, kind=self.kind)
        self._name_idle(why)
        told = "no_calls" if self.faults else f"is_{family}"
        unknown = not (self.row or self.what or self.faults)
        told = "is_guess" if unknown else told
        told = "is_bare" if why and not self.faults else told
        layout = self._layout() or self._told("unknown")
        title = self._told(told, kind=self.kind, layout=layout)
        parts = [Part("title", title)]
        parts += [Part("fact", words) for words in [*why, *self.facts]]
        minds = self.faults + self.minds
        parts += [Part("title", self._told("mind"))] * bool(minds)
        parts += [Part("mind", words) for words in minds]
        if why:
            self._check(self._told("asks_bare"))
        elif self.faults:
            return parts
        whole = why or not guess
        return parts + (self.blocks if whole else self._guessed())

    def description(self) -> Description:
        parts = self.answer()
        encoding = self.row.get("family", "rope")
        code = any(part.kind in ("code", "guess") for part in parts)
        turning = any(group.turned for group in self.groups)
        if encoding == "rope" and not (self.faults or (code and turning)):
            encoding = "none"
        return Description(
            model_type=self.kind,
            encoding=encoding,
            layout=(self._layout() or "") * turning,
            kinds=self.groups * (encoding == "rope"),
            longest=self._whole("positions"),
            known=bool(self.row or self.what),
            guess=any(part.kind == "guess" for part in parts),
            faults=self.faults,
            notes=self.minds,
            parts=parts,
        )

    def _guessed(self) -> list[Part]:
        """Return the calls as comments, below the command that decides."""
        at = next(
            n for n, part in enumerate(self.blocks) if part.kind == "shell"
        )
        title = "guess_of_class" if self.row else "guess"
        made = [Part("title", self._told(title, kind=self.kind))]
        made += self.blocks[at : at + 2]
        for part in self.blocks[: at - 1]:
            lines = [f"# {line}".rstrip() for line in part.text.split("\n")]
            code = Part("guess", "\n".join(lines))
            made.append(code if part.kind == "code" else part)
        return made

    def _told(self, words: str, **values: object) -> str:
        return _fill(self.table["words"][words], **values)

    def _fact(self, words: str, **values: object) -> None:
        _add(self.facts, self._told(words, **values))

    def _fault(self, words: str, **values: object) -> None:
        _add(self.faults, self._told(words, **values))

    def _mind(self, words: str, **values: object) -> None:
        _add(self.minds, self._told(words, **values))

    def _block(self, title: str, lines: list[str]) -> None:
        title = self.table["words"].get(title, title)
        if any(lines):
            code = "\n".join(lines)
            self.blocks.extend((Part("title", title), Part("code", code)))

    # --- whether anything rotates, and which keys are read

    def _is_known(self, kind: Any) -> bool:
        own = [*self.known["models"], *self.known["switches"]]
        return kind in own or any(
            kind in kinds for kinds in self.known["rotations"].values()
        )

    def _by_architecture(self, whole: dict[str, Any]) -> str:
        """Return the known type of a class that is named, "" if none is."""
        named = self.given.get("architectures", whole.get("architectures"))
        for each in named if isinstance(named, list) else []:
            stem = re.sub(CLASS, "", _plain(each)).lower()
            for kind in self.known["models"]:
                plain = re.sub(r"[_-]", "", kind)
                if stem and plain in (stem, f"{stem}text"):
                    self._fact("architecture", name=_shown(each), kind=kind)
                    return str(kind)
        return ""

    def _measured(self) -> str:
        kinds = self.known["rotations"].items()
        return next((what for what, of in kinds if self.kind in of), "")

    def _nothing_rotates(self) -> list[str]:
        """Return why nothing rotates, [] if something does; called first."""
        switch = self.known["switches"].get(self.kind, "")
        key, _, on = switch.partition(" ")
        value = self._look(key) if key else None
        if key and _plain(value) != on:
            said = "switched_off" if key in self.file else "switch_lacks"
            got = _shown(value)
            return [self._told(said, key=key, got=got, on=_code_word(on),
                               kind=self.kind)]  # fmt: skip
        if key:
            self._fact("switched_on", key=key, got=_shown(value),
                       kind=self.kind)  # fmt: skip
        if self.row.get("family", "rope") != "rope":
            return []
        for off in self.table["off"]:
            for key in off["keys"].split():
                outer, _, name = key.rpartition(".")
                inner = [_dict(self.file.get(outer))]
                places = inner if outer else self._places()
                found = [of[name] for of in places if name in of]
                named = [_plain(value).lower() for value in found]
                if not named or not all(
                    n in off["values"].split() for n in named
                ):
                    continue
                reads = not self.row or key in self._reads()
                said = off["says"] if reads and "kinds" not in self.row else (
                    "conflict")  # fmt: skip
                words = self._told(said, key=key, got=_shown(found[0]),
                                   kind=self.kind)  # fmt: skip
                if said != "conflict":
                    self.passed.pop(key, None)
                    return [words]
                _add(self.faults, words)
        if self.row or self.what in ("", *LAYOUTS):
            return []
        for off in self.table["off"]:
            for key in off["keys"].split():
                if _plain(self.file.get(key)) in off.get("on", "").split():
                    got = _shown(self.file[key])
                    self._mind("conflict_on", key=key, got=got, kind=self.kind)
        return [self._told("measured_none", kind=self.kind, what=self.what)]

    def _reads(self) -> set[str]:
        """Keys about positions that the code of the class reads."""
        if not self.row:
            return set(self.table["guessed"].split())
        usual = set(self.table["usual"].split()) - {*self.row.get("unread", [])}
        return usual | {*self.row.get("reads", [])}

    def _sift(self) -> None:
        """Remove from the file the keys that the code of its class ignores."""
        reads = self._reads()
        for key, value in self.file.items():
            if key in reads or not self._positional(key):
                inner = value if isinstance(value, dict) else {}
                skip = re.search(self.table["elsewhere"], key) or key in reads
                for name in inner if not skip else {}:
                    if self._positional(name):
                        self._pass_over(f"{key}.{name}", inner[name])
                continue
            self.given.pop(key)
            self._pass_over(key, value)

    def _sift_ropes(self) -> None:
        known = f"{self.table['inside']} {' '.join(self.row.get('inside', []))}"
        for rope in self.ropes.values():
            for key, value in (rope or {}).items():
                if key not in known.split() and key not in self.table["layers"]:
                    self._pass_over(key, value)

    def _positional(self, key: str) -> bool:
        """Return whether a key is about positions, or seems to be."""
        near = any(word in key.lower() for word in self.table["near"])
        return (key in self.vocabulary or near) and key not in self.besides

    def _pass_over(self, key: str, value: Any) -> None:
        """Note a key that is not read, unless its value has no effect."""
        neutral, name = self.table["neutral"], key.rpartition(".")[2]
        says_nothing = neutral.get(
            key, neutral.get(name, self.table["nothing"])
        )
        if _plain(value).lower() not in says_nothing.split("|"):
            self.passed[key] = value

    def _name_passed(self) -> bool:
        """Name each key that is not read; return if one could change calls."""
        guess = False
        for key, value in self.passed.items():
            same = isinstance(value, Number) and value.value in self.used
            usual = self.row.get("defaults", {}).get(key)
            mild = isinstance(value, Number) and isinstance(usual, Number) and (
                value.value == usual.value)  # fmt: skip
            turned = "rope_interleave" in key and (
                value is (self._layout() != "half"))  # fmt: skip
            mild = mild or same or turned
            mild = mild or key in self.table["mild"].split()
            known = self.table["mild_if"].get(key, "").split()
            if isinstance(value, list) and value:
                mild = mild or all(_plain(each) in known for each in value)
            said = "same" if same else "not_read" if self.row else "strange"
            if self.rotates or self.row:
                self._mind(said, key=_named(key, value), kind=self.kind)
            guess = guess or not mild
        return guess

    def _name_idle(self, why: list[str]) -> None:
        """Name each key that changes nothing, although it may be read."""
        told = " ".join([*why, *self.facts, *self.faults, *self.minds])
        named = {*re.findall(r"\w+", told, re.ASCII), *self.taken}
        idle = list[str]()
        for of in self._places():
            for key, value in of.items():
                inside = of is not self.file or self._positional(key)
                plain = _plain(value).lower()
                if inside and key not in named and (
                    plain not in self.table["nothing"].split("|")
                ) and not isinstance(value, dict):  # fmt: skip
                    _add(idle, _named(key, value))
        if idle:
            self._mind("idle", keys=", ".join(idle))

    # --- keys

    def _part(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the part that reads text, if a model is made of parts."""
        for name in self.table["parts"]:
            part = given.get(name)
            if isinstance(part, dict) and part:
                self._fact("part", part=name)
                return self._part(part)
        return given

    def _key(self, name: str) -> str:
        """Return the key that sets a value in the file or class, or ""."""
        for of in (self.given, self.row.get("defaults", {})):
            names = self.table["aliases"].get(name, [name])
            known = [key for key in names if key in of]
            if known:  # null is no value, whatever the default of the class
                found = [key for key in known if of[key] is not None]
                return str([*found, ""][0])
        return ""

    def _look(self, name: str) -> Any:
        key = self._key(name)
        self.taken.add(key)
        given, own = self.given.get(key), self.row.get("defaults", {})
        return own.get(key) if given is None else given

    def _whole(self, name: str) -> int:
        """Return a value that is a whole number, 0 if there is none."""
        value = self._look(name)
        known = isinstance(value, Number) and 0 <= value.value <= 1e9
        return int(value.value) if known else 0

    def _source(self, name: str) -> str:
        key = self._key(name)
        if self.given.get(key) is not None:
            return self._told("from_key", key=key)
        return self._told("from_class", kind=self.kind)

    def _values(self) -> None:
        """Report each known key whose value is not of its kind."""
        for check in self.table["value"]:
            for key in check["keys"].split():
                for of in self._places():
                    value = of.get(key)
                    if value is not None and not _fits(value, check):
                        got, expected = _shown(value), check["says"]
                        self._fault(
                            "value", key=key, expected=expected, got=got
                        )

    def _places(self) -> list[dict[str, Any]]:
        return [self.file, *(rope for rope in self.ropes.values() if rope)]

    def _rules(self, bare: bool) -> None:
        """Note contradictions, and how other libraries read such a file."""
        for rule in self.table["rule"]:
            if bare and "case" in rule:  # how libraries read a rotation
                continue
            for rope in self.ropes.values():
                if all(self._holds(test, rope or {}) for test in rule["when"]):
                    came = self.known["outcomes"].get(rule.get("case"), {})
                    each = (f"{w} in {', '.join(of)}" for w, of in came.items())
                    found = "; ".join(each)
                    words = _fill(rule["says"], kind=self.kind, found=found)
                    of = self.faults if rule.get("fault") else self.minds
                    _add(of, words)

    def _holds(self, test: str, rope: dict[str, Any]) -> bool:
        """Return whether a test of the table holds: the test, then its keys."""
        what, *names = test.split()
        if what == "apart":
            what, names = "differ", [f"{of}.{names[0]}" for of in PLACES]
        first, *more = (self._named(name, rope) for name in names)
        if what in ("has", "lacks"):
            return (first not in (None, {})) == (what == "has")
        if what in ("is", "isnt"):
            return (_plain(first) in names[1].split("|")) == (what == "is")
        numbers = [n.value for n in (first, *more) if isinstance(n, Number)]
        if what == "ratio":  # the first is not the second by the third
            known = len(numbers) == 3 and numbers[2] > 0
            return known and numbers[1] / numbers[2] not in (1, numbers[0])
        if what == "formula":  # the first is not YaRN's factor for the second
            known = len(numbers) == 2 and numbers[1] >= 1
            usual = 0.1 * math.log(numbers[1]) + 1 if known else 0
            return known and abs(numbers[0] - usual) > 1e-6
        if len(numbers) < 2:
            return what == "differ" and None not in (first, *more) and (
                first != more[0])  # fmt: skip
        below = numbers[0] < numbers[1]
        return below if what == "below" else numbers[0] != numbers[1]

    def _named(self, name: str, rope: dict[str, Any]) -> Any:
        of, _, key = name.partition(".")
        if of.isdigit():
            return Number(of, float(of))
        if of == "method":
            return self._method(rope)
        if of == "look":
            before = set(self.taken)  # a rule is not a call
            value = self._look(key)
            self.taken.intersection_update(before)
            return value
        return {"given": self.file, "rope": rope, "row": self.row}.get(
            of, {}).get(key)  # fmt: skip

    # --- RoPE

    def _ropes(self) -> dict[str, dict[str, Any] | None]:
        """Return the dictionary of each kind of layer; "" is for all kinds."""
        old, new = self._dict("rope_scaling"), self._dict("rope_parameters")
        made: dict[str, dict[str, Any] | None] = {}
        for kind, own in self.row.get("kinds", {}).items():
            plain = {"rope_type": "default"} if "theta" in own else {}
            one = new.get(kind, plain if new else own.get("rope", plain))
            more = old if own.get("stretched") else {}
            self.of_class.update(() if kind in new else (kind,))
            made[kind] = None if one is None else {**_dict(one), **more}
        if made:
            if new and not any(kind in new for kind in made):
                self._fault("flat", kind=self.kind)
            return made
        outer = old or new or self.row.get("rope", {})
        self.of_class.update(() if old or new else ("",))
        for kind, one in outer.items():
            if kind in self.table["layers"]:
                made[kind] = None if one is None else _dict(one)
        if made and self.row:
            self._fault("nested", kind=self.kind)
        return made or {"": outer}

    def _dict(self, name: str) -> dict[str, Any]:
        return _dict(self.given.get(name))

    def _method(self, rope: dict[str, Any]) -> str:
        named = (rope.get("rope_type"), rope.get("type"), "default")
        method = _plain(next(each for each in named if each is not None))
        method = str(self.row.get("methods", {}).get(method, method))
        spec = self.table["method"].get(method, {})
        reads = not self.row or "alpha" in self.row.get("inside", [])
        alpha = rope.get("alpha")
        fixed = reads and isinstance(alpha, Number) and alpha.value
        return str(spec.get("with_alpha", method)) if fixed else method

    def _rope(self) -> None:
        ropes = {k: rope for k, rope in self.ropes.items() if rope is not None}
        heads = {kind: self._head(kind) for kind in ropes}
        head, groups = next(iter(heads.values()), 0), self._layers()
        self._say_layout()
        checks = [self._tables(rope, kind, heads[kind])
                  for kind, rope in ropes.items()]  # fmt: skip
        self._scale(head)
        self._scores_by(head)
        if not any(self._turns(kind, bare) for kind, bare, _ in groups):
            self._fault("all_bare")
        self.groups.extend(self._group(*group) for group in groups)
        inside = [self._inside(*group, len(groups) > 1) for group in groups]
        code = [
            *self.built,
            *self.forward,
            *(c for _, of in inside for c in of),
        ]
        self._block("built", [*self._imported(code), *self.built])
        self._block("forward", self.forward)
        for title, lines in inside:
            self._block(title, lines)
        known = f"{self._told('reads')} {self._told('and').join(self.read)}."
        self._check(known if self.row else self._told("asks"))
        own = [line for lines in checks for line in lines]
        self._block("own_check", [self.table["import"], *own] if own else [])

    def _end(self, kind: str) -> str:
        """Return the suffix of the names for one kind of layer."""
        many = sum(rope is not None for rope in self.ropes.values()) > 1
        return f"_{kind.partition('_')[0]}" * many

    def _at(self) -> str:
        """Return the positions, negative if a model rotates the other way."""
        return "-positions" if "backwards" in self.row else "positions"

    def _layout(self) -> str:
        """Return "half" or "interleaved", "" if it is unknown."""
        known = str(self.row.get("layout", self.what))
        if known == "rope_interleave":
            return "interleaved" if self._look(known) is not False else "half"
        return known

    def _turn(self, end: str, *names: str) -> list[str]:
        """Return the calls that rotate these tensors."""
        known = self._layout()
        layout = f'"{known}"' if known else "layout"
        return [
            f"{x} = apply_rope({x}, cos{end}, sin{end}, {layout})"
            for x in names
        ]

    def _say_layout(self) -> None:
        layout, file = self._layout(), self.row.get("file", self.kind)
        if self.row.get("layout") == "rope_interleave":
            self._fact("layout_by_key", layout=layout)
        elif layout and not self.row:
            self._fact("layout_measured", layout=layout, kind=self.kind)
        elif layout:
            self._fact("layout", layout=layout, kind=self.kind, file=file)
        else:
            self._mind("no_layout")

    def _head(self, kind: str) -> int:
        """Return the width to rotate: a head, or its part for positions."""
        own = self.row.get("kinds", {}).get(kind, {}).get("head", "")
        of = self._told("of_kind", kind=kind) if self._end(kind) else ""
        listed = _dict(self._look("per_layer_config")) if own else {}
        for each in map(_dict, listed.values()):
            if isinstance(head := each.get("head_dim"), Number):
                self.used.add(head.value)
                source = self._told("from_key", key="per_layer_config")
                wide = int(head.value)
                self._fact("head_dim", head=wide, source=source, of=of)
                return wide
        for name in ("qk_rope_head_dim", own, "head_dim"):
            if head := self._whole(name):
                said = name if name == "qk_rope_head_dim" else "head_dim"
                self.used.add(head)
                self._fact(said, head=head, source=self._source(name), of=of)
                return head
        wide, heads = self._whole("hidden_size"), self._whole("heads")
        if not wide or not heads:
            self._fault("no_head")
            return 0
        self.used.add(wide // heads)
        self._fact("wide", head=wide // heads, wide=wide, heads=heads)
        return wide // heads

    def _turned(self, rope: dict[str, Any], head: int) -> int:
        """Return how many channels of a head are rotated."""
        own = self.row.get("share")
        name = self.row.get("share_key", "partial_rotary_factor")
        given = self._look(name if self.row else "share")
        share = rope.get("partial_rotary_factor") or given
        reads = own is not None or not self.row
        if isinstance(share, Number) and reads:
            self.used.add(share.value)
            self.taken.add("partial_rotary_factor")
            return int(head * share.value)
        if not self.row or "channels" in self.row:
            return min(self._whole("rotary_dim") or head, head)
        return int(head * own.value) if isinstance(own, Number) else head

    def _base(self, rope: dict[str, Any], kind: str) -> Number:
        own = self.row.get("kinds", {}).get(kind, {})
        name = own.get("key", self.row.get("base_key", "rope_theta"))
        name = name if self.row else "base"
        base = rope.get("rope_theta")
        self.taken.update({"rope_theta"} & {*rope})
        said = self._told("from_key", key="rope_theta")
        if base is not None and kind in self.of_class:
            said = self._source("")
        if base is None and self._look(name) is not None:
            base, said = self._look(name), self._source(name)
        elif base is None:
            base, said = own.get("theta"), self._source("")
        if not isinstance(base, Number):
            self._fault("no_base")
            return Number("", 0)
        of = self._told("of_kind", kind=kind) if self._end(kind) else ""
        self.used.add(base.value)
        self._fact("base", base=base.text, source=said, of=of)
        if said == self._source(""):
            self._mind("base_of_class")
        return base

    def _tables(self, rope: dict[str, Any], kind: str, head: int) -> list[str]:
        """Add the lines for cosines and sines; return those of the check."""
        method, end = self._method(rope), self._end(kind)
        spec = self.table["method"].get(method)
        if spec is None:
            self._fault("no_method", method=_shown(method))
            return []
        turned = head if spec.get("whole") else self._turned(rope, head)
        if head and (turned % 2 or not turned):
            self._fault("odd", turned=turned)
        base, given = self._base(rope, kind), self._given(rope, kind, method)
        self._record(kind, head, turned, {**given, "rope_theta": base})
        frequencies = now = f"frequencies{end}"
        self._import("rope", "apply_rope", "rope_frequencies", "rope_tables")
        if how := spec.get("base"):
            named = {"base": base.text, "head": head, "less": head - 2}
            text = _fill(how, alpha=_code(given.get("alpha")), **named)
            base = Number(text, 0)
            given = dict[str, Any](rope_type="default")
        self.used.add(turned)
        made = f"rope_frequencies({turned}, base={base.text})"
        self.built.append(f"{frequencies} = {made}")
        for call in spec.get("calls", []):
            if call.get("when", "rope_type") not in given:
                continue
            self._import("rope_scaling", call["name"])
            now = f"now{end}" if "now" in spec else frequencies
            if "now" in spec:
                _add(self.forward, spec["now"])
            arguments = self._arguments(call["arguments"], given, end, turned)
            opens = f"{now} = {call['name']}("
            line = _listed(opens, [frequencies, *arguments], ")")
            (self.forward if "now" in spec else self.built).append(line)
        both = f"cos{end}, sin{end}"
        self.forward.append(f"{both} = rope_tables({self._at()}, {now})")
        factor = self._factor(given)
        if factor:
            self.built.append(f"factor{end} = {factor}")
            scaled = f"factor{end} * cos{end}, factor{end} * sin{end}"
            self.forward.append(f"{both} = {scaled}")
        self._share(head, turned, given)
        if "now" in spec or not self.row:
            return []
        given["rope_theta"] = base
        return self._own_check(end, head, turned, given, factor)

    def _record(
        self, kind: str, head: int, turned: int, given: dict[str, Any]
    ) -> None:
        """Keep the rotation of one kind of layers for the description."""
        plain = {key: _number(value) for key, value in given.items()}
        if plain["rope_type"] == "ntk_alpha":
            plain["rope_type"] = "dynamic"  # its name in transformers
        whole = head + self._whole("qk_nope_head_dim") * bool(
            self._whole("qk_rope_head_dim"))  # fmt: skip
        if plain["rope_type"] == "proportional":
            turned = 2 * int(plain.get("partial_rotary_factor", 1) * head // 2)
        elif turned != whole:
            plain["partial_rotary_factor"] = turned / max(whole, 1)
        self.rotations[kind] = turned, whole, plain

    def _group(self, kind: str, bare: bool, numbers: list[int]) -> LayerKind:
        """Return what these layers do, for the description."""
        near = self.table["layers"].get(kind)
        own = kind if kind in self.rotations else ""
        turned, head, given = self.rotations.get(own, (0, 0, {}))
        if not self._turns(kind, bare):
            turned, given = 0, {}
        return LayerKind(
            kind=kind,
            layers=numbers,
            head=head,
            turned=turned,
            settings=given,
            window=self._window() if near == "sliding_window" else 0,
            chunk=self._whole(near) if near == "attention_chunk_size" else 0,
        )

    def _given(
        self, rope: dict[str, Any], kind: str, method: str
    ) -> dict[str, Any]:
        """Return the keys of a method, with values for missing ones."""
        made: dict[str, Any] = {"rope_type": method}
        longest = self._look("positions")
        self.taken.update(("rope_type", "type"))
        for key in self.table["method"][method].get("keys", "").split():
            self.taken.add(key)
            found = rope.get(key)
            if key == "original_max_position_embeddings":
                original = self._look(key)
                found = found if kind or original is None else original
                found = longest if found is None else found
            if key == "max_position_embeddings":
                found = longest
            if key == "truncate" and kind:  # next to the kinds of layers
                found = self._dict("rope_parameters").get(key)
            if found is not None:
                made[key] = found
        below = made.get("original_max_position_embeddings")
        lacks = method in ("yarn", "longrope") and "factor" not in made
        if lacks and isinstance(longest, Number) and isinstance(below, Number):
            text = f"{longest.text} / {below.text}"
            made["factor"] = Number(text, longest.value / below.value)
        for key in self.table["method"][method].get("needs", "").split():
            if key not in made:
                self._fault("needs", method=method, key=key)
        return made

    def _arguments(
        self, wanted: list[str], given: dict[str, Any], end: str, turned: int
    ) -> list[str]:
        made = []
        for each in wanted:
            argument, key, *default = each.split()
            value = given.get(key)
            if isinstance(value, list):
                if len(value) != turned // 2:
                    pairs, got = turned // 2, len(value)
                    self._fault("pairs", key=key, pairs=pairs, got=got)
                text = f"{key}{end}"
                numbers = [_code(each) for each in value]
                self.built.append(_listed(f"{text} = [", numbers, "]"))
                self.built.append(f"{text} = torch.tensor({text}).double()")
            else:
                text = _code(value) if key in given else "".join(default)
            made.append(f"{argument}={text}")
        return made

    def _factor(self, given: dict[str, Any]) -> str:
        """Return the factor of cosines and sines, "" if there is none."""
        method, factor = given["rope_type"], given.get("factor")
        if "attention_factor" in given:
            return _code(given["attention_factor"])
        scales = [given.get(key) for key in ("mscale", "mscale_all_dim")]
        if not isinstance(factor, Number) or factor.value < 1:
            return ""
        if method == "longrope":
            original = _code(given.get("original_max_position_embeddings"))
            self._import("rope_scaling", "longrope_attention_factor")
            return f"longrope_attention_factor({factor.text}, {original})"
        if method != "yarn":
            return ""
        if all(isinstance(each, Number) and each.value for each in scales):
            a, b = (f"(0.1 * {_code(each)} * math.log({factor.text}) + 1)"
                    for each in scales)  # fmt: skip
            return f"{a} / {b}"
        self._import("rope_scaling", "yarn_attention_factor")
        return f"yarn_attention_factor({factor.text})"

    def _share(self, head: int, turned: int, given: dict[str, Any]) -> None:
        """Note how many channels rotate, as check_positions.py prints it."""
        whole = head + self._whole("qk_nope_head_dim") * bool(
            self._whole("qk_rope_head_dim"))  # fmt: skip
        share = given.get("partial_rotary_factor")
        if isinstance(share, Number):  # proportional
            turned = 2 * int(share.value * head // 2)
        if turned != whole:
            self._fact("share", turned=turned, head=whole)
        self.used.add(turned)
        layout = self.row.get("shows", self._layout())
        _add(self.read, self._told("reading", layout=layout, turned=turned,
                                   head=whole))  # fmt: skip

    def _scale(self, head: int) -> None:
        """Add YaRN's factor of the scores, if it has one, as in DeepSeek."""
        rope = self.ropes.get("") or {}
        scale, factor = rope.get("mscale_all_dim"), rope.get("factor")
        parts = self.row.get("mscale") or (
            not self.row and self._whole("qk_rope_head_dim")
        )
        yarn = self._method(rope) == "yarn" and parts
        if yarn and isinstance(scale, Number) and isinstance(factor, Number):
            whole = head + self._whole("qk_nope_head_dim")
            more = f"(0.1 * {scale.text} * math.log({factor.text}) + 1) ** 2"
            self.built.append(f"scale = {whole} ** -0.5 * {more}")
            self._fact("scale")

    def _scores_by(self, head: int) -> None:
        """Note the factor of the scores, and where they are capped."""
        how, cap = self.row.get("scale"), self._look("attn_logit_softcapping")
        keys = ("query_pre_attn_scalar", "attention_multiplier")
        known = [key for key in keys if self._look(key) is not None]
        how = next(iter(known), how) if not self.row else how
        value = self._look(how) if isinstance(how, str) else how
        if isinstance(value, Number):
            root = how == keys[0]
            by = f"{value.text} ** -0.5" if root else value.text
            same = root and value.value == head
            key = str(how) if isinstance(how, str) else self._told("the_code")
            self._fact("scores_same" if same else "scores_by", by=by,
                       key=key)  # fmt: skip
            self.scores["by"] = "" if same else by
        if isinstance(cap, Number):
            self.scores["cap"] = cap.text
            self._fact("capped", cap=cap.text, key="attn_logit_softcapping")

    # --- layers

    def _layers(self) -> list[tuple[str, bool, list[int]]]:
        """Return layers that are alike: kind, no rotation, their numbers."""
        many = self._whole("layers")
        kinds = self._kinds(many)
        bare = self._bare(many, kinds)
        made: dict[tuple[str, bool], list[int]] = {}
        for n, each in enumerate(zip(kinds, bare, strict=False)):
            made.setdefault(each, []).append(n)
        if not many:
            made["full_attention", False] = []
        return [(*each, numbers) for each, numbers in made.items()]

    def _window(self) -> int:
        """Return how many keys a token sees, itself included; 0 for all."""
        gate = self._look("use_sliding_window")
        own = "use_sliding_window" in self.row.get("defaults", {})
        if gate is not True and (own or (gate is False and not self.row)):
            return 0
        key, _, more = self.row.get("window_size", "").partition(" ")
        if key and self._whole(key):
            return self._whole(key) + int(more)
        window = self._whole(self.row.get("window_key", "sliding_window"))
        return window // 2 + 1 if "window_key" in self.row else window

    def _kinds(self, many: int) -> list[str]:
        crossed = self._look("cross_attention_layers")
        crossed = self.row.get("crossed", []) if crossed is None else crossed
        listed = (
            [_plain(n) for n in crossed] if isinstance(crossed, list) else []
        )
        return ["cross_attention" if str(n) in listed else kind
                for n, kind in enumerate(self._own_kinds(many))]  # fmt: skip

    def _own_kinds(self, many: int) -> list[str]:
        given = self._look("layer_types")
        how = self.row.get("window", "" if self.row else "layer_types")
        if self._is_lifted() and not isinstance(given, list):
            return ["full_attention"] * many
        if how not in ("", "all") and isinstance(given, list):
            if len(given) != many:
                self._fault("layer_types", got=len(given), many=many)
            return [_plain(each) for each in given]
        other = "sliding_attention" if self._window() else "full_attention"
        if how == "layer_types" and self._window():
            say = self._fault if self.row else self._mind
            key = self.row.get("window_key", "sliding_window")
            say("no_pattern", key=key, kind=self.kind)
        if how in ("", "layer_types", "all"):
            return [other if how == "all" else "full_attention"] * many
        if how == "beyond":
            first = self._whole("max_window_layers")
            return ["full_attention"] * min(first, many) + [other] * max(
                many - first, 0)  # fmt: skip
        if how == "turning":
            bare = self._bare(many, [])
            return ["full_attention" if each else "chunked_attention"
                    for each in bare]  # fmt: skip
        key, n, at, kind = how.split()
        value = self._look(key)
        if value is not None and not isinstance(value, Number):
            whole = self._told("a_number")
            self._fault("value", key=key, expected=whole, got=_shown(value))
        n = self._whole(key) or int(n)
        full = 0 if at == "first" else n - 1
        more = {"last_and_end": many - 1, "start_and_last": 0}.get(at)
        return ["full_attention" if i % n == full or i == more else kind
                for i in range(many)]  # fmt: skip

    def _is_lifted(self) -> bool:
        """Return whether all layers rotate because there is no window."""
        return "lifted" in self.row and not self._window()

    def _turns(self, kind: str, bare: bool) -> bool:
        return not bare and self.table["layers"].get(kind) != "none"

    def _bare(self, many: int, kinds: list[str]) -> list[bool]:
        """Return for each layer whether it has no rotation."""
        how = self.row.get("bare", "" if self.row else "no_rope_layers")
        if how != "no_rope_layers":
            nothing = [k for k, rope in self.ropes.items() if rope is None]
            how = "" if self._is_lifted() else how
            return [kind == how or kind in nothing for kind in kinds]
        turns = self._look("no_rope_layers")
        self.bare_by["key"] = "no_rope_layers"
        if isinstance(turns, list) and turns:
            if len(turns) != many:
                self._fault("no_rope_layers", got=len(turns), many=many)
            return [_plain(each) == "0" for each in turns]
        n = self._whole("no_rope_layer_interval")
        self.bare_by["key"] = self._key("no_rope_layer_interval")
        return [n > 0 and (i + 1) % n == 0 for i in range(many)]

    def _inside(
        self, kind: str, bare: bool, numbers: list[int], many: bool
    ) -> tuple[str, list[str]]:
        """Return the title and the lines for layers of one kind."""
        where = self._told("each_layer")
        if part := self._whole("qk_rope_head_dim"):
            where = self._told("each_part", part=part)
        if many:
            layers = spans(numbers)
            where = self._told("some_layers", layers=layers, kind=kind)
        near = self.table["layers"].get(kind)
        if near is None:
            self._fault("no_kind", kind=_shown(kind))
        lines = self._temperature(bare)
        end = self._end(kind if kind in self.ropes else "")
        if self._turns(kind, bare):
            lines += self._turn(end, "q", "k")
        elif many and near is not None:
            key = self.bare_by["key"] if bare else ""
            by = self._told("by_key", key=key) if key else ""
            self._fact("still", layers=spans(numbers), kind=kind, by=by)
        lines += self._seen(kind, near or "")
        return where, lines

    def _temperature(self, bare: bool) -> list[str]:
        how = self.table["temperature"].get(self.row.get("temperature"), {})
        rope = self.ropes.get("") or {}
        off = "flag" in how and self._look(how["flag"]) in (None, False)
        if not how or off or bare < how["bare"]:
            return []
        length, strength = (rope.get(how[key]) or self._look(how[key])
                            for key in ("length", "strength"))  # fmt: skip
        if not isinstance(length, Number) or strength is None:
            return []
        self._import("temperature", "log_temperature", "scale_queries")
        given = f"{int(length.value)}, {_code(strength)}, first={how['first']}"
        return [
            f"sharper = log_temperature(positions, {given}, steps=True)",
            "q = scale_queries(q, sharper)",
        ]

    def _seen(self, kind: str, near: str) -> list[str]:
        """Return the lines of the mask, the sinks and the attention."""
        window = self._window() if near == "sliding_window" else 0
        chunk = self._whole(near) if near == "attention_chunk_size" else 0
        if near not in ("", "none") and not window and not chunk:
            self._fault("no_window", kind=kind, key=near)
        both, sinks = "window_key" in self.row, self.row.get("sinks")
        if not (window or chunk or sinks) or near == "none":
            return []
        of = "chunks" if chunk else "documents"
        arguments = ["positions", "positions", of, of]
        arguments += ["causal=False"] * both
        arguments += [f"window={window}"] * (window > 0)
        self._import("decoding", "attention_mask")
        if window:
            key = self.row.get("window_key", "sliding_window")
            size = self.row.get("window_size", "").partition(" ")[0]
            key = size if self._whole(size) else key
            self.used.update((window, self._whole(key)))
            source = self._source(key)
            self._fact("window", window=window, key=key, source=source)
        lines = [f"chunks = positions // {chunk}"] * (chunk > 0)
        lines += [_listed("mask = attention_mask(", arguments, ")")]
        if not chunk:
            _add(self.forward, self.table["documents"])
        by, cap = self.scores["by"], self.scores["cap"]
        how = "ends" if "ends" in self.row else "capped" if cap else ""
        how = how or ("sinks" if sinks else "")
        if not how:
            self._import("decoding", "attend")
            given = ["q", "k", "v", "mask"]
            given += [f"scale={by}"] * bool(by)
            return [*lines, _listed("output = attend(", given, ")")]
        if how == "sinks":
            self._import("sinks", "sink_softmax")
        scale = by or "q.shape[-1] ** -0.5"
        more = _fill(self.table[how], scale=scale, cap=cap)
        return [*lines, *more.strip().split("\n")]

    # --- the end of the answer

    def _check(self, expect: str) -> None:
        self.blocks.append(Part("title", self._told("right")))
        self.blocks.append(Part("shell", self._told("command")))
        self.blocks.append(Part("text", expect))

    def _own_check(
        self,
        end: str,
        head: int,
        turned: int,
        given: dict[str, Any],
        factor: str,
    ) -> list[str]:
        """Return lines that check this rotation with check_positions.py."""
        layout = f'"{self._layout()}"'
        scaled = f"    cos, sin = factor{end} * cos, factor{end} * sin"
        if turned != head:
            given["partial_rotary_factor"] = Number(f"{turned} / {head}", 0)
        said = [f'"{key}": {_code(value)}' for key, value in given.items()]
        asked = [f"rotate{end}", str(head), "settings=settings"]
        asked += [f"layout={layout}"]
        return [
            *("", "", f"def rotate{end}(x, positions):"),
            f"    cos, sin = rope_tables({self._at()}, frequencies{end})",
            *[scaled] * bool(factor),
            *(f"    return apply_rope(x, cos, sin, {layout})", "", ""),
            _listed("settings = {", said, "}"),
            _listed("findings = check_rotation(", asked, ")"),
            "assert_positions(findings)",
        ]

    def _template(self, family: str) -> None:
        """Add the calls of a family that differ only in a few numbers."""
        spec = self.table["family"][family]
        values: dict[str, Any] = {}
        for name in spec["needs"].split():
            values[name] = self._whole(name)
            if not values[name]:
                self._fault("needs", method=family, key=name)
            key, source = self._key(name), self._source(name)
            self._fact("number", key=key, value=values[name], source=source)
        values |= self.row.get("own", {})
        for block in ("built", "forward", "each_layer"):
            lines = _fill(spec.get(block, ""), **values).strip()
            self._block(block, lines.split("\n"))
        self._check(self._told(f"asks_{family}"))

    def _import(self, file: str, *names: str) -> None:
        for name in names:
            _add(self.imports.setdefault(file, []), name)

    def _imported(self, code: list[str]) -> list[str]:
        """Return the lines that import what is called, and an empty one."""
        maths, torch = (any(f"{name}." in line for line in code)
                        for name in ("math", "torch"))  # fmt: skip
        lines = ["import math"] * maths + [""] * (maths and torch)
        lines += ["import torch"] * torch + [""] * (maths or torch)
        for file in sorted(self.imports):
            names = sorted(self.imports[file])
            lines.append(f"from {file} import {', '.join(names)}")
        return [*lines, ""]


def _named(key: str, value: Any) -> str:
    """Return a key, with the keys inside it if it is a dictionary."""
    inner = [_shown(each) for each in value] if isinstance(value, dict) else []
    named = ", ".join([_shown(key), *inner[:9]]).replace('"', "")
    return named.replace(", ", " (", 1) + ")" if inner else named


def _code_word(text: str) -> str:
    """Return a value that a switch needs, as JSON spells it."""
    return text if text in ("true", "false") else f'"{text}"'


def _fits(value: Any, check: dict[str, Any]) -> bool:
    """Return whether a value is of the kind in a row of the table."""
    if check["is"] == "number":
        if not isinstance(value, Number):
            return False
        whole = not check.get("whole") or value.value == value.value // 1
        return whole and check["least"] <= value.value <= check["most"]
    if check["is"] in ("numbers", "texts"):
        one = {**check, "is": check["is"][:-1]}
        return isinstance(value, list) and all(_fits(v, one) for v in value)
    kinds = {"text": str, "dictionary": dict, "switch": bool, "any": object}
    return isinstance(value, kinds[check["is"]])


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> str:
    """Return a string itself, and any other value as it is spelled."""
    return value if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    """Return a JSON value in short, without a terminal's control characters."""
    if isinstance(value, (list, dict)):
        brackets = "[]" if isinstance(value, list) else "{}"
        return brackets[0] + "…" * bool(value) + brackets[1]
    text = value.text if isinstance(value, Number) else json.dumps(
        value, ensure_ascii=False)  # fmt: skip
    text = re.sub(UNSEEN, lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _number(value: Any) -> Any:
    """Return a value without the spelling of its numbers."""
    if isinstance(value, list):
        return [_number(each) for each in value]
    return value.value if isinstance(value, Number) else value


def _code(value: Any) -> str:
    """Return a JSON value in Python."""
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    if isinstance(value, bool):
        return str(value)
    return value.text if isinstance(value, Number) else f'"{value}"'


def _listed(opens: str, items: list[str], closes: str) -> str:
    """Return a call or a list in one line, or in several if it is too long."""
    line = f"{opens}{', '.join(items)}{closes}"
    if len(line) <= WIDE:
        return line
    return f"{opens}\n" + "".join(f"    {each},\n" for each in items) + closes


def spans(numbers: list[int]) -> str:
    """Return increasing numbers as ranges.

    Args:
        numbers: The numbers.

    Returns:
        The ranges, such as "0 to 4, 6, 8 to 9".
    """
    made: list[list[int]] = []
    for n in numbers:
        if made and made[-1][1] == n - 1:
            made[-1][1] = n
        else:
            made.append([n, n])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in made)


def _fill(words: str, **values: object) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda name: str(values[name[1]]), words)


def _add(to: list[str], words: str) -> None:
    if words not in to:
        to.append(words)


def _text(file: Path) -> str:
    """Return the text of a regular file; a pipe or a device may have no end."""
    if file.exists() and not file.is_file():
        raise OSError("it must be a regular file; save its text to one")
    if (size := file.stat().st_size) > 4 * LIMIT:
        raise OSError(f"it must have at most {4 * LIMIT} bytes, got {size}")
    return file.read_bytes().decode("utf-8-sig")


def _print_calls(text: str, code: int) -> int:
    """Print the text and return the exit code, or another if printing fails."""
    try:
        if sys.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as error:
        # Python flushes stdout once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(f"read_config.py: cannot write: {error.strerror}\n")
        return 2
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run the shell command.

    Args:
        arguments: Command-line arguments; None uses those of the process.

    Returns:
        The exit code: 0 if there are calls, 1 if there are none except
        comments, 2 if the file cannot be read or the answer cannot be printed,
        141 if the reader of the output has stopped reading.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", metavar="config.json")
    file = Path(parser.parse_args(arguments).file)
    try:
        text = _text(file)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"read_config.py: {file} cannot be read: {error}\n")
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    parts = read_config(text)
    code = int(not any(part.kind == "code" for part in parts))
    return _print_calls(format_report(parts), code)


TABLE = r'''
# What a config.json may contain, the valid values, and what contradicts what.
# A rule's case is one of docs/dialects.toml: what libraries made of it.

parts = ["text_config", "llm_config", "language_config", "thinker_config"]
signs = ["rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "share"]

# Keys about positions are those of [[value]] that are no sizes, and those whose
# name has one of these in it and that are not among the others.
near = ["rope", "rotary", "theta", "yarn", "alibi", "relative", "mscale",
  "window", "layer_type", "pos_emb", "position_emb", "position_enc",
  "position_bias", "head_dim", "ntk", "logn", "chunk", "nope", "softcap",
  "layer_pattern", "override_pattern", "attn_type", "kv_channels", "compress"]
sizes = """
hidden_size n_embd d_model dim num_attention_heads n_head n_heads num_heads
max_position_embeddings n_positions max_sequence_length seq_length n_ctx
max_seq_len num_hidden_layers n_layer n_layers num_layers model_type
architectures"""
others = """
mlp_layer_types max_relative_positions mamba_chunk_size chunk_size_feed_forward
final_logit_softcapping layer_type type"""
# Dictionaries with these in their names are not about the positions of text.
elsewhere = """vision|visual|image|audio|speech|video|quantiz|encoder|^rope_\
|linear_attn"""
# Every class with RoPE reads these, but for those that its row calls unread.
usual = """rope_theta rope_scaling rope_parameters head_dim
  original_max_position_embeddings"""
# What a guess is made of, where the class is unknown.
guessed = """
rope_theta rotary_emb_base rope_scaling rope_parameters head_dim kv_channels
qk_rope_head_dim qk_nope_head_dim partial_rotary_factor rotary_pct
rotary_emb_fraction rotary_dim layer_types sliding_window use_sliding_window
no_rope_layers no_rope_layer_interval nope_layer_interval
original_max_position_embeddings attention_chunk_size query_pre_attn_scalar
attention_multiplier attn_logit_softcapping"""
# Keys of a dictionary of RoPE.
inside = """
rope_type type rope_theta partial_rotary_factor factor
original_max_position_embeddings max_position_embeddings beta_fast beta_slow
truncate attention_factor mscale mscale_all_dim low_freq_factor high_freq_factor
short_factor long_factor mrope_section mrope_interleaved"""
# Values with which a key asks for nothing; those of some keys are others.
nothing = "null|false||[]|{}"
# Keys that are named where they are not read, and that leave calls as they are.
mild = """
learned_pos_emb position_embedding_type max_window_layers rotary
mrope_interleaved finetuned
v_head_dim qk_head_dim index_head_dim mamba_head_dim linear_key_head_dim
linear_value_head_dim chunk_size"""

sinks = """
scores = q @ k.mT * {scale}  # k and v with as many heads as q
scores = scores.masked_fill(~mask[..., None, :, :], -torch.inf)
output = sink_softmax(scores, sinks) @ v  # sinks: one weight per head"""
capped = """
scores = q @ k.mT * {scale}  # k and v with as many heads as q
scores = {cap} * (scores / {cap}).tanh()
scores = scores.masked_fill(~mask[..., None, :, :], -torch.inf)
output = scores.softmax(-1) @ v"""
ends = """
# then your own attention with this mask; its sinks and factors are not
# included here"""

documents = "documents = torch.zeros_like(positions)  # each token's document"
import = "from check_positions import assert_positions, check_rotation"

[neutral]
"attn_config.alibi" = "true|null"
"attn_config.alibi_bias_max" = "8|null"
"attn_config.attn_type" = "multihead_attention|null"
position_embedding_type = "absolute|rope|rotary|rope_gptj|null|"
pos_emb = "rotary|rope|null"
alibi = "false|null"
partial_rotary_factor = "1|1.0|null"
rotary_pct = "1|1.0|null"
rotary_emb_fraction = "1|1.0|null"
rotary = "true|null"

# The same, if all values of a list are such.
[mild_if]
attn_type_list = "1"
layer_types = "full_attention"
no_rope_layers = "1"

# Keys and values that say that nothing rotates, whatever the class.
[[off]]
keys = "position_embedding_type position_encoding_type pos_emb_type"
values = "nope none no no_pos"
on = "rope rotary"
says = "says_nothing"
[[off]]
keys = "position_embedding_type position_encoding_type pos_emb_type"
values = "alibi"
says = "says_alibi"
[[off]]
keys = "position_embedding_type"
values = "relative_key relative_key_query"
says = "says_relative"
[[off]]
keys = "mla_use_nope use_nope"
values = "true"
on = "false"
says = "says_nothing"
[[off]]
keys = "use_mem_rope use_rope use_rotary use_rotary_embeddings rotary"
values = "false"
on = "true"
says = "says_nothing"
[[off]]
keys = "alibi use_alibi attn_config.alibi"
values = "true"
says = "says_alibi"
[[off]]
keys = "rope_theta rotary_emb_base"
values = "null"
says = "says_nothing"

[aliases]
hidden_size = ["hidden_size", "n_embd", "d_model", "dim"]
heads = ["num_attention_heads", "n_head", "n_heads", "num_heads"]
layers = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]
positions = ["max_position_embeddings", "n_positions", "max_sequence_length",
  "seq_length", "n_ctx", "max_seq_len"]
base = ["rope_theta", "rotary_emb_base"]
share = ["partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"]
head_dim = ["head_dim", "kv_channels"]
no_rope_layer_interval = ["no_rope_layer_interval", "nope_layer_interval"]

[layers]
full_attention = ""
attention = ""
hybrid = ""
indexed_attention = ""
sliding_attention = "sliding_window"
chunked_attention = "attention_chunk_size"
cross_attention = "none"
linear_attention = "none"
conv = "none"
mamba = "none"

[method.default]
[method.linear]
keys = "factor"
needs = "factor"
[[method.linear.calls]]
name = "position_interpolation"
arguments = ["factor factor"]

[method.dynamic]
with_alpha = "ntk_alpha"
now = "length = int(positions.max()) + 1"
keys = "factor max_position_embeddings"
needs = "factor max_position_embeddings"
[[method.dynamic.calls]]
name = "dynamic_ntk"
arguments = ["factor factor", "original_length max_position_embeddings",
  "length - length"]

[method.ntk_alpha]
base = "{base} * {alpha} ** ({head} / {less})"
keys = "alpha"
needs = "alpha"

[method.yarn]
keys = """factor original_max_position_embeddings beta_fast beta_slow truncate
  attention_factor mscale mscale_all_dim"""
needs = "factor original_max_position_embeddings"
[[method.yarn.calls]]
name = "yarn"
arguments = ["factor factor",
  "original_length original_max_position_embeddings",
  "beta_fast beta_fast 32.0", "beta_slow beta_slow 1.0",
  "truncate truncate True"]

[method.llama3]
keys = """factor original_max_position_embeddings
  low_freq_factor high_freq_factor"""
needs = """factor original_max_position_embeddings
  low_freq_factor high_freq_factor"""
[[method.llama3.calls]]
name = "llama3"
arguments = ["factor factor",
  "original_length original_max_position_embeddings",
  "low low_freq_factor", "high high_freq_factor"]

[method.longrope]
now = "length = int(positions.max()) + 1"
keys = """factor original_max_position_embeddings short_factor long_factor
  attention_factor"""
needs = "original_max_position_embeddings short_factor long_factor"
[[method.longrope.calls]]
name = "longrope"
arguments = ["short_factors short_factor", "long_factors long_factor",
  "original_length original_max_position_embeddings", "length - length"]

[method.proportional]
whole = true
keys = "factor partial_rotary_factor"
[[method.proportional.calls]]
name = "proportional"
arguments = ["share partial_rotary_factor 1.0"]
[[method.proportional.calls]]
name = "position_interpolation"
when = "factor"
arguments = ["factor factor"]

[temperature.llama4]
bare = true
flag = "attn_temperature_tuning"
length = "floor_scale"
strength = "attn_scale"
first = 1
[temperature.ministral3]
bare = false
length = "original_max_position_embeddings"
strength = "llama_4_scaling_beta"
first = 0

[family.alibi]
needs = "heads"
built = """
from alibi import alibi_bias, alibi_slopes

slopes = alibi_slopes({heads})"""
forward = "bias = alibi_bias(positions, positions, slopes)"
each_layer = """
from torch.nn.functional import scaled_dot_product_attention

# the bias also masks later keys
output = scaled_dot_product_attention(q, k, v, attn_mask=bias)"""

[family.t5]
needs = """heads relative_attention_num_buckets
  relative_attention_max_distance"""
built = """
from t5_bias import T5Bias

buckets = {relative_attention_num_buckets}
farthest = {relative_attention_max_distance}
encoder = T5Bias({heads}, buckets, farthest, bidirectional=True)
decoder = T5Bias({heads}, buckets, farthest, bidirectional=False)"""
forward = """
# once for all layers of a stack; cross-attention has none
bias = encoder(positions, positions)"""
each_layer = """
from torch.nn.functional import scaled_dot_product_attention

# unscaled scores; the decoder's bias does not mask later keys: mask them
output = scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)"""

[family.learned]
needs = "positions hidden_size"
built = """
from learned import AddLearned

add = AddLearned({positions}{more}, {hidden_size})  # weights: {table}"""
forward = "x = add(x, positions{offset})"

[[value]]
is = "number"
whole = true
least = 1
most = 1e9
says = "an integer from 1 to 1e9"
keys = """
head_dim global_head_dim kv_channels hidden_size n_embd d_model dim
num_attention_heads n_head n_heads num_heads max_position_embeddings n_positions
max_sequence_length seq_length n_ctx max_seq_len
original_max_position_embeddings qk_rope_head_dim qk_nope_head_dim
attention_chunk_size local_attention rotary_dim relative_attention_num_buckets
relative_attention_max_distance no_rope_layer_interval nope_layer_interval
global_attn_every_n_layers full_attention_interval floor_scale"""
[[value]]
is = "number"
whole = true
least = 0
most = 1e9
says = "an integer from 0 to 1e9"
keys = "sliding_window max_window_layers"
[[value]]
is = "number"
whole = true
least = 1
most = 2000
says = "an integer from 1 to 2000"
keys = "num_hidden_layers n_layer n_layers num_layers"
[[value]]
is = "number"
least = 1.000001
most = 1e15
says = "a number above 1, at most 1e15"
keys = """rope_theta rotary_emb_base rope_local_base_freq global_rope_theta
local_rope_theta swa_rope_theta compress_rope_theta"""
[[value]]
is = "number"
least = 1
most = 1e9
says = "a number from 1 to 1e9"
keys = "factor"
[[value]]
is = "number"
least = 1e-9
most = 1
says = "a number above 0, at most 1"
keys = "partial_rotary_factor rotary_pct rotary_emb_fraction"
[[value]]
is = "number"
least = 1e-9
most = 1e9
says = "a number above 0, at most 1e9"
keys = """low_freq_factor high_freq_factor beta_fast beta_slow attention_factor
attn_scale llama_4_scaling_beta alpha query_pre_attn_scalar attention_multiplier
attn_logit_softcapping"""
[[value]]
is = "number"
least = 0
most = 1e9
says = "a number from 0 to 1e9"
keys = "mscale mscale_all_dim"
[[value]]
is = "numbers"
least = 1e-9
most = 1e9
says = "a list of numbers above 0, each at most 1e9"
keys = "short_factor long_factor mrope_section"
[[value]]
is = "numbers"
least = 0
most = 1
says = "a list of zeros and ones"
keys = "no_rope_layers"
[[value]]
is = "numbers"
whole = true
least = 0
most = 2000
says = "a list of layer indices, each at most 2000"
keys = "cross_attention_layers"
[[value]]
is = "texts"
says = "a list of strings"
keys = "layer_types"
[[value]]
is = "text"
says = "a string"
keys = "model_type rope_type type"
[[value]]
is = "dictionary"
says = "an object"
keys = "rope_scaling rope_parameters per_layer_config"
[[value]]
is = "switch"
says = "true or false"
keys = "truncate use_sliding_window rope_interleave mrope_interleaved alibi"
[[value]]
is = "any"
says = "anything"
keys = """
sliding_window_pattern _sliding_window_pattern attn_temperature_tuning
full_attention sliding_attention chunked_attention linear_attention conv mamba
position_embedding_type use_mem_rope mla_use_nope architectures"""

[[rule]]
says = """\
rope_scaling and rope_parameters are both given. transformers 5.23.0 reads \
rope_scaling and ignores rope_parameters."""
when = [
  "has given.rope_scaling", "has given.rope_parameters", "lacks row.kinds"]
[[rule]]
says = """\
rope_type and type differ. Results for a Llama config written this way: \
{found}."""
when = ["lacks row.kinds", "differ rope.rope_type rope.type"]
case = "two types that differ"
[[rule]]
says = """\
rope_theta is given inside the RoPE dictionary and at the top level, with two \
values. transformers 5.23.0 reads the one inside."""
when = ["apart rope_theta", "lacks row.unread"]
[[rule]]
says = """\
original_max_position_embeddings is given inside the RoPE dictionary and at \
the top level, with two values. transformers 5.23.0 reads the one at the top \
level."""
when = ["apart original_max_position_embeddings", "lacks row.kinds"]
[[rule]]
says = """\
The base is given only in rope_parameters. Results for a Llama config written \
this way: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method default"]
case = "base inside, as transformers 5 writes it"
[[rule]]
says = """\
The base and the scaling are given only in rope_parameters. Results for a \
Llama config written this way: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method linear"]
case = "linear, new dictionary"
[[rule]]
says = """\
The base and the scaling are given only in rope_parameters. Results for a \
Llama config written this way: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method yarn"]
case = "YaRN, new dictionary"
[[rule]]
says = """\
The base and the scaling are given only in rope_parameters. Results for a \
Llama config written this way: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method llama3"]
case = "Llama 3.1, new dictionary"
[[rule]]
says = """\
The scaling is given only in rope_parameters. Results for a Llama config \
written this way: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "has given.rope_theta", "is method linear"]
case = "linear, new dictionary, base outside"
[[rule]]
says = """\
The original length is given outside the RoPE dictionary. Results for a Llama \
config written this way: {found}."""
when = [
  "is method yarn", "has given.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "YaRN, original length outside"
[[rule]]
says = """\
The original length is missing, so max_position_embeddings is used, which may \
be the length after scaling. Results for a Llama config written this way: \
{found}."""
when = [
  "is method yarn", "lacks look.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "YaRN, no original length"
[[rule]]
says = """\
The original length is missing, so max_position_embeddings is used, which may \
be the length after scaling. Results for a Llama config written this way: \
{found}."""
when = [
  "is method llama3", "lacks look.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "Llama 3.1, no original length"
[[rule]]
says = """\
beta_fast is not 32, the default. Results for a Llama config written this way: \
{found}."""
when = ["is method yarn", "has rope.beta_fast", "isnt rope.beta_fast 32|32.0"]
case = "YaRN, `beta_fast` 8"
[[rule]]
says = """\
truncate is false. Results for a Llama config written this way: {found}."""
when = ["is method yarn", "is rope.truncate false"]
case = "YaRN, `truncate` false"
[[rule]]
says = """\
truncate is inside the dictionary of one kind of layer. transformers 5.23.0 \
reads it only next to these dictionaries, so it has no effect here."""
when = ["is method yarn", "has rope.truncate", "has row.kinds"]
[[rule]]
says = """\
attention_factor differs from the value that YaRN computes from factor. \
Results for a Llama config written this way: {found}."""
when = [
  "is method yarn", "lacks look.qk_rope_head_dim",
  "formula rope.attention_factor rope.factor"]
case = "YaRN, `attention_factor` 1"
[[rule]]
says = """\
mscale and mscale_all_dim are given. Results for a Llama config written this \
way: {found}."""
when = [
  "is method yarn", "has rope.mscale", "has rope.mscale_all_dim",
  "lacks look.qk_rope_head_dim"]
case = "YaRN, `mscale` and `mscale_all_dim` 1"
[[rule]]
says = """\
The code of {kind} rotates whole heads and does not read \
partial_rotary_factor. Results for a Llama config written this way: {found}."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "is method default", "has given.partial_rotary_factor"]
case = "half of each head, outside"
[[rule]]
says = """\
The code of {kind} rotates whole heads and does not read \
partial_rotary_factor. Results for a Llama config written this way: {found}."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "is method default", "lacks row.kinds", "has rope.partial_rotary_factor"]
case = "half of each head, inside"
[[rule]]
says = """\
The code of {kind} rotates whole heads, but with scaling its tables cover only \
a part of them, so that it raises an error with partial_rotary_factor."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "isnt method default|proportional", "has rope.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The code of {kind} rotates whole heads, but with scaling its tables cover only \
a part of them, so that it raises an error with partial_rotary_factor."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "isnt method default|proportional", "has given.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The {kind} class restricts its tables to the rotated channels if the \
dictionary is rope_parameters. With rope_scaling they are too wide, and it \
raises an error."""
when = [
  "is given.model_type mistral4", "has given.rope_scaling",
  "lacks rope.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The {kind} class makes tables for whole heads if the type is default, but only \
a part of each head is rotated, so it raises an error."""
when = ["is given.model_type mistral4", "is method default"]
fault = true
[[rule]]
says = """\
The code of {kind} reads llama_4_scaling_beta from the dictionary, and raises \
an error if it is missing there."""
when = ["is row.temperature ministral3", "lacks rope.llama_4_scaling_beta"]
[[rule]]
says = """\
The code of {kind} reads original_max_position_embeddings from the dictionary, \
and raises an error if it is missing there."""
when = [
  "is row.temperature ministral3",
  "lacks rope.original_max_position_embeddings"]
[[rule]]
says = """\
The {kind} class first sets rope_type to default and does not read type in \
rope_scaling, so the frequencies are not scaled."""
when = ["has row.kinds", "differ rope.rope_type rope.type"]
[[rule]]
says = """\
A factor without a type has no effect. Results for a Llama config written this \
way: {found}."""
when = ["has rope.factor", "lacks rope.rope_type", "lacks rope.type"]
case = "no type, only a factor"
[[rule]]
says = "factor is not used because the type is default."
when = ["has rope.factor", "is method default", "is rope.rope_type default"]
[[rule]]
says = """\
With dynamic, the frequencies depend on the sequence length: cache keys before \
they are rotated, or set length once for the whole generation. Results for a \
Llama config written this way: {found}."""
when = ["is method dynamic"]
case = "dynamic, a text of twice the length"
[[rule]]
says = """\
With longrope, the sequence length decides which factors apply: cache keys \
before they are rotated, or set length once for the whole generation. Keys \
rotated with the short factors do not match queries rotated with the long \
ones."""
when = ["is method longrope"]
[[rule]]
says = """\
alpha fixes one base for all lengths in the code of {kind}; a library that \
reads dynamic without alpha uses another base."""
when = ["is method ntk_alpha", "has row.layout"]
[[rule]]
says = """\
transformers 5.23.0 raises KeyError here: with type su, the original length \
must be inside the RoPE dictionary."""
when = [
  "has row.methods", "is rope.type su",
  "lacks rope.original_max_position_embeddings"]
[[rule]]
says = """\
The type mrope stands for M-RoPE with sections. Results for a Llama config \
written this way: {found}."""
when = ["is rope.type mrope"]
case = "type `mrope`, with sections"
[[rule]]
says = """\
linear requires factor: add it to the file. Results for a Llama config written \
this way: {found}."""
when = ["is method linear", "lacks rope.factor"]
case = "a type, no factor"
fault = true
[[rule]]
says = """\
llama3 requires low_freq_factor and high_freq_factor: add them to the file. \
Results for a Llama config written this way: {found}."""
when = [
  "is method llama3", "lacks rope.low_freq_factor",
  "lacks rope.high_freq_factor"]
case = "Llama 3.1, both turns left out"
fault = true
[[rule]]
says = """\
yarn is given without factor. transformers 5.23.0 rejects this unless factor \
is null; the ratio of the maximum length to the original length is used \
instead."""
when = ["is method yarn", "lacks rope.factor"]
[[rule]]
says = """\
factor is not the ratio of max_position_embeddings to the original length. \
transformers 5.23.0 uses factor and warns."""
when = [
  "is method yarn",
  "ratio rope.factor look.positions rope.original_max_position_embeddings"]
[[rule]]
says = "max_position_embeddings is smaller than the original length."
when = [
  "is method yarn|llama3|longrope",
  "below look.positions rope.original_max_position_embeddings"]
[[rule]]
says = "low_freq_factor must be at most high_freq_factor."
when = ["is method llama3", "below rope.high_freq_factor rope.low_freq_factor"]
fault = true
[[rule]]
says = "beta_slow must be at most beta_fast."
when = ["is method yarn", "below rope.beta_fast rope.beta_slow"]
fault = true
[[rule]]
says = "beta_slow must be at most beta_fast, which is 32 by default."
when = ["is method yarn", "lacks rope.beta_fast", "below 32 rope.beta_slow"]
fault = true
[[rule]]
says = "beta_fast must be at least beta_slow, which is 1 by default."
when = ["is method yarn", "lacks rope.beta_slow", "below rope.beta_fast 1"]
fault = true
[[rule]]
says = """\
The {kind} class reads some types as others: su and yarn as longrope, and \
mrope as default."""
when = ["has row.methods", "is rope.type su|yarn|mrope"]
[[rule]]
says = """\
mrope_section assigns the channel pairs to time, rows and columns, for images: \
mrope.py makes these tables. For text, the calls here are sufficient."""
when = ["has rope.mrope_section"]
[[rule]]
says = "sliding_window is not used because use_sliding_window is false."
when = [
  "is look.use_sliding_window false", "has given.sliding_window"]
[[rule]]
says = """\
The indexer, which selects keys, rotates its own queries and keys; the calls \
here do not include them."""
when = ["has row.indexer"]
[[rule]]
says = """\
The phi3 class does not read original_max_position_embeddings inside the RoPE \
dictionary. It reads the one at the top level, which is 4096 by default."""
when = [
  "is given.model_type phi3", "lacks given.original_max_position_embeddings",
  "has rope.original_max_position_embeddings"]
[[rule]]
says = """\
compress_rope_theta is a base for layers that do not use rope_theta, but the \
calls here use one base for all layers."""
when = ["has given.compress_rope_theta", "lacks row.layout"]
[[rule]]
says = """\
swa_rope_theta is a base for layers with a window, but the calls here use one \
base for all layers."""
when = ["has given.swa_rope_theta", "lacks row.layout"]
[[rule]]
says = """\
rope_local_base_freq is a base for layers with a window, but the calls here \
use one base for all layers."""
when = ["has given.rope_local_base_freq", "lacks row.layout"]
[[rule]]
says = """\
auto_map names code that comes with the checkpoint. With trust_remote_code, \
that code runs instead of the transformers class and may differ from it."""
when = ["has given.auto_map"]
[[rule]]
says = """\
With alibi, Falcon adds the ALiBi bias before it divides the scores by \
sqrt(head width), so its bias is that of alibi.py, also divided. Its calls \
cannot be printed here."""
when = ["is given.model_type falcon", "is given.alibi true"]

[words]
unread = "Cannot read this config.json"
no_json = """\
Invalid JSON at line {line}, column {column}: expected {expected}, got {got}."""
too_long = """\
A config.json must have at most {limit} characters, got {got}. Keep only the \
keys with rope, head, layer, window or position in their names."""
too_deep = """\
Brackets must be nested at most {deepest} levels deep; no config.json needs \
more."""
no_object = "A config.json must be a JSON object, {…}, got {got}."
a_value = "a value"
a_name = "a name in double quotes"
end = "the end of the text"
unknown = "unknown"
and = ", and "
mind = "Notes"
built = "Where the model is built, once"
forward = "At the start of the forward pass, once for all layers"
each_layer = "In each layer, after computing q and k and before caching k"
some_layers = "In layers {layers} ({kind}), after computing q and k"
each_part = """\
In each layer, on the {part} channels of q and k that carry positions"""
right = "To check this answer"
own_check = "To check your own rotation"
guess = "A guess from the keys, printed as comments. Run this first"
guess_of_class = """\
A guess, printed as comments: the code of {kind} makes these calls, but it \
does not read all positional keys of this file. Run this first"""
no_type = "no model_type"
is_guess = "{kind}: RoPE, layout {layout} (a guess from the keys)"
is_rope = "{kind}: RoPE, layout {layout}"
is_alibi = "{kind}: ALiBi"
is_t5 = "{kind}: T5 relative position bias"
is_learned = "{kind}: learned position embeddings"
is_bare = "{kind}: no RoPE"
no_calls = "{kind}: the calls cannot be determined"
part = "Read from {part}, the configuration of the text model."
whole = """\
This {kind} file has no separate text configuration, so it is read as a file \
of {part}."""
architecture = """\
architectures names {name}, the class of {kind}, so the file is read as a file \
of {kind}."""
from_key = "from {key}"
from_class = "the default of the {kind} class"
switch_lacks = """\
Queries and keys are not rotated: {key} is missing, and the code of {kind} \
rotates them only if it is {on}."""
switched_off = """\
Queries and keys are not rotated: {key} is {got}, and the code of {kind} \
rotates them only if it is {on}. Whether it encodes positions in another way \
is unknown."""
switched_on = "{key} is {got}, so the code of {kind} rotates queries and keys."
says_nothing = "Queries and keys are not rotated: {key} is {got}."
says_alibi = """\
Queries and keys are not rotated: {key} is {got}. The attention scores get a \
bias that is linear in the distance, as in alibi.py."""
says_relative = """\
Queries and keys are not rotated: {key} is {got}. The attention scores use \
learned embeddings of the distance, as in shaw.py."""
conflict = """\
{key} is {got}, which means that queries and keys are not rotated, but the \
code of {kind} in transformers 5.23.0 rotates them anyway: one of the two is \
wrong for this checkpoint."""
conflict_on = """\
{key} is {got}, which means that queries and keys are rotated, but the code of \
{kind} in transformers 5.23.0 does not rotate them: which of the two is right \
for this checkpoint is unknown."""
measured_none = """\
Queries and keys are not rotated in {kind}: we measured this in a small random \
model of transformers 5.23.0, which has {what}."""
layout = """\
Layout {layout}. No config.json specifies it; we measured it in \
models/{file}/modeling_{file}.py of transformers 5.23.0."""
layout_measured = "Layout {layout}, measured in a small random model of {kind}."
layout_by_key = "Layout of the weights: {layout}, from rope_interleave."
head_dim = "Each head has {head} channels{of}, {source}."
qk_rope_head_dim = """\
In each head, {head} channels carry positions, {source}; they are rotated \
separately from the other channels."""
wide = """\
Each head has {head} channels: hidden size {wide} divided by {heads} heads."""
share = "{turned} of {head} channels are rotated."
base = "Base {base}{of}, {source}."
base_of_class = """\
The base is a default, because no key that this code reads sets it. The \
config.json of a checkpoint usually sets the base, and a wrong base raises no \
error. Check that this is the whole file."""
of_kind = " in {kind} layers"
still = "Layers {layers} ({kind}) do not rotate queries and keys{by}."
by_key = ", from {key}"
window = """\
In layers with a window, a token attends to {window} keys, itself included: \
{key}, {source}."""
scale = """\
Attention scores are multiplied by scale (below, from mscale_all_dim) instead \
of 1 / sqrt(head width)."""
scores_by = """\
Attention scores are multiplied by {by} ({key}) instead of 1 / sqrt(head \
width)."""
scores_same = """\
Attention scores are multiplied by {by} ({key}), which equals 1 / sqrt(head \
width)."""
the_code = "in the code"
capped = """\
Attention scores are capped before the mask: {cap} * tanh(scores / {cap}), \
from {key}."""
number = "{key}: {value}, {source}."
reads = "The check layers_as_configured must pass and report"
reading = "{layout} layout, {turned} of {head} channels"
asks = """\
The command prints the layout, the base and the rotated fraction that it \
measures: use these values."""
command = "python check_positions.py transformers:config.json"
asks_bare = "The command must report no rotation."
asks_alibi = "The command must report no rotation and a linear bias."
asks_t5 = "The command must report no rotation."
asks_learned = "The command must report an added vector and no rotation."
twice = """\
{key} appears twice in one object. Python and this tool use the last value."""
value = "{key} must be {expected}, got {got}."
not_read = """\
{key} is not read by the code of {kind} in transformers 5.23.0, although the \
model's authors may have intended it to have an effect."""
strange = """\
{key} seems to concern positions, but its meaning is unknown, so it was \
ignored."""
same = """\
{key} is not read by the code of {kind}, which uses the same value anyway."""
idle = "No call depends on {keys}."
no_signs = """\
No key of this file concerns positions, and its model class is unknown: the \
code may encode positions without a key, or not at all."""
no_keys = """\
The model class is unknown, and no key specifies a base, a rotated fraction or \
a scaling of RoPE."""
measured_only = """\
A small random model of {kind} rotates queries and keys, but how its code uses \
each key is unknown. The calls below assume the usual meaning of the keys."""
unknown_type = """\
The code that reads this file is unknown ({kind}) and may interpret its keys \
differently from the models that this tool knows. To find out, run python \
check_positions.py transformers:config.json, or pass your rotation to \
check_rotation."""
no_layout = """\
The layout is unknown: the code decides between half and interleaved, and a \
wrong layout raises no error. check_positions.py measures it in a model, and \
read_rotation in a function."""
nested = """\
The code of {kind} reads one RoPE dictionary for all layers, but this file has \
one for each kind of layer."""
flat = """\
The code of {kind} reads one RoPE dictionary for each kind of layer, but this \
file has one for all layers."""
no_head = """\
The head width is missing: set head_dim, or both hidden_size and \
num_attention_heads."""
no_base = """\
The base is missing, and the model class with its default is unknown: set \
rope_theta."""
no_method = """\
rope_type must be one that this tool knows (default, linear, dynamic, yarn, \
llama3, longrope or proportional), got {method}."""
odd = """\
The number of rotated channels must be even, got {turned}: check the head \
width and the rotated fraction."""
needs = "{method} requires {key}: add it to the file."
pairs = """\
{key} must contain {pairs} numbers, one for each channel pair, got {got}."""
layer_types = """\
layer_types must contain {many} strings, one for each layer, got {got}."""
no_rope_layers = """\
no_rope_layers must contain {many} numbers, one for each layer, got {got}."""
no_kind = "{kind} layers are unknown to this tool."
no_window = "{kind} layers require {key}: add it to the file."
no_pattern = """\
Which layers of {kind} use the window of {key} is unknown: list them in \
layer_types."""
a_number = "an integer"
all_bare = "No layer rotates queries and keys, although the file has a base."
'''

# From experiments/configurations.py: measurements of models and of libraries.
MEASURED = r"""
{
"models": {
"afmoe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 16384, "head_dim": 128,
 "sliding_window": 1024, "rope_theta": 10000.0}, "layout": "half", "bare":
 "full_attention", "window":
 "global_attn_every_n_layers 4 last sliding_attention", "reads":
 ["global_attn_every_n_layers", "layer_types", "sliding_window"]},
"apertus": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta":
 12000000.0}, "layout": "half", "rope": {"rope_type": "llama3", "factor": 8.0,
 "original_max_position_embeddings": 8192, "low_freq_factor": 1.0,
 "high_freq_factor": 4.0, "rope_theta": 12000000.0}, "unread": ["rope_theta"]},
"arcee": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half"},
"aria_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "file": "aria", "layout": "half"},
"axk1": {"defaults": {"hidden_size": 7168, "num_attention_heads": 64,
 "num_hidden_layers": 61, "max_position_embeddings": 32768, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true, "reads":
 ["qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "rope_interleave",
 "v_head_dim"]},
"axk2": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "qk_rope_head_dim":
 32, "qk_nope_head_dim": 64, "rope_theta": 10000.0}, "layout": "interleaved",
 "shows": "half", "window": "- 100000 last indexed_attention", "indexer": true,
 "mscale": true, "reads": ["index_head_dim", "layer_types", "qk_head_dim",
 "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]},
"bailing_hybrid": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 42, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
 "rope_theta": 6000000.0}, "layout": "interleaved", "shows": "half", "window":
 "- 6 last linear_attention", "mscale": true, "reads": ["layer_types",
 "linear_head_dim", "qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim",
 "v_head_dim"]},
"beam": {"defaults": {"hidden_size": 5120, "num_attention_heads": 48,
 "num_hidden_layers": 52, "max_position_embeddings": 8192, "head_dim": 128,
 "sliding_window": 512}, "layout": "half", "kinds": {"sliding_attention":
 {"rope": {"rope_type": "default", "rope_theta": 10000.0}}, "full_attention":
 {"rope": null}}, "window": "- 6 last_and_end sliding_attention", "reads":
 ["default_theta", "layer_types", "sliding_window"], "unread": ["rope_theta"]},
"bert": {"family": "learned", "own": {"table": "embeddings.position_embeddings",
 "more": "", "offset": ""}, "defaults": {"hidden_size": 768,
 "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings":
 512}, "unread": ["head_dim", "original_max_position_embeddings",
 "rope_parameters", "rope_scaling", "rope_theta"]},
"bitnet": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 30, "max_position_embeddings": 2048, "rope_theta":
 500000.0}, "layout": "half"},
"bloom": {"family": "alibi", "defaults": {"hidden_size": 64, "n_head": 8,
 "n_layer": 2}, "unread": ["head_dim", "original_max_position_embeddings",
 "rope_parameters", "rope_scaling", "rope_theta"]},
"blt_patcher": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 14, "max_position_embeddings": 8192, "sliding_window":
 512, "rope_theta": 10000.0}, "file": "blt", "layout": "interleaved", "window":
 "all", "reads": ["local_attention_window_len", "sliding_window"]},
"codegen": {"defaults": {"n_embd": 4096, "n_head": 16, "n_layer": 28,
 "n_positions": 2048, "rotary_dim": 64, "-": 10000.0}, "layout": "interleaved",
 "base_key": "-", "channels": true, "reads": ["rotary_dim"], "unread":
 ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling"]},
"cohere": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 40, "max_position_embeddings": 8192, "rope_theta":
 500000.0}, "layout": "interleaved"},
"cohere2": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 40, "max_position_embeddings": 8192, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "interleaved", "bare":
 "full_attention", "window": "sliding_window_pattern 4 last sliding_attention",
 "reads": ["layer_types", "sliding_window", "sliding_window_pattern"]},
"cwm": {"defaults": {"hidden_size": 6144, "num_attention_heads": 48,
 "num_hidden_layers": 64, "max_position_embeddings": 131072, "head_dim": 128,
 "sliding_window": 8192, "rope_theta": 1000000.0}, "layout": "half", "rope":
 {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
 "original_max_position_embeddings": 8192, "rope_type": "llama3", "rope_theta":
 1000000.0}, "window": "- 4 first sliding_attention", "reads": ["layer_types",
 "sliding_window"], "unread": ["rope_theta"]},
"deepseek_v2": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_theta": 10000.0}, "layout": "interleaved",
 "mscale": true, "reads": ["qk_head_dim", "qk_nope_head_dim",
 "qk_rope_head_dim", "v_head_dim"]},
"deepseek_v3": {"defaults": {"hidden_size": 7168, "num_attention_heads": 128,
 "num_hidden_layers": 61, "max_position_embeddings": 4096, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true, "reads":
 ["qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "rope_interleave",
 "v_head_dim"]},
"deepseek_v32": {"defaults": {"hidden_size": 7168, "num_attention_heads": 128,
 "num_hidden_layers": 61, "max_position_embeddings": 163840, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_theta": 10000.0}, "layout": "interleaved",
 "shows": "half", "window": "- 100000 last indexed_attention", "indexer": true,
 "mscale": true, "reads": ["index_head_dim", "layer_types", "qk_head_dim",
 "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]},
"dia_encoder": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 12, "max_position_embeddings": 1024, "head_dim": 128,
 "rope_theta": 10000.0}, "file": "dia", "layout": "half"},
"diffllama": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 16, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"doge": {"defaults": {"hidden_size": 1024, "num_attention_heads": 8,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "window": "all", "reads": ["keep_window_size",
 "sliding_window"]},
"emu3_text_model": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 9216, "rope_theta":
 1000000.0}, "file": "emu3", "layout": "half"},
"ernie4_5": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 18, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 500000.0}, "layout": "interleaved"},
"ernie4_5_moe": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 28, "max_position_embeddings": 131072, "rope_theta":
 500000.0}, "layout": "interleaved"},
"esm": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 12, "max_position_embeddings": 1026, "rope_theta":
 10000.0}, "layout": "half", "reads": ["position_embedding_type"], "unread":
 ["original_max_position_embeddings", "rope_parameters", "rope_scaling"]},
"esmc": {"defaults": {"hidden_size": 2560, "num_attention_heads": 40,
 "num_hidden_layers": 80, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"eurobert": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 12, "max_position_embeddings": 8192, "rope_theta":
 10000.0}, "layout": "half"},
"evolla": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta":
 500000.0}, "layout": "half", "reads": ["position_embedding_type"]},
"exaone4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "bare": "full_attention",
 "lifted": true, "window": "sliding_window_pattern 4 last sliding_attention",
 "reads": ["layer_types", "sliding_window", "sliding_window_pattern"]},
"exaone_moe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "bare": "full_attention",
 "lifted": true, "window": "sliding_window_pattern 4 last sliding_attention",
 "reads": ["layer_types", "sliding_window", "sliding_window_pattern"]},
"falcon": {"defaults": {"hidden_size": 4544, "num_attention_heads": 71,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "reads": ["alibi"]},
"falcon_h1": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta":
 10000.0}, "layout": "half", "window": "- 100000 last hybrid", "reads":
 ["layer_types"]},
"flex_olmo": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 500000.0}, "layout": "half"},
"gemma": {"defaults": {"hidden_size": 3072, "num_attention_heads": 16,
 "num_hidden_layers": 28, "max_position_embeddings": 8192, "head_dim": 256,
 "rope_theta": 10000.0}, "layout": "half"},
"gemma2": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 8192, "head_dim": 256,
 "sliding_window": 4096, "query_pre_attn_scalar": 256, "attn_logit_softcapping":
 50.0, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 2 last sliding_attention", "scale": "query_pre_attn_scalar", "reads":
 ["attn_logit_softcapping", "layer_types", "query_pre_attn_scalar",
 "sliding_window"]},
"gemma3_text": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 131072, "head_dim": 256,
 "sliding_window": 4096, "query_pre_attn_scalar": 256}, "file": "gemma3",
 "layout": "half", "kinds": {"sliding_attention": {"key":
 "rope_local_base_freq", "theta": 10000.0}, "full_attention": {"key":
 "rope_theta", "theta": 1000000.0, "stretched": true}}, "window":
 "sliding_window_pattern 6 last sliding_attention", "scale":
 "query_pre_attn_scalar", "reads": ["_sliding_window_pattern",
 "attn_logit_softcapping", "default_theta", "layer_types",
 "query_pre_attn_scalar", "rope_local_base_freq", "sliding_window",
 "sliding_window_pattern", "standardize_rope_params"]},
"gemma3n_text": {"defaults": {"hidden_size": 2048, "num_attention_heads": 8,
 "num_hidden_layers": 35, "max_position_embeddings": 32768, "head_dim": 256,
 "sliding_window": 512}, "file": "gemma3n", "layout": "half", "kinds":
 {"sliding_attention": {"key": "rope_local_base_freq", "theta": 10000.0},
 "full_attention": {"key": "rope_theta", "theta": 1000000.0, "stretched":
 true}}, "window": "- 5 last sliding_attention", "scale": 1.0, "reads":
 ["default_theta", "layer_types", "rope_local_base_freq", "sliding_window",
 "standardize_rope_params"]},
"gemma4_text": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 30, "max_position_embeddings": 131072, "head_dim": 256,
 "sliding_window": 512, "global_head_dim": 512}, "file": "gemma4", "layout":
 "half", "kinds": {"sliding_attention": {"rope": {"rope_type": "default",
 "rope_theta": 10000.0}}, "full_attention": {"rope": {"rope_type":
 "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
 "head": "global_head_dim"}}, "window": "- 6 last_and_end sliding_attention",
 "scale": 1.0, "reads": ["attention_chunk_size", "global_head_dim",
 "layer_types", "per_layer_config", "sliding_window"], "unread":
 ["rope_theta"]},
"gemma4_unified_text": {"defaults": {"hidden_size": 2304, "num_attention_heads":
 8, "num_hidden_layers": 30, "max_position_embeddings": 262144, "head_dim": 256,
 "sliding_window": 1024, "global_head_dim": 512}, "file": "gemma4_unified",
 "layout": "half", "kinds": {"sliding_attention": {"rope": {"rope_type":
 "default", "rope_theta": 10000.0}}, "full_attention": {"rope": {"rope_type":
 "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
 "head": "global_head_dim"}}, "window": "- 6 last_and_end sliding_attention",
 "scale": 1.0, "reads": ["global_head_dim", "layer_types", "per_layer_config",
 "sliding_window"], "unread": ["rope_theta"]},
"glm": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 40, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "interleaved", "share": 0.5, "reads":
 ["partial_rotary_factor"]},
"glm4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 40, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "interleaved", "share": 0.5, "reads":
 ["partial_rotary_factor"]},
"glm4_moe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 96,
 "num_hidden_layers": 46, "max_position_embeddings": 131072, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5, "reads": ["partial_rotary_factor"]},
"glm4_moe_lite": {"defaults": {"hidden_size": 2048, "num_attention_heads": 20,
 "num_hidden_layers": 47, "max_position_embeddings": 202752, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 192, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true, "reads":
 ["qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "rope_interleave",
 "v_head_dim"]},
"glm_moe_dsa": {"defaults": {"hidden_size": 6144, "num_attention_heads": 64,
 "num_hidden_layers": 78, "max_position_embeddings": 202752, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 192, "rope_theta": 10000.0}, "layout": "interleaved",
 "shows": "half", "window": "- 100000 last indexed_attention", "indexer": true,
 "mscale": true, "reads": ["index_head_dim", "layer_types", "qk_head_dim",
 "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]},
"glm_ocr_text": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 16, "max_position_embeddings": 131072, "rope_theta":
 10000.0}, "file": "glm_ocr", "layout": "interleaved", "share": 1.0, "reads":
 ["partial_rotary_factor"]},
"gpt2": {"family": "learned", "own": {"table": "transformer.wpe", "more": "",
 "offset": ""}, "defaults": {"n_embd": 768, "n_head": 12, "n_layer": 12,
 "n_positions": 1024}, "unread": ["head_dim",
 "original_max_position_embeddings", "rope_parameters", "rope_scaling",
 "rope_theta"]},
"gpt_bigcode": {"family": "learned", "own": {"table": "transformer.wpe", "more":
 "", "offset": ""}, "defaults": {"n_embd": 768, "n_head": 12, "n_layer": 12,
 "n_positions": 1024}, "unread": ["head_dim",
 "original_max_position_embeddings", "rope_parameters", "rope_scaling",
 "rope_theta"]},
"gpt_neo": {"family": "learned", "own": {"table": "transformer.wpe", "more": "",
 "offset": ""}, "defaults": {"hidden_size": 2048, "num_heads": 16, "num_layers":
 24, "max_position_embeddings": 2048}, "reads": ["window_size"], "unread":
 ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling", "rope_theta"]},
"gpt_neox": {"defaults": {"hidden_size": 6144, "num_attention_heads": 64,
 "num_hidden_layers": 44, "max_position_embeddings": 2048, "rotary_emb_base":
 10000.0}, "layout": "half", "base_key": "rotary_emb_base", "share": 0.25,
 "share_key": "rotary_pct", "reads": ["default_theta", "rotary_emb_base",
 "rotary_pct", "standardize_rope_params"], "unread": ["rope_theta"]},
"gpt_neox_japanese": {"defaults": {"hidden_size": 2560, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "rotary_emb_base": 10000.0}, "layout": "half", "base_key": "rotary_emb_base",
 "share": 1.0, "share_key": "rotary_pct", "reads": ["default_theta",
 "rotary_emb_base", "rotary_pct", "standardize_rope_params"], "unread":
 ["rope_theta"]},
"gpt_oss": {"defaults": {"hidden_size": 2880, "num_attention_heads": 64,
 "num_hidden_layers": 36, "max_position_embeddings": 131072, "head_dim": 64,
 "sliding_window": 128, "rope_theta": 150000.0}, "layout": "half", "rope":
 {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
 "truncate": false, "original_max_position_embeddings": 4096}, "window":
 "- 2 last sliding_attention", "sinks": true, "reads": ["layer_types",
 "sliding_window", "yarn"]},
"gptj": {"defaults": {"n_embd": 4096, "n_head": 16, "n_layer": 28,
 "n_positions": 2048, "rotary_dim": 64, "-": 10000.0}, "layout": "interleaved",
 "base_key": "-", "channels": true, "reads": ["rotary_dim"], "unread":
 ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling"]},
"granite": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half", "scale":
 "attention_multiplier", "reads": ["attention_multiplier"]},
"granite4_vision_text": {"defaults": {"hidden_size": 4096,
 "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings":
 2048, "attention_multiplier": 1.0, "rope_theta": 10000.0}, "file":
 "granite4_vision", "layout": "half", "scale": "attention_multiplier", "reads":
 ["attention_multiplier"]},
"granite_docling_text": {"defaults": {"hidden_size": 1024,
 "num_attention_heads": 16, "num_hidden_layers": 28, "max_position_embeddings":
 32768, "attention_multiplier": 0.015625, "rope_theta": 10000.0}, "file":
 "granite_docling", "layout": "half", "scale": "attention_multiplier", "reads":
 ["attention_multiplier"]},
"granite_swa": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 24, "max_position_embeddings": 8192, "sliding_window":
 128, "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half",
 "window": "- 4 first sliding_attention", "scale": "attention_multiplier",
 "reads": ["attention_multiplier", "layer_rope_theta", "layer_types",
 "sliding_window"]},
"granitemoe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half", "scale":
 "attention_multiplier", "reads": ["attention_multiplier"]},
"granitemoe_swa": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 128, "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half",
 "window": "- 4 first sliding_attention", "scale": "attention_multiplier",
 "reads": ["attention_multiplier", "layer_rope_theta", "layer_types",
 "sliding_window"]},
"granitemoehybrid": {"defaults": {"hidden_size": 4096, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half",
 "window": "- 100000 last linear_attention", "scale": "attention_multiplier",
 "reads": ["attention_multiplier", "layer_types", "position_embedding_type"]},
"granitemoeshared": {"defaults": {"hidden_size": 4096, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "attention_multiplier": 1.0, "rope_theta": 10000.0}, "layout": "half", "scale":
 "attention_multiplier", "reads": ["attention_multiplier"]},
"gte": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 12, "max_position_embeddings": 8192, "rope_theta":
 160000.0}, "layout": "half"},
"helium": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 24, "max_position_embeddings": 4096, "head_dim": 128,
 "rope_theta": 100000.0}, "layout": "interleaved"},
"higgs_audio_v2": {"defaults": {"hidden_size": 3072, "num_attention_heads": 24,
 "num_hidden_layers": 28, "max_position_embeddings": 2048, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half", "rope": {"factor": 32.0,
 "rope_theta": 500000.0, "high_freq_factor": 0.5, "low_freq_factor": 0.125,
 "original_max_position_embeddings": 1024, "rope_type": "llama3"}, "unread":
 ["rope_theta"]},
"hunyuan_v1_dense": {"defaults": {"hidden_size": 4096, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "inside": ["alpha"]},
"hunyuan_v1_moe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "inside": ["alpha"]},
"hy_v3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 11158840.0}, "layout": "half"},
"hy_v4": {"defaults": {"hidden_size": 2816, "num_attention_heads": 32,
 "num_hidden_layers": 34, "max_position_embeddings": 262144, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 192, "rope_theta": 10000.0}, "layout": "half",
 "window": "- 100000 last indexed_attention", "sinks": true, "indexer": true,
 "mscale": true, "reads": ["index_head_dim", "layer_types", "qk_head_dim",
 "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]},
"hyperclovax": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "attention_multiplier": 0.08838834764831845, "rope_theta": 10000.0}, "layout":
 "half", "scale": "attention_multiplier", "reads": ["attention_multiplier"]},
"internlm3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 48, "max_position_embeddings": 32768, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half"},
"iquestcoder": {"defaults": {"hidden_size": 5120, "num_attention_heads": 40,
 "num_hidden_layers": 80, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half", "reads": ["use_sliding_window"]},
"jais2": {"defaults": {"hidden_size": 3328, "num_attention_heads": 26,
 "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta":
 10000.0}, "layout": "half"},
"jetmoe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 12, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "reads": ["kv_channels"]},
"jina_embeddings_v3": {"defaults": {"hidden_size": 1024, "num_attention_heads":
 16, "num_hidden_layers": 24, "max_position_embeddings": 8194, "rope_theta":
 20000.0}, "layout": "half"},
"kolibri1": {"defaults": {"hidden_size": 2560, "num_attention_heads": 48,
 "num_hidden_layers": 50, "max_position_embeddings": 262144, "head_dim": 128,
 "sliding_window": 513, "rope_theta": 10000.0}, "layout": "half", "bare":
 "full_attention", "lifted": true, "window": "- 5 last sliding_attention",
 "reads": ["layer_types", "sliding_window"]},
"lfm2": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 128000, "rope_theta":
 1000000.0}, "layout": "half", "window": "layer_types", "reads":
 ["layer_types"]},
"llama": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"llama4_text": {"defaults": {"hidden_size": 5120, "num_attention_heads": 40,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "head_dim": 128,
 "attention_chunk_size": 8192, "no_rope_layer_interval": 4,
 "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1,
 "rope_theta": 500000.0}, "file": "llama4", "layout": "interleaved", "bare":
 "no_rope_layers", "window": "turning", "temperature": "llama4", "reads":
 ["attention_chunk_size", "attn_scale", "attn_temperature_tuning",
 "floor_scale", "layer_types", "no_rope_layer_interval", "no_rope_layers"]},
"longcat_flash": {"defaults": {"hidden_size": 6144, "num_attention_heads": 64,
 "num_layers": 28, "max_position_embeddings": 131072, "qk_rope_head_dim": 64,
 "qk_nope_head_dim": 128, "rope_theta": 10000000.0}, "layout": "interleaved",
 "shows": "half", "mscale": true, "reads": ["qk_head_dim", "qk_nope_head_dim",
 "qk_rope_head_dim", "v_head_dim"]},
"mellum": {"defaults": {"hidden_size": 2304, "num_attention_heads": 32,
 "num_hidden_layers": 28, "max_position_embeddings": 131072, "head_dim": 128},
 "layout": "half", "kinds": {"full_attention": {"rope": {"rope_type": "default",
 "rope_theta": 500000.0}}, "sliding_attention": {"rope": {"rope_type":
 "default", "rope_theta": 10000.0}}}, "share": 1.0, "window": "layer_types",
 "reads": ["layer_types", "mtp_layer_types", "mtp_mlp_layer_types",
 "sliding_window"], "unread": ["rope_theta"]},
"mimo_v2_flash": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "head_dim": 192,
 "sliding_window": 129}, "layout": "half", "kinds": {"full_attention": {"rope":
 {"rope_type": "default", "rope_theta": 5000000.0, "partial_rotary_factor":
 0.334}}, "sliding_attention": {"rope": {"rope_type": "default", "rope_theta":
 10000.0, "partial_rotary_factor": 0.334}}}, "share": 0.334, "window":
 "- 6 start_and_last sliding_attention", "sinks": true, "ends": true,
 "window_size": "sliding_window_size 1", "reads": ["layer_types",
 "sliding_window", "sliding_window_size", "v_head_dim"], "unread":
 ["rope_theta"]},
"minicpm3": {"defaults": {"hidden_size": 2560, "num_attention_heads": 40,
 "num_hidden_layers": 62, "max_position_embeddings": 32768, "qk_rope_head_dim":
 32, "qk_nope_head_dim": 64, "rope_theta": 10000.0}, "layout": "half", "mscale":
 true, "reads": ["qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim",
 "v_head_dim"]},
"minimax": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "- 2 first linear_attention", "reads":
 ["layer_types", "sliding_window"]},
"minimax_m2": {"defaults": {"hidden_size": 3072, "num_attention_heads": 48,
 "num_hidden_layers": 62, "max_position_embeddings": 196608, "head_dim": 128,
 "rope_theta": 5000000.0}, "layout": "half", "share": 1.0, "channels": true,
 "reads": ["partial_rotary_factor", "rotary_dim"]},
"minimax_m3_vl_text": {"defaults": {"hidden_size": 6144, "num_attention_heads":
 64, "num_hidden_layers": 60, "max_position_embeddings": 524288, "head_dim":
 128, "rotary_dim": 64, "rope_theta": 5000000.0}, "file": "minimax_m3_vl",
 "layout": "half", "share": 1.0, "window": "layer_types", "reads":
 ["index_head_dim", "layer_types", "partial_rotary_factor"]},
"ministral3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 34, "max_position_embeddings": 262144, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half", "rope": {"rope_theta": 1000000.0,
 "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32.0,
 "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta":
 0.1, "rope_type": "yarn"}, "window": "all", "temperature": "ministral3",
 "inside": ["llama_4_scaling_beta"], "reads": ["layer_types",
 "llama_4_scaling_beta", "sliding_window", "yarn"], "unread": ["rope_theta"]},
"mistral": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "window": "all", "reads":
 ["layer_types", "sliding_window"]},
"mistral4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 36, "max_position_embeddings": 1048576,
 "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "rope_interleave": true,
 "rope_theta": 10000.0}, "layout": "rope_interleave", "shows": "half", "rope":
 {"factor": 128.0, "original_max_position_embeddings": 8192, "beta_fast": 32.0,
 "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta":
 0.1, "rope_type": "yarn", "rope_theta": 10000.0}, "temperature": "ministral3",
 "inside": ["llama_4_scaling_beta"], "mscale": true, "reads":
 ["llama_4_scaling_beta", "qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim",
 "rope_interleave", "v_head_dim", "yarn"], "unread": ["rope_theta"]},
"mixtral": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "all", "reads": ["sliding_window"]},
"mllama_text_model": {"defaults": {"hidden_size": 4096, "num_attention_heads":
 32, "num_hidden_layers": 40, "max_position_embeddings": 131072, "rope_theta":
 500000.0}, "file": "mllama", "layout": "half", "crossed": [3, 8, 13, 18, 23,
 28, 33, 38], "reads": ["cross_attention_layers"]},
"modernbert": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 22, "max_position_embeddings": 8192, "local_attention":
 128}, "layout": "half", "kinds": {"sliding_attention": {"key":
 "local_rope_theta", "theta": 10000.0, "stretched": true}, "full_attention":
 {"key": "global_rope_theta", "theta": 160000.0, "stretched": true}},
 "window_key": "local_attention", "window":
 "global_attn_every_n_layers 3 first sliding_attention", "reads":
 ["default_theta", "global_attn_every_n_layers", "global_rope_theta",
 "layer_types", "local_attention", "local_rope_theta", "sliding_window",
 "standardize_rope_params"], "unread": ["rope_theta"]},
"modernbert-decoder": {"defaults": {"hidden_size": 768, "num_attention_heads":
 12, "num_hidden_layers": 22, "max_position_embeddings": 8192, "sliding_window":
 64, "local_attention": 128}, "file": "modernbert_decoder", "layout": "half",
 "kinds": {"sliding_attention": {"key": "local_rope_theta", "theta": 10000.0,
 "stretched": true}, "full_attention": {"key": "global_rope_theta", "theta":
 160000.0, "stretched": true}}, "window":
 "global_attn_every_n_layers 3 first sliding_attention", "reads":
 ["default_theta", "global_attn_every_n_layers", "global_rope_theta",
 "layer_types", "local_attention", "local_rope_theta", "sliding_window",
 "standardize_rope_params"], "unread": ["rope_theta"]},
"molmo2_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 36, "max_position_embeddings": 36864, "head_dim": 128,
 "rope_theta": 10000.0}, "file": "molmo2", "layout": "half", "reads":
 ["num_position_embeddings", "rope_scaling_layers"]},
"mpt": {"family": "alibi", "defaults": {"d_model": 2048, "n_heads": 16,
 "n_layers": 24, "max_seq_len": 2048}, "unread": ["head_dim",
 "original_max_position_embeddings", "rope_parameters", "rope_scaling",
 "rope_theta"]},
"mt5": {"family": "t5", "defaults": {"d_model": 512, "num_heads": 6,
 "num_layers": 8, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}, "reads":
 ["relative_attention_max_distance", "relative_attention_num_buckets"],
 "unread": ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling", "rope_theta"]},
"nanochat": {"defaults": {"hidden_size": 768, "num_attention_heads": 6,
 "num_hidden_layers": 12, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "backwards": true},
"nemotron": {"defaults": {"hidden_size": 6144, "num_attention_heads": 48,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5, "reads": ["partial_rotary_factor"]},
"nomic_bert": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 12, "max_position_embeddings": 2048, "rope_theta":
 1000.0}, "layout": "half"},
"olmo": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"olmo2": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"olmo3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 4096}, "layout": "half", "kinds": {"sliding_attention": {"theta": 500000.0},
 "full_attention": {"key": "rope_theta", "theta": 500000.0, "stretched": true}},
 "window": "- 4 last sliding_attention", "reads": ["default_theta",
 "layer_types", "sliding_window", "standardize_rope_params"]},
"olmo_hybrid": {"defaults": {"hidden_size": 3840, "num_attention_heads": 30,
 "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta":
 10000.0}, "layout": "half", "window": "- 4 last linear_attention", "reads":
 ["layer_types", "linear_key_head_dim", "linear_value_head_dim"]},
"olmoe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 16, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "reads": ["sliding_window"]},
"opt": {"family": "learned", "own": {"table": "decoder.embed_positions", "more":
 " + 2", "offset": " + 2"}, "defaults": {"hidden_size": 768,
 "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings":
 2048}, "unread": ["head_dim", "original_max_position_embeddings",
 "rope_parameters", "rope_scaling", "rope_theta"]},
"paddleocr_vl_text": {"defaults": {"hidden_size": 1024, "num_attention_heads":
 16, "num_hidden_layers": 18, "max_position_embeddings": 131072, "head_dim":
 128, "rope_theta": 500000.0}, "file": "paddleocr_vl", "layout": "half",
 "reads": ["layer_types", "sliding_window"]},
"persimmon": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 36, "max_position_embeddings": 16384, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5, "reads": ["partial_rotary_factor"]},
"phi": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 24, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5, "reads": ["partial_rotary_factor"]},
"phi3": {"defaults": {"hidden_size": 3072, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096,
 "original_max_position_embeddings": 4096, "rope_theta": 10000.0}, "layout":
 "half", "methods": {"su": "longrope", "yarn": "longrope"}, "share": 1.0,
 "window": "all", "reads": ["longrope", "partial_rotary_factor",
 "sliding_window", "standardize_rope_params", "yarn"]},
"phimoe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "all", "reads": ["long_mscale",
 "short_mscale", "sliding_window"]},
"qwen2": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 28, "rope_theta":
 10000.0}, "layout": "half", "window": "beyond", "reads": ["layer_types",
 "max_window_layers", "sliding_window", "use_sliding_window"]},
"qwen2_5_omni_text": {"defaults": {"hidden_size": 3584, "num_attention_heads":
 28, "num_hidden_layers": 28, "max_position_embeddings": 32768,
 "sliding_window": 32768, "use_sliding_window": false, "max_window_layers": 28,
 "rope_theta": 1000000.0}, "file": "qwen2_5_omni", "layout": "half", "window":
 "beyond", "reads": ["layer_types", "max_window_layers", "sliding_window",
 "use_sliding_window"]},
"qwen2_5_vl_text": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 80, "rope_theta":
 1000000.0}, "file": "qwen2_5_vl", "layout": "half", "methods": {"mrope":
 "default"}, "window": "beyond", "reads": ["default_theta", "layer_types",
 "max_window_layers", "mrope", "sliding_window", "standardize_rope_params",
 "use_sliding_window"]},
"qwen2_moe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 24, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 28, "rope_theta":
 10000.0}, "layout": "half", "window": "layer_types", "reads": ["layer_types",
 "max_window_layers", "sliding_window", "use_sliding_window"]},
"qwen2_vl_text": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 80, "rope_theta":
 1000000.0}, "file": "qwen2_vl", "layout": "half", "methods": {"mrope":
 "default"}, "window": "beyond", "reads": ["default_theta", "layer_types",
 "max_window_layers", "mrope", "sliding_window", "standardize_rope_params",
 "use_sliding_window"]},
"qwen3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "head_dim": 128,
 "sliding_window": 4096, "use_sliding_window": false, "max_window_layers": 28,
 "rope_theta": 10000.0}, "layout": "half", "window": "beyond", "reads":
 ["layer_types", "max_window_layers", "sliding_window", "use_sliding_window"]},
"qwen3_5_moe_text": {"defaults": {"hidden_size": 2048, "num_attention_heads":
 16, "num_hidden_layers": 40, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "file": "qwen3_5_moe", "layout": "half", "share": 0.25,
 "window": "full_attention_interval 4 last linear_attention", "reads":
 ["full_attention_interval", "layer_types", "linear_key_head_dim",
 "linear_value_head_dim", "partial_rotary_factor"]},
"qwen3_5_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "file": "qwen3_5", "layout": "half", "share": 0.25,
 "window": "full_attention_interval 4 last linear_attention", "reads":
 ["full_attention_interval", "layer_types", "linear_key_head_dim",
 "linear_value_head_dim", "partial_rotary_factor"]},
"qwen3_moe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 24, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "rope_theta": 10000.0}, "layout": "half",
 "window": "all", "reads": ["sliding_window", "use_sliding_window"]},
"qwen3_next": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 48, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "layout": "half", "share": 0.25, "window":
 "full_attention_interval 4 last linear_attention", "reads":
 ["full_attention_interval", "layer_types", "linear_key_head_dim",
 "linear_value_head_dim", "partial_rotary_factor"]},
"qwen3_vl_moe_text": {"defaults": {"hidden_size": 2048, "num_attention_heads":
 16, "num_hidden_layers": 24, "max_position_embeddings": 128000, "rope_theta":
 500000.0}, "file": "qwen3_vl_moe", "layout": "half", "reads": ["layer_types",
 "sliding_window"]},
"qwen3_vl_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 128000, "head_dim": 128,
 "rope_theta": 500000.0}, "file": "qwen3_vl", "layout": "half", "reads":
 ["layer_types"]},
"roberta": {"family": "learned", "own": {"table":
 "embeddings.position_embeddings", "more": "", "offset": " + 2"}, "defaults":
 {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
 "max_position_embeddings": 512}, "unread": ["head_dim",
 "original_max_position_embeddings", "rope_parameters", "rope_scaling",
 "rope_theta"]},
"seed_oss": {"defaults": {"hidden_size": 4096, "num_attention_heads": 80,
 "num_hidden_layers": 64, "max_position_embeddings": 524288, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half"},
"smollm3": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 36, "max_position_embeddings": 32768,
 "use_sliding_window": false, "no_rope_layer_interval": 4, "rope_theta":
 2000000.0}, "layout": "half", "bare": "no_rope_layers", "window":
 "layer_types", "reads": ["layer_types", "no_rope_layer_interval",
 "no_rope_layers", "sliding_window", "use_sliding_window"]},
"solar_open": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 1000000.0}, "layout": "half", "share": 1.0, "reads":
 ["partial_rotary_factor"]},
"stablelm": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "share": 0.25, "reads": ["partial_rotary_factor"]},
"starcoder2": {"defaults": {"hidden_size": 3072, "num_attention_heads": 24,
 "num_hidden_layers": 30, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "window": "all", "reads": ["sliding_window"]},
"switch_transformers": {"family": "t5", "defaults": {"d_model": 768,
 "num_heads": 12, "num_layers": 12, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}, "reads":
 ["relative_attention_max_distance", "relative_attention_num_buckets"],
 "unread": ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling", "rope_theta"]},
"t5": {"family": "t5", "defaults": {"d_model": 512, "num_heads": 8,
 "num_layers": 6, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}, "reads":
 ["relative_attention_max_distance", "relative_attention_num_buckets"],
 "unread": ["head_dim", "original_max_position_embeddings", "rope_parameters",
 "rope_scaling", "rope_theta"]},
"vaultgemma": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 8192, "head_dim": 256,
 "sliding_window": 4096, "query_pre_attn_scalar": 256, "attn_logit_softcapping":
 50.0, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 2 last sliding_attention", "scale": "query_pre_attn_scalar", "reads":
 ["attn_logit_softcapping", "layer_types", "query_pre_attn_scalar",
 "sliding_window"]},
"youtu": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true, "reads":
 ["qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "rope_interleave",
 "v_head_dim"]}
},
"wholes": {
"fuyu": "persimmon",
"paddleocr_vl": "paddleocr_vl_text",
"qwen2_5_vl": "qwen2_5_vl_text",
"qwen2_vl": "qwen2_vl_text"
},
"rotations": {
"a fixed table added to the embeddings": ["canary_decoder", "ctrl", "fsmt",
 "kosmos_2_5_text_model", "kosmos_2_text_model", "m2m_100", "marian",
 "nllb-moe", "pegasus", "seamless_m4t", "seamless_m4t_v2", "tipsv2_text_model",
 "videoprism_text_model", "xglm"],
"a learned bias of the scores": ["cpmant", "mt5", "pop2piano",
 "switch_transformers", "t5", "umt5"],
"a learned table added to the embeddings": ["aimv2_text_model", "albert",
 "align_text_model", "altclip_text_model", "bart", "bert", "bert-generation",
 "big_bird", "bigbird_pegasus", "biogpt", "blenderbot", "blenderbot-small",
 "blip_text_model", "bridgetower_text_model", "camembert", "canine",
 "chinese_clip_text_model", "clap_text_model", "clip_text_model",
 "clipseg_text_model", "clvp_decoder", "convbert", "data2vec-text", "deberta",
 "deberta-v2", "distilbert", "electra", "ernie", "flaubert", "flava_text_model",
 "gpt-sw3", "gpt2", "gpt_bigcode", "gpt_neo", "groupvit_text_model", "ibert",
 "imagegpt", "instructblip_qformer", "instructblipvideo_qformer", "layoutlm",
 "lilt", "luke", "markuplm", "mbart", "megatron-bert", "metaclip_2_text_model",
 "mobilebert", "mvp", "nystromformer", "openai-gpt", "opt", "owlv2_text_model",
 "owlvit_text_model", "plbart", "pp_formulanet_text", "prophetnet", "rembert",
 "roberta", "roberta-prelayernorm", "roc_bert", "sam3_lite_text_text_model",
 "siglip2_text_model", "siglip_text_model", "splinter", "tapas", "trocr",
 "visual_bert", "xclip_text_model", "xlm", "xlm-roberta", "xlm-roberta-xl"],
"a learned table added to the embeddings and a learned bias of the scores":
 ["layoutlmv3", "mpnet"],
"a learned table added to the embeddings and scores that depend on distance":
 ["bros"],
"a linear bias of the scores": ["bloom", "mpt"],
"half": ["EvollaModel", "afmoe", "apertus", "arcee", "aria_text", "axk1",
 "axk2", "bailing_hybrid", "beam", "bitnet", "clvp_encoder",
 "cosmos3_edge_text", "csm_depth_decoder_model", "cwm", "deepseek_ocr2_text",
 "deepseek_v3", "deepseek_v32", "dia_encoder", "diffllama", "doge", "dots1",
 "dots3_note_text", "embedding_gemma2_text", "emu3_text_model", "esmc",
 "eurobert", "evolla", "exaone4", "exaone_moe", "falcon", "falcon_h1",
 "flex_olmo", "flint", "gemma", "gemma2", "gemma3_text", "gemma3n_text",
 "gemma4_text", "gemma4_unified_text", "glm4_moe", "glm4_moe_lite",
 "glm_moe_dsa", "gpt_neox", "gpt_neox_japanese", "gpt_oss",
 "gradium_phonon_tts", "granite", "granite4_vision_text",
 "granite_docling_text", "granite_swa", "granitemoe", "granitemoe_swa",
 "granitemoeshared", "gte", "higgs_audio_v2", "hrm_text", "hunyuan_v1_dense",
 "hunyuan_v1_moe", "hy_v3", "hy_v4", "hyperclovax", "internlm3", "iquestcoder",
 "jais2", "jetmoe", "jina_embeddings_v3", "kolibri1", "laguna", "lfm2",
 "lfm2_moe", "lfm3", "llama", "longcat_flash", "mellum", "mimo_v2_flash",
 "minicpm3", "minimax", "minimax_m2", "minimax_m3_vl_text", "ministral",
 "ministral3", "mistral", "mistral4", "mistral_large4_text", "mixtral",
 "mllama_text_model", "modernbert", "modernbert-decoder", "molmo2_text",
 "muse_glimmer_text", "muse_spark_text", "nanochat", "nemotron", "nomic_bert",
 "olmo", "olmo2", "olmo3", "olmo_hybrid", "olmoe", "paddleocr_vl_text",
 "persimmon", "phi", "phi3", "phimoe", "pocket_tts", "qwen2",
 "qwen2_5_omni_talker", "qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_moe",
 "qwen2_vl_text", "qwen3", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe",
 "qwen3_next", "qwen3_vl_moe_text", "qwen3_vl_text", "recurrent_gemma",
 "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "ultrabert",
 "unlimited_ocr_text", "vaultgemma", "youtu"],
"interleaved": ["blt_patcher", "codegen", "cohere", "cohere2", "cohere2_moe",
 "deepseek_v2", "deepseek_v4", "ernie4_5", "ernie4_5_moe",
 "ernie4_5_vl_moe_text", "glm", "glm4", "glm_ocr_text", "gptj", "helium",
 "llama4_text", "openai_privacy_filter", "roformer"],
"no other encoding of positions": ["dpr", "glm5_next_text", "jamba",
 "kimi_linear", "nemotron_h", "zamba", "zamba2"],
"scores that depend on distance": ["funnel", "inkling2_text", "inkling_text",
 "vits", "xlnet"]
},
"switches": {
"esm": "position_embedding_type rotary",
"granitemoehybrid": "position_embedding_type rope",
"zamba2": "use_mem_rope true"
},
"outcomes": {
"Llama 3.1, both turns left out": {"an error": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23"], "as intended":
 ["mlx-lm 0.32.2", "llama.cpp at 0c1e570"]},
"Llama 3.1, new dictionary": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as intended":
 ["transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"]},
"Llama 3.1, no original length": {"an error": ["transformers 4.57.6"],
 "Llama 3.1 scaling from max_position_embeddings": ["transformers 5.23.0",
 "vLLM 0.33.0", "SGLang 0.5.23", "llama.cpp at 0c1e570"], "as intended":
 ["mlx-lm 0.32.2"]},
"YaRN, `attention_factor` 1": {"YaRN with its default settings":
 ["SGLang 0.5.23", "mlx-lm 0.32.2", "llama.cpp at 0c1e570"], "as intended":
 ["transformers 4.57.6", "transformers 5.23.0", "vLLM 0.33.0"]},
"YaRN, `beta_fast` 8": {"YaRN with its default settings":
 ["llama.cpp at 0c1e570"], "as intended": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23", "mlx-lm 0.32.2"]},
"YaRN, `mscale` and `mscale_all_dim` 1": {"YaRN with its default settings":
 ["llama.cpp at 0c1e570"], "as intended": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23", "mlx-lm 0.32.2"]},
"YaRN, `truncate` false": {"YaRN with its default settings": ["mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"], "as intended": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23"]},
"YaRN, new dictionary": {"plain RoPE with base 10,000": ["transformers 4.57.6",
 "mlx-lm 0.32.2"], "as intended": ["transformers 5.23.0", "vLLM 0.33.0",
 "SGLang 0.5.23", "llama.cpp at 0c1e570"]},
"YaRN, no original length": {"YaRN from max_position_embeddings":
 ["transformers 4.57.6", "transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"], "as intended": ["mlx-lm 0.32.2"]},
"YaRN, original length outside": {"YaRN from max_position_embeddings":
 ["transformers 4.57.6", "llama.cpp at 0c1e570"], "as intended":
 ["transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23", "mlx-lm 0.32.2"]},
"a type, no factor": {"an error": ["transformers 4.57.6", "transformers 5.23.0",
 "vLLM 0.33.0", "SGLang 0.5.23", "mlx-lm 0.32.2"],
 "plain RoPE with the base as written": ["llama.cpp at 0c1e570"]},
"base inside, as transformers 5 writes it": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as intended":
 ["transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"]},
"dynamic, a text of twice the length": {"plain RoPE with the base as written":
 ["vLLM 0.33.0", "llama.cpp at 0c1e570"], "as intended": ["transformers 4.57.6",
 "transformers 5.23.0", "SGLang 0.5.23", "mlx-lm 0.32.2"]},
"half of each head, inside": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"],
 "plain RoPE with the base as written": ["transformers 5.23.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"], "as intended": ["vLLM 0.33.0"]},
"half of each head, outside": {"an error": ["transformers 4.57.6"],
 "plain RoPE with the base as written": ["transformers 5.23.0", "mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"], "as intended": ["vLLM 0.33.0", "SGLang 0.5.23"]},
"linear, new dictionary": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as intended":
 ["transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"]},
"linear, new dictionary, base outside": {"plain RoPE with the base as written":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as intended":
 ["transformers 5.23.0", "vLLM 0.33.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"]},
"no type, only a factor": {"an error": ["transformers 4.57.6"],
 "plain RoPE with the base as written": ["transformers 5.23.0", "vLLM 0.33.0",
 "SGLang 0.5.23", "mlx-lm 0.32.2", "llama.cpp at 0c1e570"]},
"two types that differ": {"plain RoPE with the base as written":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "an error": ["vLLM 0.33.0"],
 "as intended": ["transformers 5.23.0", "SGLang 0.5.23",
 "llama.cpp at 0c1e570"]},
"type `mrope`, with sections": {"an error": ["transformers 4.57.6",
 "transformers 5.23.0", "SGLang 0.5.23"], "as intended": ["vLLM 0.33.0",
 "mlx-lm 0.32.2", "llama.cpp at 0c1e570"]}
}
}
"""

# Former names, kept until the next release.
Untold = ConfigError
printed = format_report


if __name__ == "__main__":
    sys.exit(main())
