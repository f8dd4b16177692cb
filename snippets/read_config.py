# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-25
r"""Reads what a config.json says of positions, and tells the calls for it.

    python read_config.py config.json

Told are base, layout, share of a head, stretch with all its arguments, windows
and layers that do not turn, as calls of this guide's files, each with its place
in a model; then what is unknown or contradictory, and what stacks other than
transformers make of such a file. A layout stands in no configuration: it was
read off the code of each model_type that is known here.

Nothing of the file is run. What cannot be read is told in words. The exit code
is 1 where no calls could be given, and 2 where there is no file.
Needs Python 3.11 or newer, and nothing else.

Source: configurations and models of github.com/huggingface/transformers at
v5.23.0, each run; what other stacks do with angles was measured.
"""

import argparse
import io
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

LIMIT = 1_000_000  # characters that are read
DEEPEST = 40  # brackets within brackets
WIDE = 76  # columns of a line of code
BLANK = r"[ \t\n\r]*"
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
TEXT = (
    r'"[^"\\\x00-\x1f]*'
    r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
)
WORD = "true|false|null"
PLACES = ("given", "rope")
BEGINS = (("title", ""), ("fact", "- "), ("text", "- "), ("mind", "! "))
UNSEEN = (
    r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class Part(NamedTuple):
    """Of an answer: title, fact, code, shell, text or mind; and its words."""

    kind: str
    words: str


class Number(NamedTuple):
    """As it is written, and its value."""

    text: str
    value: float


class Untold(Exception):
    """Nothing can be read; the message says why."""


def table() -> dict[str, Any]:
    """The keys, what they have to be, what contradicts what, and the words."""
    return tomllib.loads(TABLE)


def read_config(text: str) -> list[Part]:
    """The answer to the text of a config.json, whatever it is.

    >>> asked = '{"model_type": "gptj", "n_embd": 64, "n_head": 2}'
    >>> read_config(asked)[0].words
    'gptj: RoPE, layout interleaved'
    """
    words = table()["words"]
    read = _Json(text.removeprefix("\ufeff"), words)
    try:
        given = read.whole()
        if not isinstance(given, dict):
            raise Untold(_fill(words["no_object"], got=_shown(given)))
    except Untold as error:
        return [Part("title", words["unread"]), Part("mind", str(error))]
    known = _Json(MEASURED, words).whole()
    return _Reading(given, read.twice, table(), known).answer()


def printed(parts: list[Part]) -> str:
    """The answer for a terminal: code is indented, what to mind begins with !.

    >>> printed([Part("mind", "no JSON")]).strip()
    '! no JSON'
    """
    made = ""
    for kind, words in parts:
        begin = dict(BEGINS).get(kind, "    ")
        lines = [f"{begin}{line}".rstrip() for line in words.split("\n")]
        made += "\n" * (kind == "title" and made > "") + "\n".join(lines) + "\n"
    return made


class _Json:
    """Reads JSON: numbers stay as written, and double names are heard."""

    def __init__(self, text: str, words: dict[str, str]):
        self.text, self.words = text, words
        self.twice = list[str]()
        self.at = [0]  # how far it has come

    def whole(self) -> Any:
        if len(self.text) > LIMIT:
            said = {"limit": LIMIT, "got": len(self.text)}
            raise Untold(_fill(self.words["too_long"], **said))
        made = self._value(0)
        if self.at[0] < len(self.text):
            raise self._fault(self.words["end"])
        return made

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Untold(_fill(self.words["too_deep"], deepest=DEEPEST))
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
        """What is there by a pattern, which is passed; "" if it is not."""
        found = re.compile(pattern).match(self.text, self.at[0])
        self.at[0] = found.end() if found else self.at[0]
        return found[0] if found else ""

    def _need(self, pattern: str, expected: str) -> str:
        if not (taken := self._take(pattern)):
            raise self._fault(expected)
        return taken

    def _fault(self, expected: str) -> Untold:
        at = self.at[0]
        before, here = self.text[:at], self.text[at : at + 1]
        said = {"line": before.count("\n") + 1, "expected": expected}
        column = len(before) - before.rfind("\n")
        got = _shown(here) if here else self.words["end"]
        words = self.words["no_json"]
        return Untold(_fill(words, column=column, got=got, **said))


class _Reading:
    """One configuration, and what has been found in it so far."""

    def __init__(
        self,
        given: dict[str, Any],
        twice: list[str],
        table: dict[str, Any],
        known: dict[str, Any],
    ):
        self.table, self.known = table, known
        self.facts, self.faults, self.minds = (list[str]() for _ in range(3))
        self.imports: dict[str, list[str]] = {}  # names by file
        self.built, self.forward = list[str](), list[str]()
        self.blocks: list[Part] = []
        self.read = list[str]()
        for name in twice:
            self._mind("twice", key=_shown(name))
        self.given = self._part(given)
        kind = self.given.get("model_type")
        named = isinstance(kind, str)
        if named and kind in known["wholes"]:  # without a part for text
            self._fact("whole", kind=kind, part=known["wholes"][kind])
            kind = known["wholes"][kind]
        row = known["models"].get(kind) if named else None
        self.row: dict[str, Any] = row or {}
        unknown = _shown(kind) if named else self._told("no_type")
        self.kind = str(kind) if self.row else unknown
        self.ropes = self._ropes()

    def answer(self) -> list[Part]:
        self._values()
        self._strange()
        self._rules()
        family = self.row.get("family", "rope")
        if not (self.row or any(self._key(k) for k in self.table["signs"])):
            self._fault("no_signs")
        if not self.faults:
            self._rope() if family == "rope" else self._template(family)
        if not self.row:
            self._mind("unknown_type", kind=self.kind)
        told = "no_calls" if self.faults else f"is_{family}"
        layout = self._layout() or self._told("unknown")
        title = self._told(told, kind=self.kind, layout=layout)
        parts = [Part("title", title)]
        parts += [Part("fact", words) for words in self.facts]
        minds = self.faults + self.minds
        parts += [Part("title", self._told("mind"))] * bool(minds)
        parts += [Part("mind", words) for words in minds]
        return parts + ([] if self.faults else self.blocks)

    def _told(self, name: str, **values: object) -> str:
        return _fill(self.table["words"][name], **values)

    def _fact(self, name: str, **values: object) -> None:
        _add(self.facts, self._told(name, **values))

    def _fault(self, name: str, **values: object) -> None:
        _add(self.faults, self._told(name, **values))

    def _mind(self, name: str, **values: object) -> None:
        _add(self.minds, self._told(name, **values))

    def _block(self, title: str, lines: list[str]) -> None:
        title = self.table["words"].get(title, title)
        if any(lines):
            code = "\n".join(lines)
            self.blocks.extend((Part("title", title), Part("code", code)))

    # --- keys

    def _part(self, given: dict[str, Any]) -> dict[str, Any]:
        """The part that reads text, where a model is made of parts."""
        for name in self.table["parts"]:
            part = given.get(name)
            if isinstance(part, dict) and part:
                self._fact("part", part=name)
                return self._part(part)
        return given

    def _key(self, name: str) -> str:
        """The key under which something stands here or in its class, or ""."""
        for of in (self.given, self.row.get("defaults", {})):
            names = self.table["aliases"].get(name, [name])
            known = [key for key in names if key in of]
            if known:  # null is none, whatever the class takes
                found = [key for key in known if of[key] is not None]
                return str([*found, ""][0])
        return ""

    def _look(self, name: str) -> Any:
        key = self._key(name)
        given, own = self.given.get(key), self.row.get("defaults", {})
        return own.get(key) if given is None else given

    def _whole(self, name: str) -> int:
        """A whole number, 0 where there is none."""
        value = self._look(name)
        known = isinstance(value, Number) and 0 <= value.value <= 1e9
        return int(value.value) if known else 0

    def _source(self, name: str) -> str:
        key = self._key(name)
        if self.given.get(key) is not None:
            return self._told("from_key", key=key)
        return self._told("from_class", kind=self.kind)

    def _values(self) -> None:
        """Each known key has to have a value of its kind."""
        for check in self.table["value"]:
            for key in check["keys"].split():
                for of in self._places():
                    value = of.get(key)
                    if value is not None and not _fits(value, check):
                        got, expected = _shown(value), check["says"]
                        self._fault(
                            "value", key=key, expected=expected, got=got
                        )

    def _strange(self) -> None:
        """Keys that speak of positions, and that nothing here knows."""
        known = " ".join(check["keys"] for check in self.table["value"])
        names = f"{known} {self.table['others']}".split()
        for of in self._places():
            for key in of:
                near = any(word in key.lower() for word in self.table["near"])
                if key not in names and (near or of is not self.given):
                    self._mind("strange", key=_shown(key))

    def _places(self) -> list[dict[str, Any]]:
        return [self.given, *(rope for rope in self.ropes.values() if rope)]

    def _rules(self) -> None:
        """What contradicts itself, and what other stacks made of the like."""
        for rule in self.table["rule"]:
            for rope in self.ropes.values():
                if all(self._holds(test, rope or {}) for test in rule["when"]):
                    came = self.known["outcomes"].get(rule.get("case"), {})
                    each = (f"{w} in {', '.join(of)}" for w, of in came.items())
                    found = "; ".join(each)
                    words = _fill(rule["says"], kind=self.kind, found=found)
                    of = self.faults if rule.get("fault") else self.minds
                    _add(of, words)

    def _holds(self, test: str, rope: dict[str, Any]) -> bool:
        """A test of the table: what, of which key, beside which others."""
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
            return self._look(key)
        return {"given": self.given, "rope": rope, "row": self.row}.get(
            of, {}).get(key)  # fmt: skip

    # --- RoPE

    def _ropes(self) -> dict[str, dict[str, Any] | None]:
        """The dictionary of each kind of layer; that of "" is for all."""
        old, new = self._dict("rope_scaling"), self._dict("rope_parameters")
        made: dict[str, dict[str, Any] | None] = {}
        for kind, own in self.row.get("kinds", {}).items():
            plain = {"rope_type": "default"} if "theta" in own else {}
            one = new.get(kind, plain if new else own.get("rope", plain))
            more = old if own.get("stretched") else {}
            made[kind] = None if one is None else {**_dict(one), **more}
        if made:
            if new and not any(kind in new for kind in made):
                self._fault("flat", kind=self.kind)
            return made
        outer = old or new or self.row.get("rope", {})
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
        return str(self.row.get("methods", {}).get(method, method))

    def _rope(self) -> None:
        head, groups = self._head(), self._layers()
        self._say_layout()
        checks = [
            self._tables(rope, kind, head)
            for kind, rope in self.ropes.items()
            if rope is not None
        ]
        self._scale(head)
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
        """What tells the names of one kind of layer from those of others."""
        many = sum(rope is not None for rope in self.ropes.values()) > 1
        return f"_{kind.partition('_')[0]}" * many

    def _at(self) -> str:
        """Positions, below 0 where a model turns the other way."""
        return "-positions" if "backwards" in self.row else "positions"

    def _layout(self) -> str:
        """Half or interleaved, "" where it is not known."""
        known = str(self.row.get("layout", ""))
        if known == "rope_interleave":
            return "interleaved" if self._look(known) is not False else "half"
        return known

    def _turn(self, end: str, *names: str) -> list[str]:
        """The calls that turn these."""
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
        elif layout:
            self._fact("layout", layout=layout, kind=self.kind, file=file)
        else:
            self._mind("no_layout")

    def _head(self) -> int:
        """How wide what turns is: a head, or its part for positions."""
        for name in ("qk_rope_head_dim", "head_dim"):
            if head := self._whole(name):
                self._fact(name, head=head, source=self._source(name))
                return head
        wide, heads = self._whole("hidden_size"), self._whole("heads")
        if not wide or not heads:
            self._fault("no_head")
            return 0
        self._fact("wide", head=wide // heads, wide=wide, heads=heads)
        return wide // heads

    def _turned(self, rope: dict[str, Any], head: int) -> int:
        """How many channels of a head turn."""
        own, channels = self.row.get("share"), self._whole("rotary_dim")
        name = self.row.get("share_key", "partial_rotary_factor")
        given = self._look(name if self.row else "share")
        share = rope.get("partial_rotary_factor") or given
        reads = own is not None or not self.row
        if isinstance(share, Number) and reads:
            return int(head * share.value)
        if not self.row or "channels" in self.row:
            return min(channels or head, head)
        return int(head * own.value) if isinstance(own, Number) else head

    def _base(self, rope: dict[str, Any], kind: str) -> Number:
        own = self.row.get("kinds", {}).get(kind, {})
        name = own.get("key", self.row.get("base_key", "rope_theta"))
        name = name if self.row else "base"
        base = rope.get("rope_theta")
        said = self._told("from_key", key="rope_theta")
        if base is None and self._look(name) is not None:
            base, said = self._look(name), self._source(name)
        elif base is None:
            base, said = own.get("theta"), self._source("")
        if not isinstance(base, Number):
            self._fault("no_base")
            return Number("", 0)
        of = self._told("of_kind", kind=kind) if self._end(kind) else ""
        self._fact("base", base=base.text, source=said, of=of)
        if said == self._source(""):
            self._mind("base_of_class")
        return base

    def _tables(self, rope: dict[str, Any], kind: str, head: int) -> list[str]:
        """Lines that make cosines and sines; given back, those that check."""
        method, end = self._method(rope), self._end(kind)
        spec = self.table["method"].get(method)
        if spec is None:
            self._fault("no_method", method=_shown(method))
            return []
        turned = head if spec.get("whole") else self._turned(rope, head)
        if head and (turned % 2 or not turned):
            self._fault("odd", turned=turned)
        base, given = self._base(rope, kind), self._given(rope, kind, method)
        frequencies = now = f"frequencies{end}"
        self._import("rope", "apply_rope", "rope_frequencies", "rope_tables")
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

    def _given(
        self, rope: dict[str, Any], kind: str, method: str
    ) -> dict[str, Any]:
        """What the method takes: keys, with what stands for those not there."""
        made: dict[str, Any] = {"rope_type": method}
        longest = self._look("positions")
        original = self._look("original_max_position_embeddings")
        for key in self.table["method"][method].get("keys", "").split():
            found = rope.get(key)
            if key == "original_max_position_embeddings":
                found = found if kind or original is None else original
                found = longest if found is None else found
            if key == "max_position_embeddings":
                found = longest
            if key == "truncate" and kind:  # looked for beside the kinds
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
        """What cosines and sines are multiplied by, "" if by nothing."""
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
        """Says how many channels turn, as check_positions.py will."""
        whole = head + self._whole("qk_nope_head_dim") * bool(
            self._whole("qk_rope_head_dim"))  # fmt: skip
        share = given.get("partial_rotary_factor")
        if isinstance(share, Number):  # proportional
            turned = 2 * int(share.value * head // 2)
        if turned != whole:
            self._fact("share", turned=turned, head=whole)
        layout = self.row.get("shows", self._layout())
        _add(self.read, self._told("reading", layout=layout, turned=turned,
                                   head=whole))  # fmt: skip

    def _scale(self, head: int) -> None:
        """Where YaRN's factor is on the scores, as in DeepSeek."""
        rope = self.ropes.get("") or {}
        scale, factor = rope.get("mscale_all_dim"), rope.get("factor")
        yarn = self._method(rope) == "yarn" and self.row.get("mscale")
        if yarn and isinstance(scale, Number) and isinstance(factor, Number):
            whole = head + self._whole("qk_nope_head_dim")
            more = f"(0.1 * {scale.text} * math.log({factor.text}) + 1) ** 2"
            self.built.append(f"scale = {whole} ** -0.5 * {more}")
            self._fact("scale")

    # --- layers

    def _layers(self) -> list[tuple[str, bool, list[int]]]:
        """Layers that are alike: their kind, whether bare, their numbers."""
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
        """Keys that a token sees, itself among them; 0 for all."""
        gate = self._look("use_sliding_window")
        own = "use_sliding_window" in self.row.get("defaults", {})
        if gate is not True and (own or (gate is False and not self.row)):
            return 0
        window = self._whole(self.row.get("window_key", "sliding_window"))
        return window // 2 + 1 if "window_key" in self.row else window

    def _kinds(self, many: int) -> list[str]:
        given = self.given.get("layer_types")
        how = self.row.get("window", "" if self.row else "layer_types")
        if how not in ("", "all") and isinstance(given, list):
            if len(given) != many:
                self._fault("layer_types", got=len(given), many=many)
            return [_plain(each) for each in given]
        other = "sliding_attention" if self._window() else "full_attention"
        if how == "layer_types" and self.row and self._window():
            self._fault("no_pattern", kind=self.kind)
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
        n = self._whole(key) or int(n)
        full = n - 1 if at == "last" else 0
        return ["full_attention" if i % n == full else kind
                for i in range(many)]  # fmt: skip

    def _bare(self, many: int, kinds: list[str]) -> list[bool]:
        """Which layers turn nothing."""
        how = self.row.get("bare", "" if self.row else "no_rope_layers")
        if how != "no_rope_layers":
            nothing = [k for k, rope in self.ropes.items() if rope is None]
            return [kind == how or kind in nothing for kind in kinds]
        turns = self.given.get("no_rope_layers")
        if isinstance(turns, list) and turns:
            if len(turns) != many:
                self._fault("no_rope_layers", got=len(turns), many=many)
            return [_plain(each) == "0" for each in turns]
        n = self._whole("no_rope_layer_interval")
        return [n > 0 and (i + 1) % n == 0 for i in range(many)]

    def _inside(
        self, kind: str, bare: bool, numbers: list[int], many: bool
    ) -> tuple[str, list[str]]:
        """What is done in layers of one kind: the title, the lines."""
        where = self._told("each_layer")
        if part := self._whole("qk_rope_head_dim"):
            where = self._told("each_part", part=part)
        if many:
            layers = _spans(numbers)
            where = self._told("some_layers", layers=layers, kind=kind)
        near = self.table["layers"].get(kind)
        if near is None:
            self._fault("no_kind", kind=_shown(kind))
        lines = self._temperature(bare)
        end = self._end(kind if kind in self.ropes else "")
        if not bare and near != "none":
            lines += self._turn(end, "q", "k")
        lines += self._seen(kind, near or "")
        if not lines and many and near is not None:
            self._fact("still", layers=_spans(numbers), kind=kind)
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
        """Which keys a token sees, and what takes weight besides."""
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
        self._import("decoding", "visible")
        lines = [f"chunks = positions // {chunk}"] * (chunk > 0)
        lines += [_listed("seen = visible(", arguments, ")")]
        if not chunk:
            _add(self.forward, self.table["documents"])
        if not sinks:
            self._import("decoding", "attend")
            return [*lines, "output = attend(q, k, v, seen)"]
        self._import("sinks", "sink_softmax")
        return [*lines, *self.table["sinks"].strip().split("\n")]

    # --- what stands at the end

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
        """Lines that ask check_positions.py about this very rotation."""
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
        """A family whose calls differ by a few numbers alone."""
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
        """The lines that import what is called, and one that is empty."""
        maths, torch = (any(f"{name}." in line for line in code)
                        for name in ("math", "torch"))  # fmt: skip
        lines = ["import math"] * maths + [""] * (maths and torch)
        lines += ["import torch"] * torch + [""] * (maths or torch)
        for file in sorted(self.imports):
            names = sorted(self.imports[file])
            lines.append(f"from {file} import {', '.join(names)}")
        return [*lines, ""]


def _fits(value: Any, check: dict[str, Any]) -> bool:
    """Is a value of the kind that a row of the table wants?"""
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
    """Of a text itself, of anything else how it is written."""
    return value if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    """A value of JSON in short, and as no terminal takes it for a command."""
    if isinstance(value, (list, dict)):
        brackets = "[]" if isinstance(value, list) else "{}"
        return brackets[0] + "…" * bool(value) + brackets[1]
    text = value.text if isinstance(value, Number) else json.dumps(
        value, ensure_ascii=False)  # fmt: skip
    text = re.sub(UNSEEN, lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _code(value: Any) -> str:
    """A value of JSON in Python."""
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    if isinstance(value, bool):
        return str(value)
    return value.text if isinstance(value, Number) else f'"{value}"'


def _listed(opens: str, items: list[str], closes: str) -> str:
    """A call or a list in one line, or where that is too long in many."""
    line = f"{opens}{', '.join(items)}{closes}"
    if len(line) <= WIDE:
        return line
    return f"{opens}\n" + "".join(f"    {each},\n" for each in items) + closes


def _spans(numbers: list[int]) -> str:
    """Numbers that rise, as 0 to 4, 6, 8 to 9."""
    spans: list[list[int]] = []
    for n in numbers:
        if spans and spans[-1][1] == n - 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in spans)


def _fill(words: str, **values: object) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda name: str(values[name[1]]), words)


def _add(to: list[str], words: str) -> None:
    if words not in to:
        to.append(words)


def main(arguments: list[str] | None = None) -> int:
    """The command: 1 where there are no calls, 2 where there is no file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", metavar="config.json")
    file = Path(parser.parse_args(arguments).file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"read_config.py: {file} cannot be read: {error}\n")
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    parts = read_config(text)
    sys.stdout.write(printed(parts))
    return int(not any(part.kind == "code" for part in parts))


TABLE = r'''
# What a config.json may say, what that has to be, and what contradicts it.
# A rule's case is one of exhibits/dialects.toml: what stacks made of it.

parts = ["text_config", "llm_config", "language_config", "thinker_config"]
signs = ["rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "share"]
near = ["rope", "rotary", "theta", "yarn", "alibi", "relative", "mscale",
  "window", "layer_type", "position_emb", "position_bias"]
others = "position_embedding_type mlp_layer_types max_relative_positions"
sinks = """
scores = q @ k.mT * q.shape[-1] ** -0.5  # k and v with as many heads as q
scores = scores.masked_fill(~seen[..., None, :, :], -torch.inf)
output = sink_softmax(scores, sinks) @ v  # sinks: one a head, of the weights"""

documents = "documents = torch.zeros_like(positions)  # a number for each text"
import = "from check_positions import assert_positions, check_rotation"

[aliases]
hidden_size = ["hidden_size", "n_embd", "d_model", "dim"]
heads = ["num_attention_heads", "n_head", "n_heads", "num_heads"]
layers = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]
positions = ["max_position_embeddings", "n_positions", "max_sequence_length",
  "seq_length", "n_ctx", "max_seq_len"]
base = ["rope_theta", "rotary_emb_base"]
share = ["partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"]

[layers]
full_attention = ""
sliding_attention = "sliding_window"
chunked_attention = "attention_chunk_size"
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
now = "length = int(positions.max()) + 1"
keys = "factor max_position_embeddings"
needs = "factor max_position_embeddings"
[[method.dynamic.calls]]
name = "dynamic_ntk"
arguments = ["factor factor", "original_length max_position_embeddings",
  "length - length"]

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

# the bias hides later keys, too
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

# no root of the width; the decoder's bias hides no later keys: mask them
output = scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)"""

[family.learned]
needs = "positions hidden_size"
built = """
from learned import AddLearned

