/* A list, of claims, entries, files or models, can be narrowed to rows with some words, the best first, and by choices; and
   a table can be sorted by a column. */
const LEAST = 3;  // rows that words leave
const FEW = 2;  // choices that a narrow window shows at once
const counted = document.querySelector(".counted");
const list = counted.parentElement;
const { filter = "Only claims with these words", named, ...kinds } = counted.dataset;
const make = (name, values, ...inside) => {
  const made = Object.assign(document.createElement(name), values);
  made.append(...inside);
  return made;
};
const field = make("input", { type: "search", className: "filter", placeholder: filter, ariaLabel: filter });
const choices = Object.entries(kinds).map(([kind, values]) => {
  const name = kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const options = [new Option(`Any ${name}`, ""), ...values.split("|").map((value) => new Option(value))];
  return make("select", { className: "filter", name: kind, ariaLabel: `Only one ${name}` }, ...options);
});
const told = counted.textContent;
const parts = [...list.children].filter((each) => each.matches(".counted ~ *"));
if (choices.length > FEW) {
  const all = make("div", { className: "choices" }, ...choices);
  const button = make("button", { type: "button", className: "filter", textContent: "More filters", ariaExpanded: false });
  button.addEventListener("click", () => { button.ariaExpanded = all.classList.toggle("open"); });
  counted.before(field, button, all);
} else counted.before(field, ...choices);
counted.ariaLive = "polite";

/* A row is a line of a table, or a paragraph with what belongs to it. It stands below a heading or in a fold, and in a home
   to which it returns. */
const rows = [];
const homes = new Map();
const collect = (home, children, heading = null) => {
  if (!children.some((each) => each.matches("table"))) homes.set(home, children);
  for (const part of children) {
    if (part.matches("h2, h3, tr.group")) heading = part;
    else if (part.matches("details.chapter")) collect(part, [...part.children], part);
    else if (part.matches("table")) for (const body of part.tBodies) collect(body, [...body.children]);
    else if (part.matches("p, tr")) rows.push({ id: rows.length, first: part, parts: [part], heading });
    else if (!part.matches("summary")) rows.at(-1)?.parts.push(part);
  }
};
collect(list, parts);
const headings = [...new Set(rows.map(({ heading }) => heading))].filter(Boolean);
const body = list.querySelector("tbody");
const link = ({ first }) => first.querySelector("a");
const name = (row) => row.first.id || link(row).id || link(row).hash.slice(1) || link(row).pathname;

