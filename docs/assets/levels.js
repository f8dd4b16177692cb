/* What the site keeps in a reader's browser, with its address before the name: other sites of the host keep things, too. */
const kept = (name) => {
  try { return __md_get(name); } catch { return null; }  // refused, as in a private window, or no JSON
};
const keep = __md_set;

/* How deep a page is open. This stands in the head, so that a level opens as soon as the browser has met it: what opens
   after the first paint pushes away what is being read. */
(() => {
  document.documentElement.classList.replace("no-js", "js");  // the theme does so at the end, and styles all again
  const LEVELS = ["layman", "basic", "intermediate", "advanced"];
  const BLOCKS = "details:is([class*=level-], [class*=from-])";
  const depthOf = (block) => LEVELS.findIndex((level) => block.matches(`.level-${level}, .from-${level}`));
  /* The story is for those who ask for it, and at the last level all is open. */
  const told = (level, block) => ["layman", "advanced"].includes(level) || !block.matches(".level-layman");
  const openTo = (level, block) => {
    block.open = depthOf(block) <= LEVELS.indexOf(level) && told(level, block);
  };

  /* An address asks once: left in it, the question would overrule what is chosen later. */
  const address = new URL(location);
  const asked = address.searchParams.get("level");
  if (asked !== null) {
    address.searchParams.delete("level");
    history.replaceState(history.state, "", address);
  }
  if (LEVELS.includes(asked)) keep("level", asked);

  const chosen = [asked, kept("level")].find((level) => LEVELS.includes(level));
  if (chosen) {
    document.documentElement.dataset.level = chosen;
    const met = new MutationObserver((changes) => {
      for (const node of changes.flatMap((change) => [...change.addedNodes])) {
        if (node.matches?.(BLOCKS)) openTo(chosen, node);
        if (node.matches?.(`#level [value=${chosen}]`)) node.checked = true;
      }
    });
    met.observe(document, { childList: true, subtree: true });
    addEventListener("DOMContentLoaded", () => met.disconnect());
  }

  /* The piece of the page that is being read: the last that begins in the upper half of the window. */
  const read = () => [...document.querySelectorAll(`article > *, ${BLOCKS} > *`)].findLast(
    (piece) => piece.checkVisibility() && piece.getBoundingClientRect().top < innerHeight / 2);

  /* It stays where it is on the screen; if it is closed, its block's title comes into view. */
  addEventListener("change", ({ target }) => {
    if (!target.matches("#level input")) return;
    keep("level", target.value);
    const piece = read();
    const top = piece?.getBoundingClientRect().top;
    document.documentElement.dataset.level = target.value;
    for (const block of document.querySelectorAll(BLOCKS)) openTo(target.value, block);
    const folds = [...document.querySelectorAll("article details:not([open])")];
    const closed = folds.find((fold) => fold !== piece && fold.contains(piece));
    if (closed) closed.scrollIntoView({ block: "nearest" });
    else if (piece) scrollBy({ top: piece.getBoundingClientRect().top - top, behavior: "instant" });
  });
})();
