/* What `positions explain` and `positions compare` of the package check-positions say, for the page: a test holds both to
   the same words. */
import { describeConfig, fill, spans } from "./read_config.js";

const grouped = (text) => text.replace(/\B(?=(\d{3})+$)/g, ",");
const whole = (x) => grouped(x.toFixed(0));
const digits = (x, many) => {
  const kept = Number((x * (1 + 1e-12)).toPrecision(many));
  return Number.isInteger(kept) ? whole(kept) : kept.toFixed(10).replace(/0+$/, "");
};
const number = (x) => (Number.isInteger(x) ? whole(x) : digits(x, 6));
const count = (tokens) => (tokens < 100 ? tokens.toFixed(2) : whole(tokens));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/* Frequencies in radians per position, and the factor of cosines and sines, as configured_frequencies returns them. */
const frequencies = ({ settings: given, head }) => {
  const { rope_type: kind, factor = 1, partial_rotary_factor: share = 1, alpha } = given;
  const wide = kind === "proportional" ? head : Math.trunc(head * share);
  const base = given.rope_theta * (kind === "dynamic" && alpha ? alpha ** (wide / (wide - 2)) : 1);
  const plain = Array.from({ length: Math.floor((Math.trunc(head * share) + 1) / 2) }, (_, m) => base ** (-2 * m / wide));
  const turns = plain.map((w) => given.original_max_position_embeddings * w / (2 * Math.PI));
  const blended = (kept) => plain.map((w, m) => w * kept[m] + w / factor * (1 - kept[m]));
  if (kind === "linear" || kind === "proportional") return [plain.map((w) => w / factor), 1];
  if (kind === "longrope") return [plain.map((w, m) => w / given.short_factor[m]), given.attention_factor || longropeFactor(given)];
  if (kind === "llama3") {
    const { low_freq_factor: low, high_freq_factor: high } = given;
    return [blended(turns.map((n) => clamp((n - low) / Math.max(high - low, 1e-9)))), 1];
  }
  return kind === "yarn" ? [blended(yarnRamp(given, turns).map((slowed) => 1 - slowed)), yarnFactor(given)] : [plain, 1];
};
const clamp = (x, low = 0, high = 1) => Math.min(Math.max(x, low), high);

const longropeFactor = ({ factor = 1, original_max_position_embeddings: original }) => (
  Math.sqrt(1 + Math.log(Math.max(factor, 1)) / Math.log(original)));

const yarnFactor = ({ factor, attention_factor: given, mscale, mscale_all_dim: all }) => {
  const scale = (of) => (factor > 1 ? 0.1 * of * Math.log(factor) + 1 : 1);
  return given ?? (mscale && all ? scale(mscale) / scale(all) : scale(1));
};

