/* What the pages gain by a script, besides levels.js. Without it everything can still be read. */
(() => {
  const fragment = () => {
    const written = location.hash.slice(1);
    try { return document.getElementById(decodeURIComponent(written)); } catch { return document.getElementById(written); }
  };

  /* Open everything that an element stands in, itself included, and show it if it was hidden. */
  const reveal = (element) => {
    let closed = element?.closest("details:not([open])");
    if (!closed) return;
    for (; closed; closed = closed.parentElement.closest("details:not([open])")) closed.open = true;
    element.scrollIntoView();
  };

  /* A search hit names words (?h=) and a section (#): open what holds one there, and show the first. */
  const revealWords = (words) => {
    const headings = [...document.querySelectorAll("article :is(h1, h2, h3, h4)")];
    const before = (element) => headings.filter(
      (heading) => heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    const section = headings.includes(fragment()) ? fragment() : null;
    const closed = [...document.querySelectorAll("article details:not([open])")].filter((block) => {
      const text = block.textContent.toLowerCase();
      return words.some((word) => text.includes(word)) && (!section || before(block) === section);
    });
    for (const block of closed) {
      for (let fold = block; fold; fold = fold.parentElement.closest("details")) fold.open = true;
    }
    if (closed.length) showMark(closed[0]);
  };
  /* The theme marks the words a moment later. */
  const showMark = (block) => {
    const show = () => (block.querySelector("mark") ?? block).scrollIntoView({ block: "center" });
    const marked = new MutationObserver(() => {
      if (block.querySelector("mark")) { marked.disconnect(); show(); }
    });
    marked.observe(block, { childList: true, subtree: true });
    show();
  };

  const query = new URLSearchParams(location.search);
  reveal(fragment());
  if (query.get("h")) revealWords(query.get("h").toLowerCase().split(/\s+/).filter(Boolean));
  addEventListener("hashchange", () => reveal(fragment()));
  /* A link to where the page already is changes no hash. */
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='#']");
    if (link && link.href === location.href) reveal(fragment());
  });

  /* Coming back to a page finds open what was open. */
  const folds = [...document.querySelectorAll("article details")];
  const place = `open:${location.pathname}`;
  addEventListener("pagehide", () => {
    const opened = JSON.stringify(folds.map((fold) => fold.open));
    try { sessionStorage.setItem(place, opened); } catch { /* private windows may refuse storage */ }
  });
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") {
    try {
      const opened = JSON.parse(sessionStorage.getItem(place)) ?? [];
      if (opened.length === folds.length) folds.forEach((fold, n) => { fold.open = opened[n]; });
    } catch { /* as above */ }
  }

  /* The navigation marks the pages that were read, and a group when all of its pages were; a folded group shows none. */
  const read = () => {
    const pages = kept("read");
    return Array.isArray(pages) ? pages.filter((page) => typeof page === "string") : [];
  };
  const here = location.pathname;
  for (const link of document.querySelectorAll(".md-nav--primary :not(.md-nav__item--pruned) > a.md-nav__link[href]")) {
    const group = [...link.closest("li").querySelectorAll("a.md-nav__link[href]")];
    link.classList.toggle("read", link.pathname !== here && group.every((each) => read().includes(each.pathname)));
  }

  /* A page is read when most of its words that are open have been in sight for as long as a fast reader takes. */
  const [FAST, MOST] = [10, 0.8];  // words a second, and a share of them
  const pieces = [...document.querySelectorAll("article :is(p, li, dt, dd, td):not(:has(p, li))")].map(
    (element) => ({ element, words: element.textContent.trim().split(/\s+/).length, read: 0, seen: false }));
  const sight = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    pieces.find(({ element }) => element === target).seen = isIntersecting;
  }));
  const second = () => {
    if (document.hidden) return;
    let left = FAST;
    for (const piece of pieces.filter(({ seen }) => seen)) {
      const now = Math.min(left, piece.words - piece.read);
      piece.read += now;
      left -= now;
    }
    const open = pieces.filter(({ element }) => element.checkVisibility());
    const sum = (what) => open.reduce((sum, piece) => sum + piece[what], 0);
    if (sum("read") < MOST * sum("words")) return;
    keep("read", [...read(), here]);
    clearInterval(clock);
    sight.disconnect();
  };
  const clock = !read().includes(here) && setInterval(second, 1000);
  if (clock) pieces.forEach(({ element }) => sight.observe(element));

  if (document.querySelector(".counted")) import("./filter.mjs");

  /* A term of the glossary opens its meaning in place, under a finger and under Enter alike. */
  const meaning = document.createElement("div");
  meaning.className = "meaning md-typeset";
  meaning.popover = "auto";
  addEventListener("click", (event) => {
    const term = event.target.closest?.("a.term");
    if (!term || !meaning.showPopover || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const more = Object.assign(document.createElement("a"), { href: term.href, textContent: "In the glossary" });
    meaning.replaceChildren(term.title, " ", more);
    term.after(meaning);
    meaning.showPopover();
    /* Below what is being read: the term, or all of a page's first sentence. */
    const { left, top, bottom } = (term.closest(".lede") ?? term).getBoundingClientRect();
    const { width, height } = meaning.getBoundingClientRect();
    meaning.style.left = `${Math.max(8, Math.min(left, document.body.clientWidth - width - 8))}px`;
    meaning.style.top = `${scrollY + (bottom + height > innerHeight ? top - height : bottom)}px`;
    more.focus({ preventScroll: true });
  });

  /* The theme opens everything for the printer; paper shows what the screen does. */
  addEventListener("beforeprint", (event) => event.stopImmediatePropagation(), { capture: true });

  /* What scrolls sideways can be reached by the keyboard. The theme sees to it for a mouse only, and undoes it else. */
  const reach = (box) => {
    if (box.scrollWidth > box.clientWidth && box.tabIndex < 0) box.tabIndex = 0;
  };
  /* And it shows on which side there is more of it. */
  const mark = (box) => {
    box.classList.toggle("more-before", box.scrollLeft > 1);
    box.classList.toggle("more-after", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  /* A diagram begins at its root, the first box that no arrow leads to, where that would be cut off. */
  const begun = new WeakSet();
  const begin = (box) => {
    if (begun.has(box) || !box.clientWidth) return;
    begun.add(box);
    const arrows = [...box.querySelectorAll(".flowchart-link")].map((arrow) => arrow.id.replace(/_\d+$/, ""));
    const root = [...box.querySelectorAll(".node")].find((node) => {
      const name = node.id.replace(/^.*flowchart-(.*)-\d+$/, "_$1");
      return !arrows.some((arrow) => arrow.endsWith(name));
    });
    const [inside, whole] = [root, box].map((element) => element?.getBoundingClientRect());
    if (inside?.right > whole.right) box.scrollLeft = inside.x - whole.x - (whole.width - inside.width) / 2;
  };
  const boxes = new WeakSet();
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    boxes.add(target);
    begin(target);
    reach(target);
    mark(target);
  }));
  for (const event of ["scroll", "input"]) {
    addEventListener(event, ({ target }) => boxes.has(target) && mark(target), { capture: true, passive: true });
  }
  const undone = new MutationObserver((changes) => changes.forEach(({ target }) => reach(target)));
  for (const box of document.querySelectorAll("pre > code, .formula, .diagram, .editable textarea")) {
    sizes.observe(box);
    undone.observe(box, { attributeFilter: ["tabindex"] });
  }

  /* The theme wraps every copy button in a landmark of its own; a page needs no dozens of them. It wraps tables, too. */
  const tame = () => {
    for (const nav of document.querySelectorAll("nav.md-code__nav")) nav.setAttribute("role", "none");
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) sizes.observe(box);
  };
  new MutationObserver(tame).observe(document.querySelector("article") ?? document.body, { childList: true, subtree: true });
  tame();
})();
