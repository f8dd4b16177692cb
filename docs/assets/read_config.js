/* What snippets/read_config.py does, for the page: a test holds both to the same words, part by part. Nothing that is
   read is run, sent or kept. */
const LIMIT = 1_000_000, DEEPEST = 40, WIDE = 76;
const BLANK = /[ \t\n\r]*/y, NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y, WORD = /true|false|null/y;
const TEXT = /"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"/y;
const SIGNS = Object.fromEntries([..."{}[]:,"].map((sign) => [sign, new RegExp(`\\${sign}`, "y")]));
const UNSEEN = /[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

class Untold extends Error {}

class Written {  // a number as it is written
  constructor(text, value) { Object.assign(this, { text, value }); }
}

const isNumber = (value) => value instanceof Written;
const isDict = (value) => value instanceof Map;
const dict = (value) => (isDict(value) ? value : new Map());
const get = (of, key) => of.get(key) ?? null;
const fill = (words, values) => words.replace(/\{([a-z_]+)\}/g, (_, name) => values[name]);
const add = (to, words) => { if (!to.includes(words)) to.push(words); };
const signs = (text) => [...text];  // Python counts these, not units of UTF-16

const shown = (value) => {
  if (Array.isArray(value)) return value.length ? "[…]" : "[]";
  if (isDict(value)) return value.size ? "{…}" : "{}";
  const raw = isNumber(value) ? value.text : JSON.stringify(value);
  const text = raw.replace(UNSEEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return signs(text).length <= 40 ? text : `${signs(text).slice(0, 39).join("")}…`;
};
const plain = (value) => (typeof value === "string" ? value : shown(value));
const code = (value) => {
  if (typeof value === "boolean") return value ? "True" : "False";
  return isNumber(value) ? value.text : `"${value}"`;
};
const listed = (opens, items, closes) => {
  const line = `${opens}${items.join(", ")}${closes}`;
  return line.length <= WIDE ? line : `${opens}\n${items.map((each) => `    ${each},\n`).join("")}${closes}`;
};
const spans = (numbers) => {
  const made = [];
  for (const n of numbers) {
    if (made.at(-1)?.[1] === n - 1) made.at(-1)[1] = n;
    else made.push([n, n]);
  }
  return made.map(([a, b]) => (a < b ? `${a} to ${b}` : `${a}`)).join(", ");
};

const fits = (value, check) => {
  const { is, whole, least, most } = check;
  if (is === "number") return isNumber(value) && (!whole || Number.isInteger(value.value)) && least <= value.value && value.value <= most;
  if (is === "numbers" || is === "texts") return Array.isArray(value) && value.every((each) => fits(each, { ...check, is: is.slice(0, -1) }));
  return { text: typeof value === "string", dictionary: isDict(value), switch: typeof value === "boolean", any: true }[is];
};

/* JSON whose numbers stay as written, and whose double names are heard. */
class Json {
  constructor(text, words) { Object.assign(this, { text, words, at: 0, twice: [] }); }

  whole() {
    if (this.text.length > LIMIT) {
      const got = signs(this.text).length;
      if (got > LIMIT) throw new Untold(fill(this.words.too_long, { limit: LIMIT, got }));
    }
    const made = this.value(0);
    if (this.at < this.text.length) throw this.fault(this.words.end);
    return made;
  }

  value(depth) {
    if (depth > DEEPEST) throw new Untold(fill(this.words.too_deep, { deepest: DEEPEST }));
    this.take(BLANK);
    const made = this.opened(depth);
    this.take(BLANK);
    return made;
  }

  opened(depth) {
    if (this.take(SIGNS["{"])) return this.members(depth);
    if (this.take(SIGNS["["])) return this.items(depth);
    let text;
    if ((text = this.take(TEXT))) return JSON.parse(text);
    if ((text = this.take(NUMBER))) return new Written(text, Number(text));
    if ((text = this.take(WORD))) return { true: true, false: false, null: null }[text];
    throw this.fault(this.words.a_value);
  }

  items(depth) {
    const made = [];
    this.take(BLANK);
    while (made.length || !this.take(SIGNS["]"])) {
      made.push(this.value(depth + 1));
      if (this.take(SIGNS["]"])) break;
      this.need(SIGNS[","], ", or ]");
    }
    return made;
  }

  members(depth) {
    const made = new Map();
    this.take(BLANK);
    while (made.size || !this.take(SIGNS["}"])) {
      this.take(BLANK);
      const name = JSON.parse(this.need(TEXT, this.words.a_name));
      this.take(BLANK);
      this.need(SIGNS[":"], ":");
      if (made.has(name)) this.twice.push(name);
      made.set(name, this.value(depth + 1));
      if (this.take(SIGNS["}"])) break;
      this.need(SIGNS[","], ", or }");
    }
    return made;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  need(pattern, expected) {
    const taken = this.take(pattern);
    if (!taken) throw this.fault(expected);
    return taken;
  }

  fault(expected) {
    const lines = this.text.slice(0, this.at).split("\n"), here = signs(this.text.slice(this.at, this.at + 2))[0];
    const column = signs(lines.at(-1)).length + 1, got = here ? shown(here) : this.words.end;
    return new Untold(fill(this.words.no_json, { line: lines.length, column, expected, got }));
  }
}

class Reading {
  constructor(given, twice, table, known) {
    Object.assign(this, { table, known, facts: [], faults: [], minds: [], built: [], forward: [], blocks: [], read: [] });
    this.imports = new Map();
    for (const name of twice) this.mind("twice", { key: shown(name) });
    this.given = this.part(given);
    let kind = get(this.given, "model_type");
    const text = typeof kind === "string", part = known.get("wholes").get(kind);
    if (part) {
      this.fact("whole", { kind, part });
      kind = part;
    }
    this.row = (text && known.get("models").get(kind)) || new Map();
    this.defaults = this.own("defaults");
    this.kind = this.row.size ? kind : text ? shown(kind) : this.told("no_type");
    this.ropes = this.dictionaries();
  }

  answer() {
    this.values();
    this.strange();
    this.rules();
    const family = get(this.row, "family") ?? "rope";
    if (!this.row.size && !this.table.signs.some((key) => this.key(key))) this.fault("no_signs");
    if (!this.faults.length) family === "rope" ? this.rope() : this.template(family);
    if (!this.row.size) this.mind("unknown_type", { kind: this.kind });
    const layout = this.layout() || this.told("unknown");
    const title = this.told(this.faults.length ? "no_calls" : `is_${family}`, { kind: this.kind, layout });
    const minds = [...this.faults, ...this.minds];
    return [
      ["title", title],
      ...this.facts.map((words) => ["fact", words]),
      ...(minds.length ? [["title", this.told("mind")]] : []),
      ...minds.map((words) => ["mind", words]),
      ...(this.faults.length ? [] : this.blocks),
    ];
  }

  told(name, values = {}) { return fill(this.table.words[name], values); }
  fact(name, values) { add(this.facts, this.told(name, values)); }
  fault(name, values) { add(this.faults, this.told(name, values)); }
  mind(name, values) { add(this.minds, this.told(name, values)); }
  block(title, lines) {
    if (lines.some(Boolean)) this.blocks.push(["title", this.table.words[title] ?? title], ["code", lines.join("\n")]);
  }
  own(name) { return dict(get(this.row, name)); }

  /* Keys. */
  part(given) {
    for (const name of this.table.parts) {
      const part = get(given, name);
      if (isDict(part) && part.size) {
        this.fact("part", { part: name });
        return this.part(part);
      }
    }
    return given;
  }

  key(name) {
    for (const of of [this.given, this.defaults ?? new Map()]) {
      const known = (this.table.aliases[name] ?? [name]).filter((key) => of.has(key));
      if (known.length) return known.find((key) => of.get(key) !== null) ?? "";
    }
    return "";
  }

  look(name) {
    const key = this.key(name);
    return get(this.given, key) ?? get(this.defaults, key);
  }

  whole(name) {
    const value = this.look(name);
    return isNumber(value) && value.value >= 0 && value.value <= 1e9 ? Math.trunc(value.value) : 0;
  }

  source(name) {
    const key = this.key(name);
    return get(this.given, key) !== null ? this.told("from_key", { key }) : this.told("from_class", { kind: this.kind });
  }

  values() {
    for (const check of this.table.value) for (const key of check.keys.trim().split(/\s+/)) for (const of of this.places()) {
      const value = get(of, key);
      if (value !== null && !fits(value, check)) this.fault("value", { key, expected: check.says, got: shown(value) });
    }
  }

  strange() {
    const names = [...this.table.value.map((check) => check.keys), this.table.others].join(" ").split(/\s+/);
    for (const of of this.places()) for (const key of of.keys()) {
      const near = this.table.near.some((word) => key.toLowerCase().includes(word));
      if (!names.includes(key) && (near || of !== this.given)) this.mind("strange", { key: shown(key) });
    }
  }

  places() { return [this.given, ...[...this.ropes.values()].filter((rope) => rope?.size)]; }

  rules() {
    for (const { when, says, fault, case: name } of this.table.rule) for (const rope of this.ropes.values()) {
      if (!when.every((test) => this.holds(test, rope ?? new Map()))) continue;
      const came = [...dict(get(this.known.get("outcomes"), name))];
      const found = came.map(([words, stacks]) => `${words} in ${stacks.join(", ")}`).join("; ");
      add(fault ? this.faults : this.minds, fill(says, { kind: this.kind, found }));
    }
  }

  holds(test, rope) {
    let [what, ...names] = test.split(" ");
    if (what === "apart") [what, names] = ["differ", ["given", "rope"].map((of) => `${of}.${names[0]}`)];
    const found = names.map((name) => this.named(name, rope)), first = found[0];
    if (what === "has" || what === "lacks") return (first !== null && !(isDict(first) && !first.size)) === (what === "has");
    if (what === "is" || what === "isnt") return names[1].split("|").includes(plain(first)) === (what === "is");
    const numbers = found.filter(isNumber).map(({ value }) => value);
    if (what === "ratio") {
      const ratio = numbers[1] / numbers[2];
      return numbers.length === 3 && numbers[2] > 0 && ratio !== 1 && ratio !== numbers[0];
    }
    if (numbers.length < 2) return what === "differ" && !found.includes(null) && !same(...found);
    return what === "below" ? numbers[0] < numbers[1] : numbers[0] !== numbers[1];
  }

  named(name, rope) {
    const [of, key] = name.split(".");
    if (/^[0-9]+$/.test(of)) return new Written(of, Number(of));
    if (of === "method") return this.method(rope);
    if (of === "look") return this.look(key);
    return get({ given: this.given, rope, row: this.row }[of] ?? new Map(), key);
  }

  /* RoPE. */
  dictionaries() {
    const [old, fresh] = ["rope_scaling", "rope_parameters"].map((name) => dict(get(this.given, name)));
    const made = new Map();
    for (const [kind, own] of this.own("kinds")) {
      const plain = new Map(own.has("theta") ? [["rope_type", "default"]] : []);
      const one = fresh.has(kind) ? fresh.get(kind) : !fresh.size && own.has("rope") ? own.get("rope") : plain;
      made.set(kind, one === null ? null : new Map([...dict(one), ...(own.get("stretched") ? old : [])]));
    }
    if (made.size) {
      if (fresh.size && ![...made.keys()].some((kind) => fresh.has(kind))) this.fault("flat", { kind: this.kind });
      return made;
    }
    const outer = old.size ? old : fresh.size ? fresh : this.own("rope");
    for (const [kind, one] of outer) if (Object.hasOwn(this.table.layers, kind)) made.set(kind, one === null ? null : dict(one));
    if (made.size && this.row.size) this.fault("nested", { kind: this.kind });
    return made.size ? made : new Map([["", outer]]);
  }

  method(rope) {
    const method = plain(get(rope, "rope_type") ?? get(rope, "type") ?? "default");
    return get(this.own("methods"), method) ?? method;
  }

  rope() {
    const head = this.head(), groups = this.layers();
    this.sayLayout();
    const own = [...this.ropes].filter(([, rope]) => rope !== null).flatMap(([kind, rope]) => this.tables(rope, kind, head));
    this.scale(head);
    const inside = groups.map((group) => this.inside(...group, groups.length > 1));
    const lines = [...this.built, ...this.forward, ...inside.flatMap(([, of]) => of)];
    this.block("built", [...this.imported(lines), ...this.built]);
    this.block("forward", this.forward);
    for (const [title, of] of inside) this.block(title, of);
    this.check(this.row.size ? `${this.told("reads")} ${this.read.join(this.told("and"))}.` : this.told("asks"));
    this.block("own_check", own.length ? [this.table.import, ...own] : []);
  }

  end(kind) { return [...this.ropes.values()].filter((rope) => rope !== null).length > 1 ? `_${kind.split("_")[0]}` : ""; }
  at() { return this.row.has("backwards") ? "-positions" : "positions"; }

  layout() {
    const known = get(this.row, "layout") ?? "";
    return known === "rope_interleave" ? (this.look(known) !== false ? "interleaved" : "half") : known;
  }

  turn(end, ...names) {
    const layout = this.layout() ? `"${this.layout()}"` : "layout";
    return names.map((x) => `${x} = apply_rope(${x}, cos${end}, sin${end}, ${layout})`);
  }

  sayLayout() {
    const layout = this.layout();
    if (get(this.row, "layout") === "rope_interleave") this.fact("layout_by_key", { layout });
    else if (layout) this.fact("layout", { layout, kind: this.kind, file: get(this.row, "file") ?? this.kind });
    else this.mind("no_layout");
  }

  head() {
    for (const name of ["qk_rope_head_dim", "head_dim"]) {
      const head = this.whole(name);
      if (!head) continue;
      this.fact(name, { head, source: this.source(name) });
      return head;
    }
    const wide = this.whole("hidden_size"), heads = this.whole("heads");
    if (!wide || !heads) {
      this.fault("no_head");
      return 0;
    }
    const head = Math.floor(wide / heads);
    this.fact("wide", { head, wide, heads });
    return head;
  }

  turned(rope, head) {
    const own = get(this.row, "share"), name = get(this.row, "share_key") ?? "partial_rotary_factor";
    const share = get(rope, "partial_rotary_factor") ?? this.look(this.row.size ? name : "share");
    if (isNumber(share) && (own !== null || !this.row.size)) return Math.trunc(head * share.value);
    if (!this.row.size || this.row.has("channels")) return Math.min(this.whole("rotary_dim") || head, head);
    return isNumber(own) ? Math.trunc(head * own.value) : head;
  }

  base(rope, kind) {
    const own = dict(get(this.own("kinds"), kind));
    const name = this.row.size ? get(own, "key") ?? get(this.row, "base_key") ?? "rope_theta" : "base";
    let base = get(rope, "rope_theta"), said = this.told("from_key", { key: "rope_theta" });
    if (base === null && this.look(name) !== null) [base, said] = [this.look(name), this.source(name)];
    else if (base === null) [base, said] = [get(own, "theta"), this.source("")];
    if (!isNumber(base)) {
      this.fault("no_base");
      return new Written("", 0);
    }
    this.fact("base", { base: base.text, source: said, of: this.end(kind) ? this.told("of_kind", { kind }) : "" });
    if (said === this.source("")) this.mind("base_of_class");
    return base;
  }

  tables(rope, kind, head) {
    const method = this.method(rope), end = this.end(kind);
    if (!Object.hasOwn(this.table.method, method)) {
      this.fault("no_method", { method: shown(method) });
      return [];
    }
    const spec = this.table.method[method], turned = spec.whole ? head : this.turned(rope, head);
    if (head && (turned % 2 || !turned)) this.fault("odd", { turned });
    const base = this.base(rope, kind), given = this.settings(rope, kind, method), frequencies = `frequencies${end}`;
    let now = frequencies;
    this.import("rope", "apply_rope", "rope_frequencies", "rope_tables");
    this.built.push(`${frequencies} = rope_frequencies(${turned}, base=${base.text})`);
    for (const call of spec.calls ?? []) {
      if (!given.has(call.when ?? "rope_type")) continue;
      this.import("rope_scaling", call.name);
      now = spec.now ? `now${end}` : frequencies;
      if (spec.now) add(this.forward, spec.now);
      const given_to = this.arguments(call.arguments, given, end, turned);
      (spec.now ? this.forward : this.built).push(listed(`${now} = ${call.name}(`, [frequencies, ...given_to], ")"));
    }
    const both = `cos${end}, sin${end}`, factor = this.factor(given);
    this.forward.push(`${both} = rope_tables(${this.at()}, ${now})`);
    if (factor) {
      this.built.push(`factor${end} = ${factor}`);
      this.forward.push(`${both} = factor${end} * cos${end}, factor${end} * sin${end}`);
    }
    this.share(head, turned, given);
    if (spec.now || !this.row.size) return [];
    given.set("rope_theta", base);
    return this.ownCheck(end, head, turned, given, factor);
  }

  settings(rope, kind, method) {
    const made = new Map([["rope_type", method]]), spec = this.table.method[method], words = (text) => (text ?? "").split(/\s+/).filter(Boolean);
    const longest = this.look("positions"), original = this.look("original_max_position_embeddings");
    for (const key of words(spec.keys)) {
      let found = get(rope, key);
      if (key === "original_max_position_embeddings") found = (kind || original === null ? found : original) ?? longest;
      if (key === "max_position_embeddings") found = longest;
      if (key === "truncate" && kind) found = get(dict(get(this.given, "rope_parameters")), key);
      if (found !== null) made.set(key, found);
    }
    const below = get(made, "original_max_position_embeddings");
    if (["yarn", "longrope"].includes(method) && !made.has("factor") && isNumber(longest) && isNumber(below)) {
      made.set("factor", new Written(`${longest.text} / ${below.text}`, longest.value / below.value));
    }
    for (const key of words(spec.needs)) if (!made.has(key)) this.fault("needs", { method, key });
    return made;
  }

  arguments(wanted, given, end, turned) {
    return wanted.map((each) => {
      const [argument, key, value = ""] = each.split(" "), numbers = get(given, key);
      if (!Array.isArray(numbers)) return `${argument}=${given.has(key) ? code(numbers) : value}`;
      if (numbers.length !== Math.floor(turned / 2)) this.fault("pairs", { key, pairs: Math.floor(turned / 2), got: numbers.length });
      this.built.push(listed(`${key}${end} = [`, numbers.map(code), "]"), `${key}${end} = torch.tensor(${key}${end}).double()`);
      return `${argument}=${key}${end}`;
    });
  }

  factor(given) {
    const method = given.get("rope_type"), factor = get(given, "factor");
    if (given.has("attention_factor")) return code(given.get("attention_factor"));
    if (!isNumber(factor) || factor.value < 1) return "";
    if (method === "longrope") {
      this.import("rope_scaling", "longrope_attention_factor");
      return `longrope_attention_factor(${factor.text}, ${code(get(given, "original_max_position_embeddings"))})`;
    }
    if (method !== "yarn") return "";
    const scales = ["mscale", "mscale_all_dim"].map((key) => get(given, key));
    if (scales.every((each) => isNumber(each) && each.value)) {
      return scales.map((each) => `(0.1 * ${code(each)} * math.log(${factor.text}) + 1)`).join(" / ");
    }
    this.import("rope_scaling", "yarn_attention_factor");
    return `yarn_attention_factor(${factor.text})`;
  }

  share(head, turned, given) {
    const whole = head + (this.whole("qk_rope_head_dim") && this.whole("qk_nope_head_dim"));
    const share = get(given, "partial_rotary_factor");
    const turns = isNumber(share) ? 2 * Math.trunc(Math.floor(share.value * head / 2)) : turned;
    if (turns !== whole) this.fact("share", { turned: turns, head: whole });
    const layout = get(this.row, "shows") ?? this.layout();
    add(this.read, this.told("reading", { layout, turned: turns, head: whole }));
  }

  scale(head) {
    const rope = this.ropes.get("") ?? new Map(), [scale, factor] = ["mscale_all_dim", "factor"].map((key) => get(rope, key));
    if (this.method(rope) !== "yarn" || !this.row.has("mscale") || !isNumber(scale) || !isNumber(factor)) return;
    const whole = head + this.whole("qk_nope_head_dim");
    this.built.push(`scale = ${whole} ** -0.5 * (0.1 * ${scale.text} * math.log(${factor.text}) + 1) ** 2`);
    this.fact("scale");
  }

  /* Layers. */
  layers() {
    const many = this.whole("layers"), kinds = this.kinds(many), bare = this.bare(many, kinds), made = new Map();
    for (let n = 0; n < Math.min(kinds.length, bare.length); n += 1) {
      const alike = `${bare[n]} ${kinds[n]}`;
      if (!made.has(alike)) made.set(alike, [kinds[n], bare[n], []]);
      made.get(alike)[2].push(n);
    }
    if (!many) made.set("false full_attention", ["full_attention", false, []]);
    return [...made.values()];
  }

  window() {
    const gate = this.look("use_sliding_window"), own = this.defaults.has("use_sliding_window");
    if (gate !== true && (own || (gate === false && !this.row.size))) return 0;
    const window = this.whole(get(this.row, "window_key") ?? "sliding_window");
    return this.row.has("window_key") ? Math.floor(window / 2) + 1 : window;
  }

  kinds(many) {
    const given = get(this.given, "layer_types"), how = get(this.row, "window") ?? (this.row.size ? "" : "layer_types");
    const all = (kind, count = many) => Array(Math.max(count, 0)).fill(kind);
    if (!["", "all"].includes(how) && Array.isArray(given)) {
      if (given.length !== many) this.fault("layer_types", { got: given.length, many });
      return given.map(plain);
    }
    const other = this.window() ? "sliding_attention" : "full_attention";
    if (how === "layer_types" && this.row.size && this.window()) this.fault("no_pattern", { kind: this.kind });
    if (["", "layer_types", "all"].includes(how)) return all(how === "all" ? other : "full_attention");
    if (how === "beyond") {
      const first = this.whole("max_window_layers");
      return [...all("full_attention", Math.min(first, many)), ...all(other, many - first)];
    }
    if (how === "turning") return this.bare(many, []).map((each) => (each ? "full_attention" : "chunked_attention"));
    const [key, every, at, kind] = how.split(" "), n = this.whole(key) || Number(every), full = at === "last" ? n - 1 : 0;
    return all(kind).map((each, i) => (i % n === full ? "full_attention" : each));
  }

  bare(many, kinds) {
    const how = get(this.row, "bare") ?? (this.row.size ? "" : "no_rope_layers");
    if (how !== "no_rope_layers") return kinds.map((kind) => kind === how || this.ropes.get(kind) === null);
    const turns = get(this.given, "no_rope_layers");
    if (Array.isArray(turns) && turns.length) {
      if (turns.length !== many) this.fault("no_rope_layers", { got: turns.length, many });
      return turns.map((each) => plain(each) === "0");
    }
    const n = this.whole("no_rope_layer_interval");
    return Array.from({ length: many }, (_, i) => n > 0 && (i + 1) % n === 0);
  }

  inside(kind, bare, numbers, many) {
    const part = this.whole("qk_rope_head_dim"), known = Object.hasOwn(this.table.layers, kind), near = known ? this.table.layers[kind] : "";
    let where = part ? this.told("each_part", { part }) : this.told("each_layer");
    if (many) where = this.told("some_layers", { layers: spans(numbers), kind });
    if (!known) this.fault("no_kind", { kind: shown(kind) });
    const lines = this.temperature(bare), end = this.end(this.ropes.has(kind) ? kind : "");
    if (!bare && near !== "none") lines.push(...this.turn(end, "q", "k"));
    lines.push(...this.seen(kind, near));
    if (!lines.length && many && known) this.fact("still", { layers: spans(numbers), kind });
    return [where, lines];
  }

  temperature(bare) {
    const how = this.table.temperature[get(this.row, "temperature")], rope = this.ropes.get("") ?? new Map();
    if (!how || (how.flag && [null, false].includes(this.look(how.flag))) || (how.bare && !bare)) return [];
    const [length, strength] = [how.length, how.strength].map((key) => get(rope, key) ?? this.look(key));
    if (!isNumber(length) || strength === null) return [];
    this.import("temperature", "log_temperature", "scale_queries");
    const given = `${Math.trunc(length.value)}, ${code(strength)}, first=${how.first}`;
    return [`sharper = log_temperature(positions, ${given}, steps=True)`, "q = scale_queries(q, sharper)"];
  }

  seen(kind, near) {
    const window = near === "sliding_window" ? this.window() : 0, chunk = near === "attention_chunk_size" ? this.whole(near) : 0;
    if (!["", "none"].includes(near) && !window && !chunk) this.fault("no_window", { kind, key: near });
    const sinks = get(this.row, "sinks");
    if (!(window || chunk || sinks) || near === "none") return [];
    const of = chunk ? "chunks" : "documents", given = ["positions", "positions", of, of];
    if (this.row.has("window_key")) given.push("causal=False");
    if (window) given.push(`window=${window}`);
    this.import("decoding", "visible");
    const lines = [...(chunk ? [`chunks = positions // ${chunk}`] : []), listed("seen = visible(", given, ")")];
    if (!chunk) add(this.forward, this.table.documents);
    if (!sinks) {
      this.import("decoding", "attend");
      return [...lines, "output = attend(q, k, v, seen)"];
    }
    this.import("sinks", "sink_softmax");
    return [...lines, ...this.table.sinks.trim().split("\n")];
  }

  /* What stands at the end. */
  check(expect) { this.blocks.push(["title", this.told("right")], ["shell", this.told("command")], ["text", expect]); }

  ownCheck(end, head, turned, given, factor) {
    if (turned !== head) given.set("partial_rotary_factor", new Written(`${turned} / ${head}`, 0));
    const layout = `"${this.layout()}"`, said = [...given].map(([key, value]) => `"${key}": ${code(value)}`);
    return [
      "", "", `def rotate${end}(x, positions):`,
      `    cos, sin = rope_tables(${this.at()}, frequencies${end})`,
      ...(factor ? [`    cos, sin = factor${end} * cos, factor${end} * sin`] : []),
      `    return apply_rope(x, cos, sin, ${layout})`, "", "",
      listed("settings = {", said, "}"),
      listed("findings = check_rotation(", [`rotate${end}`, head, "settings=settings", `layout=${layout}`], ")"),
      "assert_positions(findings)",
    ];
  }

  template(family) {
    const spec = this.table.family[family], values = {};
    for (const name of spec.needs.split(/\s+/)) {
      values[name] = this.whole(name);
      if (!values[name]) this.fault("needs", { method: family, key: name });
      this.fact("number", { key: this.key(name), value: values[name], source: this.source(name) });
    }
    Object.assign(values, Object.fromEntries(this.own("own")));
    for (const block of ["built", "forward", "each_layer"]) this.block(block, fill(spec[block] ?? "", values).trim().split("\n"));
    this.check(this.told(`asks_${family}`));
  }

  import(file, ...names) {
    if (!this.imports.has(file)) this.imports.set(file, []);
    for (const name of names) add(this.imports.get(file), name);
  }

  imported(lines) {
    const [maths, torch] = ["math.", "torch."].map((name) => lines.some((line) => line.includes(name)));
    return [
      ...(maths ? ["import math"] : []), ...(maths && torch ? [""] : []), ...(torch ? ["import torch"] : []), ...(maths || torch ? [""] : []),
      ...[...this.imports.keys()].sort().map((file) => `from ${file} import ${this.imports.get(file).sort().join(", ")}`), "",
    ];
  }
}

const same = (a, b) => {
  if (isNumber(a) && isNumber(b)) return a.text === b.text && a.value === b.value;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, n) => same(each, b[n]));
  if (isDict(a) && isDict(b)) return a.size === b.size && [...a].every(([key, each]) => b.has(key) && same(each, b.get(key)));
  return a === b;
};

/* The answer to the text of a config.json: pairs of a kind and its words. */
export const readConfig = (text, { table, measured }) => {
  const read = new Json(text.replace(/^\ufeff/, ""), table.words);
  try {
    const given = read.whole();
    if (!isDict(given)) throw new Untold(fill(table.words.no_object, { got: shown(given) }));
    return new Reading(given, read.twice, table, new Json(measured, table.words).whole()).answer();
  } catch (error) {
    if (!(error instanceof Untold)) throw error;
    return [["title", table.words.unread], ["mind", error.message]];
  }
};
