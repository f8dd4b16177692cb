/* A row of cards that a reader puts in order: live.js brings this to pages that have one. */
const swapped = (order, a, b) => order.with(a, order[b]).with(b, order[a]);

/* Each card in the place that an order gives it; those that nobody holds glide there. */
export const lay = (cards, order) => {
  const before = cards.map((card) => card.offsetLeft), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  order.forEach((card, place) => { cards[card].style.order = place; });
  cards.forEach((card, n) => {
    const by = before[n] - card.offsetLeft;
    if (by && !still && !card.matches(".held")) card.animate([{ transform: `translateX(${by}px)` }, {}], 150);
  });
};

/* A card changes places with the one that it is dragged to, by an arrow key with its neighbour, by a tap with the next. */
export const arrange = (row, cards, order, set, done) => {
  let held = null;
  const settle = () => {  // so that the keyboard meets them as they stand
    const focused = document.activeElement;
    row.append(...order().map((card) => cards[card]));
    if (row.contains(focused)) focused.focus({ preventScroll: true });
    done();
  };
  const step = (card, by) => {
    const place = order().indexOf(card);
    set(swapped(order(), place, (place + by + cards.length) % cards.length));
    settle();
  };
  row.addEventListener("pointerdown", ({ target, button, clientX }) => {
    if (held?.moved || button || !cards.includes(target)) return;
    held = { card: target, before: order(), x: clientX, left: target.offsetLeft };
  });
  row.addEventListener("pointermove", ({ buttons, clientX, pointerId }) => {
    if (!held || !buttons) return;
    const { card, before, x, left } = held, by = clientX - x;
    if (!held.moved && Math.abs(by) < 6) return;
    held.moved = true;
    card.classList.add("held");
    row.setPointerCapture(pointerId);
    const far = (place) => Math.abs(cards[order()[place]].offsetLeft - left - by);
    const to = [...cards.keys()].reduce((near, place) => (far(place) < far(near) ? place : near));
    set(swapped(before, before.indexOf(cards.indexOf(card)), to));
    card.style.translate = `${left + by - card.offsetLeft}px`;
  });
  for (const end of ["pointerup", "pointercancel"]) row.addEventListener(end, () => {
    const { card, moved } = held ?? {};
    held = null;
    if (!moved) return;
    card.style.translate = "";
    card.classList.remove("held");
    settle();
  });
  row.addEventListener("click", ({ target }) => { if (cards.includes(target)) step(cards.indexOf(target), 1); });
  row.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], card = cards.indexOf(event.target);
    if (!by || card < 0) return;
    event.preventDefault();
    step(card, by);
  });
  for (const card of cards) card.disabled = false;
};