const yarnRamp = ({ beta_fast: fast, beta_slow: slow, truncate = true }, turns) => {
  const logs = turns.map(Math.log), step = (logs[0] - logs.at(-1)) / Math.max(logs.length - 1, 1);
  let [low, high] = [fast || 32, slow || 1].map((beta) => (logs[0] - Math.log(beta)) / step);
  if (truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
  [low, high] = [Math.max(low, 0), Math.min(high, 2 * logs.length - 1)];
  return logs.map((_, m) => clamp((m - low) / Math.max(high - low, 0.001)));
};

/* What a model does with positions, layer kind by layer kind. */
class Explanation {
  constructor(told, { words, pages }) { Object.assign(this, { told, words, pages, layers: sum(told.kinds.map(({ layers }) => layers.length)) }); }

  say(name, values = {}) { return fill(this.words[name], values); }

  lines() {
    const { model_type: kind, faults, longest, guess, known, notes } = this.told;
    return [
      this.say("title", { kind, what: this.what() }), "",
      ...faults.map((fault) => `! ${fault}`),
      ...(faults.length ? [] : this.body()),
      ...(longest ? [this.say("longest", { longest: number(longest) })] : []),
      ...(guess ? [`! ${this.say(known ? "guess_unread" : "guess_unknown")}`] : []),
      ...notes.map((note) => `! ${note}`),
      this.say("pages", { pages: this.found().join(", ") }),
    ];
  }

  what() {
    const { faults, encoding, kinds } = this.told, layers = this.layers;
    if (faults.length) return this.say("unknown");
    if (encoding !== "rope") return this.say(encoding);
    const turning = sum(kinds.filter(({ turned }) => turned).map((kind) => kind.layers.length));
    return this.say(turning < layers ? "some" : "every", { turning, layers });
  }

  body() {
    const { encoding, kinds, parts } = this.told;
    if (encoding === "none") return parts.filter(([kind]) => kind === "fact").map(([, words]) => words);
    if (encoding !== "rope") return [this.say(`${encoding}_does`)];
    return kinds.flatMap((kind) => [this.heading(kind), ...this.layer(kind).map((line) => `  ${line}`)]);
  }

  heading({ layers, kind }) {
    const many = layers.length;
    if (!many) return this.say("each_layer");
    return this.say(many < this.layers ? "some_layers" : "all_layers", { many, layers: this.layers, kind, spans: spans(layers) });
  }

  layer(kind) {
    if (!kind.turned) return [this.say(Object.hasOwn(this.words, kind.kind) ? kind.kind : "bare"), ...this.seen(kind)];
    const share = this.say(kind.turned === kind.head ? "all_channels" : "some_channels", kind), { layout } = this.told;
    return [
      this.say("rotates", { share, layout: this.say(layout ? "layout" : "no_layout", { layout }), base: number(kind.settings.rope_theta) }),
      ...this.scaling(kind), ...this.turns(kind), ...this.seen(kind),
    ];
  }

  seen({ window, chunk }) {
    if (window) return [this.say("window", { window: number(window) })];
    return chunk ? [this.say("chunk", { chunk: number(chunk) })] : [];
  }

  scaling(kind) {
    const { rope_type: name, factor, alpha, original_max_position_embeddings: original } = kind.settings;
    if (name === "default") return [];
    const by = frequencies(kind)[1];
    return [
      this.say(alpha ? "alpha" : name, { factor: number(factor || 1), alpha: number(alpha || 1) }),
      ...(original ? [this.say("original", { original: number(original) })] : []),
      ...(by === 1 ? [] : [this.say("multiplied", { by: digits(by, 4) })]),
    ];
  }

  turns(kind) {
    const lengths = frequencies(kind)[0].map((w) => 2 * Math.PI / w), { longest } = this.told;
    const full = lengths.filter((length) => length <= longest).length;
    return [
      this.say("turns", { fast: count(Math.min(...lengths)), slow: count(Math.max(...lengths)) }),
      ...(longest ? [this.say("within", { longest: number(longest), full, pairs: lengths.length })] : []),
    ];
  }

  found() {
    const { encoding, kinds } = this.told, scaled = kinds.some(({ turned, settings }) => turned && settings.rope_type !== "default");
    const names = [encoding, ...(kinds.some(({ turned }) => !turned) ? ["bare"] : []), ...(scaled ? ["scaled"] : [])];
    return [...new Set(names.map((name) => this.pages[name]))];
  }
}

/* How two models differ: lists of what, layers, first, second and effect. */
class Comparison {
  constructor(first, second, words, angle, long) { Object.assign(this, { first, second, words, angle, long }); }

  say(name, values = {}) { return fill(this.words[name], values); }
  whole(what, first, second) { return [this.say(what), [], first, second, this.say(`${what}_does`)]; }

  differences() {
    const { first, second } = this, [a, b] = [first, second].map(byLayer);
    if (first.encoding !== second.encoding) return [this.whole("encoding", first.encoding, second.encoding)];
    const layouts = [first, second].map(({ layout }) => layout || this.say("unknown")), known = first.layout && second.layout;
    return [
      ...(first.layout === second.layout ? [] : [[this.say("layout"), [], ...layouts, this.say(known ? "layout_does" : "layout_unknown")]]),
      ...(a.length === b.length ? [] : [this.whole("layers", `${a.length}`, `${b.length}`)]),
      ...this.layers(a, b),
      ...(first.longest === second.longest || !first.longest || !second.longest ? []
        : [this.whole("longest", number(first.longest), number(second.longest))]),
    ];
  }

  layers(a, b) {
    const alike = new Map();
    for (let n = 0; n < Math.min(a.length, b.length); n += 1) {
      const key = JSON.stringify([a[n], b[n]].map((kind) => ({ ...kind, layers: [] })));
      if (!alike.has(key)) alike.set(key, [a[n], b[n], []]);
      alike.get(key)[2].push(n);
    }
    return [...alike.values()].flatMap(([one, other, layers]) => (
      [...this.rotation(one, other), ...this.sight(one, other)].map(([what, ...rest]) => [this.say(what), layers, ...rest])));
  }

  rotation(a, b) {
    if (a.turned !== b.turned || a.head !== b.head) {
      if (!a.turned && !b.turned) return [];
      return [["channels", ...[a, b].map((kind) => this.say("share", kind)), this.say("channels_does")]];
    }
    if (!a.turned) return [];
    const [[w, scale], [v, other]] = [frequencies(a), frequencies(b)], shown = [this.shown(a), this.shown(b)], found = [];
    if (w.some((each, m) => Math.abs(each - v[m]) > 1e-6 * each)) found.push(["frequencies", ...shown, this.angles(w, v)]);
    else if (this.beyond(a) !== this.beyond(b)) found.push(["long", ...shown, this.say("long_does")]);
    if (Math.abs(scale - other) > 1e-6) {
      found.push(["factor", number(scale), number(other), this.say("factor_does", { ratio: digits((other / scale) ** 2, 4) })]);
    }
    return found;
  }

  beyond({ settings }) {
    if (!["dynamic", "longrope"].includes(settings.rope_type) || settings.alpha) return "";
    return JSON.stringify(this.long.map((key) => settings[key] ?? null));
  }

  shown({ settings }) {
    const { rope_type: kind, factor, rope_theta: base } = settings, name = kind === "default" ? "base" : "scaled";
    return this.say(factor ? "by_factor" : name, { base: number(base), kind, factor: number(factor || 1) });
  }

  angles(w, v) {
    const apart = w.map((each, m) => Math.abs(each - v[m])), most = Math.max(...apart), pair = apart.indexOf(most);
    const ratio = Math.max(...w.map((each, m) => Math.max(each / v[m], v[m] / each)));
    const distance = number(Math.max(1, Math.ceil(this.angle / most))), changed = apart.filter((each, m) => each > 1e-6 * w[m]).length;
    return this.say("frequencies_does", { changed, pairs: w.length, ratio: digits(ratio, 4), distance, pair, angle: this.angle });
  }

  sight(a, b) {
    if (a.window === b.window && a.chunk === b.chunk) return [];
    return [["window", this.sees(a), this.sees(b), this.say("window_does")]];
  }

  sees({ window, chunk }) {
    if (chunk) return this.say("chunks", { chunk: number(chunk) });
    return this.say(window ? "keys" : "no_window", { window: number(window) });
  }
}

const byLayer = ({ kinds }) => {
  const found = [];
  for (const kind of kinds) for (const layer of kind.layers) found[layer] = kind;
  return found.length ? found : kinds;
};

/* Lines of text; those of an unreadable file if it is one. */
export const explainConfig = (text, known) => {
  const told = describeConfig(text, known);
  return Array.isArray(told) ? told.map(([kind, words]) => (kind === "mind" ? `! ${words}` : words)) : new Explanation(told, known.explain).lines();
};

/* Lines of text, as `positions compare` prints them. */
export const compareConfigs = (texts, known) => {
  const told = texts.map((text) => describeConfig(text, known)), { words, angle, long } = known.compare;
  const unread = told.findIndex(Array.isArray), faulty = told.find(({ faults }) => faults?.length);
  if (unread >= 0) return told[unread].map(([kind, said]) => (kind === "mind" ? `! ${said}` : said));
  if (faulty) return [`! ${fill(words.incomplete, { kind: faulty.model_type, fault: faulty.faults[0] })}`];
  const found = new Comparison(...told, words, angle, long).differences();
  const lines = found.flatMap(([what, layers, first, second, effect]) => {
    const where = layers.length ? fill(words.where, { spans: spans(layers) }) : "";
    return [fill(words.difference, { what, where, first, second }), `  ${effect}`];
  });
  const guesses = told.filter(({ guess }) => guess).map(({ model_type: kind }) => `! ${fill(words.guess, { kind })}`);
  return [...guesses, ...(lines.length ? lines : [words.same])];
};