add = AddLearned({positions}{more}, {hidden_size})  # {table}, of the weights"""
forward = "x = add(x, positions{offset})"

[[value]]
is = "number"
whole = true
least = 1
most = 1e9
says = "a whole number from 1 on"
keys = """
head_dim hidden_size n_embd d_model dim num_attention_heads n_head n_heads
num_heads max_position_embeddings n_positions max_sequence_length seq_length
n_ctx max_seq_len original_max_position_embeddings qk_rope_head_dim
qk_nope_head_dim attention_chunk_size local_attention rotary_dim
relative_attention_num_buckets relative_attention_max_distance
no_rope_layer_interval global_attn_every_n_layers floor_scale"""
[[value]]
is = "number"
whole = true
least = 0
most = 1e9
says = "a whole number"
keys = "sliding_window max_window_layers"
[[value]]
is = "number"
whole = true
least = 1
most = 2000
says = "a whole number from 1 to 2000"
keys = "num_hidden_layers n_layer n_layers num_layers"
[[value]]
is = "number"
least = 1.000001
most = 1e15
says = "a number above 1"
keys = """rope_theta rotary_emb_base rope_local_base_freq global_rope_theta
local_rope_theta"""
[[value]]
is = "number"
least = 1
most = 1e9
says = "a number from 1 on"
keys = "factor"
[[value]]
is = "number"
least = 1e-9
most = 1
says = "a number above 0, and 1 at most"
keys = "partial_rotary_factor rotary_pct rotary_emb_fraction"
[[value]]
is = "number"
least = 1e-9
most = 1e9
says = "a number above 0"
keys = """low_freq_factor high_freq_factor beta_fast beta_slow attention_factor
attn_scale llama_4_scaling_beta"""
[[value]]
is = "number"
least = 0
most = 1e9
says = "a number, 0 or above"
keys = "mscale mscale_all_dim"
[[value]]
is = "numbers"
least = 1e-9
most = 1e9
says = "a list of numbers above 0"
keys = "short_factor long_factor mrope_section"
[[value]]
is = "numbers"
least = 0
most = 1
says = "a list of 0 and 1"
keys = "no_rope_layers"
[[value]]
is = "texts"
says = "a list of texts"
keys = "layer_types"
[[value]]
is = "text"
says = "a text"
keys = "model_type rope_type type"
[[value]]
is = "dictionary"
says = "a dictionary"
keys = "rope_scaling rope_parameters"
[[value]]
is = "switch"
says = "true or false"
keys = "truncate use_sliding_window rope_interleave mrope_interleaved alibi"
[[value]]
is = "any"
says = "anything"
keys = """
sliding_window_pattern _sliding_window_pattern attn_temperature_tuning
full_attention sliding_attention chunked_attention linear_attention conv
mamba"""