/* The engine of the site's search, fetched once somebody types. */
let finder;
const started = async () => {
  const [{ Finder }, { SAME, WORDS }] = await Promise.all([import("./find.mjs"), import("./search_words.mjs")]);
  const typed = Object.entries(WORDS).filter(([location]) => /#|^reference\//.test(location));
  const documents = rows.map((row) => {
    const { textContent: text, dataset } = row.first;
    const [, words = ""] = typed.find(([location]) => link(row)?.href.endsWith(`/${location}`)) ?? [];
    const names = dataset.names?.replaceAll("|", "\n") ?? "";
    return { id: row.id, title: link(row)?.textContent ?? "", names, text, words: `${words}\n${dataset.words ?? ""}` };
  });
  finder = new Finder(documents, { title: 4, names: 6, text: 1, words: 2 }, SAME);
};

/* The length of the longest name of a row with which words begin, without what names it: Qwen/Qwen2.5-7B is Qwen2.5. */
const bare = (text) => text.toLowerCase().replace(/^\S*\/|\.py$|[^a-z0-9]/g, "");
const begun = (row, query) => {
  const names = [link(row)?.textContent ?? "", ...row.first.dataset.names?.split("|") ?? []].map(bare);
  return Math.max(0, ...names.filter((each) => each && bare(query).startsWith(each)).map((each) => each.length));
};

/* Rows with all words, best first, and how many they are; if they are few, the nearest of the others after them. A row that
   is named comes first; of what has a name, a row has a word only if it has all of it. */
const ranked = (query, open) => {
  const found = finder.find(query).filter(({ id }) => open.has(rows[id]));
  const lengths = new Map(found.map((each) => [each, body ? begun(rows[each.id], query) : 0]));
  const longest = Math.max(0, ...lengths.values());
  const called = found.filter((each) => longest && lengths.get(each) === longest);
  const all = found.filter(({ asked, met, whole }) => asked.length === (named === undefined ? met : whole).size);
  const first = [...new Set([...called, ...all])];
  const order = [...new Set([...first, ...found])].slice(0, Math.max(LEAST, first.length));
  return { all: first.map(({ id }) => rows[id]), order: order.map(({ id }) => rows[id]) };
};

/* A column is sorted by its head: up, down, and as it was. Empty cells come last. */
const heads = [...list.querySelectorAll("thead th:not(.whole-row)")];
const UP = "ascending", DOWN = "descending";
const sort = (head) => {
  const next = { [UP]: DOWN, [DOWN]: "none" }[head.ariaSort] ?? UP;
  for (const each of heads) each.ariaSort = each === head ? next : "none";
};
for (const head of heads) {
  head.ariaSort = "none";
  const button = make("button", { type: "button", ariaLabel: `Sort by ${head.textContent.toLowerCase()}` });
  button.addEventListener("click", () => { sort(head); narrow(); });
  head.append(button);
}
const sorted = (rows, head) => {
  const [column, down] = [heads.indexOf(head), head.ariaSort === DOWN];
  const cells = new Map(rows.map((row) => [row, row.first.children[column].textContent]));
  const number = (text) => parseFloat(text.replaceAll(",", ""));
  const compare = "number" in head.dataset ? (a, b) => number(a) - number(b) : (a, b) => a.localeCompare(b, "en");
  const empty = (text) => !text || text === "–" || text === "?" || ("number" in head.dataset && isNaN(number(text)));
  return rows.toSorted((one, other) => {
    const [a, b] = [cells.get(one), cells.get(other)];
    return empty(a) - empty(b) || (empty(a) ? 0 : down ? compare(b, a) : compare(a, b));
  });
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
  const narrowed = Boolean(query || chosen.length);
  const head = heads.find(({ ariaSort }) => ariaSort !== "none");
  show(head ? sorted(shown, head) : shown, Boolean(query || head), narrowed);
  counted.textContent = narrowed ? said(query, all, order) : told;
};

/* Rows in their order, all in one place if that is not where they belong. */
let moved = false;
const show = (shown, flat, narrowed) => {
  if (moved) for (const [home, children] of homes) home.append(...children);
  const seen = new Set(shown);
  for (const row of rows) for (const part of row.parts) part.hidden = !seen.has(row);
  const above = new Set(flat ? [] : shown.map(({ heading }) => heading));
  for (const heading of headings) heading.hidden = !above.has(heading);
  for (const { first } of shown) for (const more of first.querySelectorAll(".more")) more.hidden = !narrowed;
  const together = flat ? shown.flatMap((row) => row.parts) : [];
  body ? body.append(...together) : counted.after(...together);
  moved = flat;
};

const said = (query, all, order) => {
  const count = new Set(all.map(name)).size;
  const more = order.length - all.length;
  const near = more ? `; ${more} more ${more > 1 ? "are" : "is"} near` : "";
  const which = query ? `with these words${order.length ? near : ", so all are shown"}` : "of these";
  if (query && named !== undefined && !count && more) return `No row contains “${query}”. The nearest rows:`;
  return `${told.split(",")[0]}, ${count} ${which}.`;
};

/* Words put the best row first, whatever the order was. */
field.addEventListener("input", () => { for (const each of heads) each.ariaSort = "none"; });
for (const control of [field, ...choices]) control.addEventListener("input", narrow);
field.addEventListener("focus", () => (started.once ??= started()), { once: true });

/* The facts of a row can be copied, and are open where a link leads to it. */
list.addEventListener("toggle", ({ target }) => {
  if (!target.open || !target.matches(".whole-row > details") || target.querySelector("button")) return;
  const button = make("button", { type: "button", textContent: "Copy" });
  const facts = `${link({ first: target.closest("tr") }).textContent}: ${target.querySelector("p").textContent}`;
  button.addEventListener("click", () => navigator.clipboard.writeText(facts).then(() => { button.textContent = "Copied"; }));
  target.append(button);
}, { capture: true });
const led = () => {
  const row = document.getElementById(location.hash.slice(1))?.closest("tr");  // :target may be set later
  const facts = row?.querySelector(".whole-row > details");
  if (facts) facts.open = true;
};
addEventListener("hashchange", led);
led();
