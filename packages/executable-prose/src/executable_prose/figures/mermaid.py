"""Mermaid diagrams as inline SVG whose colours are those of the page."""

import atexit
import functools
import hashlib
import html
import re
from collections.abc import Iterable

from executable_prose.memo import cached

SETTINGS = {
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False, "nodeSpacing": 16, "rankSpacing": 36, "wrappingWidth": 110},
    "sequence": {
        "mirrorActors": False,
        "width": 80,
        "height": 36,
        "actorMargin": 12,
        "messageMargin": 26,
        "diagramMarginX": 12,
    },
}
# The parts of a sequence, and what they bring that the style sheet or nobody needs.
PARTS = re.compile(r'<[^>]* class="(?:actor|note)\b[^>]*>|<g id="root-\d+"[^>]*>')
OWN = re.compile(r' (?:id="(?:actor|root-)\d+"|name="[^"]*"|(?:fill|stroke)="#\w+")')
WORDS = re.compile(r"<t(?:ext|span)\b[^>]*>([^<]+)<")
DESCRIBED = re.compile(r"^\s*acc(Title|Descr)\s*:\s*\S", re.M)
# For every piece of text that it measures, the engine asks the whole style sheet again: where it stands (it
# walks over the drawing and does not stop), what each of its selectors means, what it says of all elements
# around the text. The one sheet stands first, its selectors stay, and measuring changes no element.
HASTE = """{
    const search = globalThis.__querySelector;
    const first = (node) => {
        for (const child of node.childNodes) {
            const found = child.tagName === "style" ? child : child.nodeType === 1 && first(child);
            if (found) return found;
        }
        return null;
    };
    globalThis.__querySelector = (root, sel) => (sel === "style" ? first(root) : search(root, sel));

    const [split, parse] = [globalThis.__splitTopLevel, globalThis.__parseComplex];
    const parsed = new Map();
    const chains = (sel) => {
        if (!parsed.has(sel)) {
            const each = split(sel.trim(), (sign) => sign === ",").map(([part]) => parse(part.trim()));
            parsed.set(sel, each.filter((chain) => chain.length));
        }
        return parsed.get(sel);
    };
    globalThis.__matches = (el, sel) =>
        chains(sel).some((chain) => __matchesChain(el, chain, chain.length - 1));

    const resolve = globalThis.__resolveCssProp;
    let known = null;  // while something is measured: element -> property -> what the sheet says
    globalThis.__resolveCssProp = (el, prop) => {
        if (!known) return resolve(el, prop);
        if (!known.has(el)) known.set(el, new Map());
        const said = known.get(el);
        if (!said.has(prop)) said.set(prop, resolve(el, prop));
        return said.get(prop);
    };
    for (const name of ["__computeBBox", "__lengthPx"]) {
        const measure = globalThis[name];
        globalThis[name] = (...about) => {
            if (known) return measure(...about);
            known = new Map();
            try { return measure(...about); } finally { known = null; }
        };
    }
}"""


class DiagramError(Exception):
    """The diagram cannot be drawn; the message is Mermaid's own."""


def undrawn(sources: Iterable[str]) -> list[str]:
    """Those of the sources whose drawing is not in the cache."""
    return [source for source in dict.fromkeys(sources) if not draw.is_known(source)]  # type: ignore[attr-defined]


def render(source: str) -> str:
    """The diagram as SVG."""
    if {match[1] for match in DESCRIBED.finditer(source)} != {"Title", "Descr"}:
        raise DiagramError("it needs a line 'accTitle: …' and a line 'accDescr: …', its text alternative")
    svg = draw(source)
    if not ("<title " in svg and "<desc " in svg):  # an error, drawn: Mermaid gives these to a diagram alone
        said = " ".join(html.unescape(" ".join(WORDS.findall(svg))).split())
        raise DiagramError(
            f"Mermaid drew a picture that says {said!r} and not the diagram of {len(source):,} characters: "
            "shorten it, or draw two"
        )
    if re.search(r'(fill|stroke)="(#|rgb)', svg):
        raise DiagramError(
            "this kind of diagram brings colours of its own; flowcharts and sequences follow the palette"
        )
    return svg


@cached
def draw(source: str) -> str:
    """The diagram as SVG without colours; its ids are its own."""
    try:
        svg = _engine().render_svg(source, "default", SETTINGS, None)
    except RuntimeError as error:
        raise DiagramError(" ".join(str(error).split())) from None
    return _clean(svg, f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:16]}")


@functools.cache
def _engine():
    """Mermaid, read once for all diagrams of this process: what it numbers on there, `_clean` takes away."""
    from mermaidx.engines.quickjs_engine import Engine

    class Hasty(Engine):
        def _build_context(self):
            context = super()._build_context()
            context.eval(HASTE)
            return context

        def _ensure_fresh_context(self):
            """The one that start() makes is for all."""

    engine = Hasty()
    engine.start()
    atexit.register(engine.close)
    return engine


def _clean(svg, key):
    """Without Mermaid's own style sheet, filters and unused arrow heads; ids unique by `key`."""
    svg = re.sub(r"<style>.*?</style>", "", svg, flags=re.S)
    svg = re.sub(
        r"<defs>(.*?)</defs>", lambda m: m[1] if m[1].startswith("<marker ") else "", svg, flags=re.S
    )
    svg = re.sub(r' data-[\w-]+="[^"]*"| style="[^"]*"', "", svg)
    svg = PARTS.sub(lambda part: OWN.sub("", part[0]), svg)
    used = set(re.findall(r"url\(#([^)]+)\)", svg))
    svg = re.sub(r'<marker id="([^"]+)".*?</marker>', lambda m: m[0] if m[1] in used else "", svg)
    svg = re.sub(r'(<svg[^>]*?) width="100%"', r'\1 role="img"', svg, count=1)
    svg = re.sub(r' (role="graphics-[^"]*"|aria-roledescription="[^"]*"|xmlns(:xlink)?="[^"]*")', "", svg)
    if not (size := re.search(r'viewBox="\S+ \S+ (\S+) ', svg)):
        raise DiagramError("Mermaid gives this kind of diagram no size; flowcharts and sequences have one")
    width = float(size[1])
    svg = svg.replace("<svg ", f'<svg style="width:{width:.0f}px;min-width:{0.75 * width:.0f}px" ', 1)
    return svg.replace("my-svg", key)
