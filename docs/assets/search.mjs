/* Answers the search box of Material, in the place of the theme's own worker and by its protocol (types 0 to 3). */
import { Finder, forms, words } from "./find.mjs";
import { SAME, WORDS } from "./search_words.mjs";

const BOOST = { title: 3, text: 1, page: 1, words: 3, tags: 16 };
const [PAGES, SECTIONS] = [20, 6];  // results, and sections of a page that a result shows, at most
const [MISSING, WORD] = [6, 40];  // words that a result lacks, at most, and their characters
const TEASER = 320;  // characters of a long paragraph around its first match
const REGISTER = "Nothing found? Look up the symptom in the register of bugs";
const SYMPTOMS = { location: "guide/broken/#the-register", title: REGISTER, text: "", score: 0, terms: {} };
const COMMON = ["guide/debugging/", "add/", "glossary/"];  // for a query without a word
const NAMED = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
const plain = (html) => html.replace(/<[^>]*>/g, " ").replace(/&(?:lt|gt|amp);/g, (name) => NAMED[name]);
const pageOf = (location) => location.split("#")[0];

class Search {
  constructor(docs) {
    this.docs = new Map(docs.map((doc) => [doc.location, doc]));
    this.pages = new Map();
    for (const doc of docs) if (!this.pages.has(pageOf(doc.location))) this.pages.set(pageOf(doc.location), doc);
    this.finder = new Finder(docs.map((doc) => this.document(doc)), BOOST, SAME);
  }

  document(doc) {
    const page = this.pages.get(pageOf(doc.location));
    const weight = (doc.boost ?? 1) ** 0.35 * (page === doc ? 1.2 : 1);
    const tags = (page.tags ?? []).join(" ");
    const named = page === doc ? { tags } : { page: `${plain(page.title)} ${tags}` };
    const typed = WORDS[doc.location] ?? "";
    return { id: doc.location, title: plain(doc.title), text: plain(doc.text), words: typed, weight, ...named };
  }

  query(query) {
    if (!query) return [];
    const found = this.grouped(this.finder.find(query));
    if (!found.length) return [...this.nearest(query), [SYMPTOMS]];
    return found.slice(0, PAGES).map((group) => this.items(group));
  }

  /* For words that no page has: three pages with words of similar letters, or those that help most readers. */
  nearest(query) {
    const found = this.grouped(this.finder.find(query, 0.4)).slice(0, 3);
    const pages = found.map(({ sections }) => pageOf(sections[0].id));
    const asked = this.finder.asked(query);
    const common = COMMON.filter((page) => !pages.includes(page)).map((id) => ({ sections: [{ id, score: 0, asked }] }));
    return [...found, ...common].slice(0, 3).map((group) => this.items(group));
  }

  /* By page: a page counts as its best section and a little of the others. */
  grouped(found) {
    const pages = new Map();
    for (const each of found) {
      const group = pages.get(pageOf(each.id)) ?? { score: 0, sections: [] };
      group.score += each.score * (group.sections.length ? 0.05 : 1);
      group.sections.push(each);
      pages.set(pageOf(each.id), group);
    }
    return [...pages.values()].sort((one, other) => other.score - one.score);
  }

  /* What the theme shows of a page: its best sections, the page itself always among them. */
  items({ sections }) {
    const page = this.pages.get(pageOf(sections[0].id)).location;
    const shown = sections.filter(({ id }, n) => id === page || n < SECTIONS);
    const items = shown.map((each) => this.item(each));
    return items.some(({ location }) => location === page) ? items : [...items, this.item({ id: page, score: 0 })];
  }

  item({ id, score, asked = [], met = new Set(), forms: found = new Set() }) {
    const { location, title, text } = this.docs.get(id);
    const pieces = text.split(/<\/?(?:p|ul|ol|li|pre)>/).filter((piece) => piece.trim());
    const marked = [title, ...pieces].map((html) => mark(html, found));
    const most = (one, other) => marked[other].forms.size - marked[one].forms.size;
    const best = [...marked.keys()].slice(1).sort(most).slice(0, 2);
    const teaser = best.sort((one, other) => one - other).map((n) => `<p>${short(marked[n].html)}</p>`).join("");
    const written = new Map(marked.flatMap((each) => [...each.written]));
    return { location, title: marked[0].html, text: teaser, score, terms: terms(asked, met, written) };
  }
}

/* HTML with the words marked that have one of some forms, these forms, and how each is written there. */
const mark = (html, wanted) => {
  const [written, seen] = [new Map(), new Set()];
  const pieces = html.split(/(<[^>]*>|&\w+;)/).map((piece, n) => {
    if (n % 2) return piece;
    let [end, made] = [0, ""];
    for (const { 0: word, index } of words(piece)) {
      const met = forms(word).filter((form) => wanted.has(form));
      if (!met.length) continue;
      for (const form of met) {
        seen.add(form);
        if (!written.has(form) || form === forms(word)[0]) written.set(form, word);
      }
      made += `${piece.slice(end, index)}<mark>${word}</mark>`;
      end = index + word.length;
    }
    return made + piece.slice(end);
  });
  return { html: pieces.join(""), written, forms: seen };
};

/* A long paragraph from shortly before its first mark on, without other elements. */
const short = (html) => {
  if (html.length < 2 * TEASER) return html;
  const text = html.replace(/<(?!\/?mark>)[^>]*>/g, "");
  const first = text.lastIndexOf(" ", Math.max(0, text.indexOf("<mark>") - TEASER / 4)) + 1;
  const last = text.indexOf(" ", first + TEASER);
  return `${first ? "… " : ""}${last < 0 ? text.slice(first) : `${text.slice(first, last)} …`}`;
};

/* Words of the query as the text writes them, for the page to mark; and those that it lacks. */
const terms = (asked, met, written) => {
  const found = [...met].map(({ word, own, weights }) => {
    const alike = [...written.keys()].filter((form) => form.slice(0, 3) === own.slice(0, 3));
    return [written.get([own, ...weights.keys(), ...alike].find((form) => written.has(form))) ?? word, true];
  });
  const lacking = asked.filter((each) => !met.has(each)).slice(0, MISSING).map(({ word }) => [word.slice(0, WORD), false]);
  return Object.fromEntries([...lacking, ...found]);
};

let search;
addEventListener("message", ({ data: { type, data } }) => {
  if (type === 0) {
    search = new Search(data.docs);
    postMessage({ type: 1 });
  }
  if (type === 2) postMessage({ type: 3, data: { items: search.query(data) } });
});
