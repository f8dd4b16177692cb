/* Finds documents by the words that people type. The search of the site and the filters of lists use it. */
import MiniSearch from "./minisearch.mjs";

const STOP = new Set(`a about after all also am an and another any are as at be because been but by can cannot could did do does
  each else few for from get gets got had has have he help how however i if in instead into is it its just let
  like made make many may me more most much must my need not now of off on once one only or other our out over
  please same see seem she should so some something still such than that the their them then there these they
  this those to too try two up use used uses using very via want was we were what when where which while who
  whose why will with would yes yet you your`.split(/\s+/));
const NUMBER = String.raw`\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?!\d)`;
const LETTERS = String.raw`[\p{L}\p{N}][\p{M}\p{L}\p{N}]*`;
const WORD = new RegExp(`${NUMBER}|${LETTERS}(?:[._-]+${LETTERS})*`, "gu");
const TYPED = 20_000;  // characters of a query that are read, its last ones
const COUNT = 30;  // and words of them that are looked for, those that the fewest documents have
const WEAK = 0.5;  // the weight of a part of a word, or of another word for it
const LOOSE = { weights: { prefix: 0.4, fuzzy: 0.3 }, prefix: (form) => form.length > 3 };
const typo = (form) => form.length > 5 && !/\d/.test(form) ? 0.15 : 0;

/* Rotates, rotated, rotating and rotation have one stem. */
const stem = (word) => {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  const short = word.replace(/(?<=..)ies$/, "y").replace(/(?<=[^su])s$|(?<=(?:s|x|ch|sh))es$/, "")
    .replace(/(?<=[aeiouy].*)(?:ing|ed|ion|ional|al|ly|e)$/, "").replace(/([bdgmnprt])\1$/, "$1");
  return short.length < 3 ? word : short;
};

/* The forms under which a word is found: first itself, then its parts, and its letters without a number. */
const known = new Map();
export const forms = (word) => {
  if (!known.has(word)) {
    const whole = word.replace(/(?<=\d)[,\u00a0\u202f](?=\d)/g, "");
    const parts = whole.split(/[._-]+|(?<=\p{Ll}{2})(?=\p{Lu}\p{Ll}{2})/u);
    const one = whole.replace(/[._-]+/g, "_");  // max-model-len is max_model_len
    const all = [one, ...parts.filter((part) => !/^\d+$/.test(part))].map((each) => each.toLowerCase());
    const letters = all.map((each) => each.match(/^(\p{L}{2,})\d+$/u)?.[1]).filter(Boolean);
    known.set(word, [...new Set([...all, ...letters].map(stem))]);
  }
  return known.get(word);
};

/* The words of a text, as matches, which know where they are. */
export const words = (text) => [...text.matchAll(WORD)];

export class Finder {
  /* A document has an id, a text for each field and perhaps a weight; `same` has groups of words for one thing. */
  constructor(documents, boost, same) {
    this.boost = boost;
    this.documents = new Map(documents.map((each) => [each.id, each]));
    this.others = new Map();
    for (const group of same.map((each) => each.map((word) => forms(word)[0]))) {
      for (const form of group) this.others.set(form, [...this.others.get(form) ?? [], ...group]);
    }
    const tokenize = (text) => words(text).flatMap(([word]) => forms(word));
    this.index = new MiniSearch({ fields: Object.keys(boost), tokenize, processTerm: (form) => form });
    this.index.addAll(documents);
  }

  /* The words of a query: each with the forms that stand for it, and how much. */
  asked(query) {
    const typed = words(query.slice(-TYPED).normalize("NFKC")).map(([word]) => word);
    const found = new Map();
    typed.forEach((word, n) => {
      const [own, ...parts] = forms(word);
      if (found.has(own) || STOP.has(word.toLowerCase())) return;
      const binary = /^\d{1,4}k$/i.test(word) ? [`${1024 * parseInt(word, 10)}`] : [];  // 8k is 8,192
      const others = [own, ...parts, ...binary].flatMap((form) => this.others.get(form) ?? []);
      const weak = [...parts, ...binary, ...others].filter((form) => !STOP.has(form));
      const next = typed[n + 1] ? [forms(word + typed[n + 1])[0]] : [];  // gemma 3, flash attention
      const weights = new Map(weak.map((form) => [form, WEAK]));
      for (const form of [own, ...next]) weights.set(form, 1);
      found.set(own, { word, own, weights });
    });
    const asked = [...found.values()];
    if (asked.length <= COUNT) return asked;
    const [, message] = query.match(/.*\b(\w+(?:Error|Exception|Warning)\b.*)/s) ?? [];  // of a log, the last one
    return message?.length < query.length && words(message).length > 2 ? this.asked(message) : this.rarest(asked);
  }

  rarest(asked) {
    const often = ({ own }) => this.index.search(own, { tokenize: () => [own] }).length || Infinity;
    const counted = asked.map((each) => [often(each), each]);
    return counted.sort(([one], [other]) => one - other).slice(0, COUNT).map(([, each]) => each);
  }

  /* Documents with a score, best first: the sum over their words, times the share of the query that they have.
     A tag counts the more, the shorter the query. */
  find(query, fuzzy = typo) {
    const asked = this.asked(query);
    const weights = new Map();
    for (const [form, weight] of asked.flatMap((each) => [...each.weights])) {
      weights.set(form, Math.max(weight, weights.get(form) ?? 0));
    }
    const boost = { ...this.boost, tags: this.boost.tags / asked.length };
    const how = { ...LOOSE, fuzzy, boost, boostTerm: (form) => weights.get(form), tokenize: () => [...weights.keys()] };
    const found = this.index.search(query, how).map(({ id, score, queryTerms, terms }) => {
      const met = new Set(asked.filter((each) => queryTerms.some((form) => each.weights.has(form))));
      const whole = new Set(asked.filter((each) => terms.some((form) => each.weights.get(form) === 1)));
      const factor = (this.documents.get(id).weight ?? 1) * (0.3 + met.size / asked.length);
      return { id, score: score * factor, asked, met, whole, forms: shown(met, terms) };
    });
    return found.sort((one, other) => other.score - one.score);
  }
}

/* The forms to mark in a document: what only stands for a word is left out where the word itself occurs. */
const shown = (met, terms) => {
  const whole = [...met].filter(({ own }) => terms.includes(own));
  const others = new Set(whole.flatMap(({ own, weights }) => [...weights.keys()].filter((form) => form !== own)));
  return new Set(terms.filter((form) => !others.has(form)));
};
