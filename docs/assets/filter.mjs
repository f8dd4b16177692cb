/* A list, of claims, entries or models, can be narrowed to rows with some words, the best first, and by choices. */
const LEAST = 3;  // rows that words leave
const counted = document.querySelector(".counted");
const { filter = "Only claims with these words", ...kinds } = counted.dataset;
const field = Object.assign(document.createElement("input"), { type: "search", className: "filter" });
field.setAttribute("aria-label", filter);
field.placeholder = filter;
const choices = Object.entries(kinds).map(([kind, values]) => {
  const choice = Object.assign(document.createElement("select"), { className: "filter", name: kind });
  const name = kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  choice.setAttribute("aria-label", `Only one ${name}`);
  choice.append(new Option(`Any ${name}`, ""), ...values.split("|").map((value) => new Option(value)));
  return choice;
});
const told = counted.textContent;
const parts = [...counted.parentElement.children].filter((each) => each.matches(".counted ~ *"));
counted.before(field, ...choices);
counted.ariaLive = "polite";

/* A row is a paragraph with what belongs to it, below a heading. */
const rows = [];
let heading = null;
for (const part of parts) {
  if (part.matches("h2, h3")) heading = part;
  else if (part.matches("p")) rows.push({ id: rows.length, first: part, parts: [part], heading });
  else rows.at(-1)?.parts.push(part);
}
const name = ({ first }) => first.querySelector("a, span[id]").id || first.querySelector("a").hash.slice(1);

/* The engine of the site's search, fetched once somebody types. */
let finder;
const started = async () => {
  const [{ Finder }, { SAME, WORDS }] = await Promise.all([import("./find.mjs"), import("./search_words.mjs")]);
  const typed = Object.entries(WORDS).filter(([location]) => location.includes("#"));
  const documents = rows.map(({ id, first }) => {
    const address = first.querySelector("a")?.href ?? "";
    const [, words] = typed.find(([location]) => address.endsWith(`/${location}`)) ?? [];
    return { id, title: first.querySelector("a")?.textContent ?? "", text: first.textContent, words: words ?? "" };
  });
  finder = new Finder(documents, { title: 4, text: 1, words: 2 }, SAME);
};

/* Rows with all words, best first, and how many they are; if they are few, the nearest of the others after them. */
const ranked = (query, open) => {
  const found = finder.find(query).filter(({ id }) => open.has(rows[id]));
  const all = found.filter(({ asked, met }) => asked.length === met.size);
  const order = [...new Set([...all, ...found])].slice(0, Math.max(LEAST, all.length));
  return { all: all.map(({ id }) => rows[id]), order: order.map(({ id }) => rows[id]) };
};

const narrow = async () => {
  const query = field.value.trim();
  if (query && !finder) await (started.once ??= started());
  if (query !== field.value.trim()) return;
  const chosen = choices.filter((choice) => choice.value);
  const open = new Set(rows.filter(({ first }) =>
    chosen.every(({ name, value }) => first.dataset[name]?.split("|").includes(value))));
  const { all, order } = query ? ranked(query, open) : { all: [...open], order: [...open] };
  const shown = order.length ? order : [...open];
  const narrowed = query || chosen.length;
  for (const part of parts) part.hidden = narrowed;
  for (const { heading } of query ? [] : shown) if (heading) heading.hidden = false;
  for (const { first, parts } of shown) {
    for (const part of parts) part.hidden = false;
    for (const more of first.querySelectorAll(".more")) more.hidden = !narrowed;
  }
  counted.after(...query ? shown.flatMap((row) => row.parts) : parts);
  const count = new Set(all.map(name)).size;
  const more = order.length - all.length;
  const near = more ? `; ${more} more ${more > 1 ? "are" : "is"} near` : "";
  const which = query ? `with these words${order.length ? near : ", so all are shown"}` : "of these";
  counted.textContent = narrowed ? `${told.split(",")[0]}, ${count} ${which}.` : told;
};
for (const control of [field, ...choices]) control.addEventListener("input", narrow);
field.addEventListener("focus", () => (started.once ??= started()), { once: true });