[[rule]]
says = """\
rope_scaling and rope_parameters are both there. transformers 5.23.0 takes \
rope_scaling and passes over the other."""
when = [
  "has given.rope_scaling", "has given.rope_parameters", "lacks row.kinds"]
[[rule]]
says = "rope_type and type differ. Of a Llama so written: {found}."
when = ["lacks row.kinds", "differ rope.rope_type rope.type"]
case = "two types that differ"
[[rule]]
says = """\
rope_theta stands inside the dictionary and outside it, with two values. \
transformers 5.23.0 takes the one inside."""
when = ["apart rope_theta"]
[[rule]]
says = """\
original_max_position_embeddings stands inside the dictionary and outside it, \
with two values. transformers 5.23.0 takes the one outside."""
when = ["apart original_max_position_embeddings", "lacks row.kinds"]
[[rule]]
says = """\
The base stands in rope_parameters alone. Of a Llama so written: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method default"]
case = "base inside, as transformers 5 writes it"
[[rule]]
says = """\
Base and stretch stand in rope_parameters alone. Of a Llama so written: \
{found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method linear"]
case = "linear, new dictionary"
[[rule]]
says = """\
Base and stretch stand in rope_parameters alone. Of a Llama so written: \
{found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method yarn"]
case = "YaRN, new dictionary"
[[rule]]
says = """\
Base and stretch stand in rope_parameters alone. Of a Llama so written: \
{found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "lacks given.rope_theta", "is method llama3"]
case = "Llama 3.1, new dictionary"
[[rule]]
says = """\
The stretch stands in rope_parameters alone. Of a Llama so written: {found}."""
when = [
  "has given.rope_parameters", "lacks given.rope_scaling", "lacks row.kinds",
  "has given.rope_theta", "is method linear"]
case = "linear, new dictionary, base outside"
[[rule]]
says = """\
The original length stands outside the dictionary. Of a Llama so written: \
{found}."""
when = [
  "is method yarn", "has given.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "YaRN, original length outside"
[[rule]]
says = """\
The original length stands nowhere; max_position_embeddings is taken for it, \
which may be that of the stretched model. Of a Llama so written: {found}."""
when = [
  "is method yarn", "lacks look.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "YaRN, no original length"
[[rule]]
says = """\
The original length stands nowhere; max_position_embeddings is taken for it, \
which may be that of the stretched model. Of a Llama so written: {found}."""
when = [
  "is method llama3", "lacks look.original_max_position_embeddings",
  "lacks rope.original_max_position_embeddings"]
case = "Llama 3.1, no original length"
[[rule]]
says = "beta_fast is not its usual one. Of a Llama so written: {found}."
when = ["is method yarn", "has rope.beta_fast", "isnt rope.beta_fast 32|32.0"]
case = "YaRN, `beta_fast` 8"
[[rule]]
says = "truncate is false. Of a Llama so written: {found}."
when = ["is method yarn", "is rope.truncate false"]
case = "YaRN, `truncate` false"
[[rule]]
says = """\
truncate stands in the dictionary of one kind of layer. transformers 5.23.0 \
looks for it beside them, and does not read it."""
when = ["is method yarn", "has rope.truncate", "has row.kinds"]
[[rule]]
says = "attention_factor is given. Of a Llama so written: {found}."
when = ["is method yarn", "has rope.attention_factor"]
case = "YaRN, `attention_factor` 1"
[[rule]]
says = "mscale and mscale_all_dim are given. Of a Llama so written: {found}."
when = ["is method yarn", "has rope.mscale", "has rope.mscale_all_dim"]
case = "YaRN, `mscale` and `mscale_all_dim` 1"
[[rule]]
says = """\
The code of {kind} turns whole heads and passes over partial_rotary_factor. \
Of a Llama so written: {found}."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "is method default", "has given.partial_rotary_factor"]
case = "half of each head, outside"
[[rule]]
says = """\
The code of {kind} turns whole heads and passes over partial_rotary_factor. \
Of a Llama so written: {found}."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "is method default", "lacks row.kinds", "has rope.partial_rotary_factor"]
case = "half of each head, inside"
[[rule]]
says = """\
The code of {kind} turns whole heads, and with a stretch its tables are for a \
part of them: with partial_rotary_factor it stops."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "isnt method default|proportional", "has rope.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The code of {kind} turns whole heads, and with a stretch its tables are for a \
part of them: with partial_rotary_factor it stops."""
when = [
  "has row.layout", "lacks row.share", "lacks look.qk_rope_head_dim",
  "isnt method default|proportional", "has given.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The class of {kind} shortens its tables to the channels that turn where the \
dictionary is rope_parameters. With rope_scaling they are too wide: it stops."""
when = [
  "is given.model_type mistral4", "has given.rope_scaling",
  "lacks rope.partial_rotary_factor"]
fault = true
[[rule]]
says = """\
The class of {kind} makes tables for whole heads where the type is default, \
and a part of each head turns: it stops."""
when = ["is given.model_type mistral4", "is method default"]
fault = true
[[rule]]
says = """\
The code of {kind} takes llama_4_scaling_beta from the dictionary, and stops \
where it is not there."""
when = ["is row.temperature ministral3", "lacks rope.llama_4_scaling_beta"]
[[rule]]
says = """\
The code of {kind} takes original_max_position_embeddings from the dictionary, \
and stops where it is not there."""
when = [
  "is row.temperature ministral3",
  "lacks rope.original_max_position_embeddings"]
[[rule]]
says = """\
The class of {kind} begins with rope_type default, and passes over type in \
rope_scaling: nothing is stretched."""
when = ["has row.kinds", "differ rope.rope_type rope.type"]
[[rule]]
says = """\
A factor without a type stretches nothing. Of a Llama so written: {found}."""
when = ["has rope.factor", "lacks rope.rope_type", "lacks rope.type"]
case = "no type, only a factor"
[[rule]]
says = "factor is not used: the type is default."
when = ["has rope.factor", "is method default", "is rope.rope_type default"]
[[rule]]
says = """\
dynamic grows with the length of the text: cache keys before they are turned. \
Of a Llama so written: {found}."""
when = ["is method dynamic"]
case = "dynamic, a text of twice the length"
[[rule]]
says = """\
Sections are named by a type of their own. Of a Llama so written: {found}."""
when = ["is rope.type mrope"]
case = "type `mrope`, with sections"
[[rule]]
says = "linear needs factor. Of a Llama so written: {found}."
when = ["is method linear", "lacks rope.factor"]
case = "a type, no factor"
fault = true
[[rule]]
says = """\
llama3 needs low_freq_factor and high_freq_factor. Of a Llama so written: \
{found}."""
when = [
  "is method llama3", "lacks rope.low_freq_factor",
  "lacks rope.high_freq_factor"]
case = "Llama 3.1, both turns left out"
fault = true
[[rule]]
says = """\
yarn has no factor. transformers 5.23.0 refuses that, unless factor is there \
and null; taken is by how much the longest text is longer."""
when = ["is method yarn", "lacks rope.factor"]
[[rule]]
says = """\
factor is not by how much max_position_embeddings is longer than the original \
length. transformers 5.23.0 takes the factor, and warns."""
when = [
  "is method yarn",
  "ratio rope.factor look.positions rope.original_max_position_embeddings"]
[[rule]]
says = "max_position_embeddings is below the original length."
when = [
  "is method yarn|llama3|longrope",
  "below look.positions rope.original_max_position_embeddings"]
[[rule]]
says = "low_freq_factor is above high_freq_factor."
when = ["is method llama3", "below rope.high_freq_factor rope.low_freq_factor"]
fault = true
[[rule]]
says = "beta_slow is above beta_fast."
when = ["is method yarn", "below rope.beta_fast rope.beta_slow"]
fault = true
[[rule]]
says = "beta_slow is above beta_fast, which is 32 where it is not given."
when = ["is method yarn", "lacks rope.beta_fast", "below 32 rope.beta_slow"]
fault = true
[[rule]]
says = "beta_fast is below beta_slow, which is 1 where it is not given."
when = ["is method yarn", "lacks rope.beta_slow", "below rope.beta_fast 1"]
fault = true
[[rule]]
says = "low_freq_factor is for llama3, and nothing is made of it here."
when = ["has rope.low_freq_factor", "isnt method llama3"]
[[rule]]
says = "beta_fast is for yarn, and nothing is made of it here."
when = ["has rope.beta_fast", "isnt method yarn"]
[[rule]]
says = "short_factor is for longrope, and nothing is made of it here."
when = ["has rope.short_factor", "isnt method longrope"]
[[rule]]
says = """\
attention_factor is for yarn and longrope, and nothing is made of it here."""
when = ["has rope.attention_factor", "isnt method yarn|longrope"]
[[rule]]
says = "mscale is for yarn, and nothing is made of it here."
when = ["has rope.mscale", "isnt method yarn"]
[[rule]]
says = """\
{kind} takes its type for another: su and yarn for longrope, mrope for \
default."""
when = ["has row.methods", "is rope.type su|yarn|mrope"]
[[rule]]
says = """\
mrope_section shares the pairs among time, rows and columns, for pictures: \
mrope.py has the tables. For text these calls do."""
when = ["has rope.mrope_section"]
[[rule]]
says = "sliding_window is not used: use_sliding_window is false."
when = [
  "is look.use_sliding_window false", "has given.sliding_window",
  "has row.window"]
[[rule]]
says = "sliding_window is not read by the code of {kind}."
when = ["has row.layout", "lacks row.window", "has given.sliding_window"]
[[rule]]
says = "layer_types is not read for windows by the code of {kind}."
when = ["has row.layout", "lacks row.window", "has given.layer_types"]
[[rule]]
says = """\
With alibi, Falcon adds ALiBi to the scores before they are divided by the \
root of the width: its bias is that of alibi.py, divided by it too."""
when = ["is given.model_type falcon", "is given.alibi true"]
fault = true

[words]
unread = "Not read"
no_json = """\
No JSON: line {line}, column {column}: expected {expected}, got {got}."""
too_long = """\
At most {limit} characters are read, got {got}. The parts that count are \
those with rope, head, layer, window or position in their names."""
too_deep = """\
Brackets stand in brackets deeper than {deepest}: no config.json does so."""
no_object = "A config.json is an object, {…}; got {got}."
a_value = "a value"
a_name = "a name in quotes"
end = "the end"
unknown = "unknown"
and = ", and "
mind = "What to mind"
built = "Where the model is built"
forward = "Where its forward begins, once for all layers"
each_layer = "In each layer, once q and k are made and before k is cached"
some_layers = "In layers {layers} ({kind}), once q and k are made"
each_part = "In each layer, to the {part} channels of q and of k for positions"
right = "Is it right?"
own_check = "And is your own rotation?"
no_type = "no model_type"
is_rope = "{kind}: RoPE, layout {layout}"
is_alibi = "{kind}: ALiBi"
is_t5 = "{kind}: T5's buckets"
is_learned = "{kind}: a learned table"
no_calls = "{kind}: no calls can be given"
part = "Read was {part}, the part for text."
whole = "A file of {kind} without a part for text is read as one of {part}."
from_key = "from {key}"
from_class = "which no key says and the class of {kind} takes"
layout = """\
Layout {layout}. It stands in no configuration; the code has it, \
models/{file}/modeling_{file}.py in transformers 5.23.0."""
layout_by_key = "Layout {layout} of the weights, from rope_interleave."
head_dim = "Heads of {head} channels, {source}."
qk_rope_head_dim = """\
Of each head, {head} channels are for positions, {source}; they are turned \
apart."""
wide = "Heads of {head} channels: {wide} shared by {heads}."
share = "Of {head} channels {turned} turn."
base = "Base {base}{of}, {source}."
base_of_class = """\
No key says the base. The file of a checkpoint mostly does, and a wrong base \
gives no error: is it the whole file?"""
of_kind = " in layers of {kind}"
still = "In layers {layers} ({kind}) nothing turns."
scale = """\
Scores are multiplied by scale, below, in place of one by the root of the \
width."""
number = "{key}: {value}, {source}."
reads = "It has to pass in layers_as_configured, and to read"
reading = "{layout} layout, {turned} of {head} channels"
asks = "It reads the layout off: take its words for it."
command = "python check_positions.py transformers:config.json"
asks_alibi = "It reads no rotation, and a bias that is linear."
asks_t5 = "It reads no rotation."
asks_learned = "It reads a vector that is added, and no rotation."
twice = """\
{key} stands twice in an object. The last one counts, in Python as here."""
value = "{key} has to be {expected}, got {got}."
strange = """\
{key} may speak of positions. It is not known here, and nothing was read from \
it."""
no_signs = """\
No key here speaks of positions, and the class is not known here: positions \
may be made in the code, or not at all."""
unknown_type = """\
Whose code reads this is not known here ({kind}), and it may do otherwise. \
What was read are its keys, as other models use them. To find out what a \
model does: python check_positions.py transformers:config.json, or give your \
rotation to check_rotation."""
no_layout = """\
The layout is unknown: half or interleaved stands in the code. A wrong one \
gives no error. check_positions.py reads it off a model, read_rotation off a \
function."""
nested = """\
The code of {kind} reads one dictionary of RoPE, and here is one for each \
kind of layer."""
flat = """\
The code of {kind} reads a dictionary of RoPE for each kind of layer, and \
here is one for all."""
no_head = """\
How wide a head is stands nowhere: head_dim, or hidden_size and \
num_attention_heads."""
no_base = """\
The base stands nowhere, and the class is not known here: rope_theta."""
no_method = """\
{method} is no method of RoPE that is known here. Known are default, linear, \
dynamic, yarn, llama3, longrope and proportional."""
odd = "{turned} channels would turn, and pairs need an even number of them."
needs = "{method} needs {key}."
pairs = "{key} has to have {pairs} numbers, one a pair, got {got}."
layer_types = "layer_types has to have {many} words, one a layer, got {got}."
no_rope_layers = """\
no_rope_layers has to have {many} numbers, one a layer, got {got}."""
no_kind = "Layers of the kind {kind} are not known here."
no_window = "Layers of {kind} need {key}."
no_pattern = """\
Which layers have the window is not known here for {kind}: name them in \
layer_types."""
'''

# From tools/configurations.py: what was asked of models and of stacks.
MEASURED = r"""
{
"models": {
"afmoe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 16384, "head_dim": 128,
 "sliding_window": 1024, "rope_theta": 10000.0}, "layout": "half", "bare":
 "full_attention", "window":
 "global_attn_every_n_layers 4 last sliding_attention"},
"apertus": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta":
 12000000.0}, "layout": "half", "rope": {"rope_type": "llama3", "factor": 8.0,
 "original_max_position_embeddings": 8192, "low_freq_factor": 1.0,
 "high_freq_factor": 4.0, "rope_theta": 12000000.0}},
"arcee": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half"},
"aria_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "file": "aria", "layout": "half"},
"axk1": {"defaults": {"hidden_size": 7168, "num_attention_heads": 64,
 "num_hidden_layers": 61, "max_position_embeddings": 32768, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true},
"bailing_hybrid": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 42, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
 "rope_theta": 6000000.0}, "layout": "interleaved", "shows": "half", "window":
 "- 6 last linear_attention", "mscale": true},
"bert": {"family": "learned", "own": {"table": "embeddings.position_embeddings",
 "more": "", "offset": ""}, "defaults": {"hidden_size": 768,
 "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings":
 512}},
"bitnet": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 30, "max_position_embeddings": 2048, "rope_theta":
 500000.0}, "layout": "half"},
"bloom": {"family": "alibi", "defaults": {"hidden_size": 64, "n_head": 8,
 "n_layer": 2}},
"blt_patcher": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 14, "max_position_embeddings": 8192, "sliding_window":
 512, "rope_theta": 10000.0}, "file": "blt", "layout": "interleaved", "window":
 "all"},
"codegen": {"defaults": {"n_embd": 4096, "n_head": 16, "n_layer": 28,
 "n_positions": 2048, "rotary_dim": 64, "-": 10000.0}, "layout": "interleaved",
 "base_key": "-", "channels": true},
"cohere": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 40, "max_position_embeddings": 8192, "rope_theta":
 500000.0}, "layout": "interleaved"},
"cohere2": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 40, "max_position_embeddings": 8192, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "interleaved", "bare":
 "full_attention", "window": "sliding_window_pattern 4 last sliding_attention"},
"cwm": {"defaults": {"hidden_size": 6144, "num_attention_heads": 48,
 "num_hidden_layers": 64, "max_position_embeddings": 131072, "head_dim": 128,
 "sliding_window": 8192, "rope_theta": 1000000.0}, "layout": "half", "rope":
 {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
 "original_max_position_embeddings": 8192, "rope_type": "llama3", "rope_theta":
 1000000.0}, "window": "- 4 first sliding_attention"},
"deepseek_v3": {"defaults": {"hidden_size": 7168, "num_attention_heads": 128,
 "num_hidden_layers": 61, "max_position_embeddings": 4096, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true},
"dia_encoder": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 12, "max_position_embeddings": 1024, "head_dim": 128,
 "rope_theta": 10000.0}, "file": "dia", "layout": "half"},
"diffllama": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 16, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"doge": {"defaults": {"hidden_size": 1024, "num_attention_heads": 8,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "window": "all"},
"emu3_text_model": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 9216, "rope_theta":
 1000000.0}, "file": "emu3", "layout": "half"},
"ernie4_5": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 18, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 500000.0}, "layout": "interleaved"},
"esmc": {"defaults": {"hidden_size": 2560, "num_attention_heads": 40,
 "num_hidden_layers": 80, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"eurobert": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 12, "max_position_embeddings": 8192, "rope_theta":
 10000.0}, "layout": "half"},
"evolla": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta":
 500000.0}, "layout": "half"},
"exaone4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "bare": "full_attention",
 "window": "sliding_window_pattern 4 last sliding_attention"},
"exaone_moe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "bare": "full_attention",
 "window": "sliding_window_pattern 4 last sliding_attention"},
"falcon": {"defaults": {"hidden_size": 4544, "num_attention_heads": 71,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"flex_olmo": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 500000.0}, "layout": "half"},
"gemma": {"defaults": {"hidden_size": 3072, "num_attention_heads": 16,
 "num_hidden_layers": 28, "max_position_embeddings": 8192, "head_dim": 256,
 "rope_theta": 10000.0}, "layout": "half"},
"gemma2": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 8192, "head_dim": 256,
 "sliding_window": 4096, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 2 last sliding_attention"},
"gemma3_text": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 131072, "head_dim": 256,
 "sliding_window": 4096}, "file": "gemma3", "layout": "half", "kinds":
 {"sliding_attention": {"key": "rope_local_base_freq", "theta": 10000.0},
 "full_attention": {"key": "rope_theta", "theta": 1000000.0, "stretched":
 true}}, "window": "sliding_window_pattern 6 last sliding_attention"},
"glm": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 40, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "interleaved", "share": 0.5},
"glm4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 40, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "interleaved", "share": 0.5},
"glm4_moe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 96,
 "num_hidden_layers": 46, "max_position_embeddings": 131072, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5},
"glm4_moe_lite": {"defaults": {"hidden_size": 2048, "num_attention_heads": 20,
 "num_hidden_layers": 47, "max_position_embeddings": 202752, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 192, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true},
"glm_ocr_text": {"defaults": {"hidden_size": 1024, "num_attention_heads": 16,
 "num_hidden_layers": 16, "max_position_embeddings": 131072, "rope_theta":
 10000.0}, "file": "glm_ocr", "layout": "interleaved", "share": 1.0},
"gpt2": {"family": "learned", "own": {"table": "transformer.wpe", "more": "",
 "offset": ""}, "defaults": {"n_embd": 768, "n_head": 12, "n_layer": 12,
 "n_positions": 1024}},
"gpt_bigcode": {"family": "learned", "own": {"table": "transformer.wpe", "more":
 "", "offset": ""}, "defaults": {"n_embd": 768, "n_head": 12, "n_layer": 12,
 "n_positions": 1024}},
"gpt_neo": {"family": "learned", "own": {"table": "transformer.wpe", "more": "",
 "offset": ""}, "defaults": {"hidden_size": 2048, "num_heads": 16, "num_layers":
 24, "max_position_embeddings": 2048}},
"gpt_neox": {"defaults": {"hidden_size": 6144, "num_attention_heads": 64,
 "num_hidden_layers": 44, "max_position_embeddings": 2048, "rotary_emb_base":
 10000.0}, "layout": "half", "base_key": "rotary_emb_base", "share": 0.25,
 "share_key": "rotary_pct"},
"gpt_neox_japanese": {"defaults": {"hidden_size": 2560, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048,
 "rotary_emb_base": 10000.0}, "layout": "half", "base_key": "rotary_emb_base",
 "share": 1.0, "share_key": "rotary_pct"},
"gpt_oss": {"defaults": {"hidden_size": 2880, "num_attention_heads": 64,
 "num_hidden_layers": 36, "max_position_embeddings": 131072, "head_dim": 64,
 "sliding_window": 128, "rope_theta": 150000.0}, "layout": "half", "rope":
 {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
 "truncate": false, "original_max_position_embeddings": 4096}, "window":
 "- 2 last sliding_attention", "sinks": true},
"gptj": {"defaults": {"n_embd": 4096, "n_head": 16, "n_layer": 28,
 "n_positions": 2048, "rotary_dim": 64, "-": 10000.0}, "layout": "interleaved",
 "base_key": "-", "channels": true},
"granite": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"granite4_vision_text": {"defaults": {"hidden_size": 4096,
 "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings":
 2048, "rope_theta": 10000.0}, "file": "granite4_vision", "layout": "half"},
"granite_docling_text": {"defaults": {"hidden_size": 1024,
 "num_attention_heads": 16, "num_hidden_layers": 28, "max_position_embeddings":
 32768, "rope_theta": 10000.0}, "file": "granite_docling", "layout": "half"},
"granite_swa": {"defaults": {"hidden_size": 2560, "num_attention_heads": 20,
 "num_hidden_layers": 24, "max_position_embeddings": 8192, "sliding_window":
 128, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 4 first sliding_attention"},
"granitemoe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"granitemoe_swa": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "sliding_window":
 128, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 4 first sliding_attention"},
"granitemoeshared": {"defaults": {"hidden_size": 4096, "num_attention_heads":
 32, "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
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
 "original_max_position_embeddings": 1024, "rope_type": "llama3"}},
"hy_v3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 11158840.0}, "layout": "half"},
"hyperclovax": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"internlm3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 48, "max_position_embeddings": 32768, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half"},
"iquestcoder": {"defaults": {"hidden_size": 5120, "num_attention_heads": 40,
 "num_hidden_layers": 80, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half"},
"jais2": {"defaults": {"hidden_size": 3328, "num_attention_heads": 26,
 "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta":
 10000.0}, "layout": "half"},
"jina_embeddings_v3": {"defaults": {"hidden_size": 1024, "num_attention_heads":
 16, "num_hidden_layers": 24, "max_position_embeddings": 8194, "rope_theta":
 20000.0}, "layout": "half"},
"kolibri1": {"defaults": {"hidden_size": 2560, "num_attention_heads": 48,
 "num_hidden_layers": 50, "max_position_embeddings": 262144, "head_dim": 128,
 "sliding_window": 513, "rope_theta": 10000.0}, "layout": "half", "bare":
 "full_attention", "window": "- 5 last sliding_attention"},
"lfm2": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 128000, "rope_theta":
 1000000.0}, "layout": "half", "window": "layer_types"},
"llama": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half"},
"llama4_text": {"defaults": {"hidden_size": 5120, "num_attention_heads": 40,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "head_dim": 128,
 "attention_chunk_size": 8192, "no_rope_layer_interval": 4,
 "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1,
 "rope_theta": 500000.0}, "file": "llama4", "layout": "interleaved", "bare":
 "no_rope_layers", "window": "turning", "temperature": "llama4"},
"longcat_flash": {"defaults": {"hidden_size": 6144, "num_attention_heads": 64,
 "num_layers": 28, "max_position_embeddings": 131072, "qk_rope_head_dim": 64,
 "qk_nope_head_dim": 128, "rope_theta": 10000000.0}, "layout": "interleaved",
 "shows": "half", "mscale": true},
"mellum": {"defaults": {"hidden_size": 2304, "num_attention_heads": 32,
 "num_hidden_layers": 28, "max_position_embeddings": 131072, "head_dim": 128},
 "layout": "half", "kinds": {"full_attention": {"rope": {"rope_type": "default",
 "rope_theta": 500000.0}}, "sliding_attention": {"rope": {"rope_type":
 "default", "rope_theta": 10000.0}}}, "share": 1.0, "window": "layer_types"},
"minicpm3": {"defaults": {"hidden_size": 2560, "num_attention_heads": 40,
 "num_hidden_layers": 62, "max_position_embeddings": 32768, "qk_rope_head_dim":
 32, "qk_nope_head_dim": 64, "rope_theta": 10000.0}, "layout": "half", "mscale":
 true},
"minimax": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "- 2 first linear_attention"},
"minimax_m2": {"defaults": {"hidden_size": 3072, "num_attention_heads": 48,
 "num_hidden_layers": 62, "max_position_embeddings": 196608, "head_dim": 128,
 "rope_theta": 5000000.0}, "layout": "half", "share": 1.0, "channels": true},
"minimax_m3_vl_text": {"defaults": {"hidden_size": 6144, "num_attention_heads":
 64, "num_hidden_layers": 60, "max_position_embeddings": 524288, "head_dim":
 128, "rotary_dim": 64, "rope_theta": 5000000.0}, "file": "minimax_m3_vl",
 "layout": "half", "share": 1.0, "window": "layer_types"},
"ministral3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 34, "max_position_embeddings": 262144, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half", "rope": {"rope_theta": 1000000.0,
 "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32.0,
 "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta":
 0.1, "rope_type": "yarn"}, "window": "all", "temperature": "ministral3"},
"mistral": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "sliding_window":
 4096, "rope_theta": 10000.0}, "layout": "half", "window": "all"},
"mistral4": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 36, "max_position_embeddings": 1048576,
 "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "rope_interleave": true,
 "rope_theta": 10000.0}, "layout": "rope_interleave", "shows": "half", "rope":
 {"factor": 128.0, "original_max_position_embeddings": 8192, "beta_fast": 32.0,
 "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta":
 0.1, "rope_type": "yarn", "rope_theta": 10000.0}, "temperature": "ministral3",
 "mscale": true},
"mixtral": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "all"},
"modernbert": {"defaults": {"hidden_size": 768, "num_attention_heads": 12,
 "num_hidden_layers": 22, "max_position_embeddings": 8192, "local_attention":
 128}, "layout": "half", "kinds": {"sliding_attention": {"key":
 "local_rope_theta", "theta": 10000.0, "stretched": true}, "full_attention":
 {"key": "global_rope_theta", "theta": 160000.0, "stretched": true}},
 "window_key": "local_attention", "window":
 "sliding_window_pattern 3 first sliding_attention"},
"modernbert-decoder": {"defaults": {"hidden_size": 768, "num_attention_heads":
 12, "num_hidden_layers": 22, "max_position_embeddings": 8192, "sliding_window":
 64, "local_attention": 128}, "file": "modernbert_decoder", "layout": "half",
 "kinds": {"sliding_attention": {"key": "local_rope_theta", "theta": 10000.0,
 "stretched": true}, "full_attention": {"key": "global_rope_theta", "theta":
 160000.0, "stretched": true}}, "window":
 "sliding_window_pattern 3 first sliding_attention"},
"molmo2_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 36, "max_position_embeddings": 36864, "head_dim": 128,
 "rope_theta": 10000.0}, "file": "molmo2", "layout": "half"},
"mpt": {"family": "alibi", "defaults": {"d_model": 2048, "n_heads": 16,
 "n_layers": 24, "max_seq_len": 2048}},
"mt5": {"family": "t5", "defaults": {"d_model": 512, "num_heads": 6,
 "num_layers": 8, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}},
"nanochat": {"defaults": {"hidden_size": 768, "num_attention_heads": 6,
 "num_hidden_layers": 12, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "backwards": true},
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
 "window": "- 4 last sliding_attention"},
"olmo_hybrid": {"defaults": {"hidden_size": 3840, "num_attention_heads": 30,
 "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta":
 10000.0}, "layout": "half", "window": "- 4 last linear_attention"},
"olmoe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 16, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half"},
"opt": {"family": "learned", "own": {"table": "decoder.embed_positions", "more":
 " + 2", "offset": " + 2"}, "defaults": {"hidden_size": 768,
 "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings":
 2048}},
"paddleocr_vl_text": {"defaults": {"hidden_size": 1024, "num_attention_heads":
 16, "num_hidden_layers": 18, "max_position_embeddings": 131072, "head_dim":
 128, "rope_theta": 500000.0}, "file": "paddleocr_vl", "layout": "half"},
"persimmon": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 36, "max_position_embeddings": 16384, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5},
"phi": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 24, "max_position_embeddings": 2048, "rope_theta":
 10000.0}, "layout": "half", "share": 0.5},
"phi3": {"defaults": {"hidden_size": 3072, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096,
 "original_max_position_embeddings": 4096, "rope_theta": 10000.0}, "layout":
 "half", "methods": {"su": "longrope", "yarn": "longrope"}, "share": 1.0,
 "window": "all"},
"phimoe": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta":
 1000000.0}, "layout": "half", "window": "all"},
"qwen2": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 28, "rope_theta":
 10000.0}, "layout": "half", "window": "beyond"},
"qwen2_5_omni_text": {"defaults": {"hidden_size": 3584, "num_attention_heads":
 28, "num_hidden_layers": 28, "max_position_embeddings": 32768,
 "sliding_window": 32768, "use_sliding_window": false, "max_window_layers": 28,
 "rope_theta": 1000000.0}, "file": "qwen2_5_omni", "layout": "half", "window":
 "beyond"},
"qwen2_5_vl_text": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 80, "rope_theta":
 1000000.0}, "file": "qwen2_5_vl", "layout": "half", "methods": {"mrope":
 "default"}, "window": "beyond"},
"qwen2_moe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 24, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 28, "rope_theta":
 10000.0}, "layout": "half", "window": "layer_types"},
"qwen2_vl_text": {"defaults": {"hidden_size": 8192, "num_attention_heads": 64,
 "num_hidden_layers": 80, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "max_window_layers": 80, "rope_theta":
 1000000.0}, "file": "qwen2_vl", "layout": "half", "methods": {"mrope":
 "default"}, "window": "beyond"},
"qwen3": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "head_dim": 128,
 "sliding_window": 4096, "use_sliding_window": false, "max_window_layers": 28,
 "rope_theta": 10000.0}, "layout": "half", "window": "beyond"},
"qwen3_5_moe_text": {"defaults": {"hidden_size": 2048, "num_attention_heads":
 16, "num_hidden_layers": 40, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "file": "qwen3_5_moe", "layout": "half", "share": 0.25,
 "window": "full_attention_interval 4 last linear_attention"},
"qwen3_5_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "file": "qwen3_5", "layout": "half", "share": 0.25,
 "window": "full_attention_interval 4 last linear_attention"},
"qwen3_moe": {"defaults": {"hidden_size": 2048, "num_attention_heads": 32,
 "num_hidden_layers": 24, "max_position_embeddings": 32768, "sliding_window":
 4096, "use_sliding_window": false, "rope_theta": 10000.0}, "layout": "half",
 "window": "all"},
"qwen3_next": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 48, "max_position_embeddings": 32768, "head_dim": 256,
 "rope_theta": 10000.0}, "layout": "half", "share": 0.25, "window":
 "full_attention_interval 4 last linear_attention"},
"qwen3_vl_text": {"defaults": {"hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 128000, "head_dim": 128,
 "rope_theta": 500000.0}, "file": "qwen3_vl", "layout": "half"},
"roberta": {"family": "learned", "own": {"table":
 "embeddings.position_embeddings", "more": "", "offset": " + 2"}, "defaults":
 {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
 "max_position_embeddings": 512}},
"seed_oss": {"defaults": {"hidden_size": 4096, "num_attention_heads": 80,
 "num_hidden_layers": 64, "max_position_embeddings": 524288, "head_dim": 128,
 "rope_theta": 10000.0}, "layout": "half"},
"smollm3": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 36, "max_position_embeddings": 32768,
 "use_sliding_window": false, "no_rope_layer_interval": 4, "rope_theta":
 2000000.0}, "layout": "half", "bare": "no_rope_layers", "window":
 "layer_types"},
"solar_open": {"defaults": {"hidden_size": 4096, "num_attention_heads": 64,
 "num_hidden_layers": 48, "max_position_embeddings": 131072, "head_dim": 128,
 "rope_theta": 1000000.0}, "layout": "half", "share": 1.0},
"stablelm": {"defaults": {"hidden_size": 2560, "num_attention_heads": 32,
 "num_hidden_layers": 32, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "share": 0.25},
"starcoder2": {"defaults": {"hidden_size": 3072, "num_attention_heads": 24,
 "num_hidden_layers": 30, "max_position_embeddings": 4096, "rope_theta":
 10000.0}, "layout": "half", "window": "all"},
"switch_transformers": {"family": "t5", "defaults": {"d_model": 768,
 "num_heads": 12, "num_layers": 12, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}},
"t5": {"family": "t5", "defaults": {"d_model": 512, "num_heads": 8,
 "num_layers": 6, "relative_attention_num_buckets": 32,
 "relative_attention_max_distance": 128}},
"vaultgemma": {"defaults": {"hidden_size": 2304, "num_attention_heads": 8,
 "num_hidden_layers": 26, "max_position_embeddings": 8192, "head_dim": 256,
 "sliding_window": 4096, "rope_theta": 10000.0}, "layout": "half", "window":
 "- 2 last sliding_attention"},
"youtu": {"defaults": {"hidden_size": 2048, "num_attention_heads": 16,
 "num_hidden_layers": 32, "max_position_embeddings": 131072, "qk_rope_head_dim":
 64, "qk_nope_head_dim": 128, "rope_interleave": true, "rope_theta": 10000.0},
 "layout": "rope_interleave", "shows": "half", "mscale": true}
},
"wholes": {
"fuyu": "persimmon",
"paddleocr_vl": "paddleocr_vl_text",
"qwen2_5_vl": "qwen2_5_vl_text",
"qwen2_vl": "qwen2_vl_text"
},
"outcomes": {
"Llama 3.1, both turns left out": {"an error": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0"], "as meant": ["mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"]},
"Llama 3.1, new dictionary": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as meant": ["transformers 5.23.0",
 "vLLM 0.33.0", "llama.cpp at 0c1e570"]},
"Llama 3.1, no original length": {"an error": ["transformers 4.57.6"],
 "Llama 3.1's stretch from max_position_embeddings": ["transformers 5.23.0",
 "vLLM 0.33.0", "llama.cpp at 0c1e570"], "as meant": ["mlx-lm 0.32.2"]},
"YaRN, `attention_factor` 1": {"YaRN with its usual settings": ["mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"], "as meant": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0"]},
"YaRN, `beta_fast` 8": {"YaRN with its usual settings":
 ["llama.cpp at 0c1e570"], "as meant": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "mlx-lm 0.32.2"]},
"YaRN, `mscale` and `mscale_all_dim` 1": {"YaRN with its usual settings":
 ["llama.cpp at 0c1e570"], "as meant": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0", "mlx-lm 0.32.2"]},
"YaRN, `truncate` false": {"YaRN with its usual settings": ["mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"], "as meant": ["transformers 4.57.6",
 "transformers 5.23.0", "vLLM 0.33.0"]},
"YaRN, new dictionary": {"plain RoPE with base 10,000": ["transformers 4.57.6",
 "mlx-lm 0.32.2"], "as meant": ["transformers 5.23.0", "vLLM 0.33.0",
 "llama.cpp at 0c1e570"]},
"YaRN, no original length": {"YaRN from max_position_embeddings":
 ["transformers 4.57.6", "transformers 5.23.0", "vLLM 0.33.0",
 "llama.cpp at 0c1e570"], "as meant": ["mlx-lm 0.32.2"]},
"YaRN, original length outside": {"YaRN from max_position_embeddings":
 ["transformers 4.57.6", "llama.cpp at 0c1e570"], "as meant":
 ["transformers 5.23.0", "vLLM 0.33.0", "mlx-lm 0.32.2"]},
"a type, no factor": {"an error": ["transformers 4.57.6", "transformers 5.23.0",
 "vLLM 0.33.0", "mlx-lm 0.32.2"], "plain RoPE with the base as written":
 ["llama.cpp at 0c1e570"]},
"base inside, as transformers 5 writes it": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as meant": ["transformers 5.23.0",
 "vLLM 0.33.0", "llama.cpp at 0c1e570"]},
"dynamic, a text of twice the length": {"plain RoPE with the base as written":
 ["vLLM 0.33.0", "llama.cpp at 0c1e570"], "as meant": ["transformers 4.57.6",
 "transformers 5.23.0", "mlx-lm 0.32.2"]},
"half of each head, inside": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"],
 "plain RoPE with the base as written": ["transformers 5.23.0",
 "llama.cpp at 0c1e570"], "as meant": ["vLLM 0.33.0"]},
"half of each head, outside": {"an error": ["transformers 4.57.6"],
 "plain RoPE with the base as written": ["transformers 5.23.0", "mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"], "as meant": ["vLLM 0.33.0"]},
"linear, new dictionary": {"plain RoPE with base 10,000":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as meant": ["transformers 5.23.0",
 "vLLM 0.33.0", "llama.cpp at 0c1e570"]},
"linear, new dictionary, base outside": {"plain RoPE with the base as written":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "as meant": ["transformers 5.23.0",
 "vLLM 0.33.0", "llama.cpp at 0c1e570"]},
"no type, only a factor": {"an error": ["transformers 4.57.6"],
 "plain RoPE with the base as written": ["transformers 5.23.0", "vLLM 0.33.0",
 "mlx-lm 0.32.2", "llama.cpp at 0c1e570"]},
"two types that differ": {"plain RoPE with the base as written":
 ["transformers 4.57.6", "mlx-lm 0.32.2"], "an error": ["vLLM 0.33.0"],
 "as meant": ["transformers 5.23.0", "llama.cpp at 0c1e570"]},
"type `mrope`, with sections": {"an error": ["transformers 4.57.6",
 "transformers 5.23.0"], "as meant": ["vLLM 0.33.0", "mlx-lm 0.32.2",
 "llama.cpp at 0c1e570"]}
}
}
"""

if __name__ == "__main__":
    sys.exit(main())
