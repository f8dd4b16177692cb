"""Facts of a model joined: each a value, its witness, and whether a second one agrees."""

OF_ALL = ("windows", "sinks", "temperature")
OF_ROTATION = ("layout", "share", "base", "scaling", "bare")
SEEN_TWICE = ("added", "biased", "in_score")
ALONE = ("context", "window")
NEAR = 0.02  # a large base is read off few slow pairs, and a share is cut to whole pairs


def join_facts(row):
    """{fact: {"value", "witness", "agrees"}}; agrees is None where one witness alone speaks.

    What is measured stands before what is declared, but for windows and temperatures, which may begin beyond
    the text that was read. A rotation that is only declared needs a source that rotates and, where the source
    makes the rotation on a condition, a configuration that meets it. A declared share above 1 is "disputed".
    That something is added, biased or in the score is said only where it is measured and the source can do
    it; measured alone it is "disputed", and so are queries that move as by no rotation where a rotation is
    declared or in the source. What has no attention has no other facts.
    """
    measured, declared, reached = (row.get(name) or {} for name in ("measured", "declared", "reachable"))
    switches = row.get("switches", {}).values()
    attention = measured.get("attention", "unknown")
    facts = {"attention": _fact(attention, "none" if attention == "unknown" else "measured")}
    alone = {name: _fact(declared[name], "declared") for name in ALONE if name in declared}
    if attention == "no":
        return facts | alone
    facts["rotation"] = _rotation(measured, declared, reached, switches)
    if facts["rotation"]["value"] != "no":
        facts |= {name: _first(name, measured, declared) for name in OF_ROTATION}
        if max(declared.get("share", [0])) > 1 and facts["share"]["witness"] == "declared":
            facts["share"] = _fact("disputed", "declared", False)
        if facts["layout"]["value"] == ["axes"]:  # a head has parts there, each with its own share and pairs
            facts = {name: fact for name, fact in facts.items() if name != "share"}
    facts |= {name: _first(name, measured, declared) for name in OF_ALL}
    facts |= _beyond_what_is_seen(facts, measured, declared, reached)
    if measured.get("reads") in (
        "pictures",
        "films",
    ):  # near is another thing there, and some places are padding
        facts = {name: fact for name, fact in facts.items() if name not in ("windows", "bare")}
    facts |= {name: _twice(measured.get(name), reached.get(name)) for name in SEEN_TWICE}
    return facts | alone


def _beyond_what_is_seen(facts, measured, declared, reached):
    """What is none in a short text and named in the source is unknown, for it may begin further out.

    Windows are disputed that are declared, narrowed and not seen, and those in layers of no known kind.
    """
    changed = {}
    for name in ("windows", "temperature", "sinks"):
        if measured.get(name) in ([], "no") and name in reached and name not in declared:
            changed[name] = _fact("unknown", "none")
    unseen = declared.get("windows") and measured.get("windows") == [] and "window" in declared
    if unseen or (measured.get("windows") and "other_kinds" in declared):
        changed["windows"] = _fact("disputed", "measured alone", False)
    halves = facts.get("layout", {}).get("value") == ["half"]
    if halves and "reordered" in reached and "reordered" not in declared:
        changed["reordered"] = _fact("yes", "source")
    return changed


def _rotation(measured, declared, reached, switches):
    seen = measured.get("rotation")
    if seen is None and "rotation" not in reached:
        return _fact("unknown", "none")
    if seen is None and switches and not any(switches):
        return _fact("unknown", "none") if None in switches else _fact("no", "declared")
    if seen != "unlike one":
        return _first("rotation", measured, declared)
    spoken = "rotation" in declared or "rotation" in reached
    return _fact("disputed", "measured alone", False) if spoken else _fact("unknown", "none")


def _first(name, measured, declared):
    seen, said = measured.get(name), declared.get(name)
    if isinstance(seen, list) and "unknown" in seen:  # a spelling that could not be read in some layers
        seen = [each for each in seen if each != "unknown"] or None
    if name in ("layout", "share", "base"):  # read in no layer
        seen = seen or None
    beyond = name in ("windows", "temperature") and said and seen is not None and _less(seen, said)
    if seen in (None, "unknown") or beyond:
        return _fact("unknown" if said is None else said, "none" if said is None else "declared")
    if said is None:
        return _fact(seen, "measured")
    agrees = are_close(seen, said)
    return _fact(said if agrees else seen, "measured", agrees)


def _less(seen, said):
    """Is all that was seen said, too, and more?"""
    return set(seen) < set(said) if isinstance(seen, list) else seen == "no"


def are_close(seen, said):
    """Is each thing that was measured said, and the reverse? A number may be off by what measuring is."""
    if not isinstance(seen, list) or not isinstance(said, list):
        return seen == said
    met = [[_near(a, b) for b in said] for a in seen]
    return all(map(any, met)) and all(map(any, zip(*met, strict=True))) and bool(seen) == bool(said)


def _near(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= NEAR * abs(b)
    return a == b


def _twice(seen, reached):
    if seen in (None, "unknown"):
        return _fact("unknown", "none")
    if seen == "no":
        return _fact("no", "measured", None if reached else True)
    return _fact(seen, "measured and source", True) if reached else _fact("disputed", "measured alone", False)


def _fact(value, witness, agrees=None):
    return {"value": value, "witness": witness, "agrees": agrees}
