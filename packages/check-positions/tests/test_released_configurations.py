"""read_config.py and the page's script on configurations of released models.

configurations.toml has the keys of each, and the right answer. The calls of an answer are run: they must
rotate random q and k, hide keys and give outputs as the right answer does, which is computed here in float64.
"""

import json
import math
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from check_positions import checker as check_positions
from check_positions.config import read_config, table
from experiments import configurations as asked
from tests.peers import peer
from tests.site.test_read_config import by_the_page

TABLE = Path(__file__).with_name("configurations.toml")
GROUPS = ("typed", "released", "quoted")
ANSWERS = ("calls", "none", "guess", "either", "learned")
NOTHING = re.compile(r"(?i)\b(nothing|no layer|no head|none)\b[^.]*\brotat|\bnot rotat|\bno RoPE\b")
UNSURE = re.compile(r"(?i)\bguess|cannot be (determined|printed)|unknown|not known")
POSITIONAL = re.compile(
    r"rope|rotary|theta|factor|beta|window(?!_layers)|layer_types|pattern|nope|alibi|position_embedding|pos_emb"
    r"|chunk|head_dim|kv_channels|softcap|attn_scalar|attention_multiplier|logn|ntk|mscale|temperature|attn_scale"
    r"|floor_scale|emb_interleaved|alpha|compress|finetuned|local_attention|attn_type|original"
)
OVERRIDDEN = {  # by a list, if there is one
    "no_rope_layer_interval": "no_rope_layers",
    "sliding_window_pattern": "layer_types",
    "full_attention_interval": "layer_types",
    "global_attn_every_n_layers": "layer_types",
}
SCALES = ("query_pre_attn_scalar", "attention_multiplier", "mscale_all_dim")
HEADS = 2
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
BUILT = {  # what a class has no default for, or too many of
    "esm": {"vocab_size": 64, "pad_token_id": 1, "mask_token_id": 2},
    "deepseek_v2": {"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "n_routed_experts": 8},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "mimo_v2_flash": {"num_key_value_heads": 4},  # layers with a window have twice as many
}
HYBRIDS = ("granitemoehybrid", "bamba", "zamba2")  # widths of attention and Mamba hang together
BY_DAY = (
    *("gemma-3-27b", "olmo-3-7b", "exaone-4.0-1.2b", "hunyuan-7b", "granite-4.0-h-tiny", "OLMo Hybrid 7B"),
    *("kimi-k2", "openai/gpt-oss-20b"),
)


class Case(NamedTuple):
    """Keys, and what is right of them."""

    name: str
    group: str
    config: dict
    right: dict
    layers: str  # a letter each

    @property
    def kinds(self):
        """What is right of the layers of each letter."""
        return {letter: self.right[letter] for letter in sorted(set(self.layers) - {"-"})}


def listed(words):
    """The list that "@48 a*2 b | c | d" or "@48 1.0 to 2.0" stands for; anything else as it is."""
    if isinstance(words, dict):
        return {key: listed(value) for key, value in words.items()}
    if not isinstance(words, str) or not words.startswith("@"):
        return words
    many, _, rest = words[1:].partition(" ")
    many = int(many)
    if ends := re.fullmatch(r"([\d.]+) to ([\d.]+)", rest):
        low, high = map(float, ends.groups())
        return [round(low + (high - low) * n / (many - 1), 4) for n in range(many)]
    parts = [[_read(word) for word in _repeated(part)] for part in rest.split("|")]
    return _cycled(many, parts)


def _repeated(words):
    for word in words.split():
        one, _, times = word.partition("*")
        yield from [one] * int(times or 1)


def _read(word):
    return json.loads(word) if re.fullmatch(r"-?\d+(\.\d+)?", word) else word


def _cycled(many, parts):
    """A prefix, what is repeated and a suffix, or what is repeated alone."""
    before, again, after = ([[], *parts, []] if len(parts) == 1 else [*parts, []])[:3]
    middle = many - len(before) - len(after)
    return [*before, *(again * (middle // len(again) + 1))[:middle], *after]


def _merged(base, more):
    return base | {
        key: _merged(base[key], value) if isinstance(value, dict) and key in base else value
        for key, value in more.items()
    }


@cache
def cases():
    found, known = tomllib.loads(TABLE.read_text(encoding="utf-8")), {}
    for group in GROUPS:
        for name, given in found[group].items():
            right = given.get("right", {}) | {key: value for key, value in given.items() if len(key) == 1}
            config = listed(json.loads(given["config"]))
            if of := known.get(given.get("like")):
                config, right = _merged(of.config, config), of.right | right
            text = text_part(config)
            many = next((text[key] for key in DEPTHS if key in text), len(text.get("layers_block_type", "n")))
            letters = _cycled(many, list(map(list, right.get("layers", "a").split("|"))))
            known[name] = Case(name, group, config, listed(right), "".join(letters))
    return known


def text_part(config):
    return config.get("text_config", config)


def every(chosen=lambda case: True, by_day=None):
    """Each case that is chosen; by day only some of them."""
    return [
        pytest.param(case, id=name, marks=[pytest.mark.slow] * (by_day is not None and name not in by_day))
        for name, case in cases().items()
        if chosen(case)
    ]


# --- what is right


def frequencies(kind, longest):
    """Of the pairs that rotate, and the factor of cosines and sines, where the longest text is that long."""
    stretch = dict(kind.get("stretch", {}))
    turned = kind.get("turned", kind["head"])
    wide = kind["head"] if stretch.get("rope_type") == "proportional" else turned
    base = kind["base"]
    if stretch.get("rope_type") == "dynamic":
        more = stretch["factor"] * longest / stretch["max_position_embeddings"] - (stretch["factor"] - 1)
        base *= max(more, 1.0) ** (wide / (wide - 2))
    if "long_factor" in stretch and longest > stretch["original_max_position_embeddings"]:
        stretch["short_factor"] = stretch["long_factor"]
    return check_positions.configured_frequencies({**stretch, "rope_theta": base}, wide)


def rotated(x, kind, positions):
    """x (..., tokens, head), rotated as is right."""
    w, factor = frequencies(kind, int(positions.max()) + 1)
    angles = positions.double()[:, None] * w
    cos, sin = factor * angles.cos(), factor * angles.sin()
    first = torch.arange(len(w)) * (2 if kind.get("layout") == "interleaved" else 1)
    stretch = kind.get("stretch", {}).get("rope_type")
    apart = kind["head"] // 2 if stretch == "proportional" else len(w)
    second = first + (1 if kind.get("layout") == "interleaved" else apart)
    made = x.double().clone()
    a, b = made[..., first], made[..., second]
    made[..., first], made[..., second] = a * cos - b * sin, a * sin + b * cos
    return made


def queries(q, kind, positions):
    made = rotated(q, kind, positions) if "base" in kind else q.double()
    if "temperature" in kind:
        length, strength, first = kind["temperature"]
        made *= (1 + strength * (1 + (positions + first).div(length).floor()).log())[:, None]
    return made


def seen(kind, positions):
    """Which keys a token sees, (queries, keys)."""
    back = positions[:, None] - positions
    made = torch.ones_like(back).bool() if kind.get("both") else back >= 0
    if "window" in kind:
        made &= back.abs() < kind["window"]
    if "chunk" in kind:
        made &= positions[:, None] // kind["chunk"] == positions // kind["chunk"]
    return made


def outputs(q, k, v, kind, mask, sinks):
    scores = q @ k.mT * kind.get("scale", kind["head"] ** -0.5)
    if "cap" in kind:
        scores = kind["cap"] * (scores / kind["cap"]).tanh()
    scores = scores.masked_fill(~mask, -math.inf)
    if kind.get("sinks"):
        column = sinks[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, column], -1).softmax(-1)[..., :-1] @ v
    return scores.softmax(-1) @ v


# --- what an answer says and does


def words_of(parts):
    """All that it says, without its calls."""
    return "\n".join(part.text for part in parts if part.kind not in ("code", "guess"))


def live(parts):
    """Lines of code that are no comments."""
    lines = "\n".join(part.text for part in parts if part.kind in ("code", "guess")).splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def places(case, far):
    """Positions about each end of a window or chunk, near, or also beyond what was trained."""
    ends = {kind.get(key, 64) for kind in case.kinds.values() for key in ("window", "chunk")}
    at = {0, 1, 2, 3, 17, 700} | {end + more for end in ends for more in (-1, 0, 1, 2)}
    at = {place for place in at if place < 4096} | ({place * 3 + 9000 for place in at} | at if far else set())
    return torch.tensor(sorted(at))


def ran(case, parts, positions):
    """What the calls make of random q, k and v, by layer; and all that the first two blocks made."""
    known = {"positions": positions, "documents": torch.zeros_like(positions)}
    words = table()["words"]
    blocks = asked.printed(parts)
    for title in (words["built"], words["forward"]):
        asked.run(blocks.get(title, ""), known)
    made = {}
    for title, code in blocks.items():
        if not title.startswith("In "):
            continue
        numbers = asked.numbers(title, len(case.layers))
        letters = {case.layers[n] for n in numbers}
        assert "-" not in letters, f"{title}: some of these have no attention"
        widths = {case.right[letter]["head"] for letter in letters}
        assert len(widths) == 1, f"{title}: heads of {widths}"
        (head,) = widths
        torch.manual_seed(0)
        given = {name: torch.randn(1, HEADS, len(positions), head) for name in "qkv"}
        given["sinks"] = torch.randn(HEADS)
        then = known | given
        asked.run(code, then)
        made |= dict.fromkeys(numbers, (given, then))
    return made, known


def wrong(case, parts, far=False):
    """The first thing in which the calls are not right, "" if they are."""
    positions = places(case, far)
    made, known = ran(case, parts, positions)
    for letter, kind in case.kinds.items():
        layer = case.layers.index(letter)
        for n in range(layer, len(case.layers)):
            if case.layers[n] == letter and (n in made) != (layer in made):
                return f"layers {layer} and {n} are alike, and one has calls"
        if layer not in made:
            if "base" in kind:
                return f"layer {layer} rotates, and has no calls"
            if ("window" in kind or "temperature" in kind) and kind.get("window", 0) < positions.max():
                return f"layer {layer} has no calls"
            continue
        given, then = made[layer]
        q, k = queries(given["q"], kind, positions), given["k"].double()
        k = rotated(k, kind, positions) if "base" in kind else k
        for name, want in (("q", q), ("k", k)):
            apart = float((then[name].double() - want).abs().max())
            if apart > 2e-5:
                return f"layer {layer}: {name} is {apart:.1e} off"
        mask = seen(kind, positions)
        if "mask" in then and not then["mask"].expand_as(mask).equal(mask):
            return f"layer {layer}: other keys are seen"
        plain = positions[:, None] >= positions if not kind.get("both") else torch.ones_like(mask)
        if "mask" not in then and not mask.equal(plain):
            return f"layer {layer}: its window is lost"
        if "output" in then:
            want = outputs(q, k, given["v"].double(), kind, mask, given["sinks"].double())
            apart = float((then["output"].double() - want).abs().max())
            if apart > 1e-4:
                return f"layer {layer}: outputs are {apart:.1e} off"
        elif kind.get("sinks") and "sink" not in words_of(parts):
            return f"layer {layer}: sinks are passed over"
        if "scale" in known and abs(known["scale"] / kind.get("scale", kind["head"] ** -0.5) - 1) > 1e-6:
            return f"scale is {known['scale']}"
        said = [key for key in SCALES if key in json.dumps(case.config)]
        other = not math.isclose(kind.get("scale", kind["head"] ** -0.5), kind["head"] ** -0.5)
        told = "scale" in known or "output" in then or any(key in words_of(parts) for key in said)
        if said and other and not told:
            return f"no word of {said}"
    return ""


def faults(case, parts):
    """All in which an answer is wrong, or silent."""
    found, words = [], words_of(parts)
    answer = case.right.get("answer", "calls")
    if answer == "either":
        answer = "calls" if live(parts) else "guess"
    code = "\n".join(part.text for part in parts if part.kind in ("code", "guess"))
    if answer == "calls":
        if not live(parts):
            found.append("no calls")
        else:
            try:
                found += [why for far in (False, True) if (why := wrong(case, parts, far))][:1]
            except Exception as error:
                found.append(f"the calls raise {type(error).__name__}: {str(error)[:90]}")
        bare = any("base" not in kind for kind in case.kinds.values())
        if bare and not NOTHING.search(words):
            found.append("it does not say that some layers rotate nothing")
    elif answer == "learned":
        if "AddLearned(" not in "\n".join(live(parts)) or "apply_rope" in code:
            found.append("not a learned table")
    elif live(parts):
        found.append("calls that are no comments")
    if answer == "none":
        found += ["commented calls of a rotation"] * ("apply_rope" in code)
        found += ["it does not say that nothing rotates"] * (not NOTHING.search(words))
    if answer == "guess" and not UNSURE.search(words):
        found.append("it does not say what is not known")
    found += [f"{name} is not named" for name in case.right.get("names", []) if name not in words]
    return found


def silent(case, parts):
    """Keys that speak of positions, are not named, and change nothing."""
    words = "\n".join(part.text for part in parts)
    bare = case.right.get("answer") == "none"
    for place, key in _keys(case.config):
        of = _at(case.config, place)
        value = of[key]
        unset = value in (None, False, "", []) or isinstance(value, dict) or of.get(OVERRIDDEN.get(key))
        width = key.endswith("head_dim") and bare  # of a rotation that is not there
        if unset or width or not _positional(key) or re.search(rf"\b{re.escape(key)}\b", words):
            continue
        other = json.loads(json.dumps(case.config))
        _at(other, place)[key] = _other(value)
        if read_config(json.dumps(other)) == parts:
            yield ".".join((*place, key))


def _positional(key):
    return POSITIONAL.search(key) and key != "max_position_embeddings"


def _keys(config, place=()):
    for key, value in config.items():
        yield place, key
        if isinstance(value, dict):
            yield from _keys(value, (*place, key))


def _at(config, place):
    for key in place:
        config = config[key]
    return config


def _other(value):
    """Another value of the kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return 2 * value
    return "another" if isinstance(value, str) else value[::-1] if value[::-1] != value else value[:1]


# --- the tests


@pytest.mark.claim(
    "add-right-or-says-what-is-unknown",
    "For each configuration in packages/check-positions/tests/configurations.toml, of released models and "
    "variants of them, read_config.py does one of three things. It prints calls that rotate random "
    "queries and keys, mask keys and scale scores as is right for that model; or it states that nothing "
    "rotates, where this is true; or its calls are comments and it names what is unknown.",
)
@pytest.mark.parametrize("case", every())
def test_the_answer_is_right_or_says_what_it_does_not_know(case):
    assert not faults(case, read_config(json.dumps(case.config)))


@pytest.mark.claim(
    "add-names-positional-keys",
    "For each configuration in packages/check-positions/tests/configurations.toml, each positional key "
    "that is set is named in the answer of read_config.py, or the answer changes when the value of that "
    "key changes.",
)
@pytest.mark.parametrize("case", every())
def test_no_key_of_positions_is_passed_over_in_silence(case):
    assert not list(silent(case, read_config(json.dumps(case.config))))


@pytest.mark.browser
def test_the_page_says_the_same():
    texts = [json.dumps(case.config) for case in cases().values()]
    for case, text, page in zip(cases().values(), texts, by_the_page(texts), strict=True):
        assert page == [list(part) for part in read_config(text)], case.name


def test_there_are_eighty_and_more_like_them():
    many = {group: sum(case.group == group for case in cases().values()) for group in GROUPS}
    assert many["typed"] >= 40 and many["released"] >= 40 and sum(many.values()) >= 120
    assert {case.right.get("answer", "calls") for case in cases().values()} == set(ANSWERS)
    for case in cases().values():
        assert case.kinds and all("head" in kind for kind in case.kinds.values()), case.name
        assert case.right.get("library", "same") in ("same", "absent", "refuses", "other"), case.name


def test_a_wrong_answer_is_found():
    """Of a right answer one number is changed; and a guess is no right answer."""
    case = cases()["olmo-3-7b"]
    parts = read_config(json.dumps(case.config))
    assert not faults(case, parts)
    swaps = (
        ("=500000", "=1000000"),
        ("factor=8.0", "factor=4.0"),
        ("4096", "4095"),
        ('"half"', '"interleaved"'),
    )
    for of, to in (
        *swaps,
        ("original_length=8192", "original_length=4096"),
        ("(128", "(64"),
        ("1.2079", "1.2"),
    ):
        changed = [part._replace(text=part.text.replace(of, to)) for part in parts]
        assert changed != parts and faults(case, changed), of
    commented = [
        part._replace(text=re.sub("(?m)^", "# ", part.text)) if part.kind == "code" else part
        for part in parts
    ]
    assert "no calls" in faults(case, commented)


# --- what transformers makes of them


def built(case):
    """Its configuration in transformers, and a small random model with a layer of each kind, and one more."""
    text = text_part(case.config)
    kind, heads = case.right.get("as", text["model_type"]), text.get("num_attention_heads")
    given = ({"num_key_value_heads": heads} if heads else {}) | BUILT.get(kind, {}) | text
    if kind in HYBRIDS:
        given |= dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 4)
        given |= {"hidden_size": 4 * text["hidden_size"] // heads, "mamba_n_heads": 16}
    del given["model_type"]
    config = peer("transformers").CONFIG_MAPPING[kind](**json.loads(json.dumps(given))).get_text_config()
    torch.manual_seed(0)
    enough = max(case.layers.index(letter) for letter in set(case.layers)) + 2
    small = check_positions.small_config(config, layers=enough, heads=16 if kind == "falcon_h1" else 4)
    return config, asked.class_of(small)(small).eval()


def by_layer(model):
    """The calls that rotate q and k in a run, by the layer in which they are."""
    module, calls, here = sys.modules[type(model).__module__], {}, [None]
    for name, part in model.named_modules():
        if number := re.search(r"(?:layers|layer|h)\.(\d+)$", name):
            part.register_forward_pre_hook(lambda *_, n=int(number[1]): here.__setitem__(0, n))

    def heard(function):
        def inner(*given, **named):
            calls.setdefault(here[0], []).append((function, given, named))
            return function(*given, **named)

        return inner

    names = [name for name in vars(module) if re.match(r"_?apply_\w*(rotary|rope)", name)]
    kept = {name: getattr(module, name) for name in names}
    for name, function in kept.items():
        setattr(module, name, heard(function))
    try:
        with torch.no_grad():
            model(**check_positions.constant_input(model, 3))
    finally:
        for name, function in kept.items():
            setattr(module, name, function)
    return calls


def unlike(case):
    """In what transformers does something else than is right, "" if in nothing."""
    config, model = built(case)
    calls, far = by_layer(model), asked.TOKENS - 1
    tables = [
        buffer
        for name, buffer in model.named_buffers()
        if name.endswith("inv_freq") and "original" not in name
    ]
    for n, letter in enumerate(case.layers[: max(case.layers.index(c) for c in set(case.layers)) + 1]):
        kind = case.right.get(letter, {})
        if ("base" in kind) != (n in calls):
            return f"layer {n} rotates: {n in calls}"
        if "base" not in kind:
            continue
        turned = asked.turned(calls[n][0], query=far, key=0)
        at = torch.tensor([0, far])
        units = torch.eye(kind["head"]).double()[:, None].expand(-1, 2, -1)
        want = rotated(units, kind, at)
        want = want[:, 1] @ want[:, 0].T
        if len(turned) == kind.get("turned"):  # of the others it is not told
            want = want[: len(turned), : len(turned)]
        if kind.get("behind"):  # the last channels of a wider head
            turned = turned[-len(want) :, -len(want) :]
        if turned.shape != want.shape:
            return f"layer {n} is given {len(turned)} channels"
        if not torch.allclose(turned.double(), want, atol=3e-5):
            return f"layer {n} is {(turned - want).abs().max():.1e} off"
        w, _ = frequencies(kind, 1)
        slow = [table for table in tables if len(table) >= len(w)]
        if slow and not any(torch.allclose(table[: len(w)].double(), w, rtol=3e-6, atol=0) for table in slow):
            return f"frequencies of layer {n} are not among its tables"
        if (why := _scaled(model, kind, n)) or (why := _windowed(config, kind, n)):
            return why
    return ""


def _scaled(model, kind, n):
    want = kind.get("scale", kind["head"] ** -0.5)
    for name, part in model.named_modules():
        if not re.search(rf"\b{n}\b.*at", name):
            continue
        theirs = getattr(part, "scaling", None)
        before = theirs == 1.0 and "scale" not in kind  # the query has been multiplied before
        if isinstance(theirs, float) and not before and not math.isclose(theirs, want, rel_tol=1e-6):
            return f"scores of layer {n} are multiplied by {theirs}"
        if getattr(part, "attn_logit_softcapping", kind.get("cap")) != kind.get("cap"):
            return f"scores of layer {n} have another cap"
    return ""


def _windowed(config, kind, n):
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)
    near = types and types[n] in ("sliding_attention", "chunked_attention")
    if types and bool(near) != ("window" in kind or "chunk" in kind):
        return f"layer {n} is {types[n]}"
    wide = config.attention_chunk_size if "chunk" in kind else getattr(config, "sliding_window", None)
    if near and not kind.get("both") and wide != kind.get("window", kind.get("chunk")):
        return f"the window of layer {n} is {wide}"
    return ""


def _has_class(case):
    return case.right.get("library") != "absent" or "as" in case.right


@pytest.mark.peer
@pytest.mark.parametrize("case", every(_has_class, BY_DAY))
def test_what_is_right_is_what_transformers_does_where_it_is_said(case):
    made = case.right.get("library", "same")
    if made == "refuses":
        strict = peer("huggingface_hub.errors").StrictDataclassError
        with pytest.raises((KeyError, TypeError, ValueError, strict)):
            unlike(case)
    elif made == "other":
        assert unlike(case)
    else:
        assert unlike(case) == ""


@pytest.mark.peer
def test_what_is_absent_from_transformers_is_said_to_be():
    known = peer("transformers").CONFIG_MAPPING
    for case in cases().values():
        absent = case.right.get("library") == "absent"
        assert (text_part(case.config)["model_type"] in known) == (not absent), case.name
