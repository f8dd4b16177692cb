"""Facts of a model joined: each a value, its witness, and whether a second one agrees."""

OF_ALL = ("rotation", "windows", "sinks", "temperature")
OF_ROTATION = ("layout", "share", "base", "scaling", "bare")
SEEN_TWICE = ("added", "biased", "in_score")
ALONE = ("context", "window")
NEAR = 0.02  # a large base is read off few slow pairs, and a share is cut to whole pairs


def joined(row):
    """{fact: {"value", "witness", "agrees"}}; agrees is None where one witness alone speaks.

    What is measured stands before what is declared, but for a share, "disputed" where they differ,
    and for windows, which may be longer than the text that was read. That something is added, biased or in
    the score is said only where it is measured and the source can do it; measured alone it is "disputed".
    """
    measured, declared, reached = (row.get(name) or {} for name in ("measured", "declared", "reachable"))
    facts = {name: _first(name, measured, declared) for name in OF_ALL}
    if facts["rotation"]["value"] != "no":
        facts |= {name: _first(name, measured, declared) for name in OF_ROTATION}
    facts |= {name: _twice(measured.get(name), reached.get(name)) for name in SEEN_TWICE}
    facts |= {name: _fact(declared[name], "declared") for name in ALONE if name in declared}
    return facts


def _first(name, measured, declared):
    seen, said = measured.get(name), declared.get(name)
    if isinstance(seen, list) and "unknown" in seen:  # a spelling that could not be read in some layers
        seen = [each for each in seen if each != "unknown"] or None
    if name in ("layout", "share", "base"):  # read in no layer
        seen = seen or None
    if seen in (None, "unknown") or (name == "windows" and said and not seen):
        witness = "none" if said is None else "declared"
        return _fact("unknown" if said is None else said, witness, False if seen == [] else None)
    if said is None:
        return _fact(seen, "measured")
    if _alike(seen, said):
        return _fact(said, "measured", True)
    return _fact("disputed" if name == "share" else seen, "measured", False)


def _alike(seen, said):
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
