/* What snippets/read_config.py does, for the page: a test holds both to the same words, part by part. Nothing that is
   read is run, sent or kept. */
const LIMIT = 1_000_000, DEEPEST = 40, WIDE = 76;
const BLANK = /[ \t\n\r]*/y, NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity/y, WORD = /true|false|null/y;
const TEXT = /"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"/y;
const SIGNS = Object.fromEntries([..."{}[]:,"].map((sign) => [sign, new RegExp(`\\${sign}`, "y")]));
const UNSEEN = /[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const LAYOUTS = ["half", "interleaved"], CLASS = /(For[A-Z][A-Za-z0-9_]*|LMHeadModel|Model)$/;

class ConfigError extends Error {}

class Written {  // a number as it is written
  constructor(text, value) { Object.assign(this, { text, value }); }
}

const isNumber = (value) => value instanceof Written;
const isDict = (value) => value instanceof Map;
const dict = (value) => (isDict(value) ? value : new Map());
const get = (of, key) => of.get(key) ?? null;
export const fill = (words, values) => words.replace(/\{([a-z_]+)\}/g, (_, name) => values[name]);
const add = (to, words) => { if (!to.includes(words)) to.push(words); };
const words = (text) => (text ?? "").split(/\s+/).filter(Boolean);
const signs = (text) => [...text];  // Python counts these, not units of UTF-16

const shown = (value) => {
  if (Array.isArray(value)) return value.length ? "[…]" : "[]";
  if (isDict(value)) return value.size ? "{…}" : "{}";
  const raw = isNumber(value) ? value.text : JSON.stringify(value);
  const text = raw.replace(UNSEEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return signs(text).length <= 40 ? text : `${signs(text).slice(0, 39).join("")}…`;
};
const named = (key, value) => {
  const inner = isDict(value) ? [...value.keys()].map(shown) : [];
  const text = [shown(key), ...inner.slice(0, 9)].join(", ").replaceAll('"', "");
  return inner.length ? `${text.replace(", ", " (")})` : text;
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
const number = (value) => (Array.isArray(value) ? value.map(number) : isNumber(value) ? value.value : value);
export const spans = (numbers) => {
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
      if (got > LIMIT) throw new ConfigError(fill(this.words.too_long, { limit: LIMIT, got }));
    }
    const made = this.value(0);
    if (this.at < this.text.length) throw this.fault(this.words.end);
    return made;
  }

  value(depth) {
    if (depth > DEEPEST) throw new ConfigError(fill(this.words.too_deep, { deepest: DEEPEST }));
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
    return new ConfigError(fill(this.words.no_json, { line: lines.length, column, expected, got }));
  }
}

class Reading {
  constructor(given, twice, table, known) {
    Object.assign(this, { table, known, facts: [], faults: [], minds: [], built: [], forward: [], blocks: [], read: [] });
    Object.assign(this, { rotations: new Map(), groups: [] });
    Object.assign(this, { imports: new Map(), by: "", cap: "", passed: new Map(), used: new Set(), taken: new Set(), byKey: "", ofClass: new Set() });
    this.vocabulary = new Set(table.value.flatMap((check) => words(check.keys)));
    this.besides = new Set([...words(table.sizes), ...words(table.others)]);
    for (const name of twice) this.mind("twice", { key: shown(name) });
    this.given = this.part(given);
    let kind = get(this.given, "model_type");
    const text = typeof kind === "string", part = known.get("wholes").get(kind);
    if (part) {
      this.fact("whole", { kind, part });
      kind = part;
    }
    if (!text || !this.isKnown(kind)) kind = this.byArchitecture(given) || kind;
    this.row = (typeof kind === "string" && known.get("models").get(kind)) || new Map();
    this.defaults = this.own("defaults");
    this.kind = this.isKnown(kind) ? kind : text ? shown(kind) : this.told("no_type");
    this.family = get(this.row, "family") ?? "rope";
    this.what = this.measured();
    this.rotates = this.family === "rope" && (this.row.size > 0 || ["", ...LAYOUTS].includes(this.what));
    this.file = new Map(this.given);
    this.sift();
    this.ropes = this.dictionaries();
    this.siftRopes();
  }

  answer() {
    this.values();
    const why = this.nothingRotates();
    this.rules(why.length > 0);
    const signs = this.table.signs.some((key) => this.key(key));
    if (!(this.row.size || why.length || signs)) this.fault(this.passed.size ? "no_keys" : "no_signs");
    if (why.length) this.scoresBy(0);
    else if (!this.faults.length) this.family === "rope" ? this.rope() : this.template(this.family);
    const guess = this.namePassed() || !this.row.size;
    if (!this.row.size && !why.length) this.mind(LAYOUTS.includes(this.what) ? "measured_only" : "unknown_type", { kind: this.kind });
    this.nameIdle(why);
    if (why.length) this.check(this.told("asks_bare"));
    const layout = this.layout() || this.told("unknown");
    const told = this.faults.length ? "no_calls" : why.length ? "is_bare" : this.row.size || this.what ? `is_${this.family}` : "is_guess";
    const minds = [...this.faults, ...this.minds];
    return [
      ["title", this.told(told, { kind: this.kind, layout })],
      ...[...why, ...this.facts].map((words) => ["fact", words]),
      ...(minds.length ? [["title", this.told("mind")]] : []),
      ...minds.map((words) => ["mind", words]),
      ...(why.length || (!guess && !this.faults.length) ? this.blocks : this.faults.length ? [] : this.guessed()),
    ];
  }

  description() {
    const parts = this.answer(), guess = parts.some(([kind]) => kind === "guess");
    const code = guess || parts.some(([kind]) => kind === "code"), turning = this.groups.some(({ turned }) => turned);
    const none = this.family === "rope" && !this.faults.length && !(code && turning), encoding = none ? "none" : this.family;
    return {
      model_type: this.kind, encoding, layout: turning ? this.layout() : "", kinds: encoding === "rope" ? this.groups : [],
      longest: this.whole("positions"), known: this.row.size > 0 || this.what !== "", guess,
      faults: this.faults, notes: this.minds, parts,
    };
  }

  guessed() {
    const at = this.blocks.findIndex(([kind]) => kind === "shell"), commented = (line) => `# ${line}`.trimEnd();
    return [
      ["title", this.told(this.row.size ? "guess_of_class" : "guess", { kind: this.kind })],
      ...this.blocks.slice(at, at + 2),
      ...this.blocks.slice(0, at - 1).map(([kind, words]) => (
        kind === "code" ? ["guess", words.split("\n").map(commented).join("\n")] : [kind, words])),
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

  /* Whether anything rotates, and which keys are read. */
  isKnown(kind) {
    return ["models", "switches"].some((of) => this.known.get(of).has(kind))
      || [...this.known.get("rotations").values()].some((kinds) => kinds.includes(kind));
  }

  byArchitecture(whole) {
    const named = this.given.has("architectures") ? this.given.get("architectures") : get(whole, "architectures");
    for (const each of Array.isArray(named) ? named : []) {
      const stem = plain(each).replace(CLASS, "").toLowerCase();
      for (const kind of this.known.get("models").keys()) {
        if (!stem || ![stem, `${stem}text`].includes(kind.replace(/[_-]/g, ""))) continue;
        this.fact("architecture", { name: shown(each), kind });
        return kind;
      }
    }
    return "";
  }

  measured() { return [...this.known.get("rotations")].find(([, kinds]) => kinds.includes(this.kind))?.[0] ?? ""; }

  nothingRotates() {
    const [key, on] = (get(this.known.get("switches"), this.kind) ?? "").split(" "), value = key ? this.look(key) : null;
    if (key && plain(value) !== on) {
      const word = ["true", "false"].includes(on) ? on : `"${on}"`;
      return [this.told(this.file.has(key) ? "switched_off" : "switch_lacks", { key, got: shown(value), on: word, kind: this.kind })];
    }
    if (key) this.fact("switched_on", { key, got: shown(value), kind: this.kind });
    if (this.family !== "rope") return [];
    for (const { keys, values, says } of this.table.off) for (const key of words(keys)) {
      const at = key.lastIndexOf("."), name = key.slice(at + 1), inner = [dict(get(this.file, key.slice(0, Math.max(at, 0))))];
      const found = (at > 0 ? inner : this.places()).filter((of) => of.has(name)).map((of) => of.get(name));
      if (!found.length || !found.every((value) => words(values).includes(plain(value).toLowerCase()))) continue;
      const reads = !this.row.size || this.reads().has(key), said = reads && !this.row.has("kinds") ? says : "conflict";
      const told = this.told(said, { key, got: shown(found[0]), kind: this.kind });
      if (said !== "conflict") {
        this.passed.delete(key);
        return [told];
      }
      add(this.faults, told);
    }
    if (this.row.size || ["", ...LAYOUTS].includes(this.what)) return [];
    for (const { keys, on: values } of this.table.off) for (const key of words(keys)) {
      const value = get(this.file, key);
      if (words(values).includes(plain(value))) this.mind("conflict_on", { key, got: shown(value), kind: this.kind });
    }
    return [this.told("measured_none", { kind: this.kind, what: this.what })];
  }

  reads() {
    if (!this.row.size) return new Set(words(this.table.guessed));
    const unread = get(this.row, "unread") ?? [];
    return new Set([...words(this.table.usual).filter((key) => !unread.includes(key)), ...(get(this.row, "reads") ?? [])]);
  }

  sift() {
    const reads = this.reads(), used = new Map(this.given), elsewhere = new RegExp(this.table.elsewhere);
    for (const [key, value] of this.file) {
      if (!reads.has(key) && this.positional(key)) {
        used.delete(key);
        this.passOver(key, value);
      } else if (!reads.has(key) && !elsewhere.test(key)) {
        for (const [name, inner] of dict(value)) if (this.positional(name)) this.passOver(`${key}.${name}`, inner);
      }
    }
    this.given = used;
  }

  siftRopes() {
    const known = [...words(this.table.inside), ...(get(this.row, "inside") ?? [])];
    for (const rope of this.ropes.values()) for (const [key, value] of rope ?? []) {
      if (!known.includes(key) && !Object.hasOwn(this.table.layers, key)) this.passOver(key, value);
    }
  }

  positional(key) {
    const near = this.table.near.some((word) => key.toLowerCase().includes(word));
    return (this.vocabulary.has(key) || near) && !this.besides.has(key);
  }

  passOver(key, value) {
    const whole = Object.hasOwn(this.table.neutral, key), name = whole ? key : key.split(".").at(-1);
    const own = Object.hasOwn(this.table.neutral, name);
    if (!(own ? this.table.neutral[name] : this.table.nothing).split("|").includes(plain(value).toLowerCase())) this.passed.set(key, value);
  }

  namePassed() {
    let guess = false;
    for (const [key, value] of this.passed) {
      const same = isNumber(value) && this.used.has(value.value), usual = get(this.defaults, key);
      const own = isNumber(value) && isNumber(usual) && value.value === usual.value;
      const turned = key.includes("rope_interleave") && value === (this.layout() !== "half");
      const known = words(Object.hasOwn(this.table.mild_if, key) ? this.table.mild_if[key] : "");
      const alike = Array.isArray(value) && value.length > 0 && value.every((each) => known.includes(plain(each)));
      const mild = own || same || turned || alike || words(this.table.mild).includes(key);
      const said = same ? "same" : this.row.size ? "not_read" : "strange";
      if (this.rotates || this.row.size) this.mind(said, { key: named(key, value), kind: this.kind });
      guess ||= !mild;
    }
    return guess;
  }

  nameIdle(why) {
    const told = [...why, ...this.facts, ...this.faults, ...this.minds].join(" ").match(/[a-zA-Z0-9_]+/g);
    const known = new Set([...(told ?? []), ...this.taken]), nothing = this.table.nothing.split("|"), idle = [];
    for (const of of this.places()) for (const [key, value] of of) {
      const inside = of !== this.file || this.positional(key);
      if (inside && !known.has(key) && !nothing.includes(plain(value).toLowerCase()) && !isDict(value)) add(idle, named(key, value));
    }
    if (idle.length) this.mind("idle", { keys: idle.join(", ") });
  }

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
    this.taken.add(key);
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

  places() { return [this.file, ...[...this.ropes.values()].filter((rope) => rope?.size)]; }

  rules(bare) {
    for (const { when, says, fault, case: name } of this.table.rule.filter((rule) => !bare || !rule.case)) for (const rope of this.ropes.values()) {
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
    if (what === "formula") {
      const known = numbers.length === 2 && numbers[1] >= 1, usual = known ? 0.1 * Math.log(numbers[1]) + 1 : 0;
      return known && Math.abs(numbers[0] - usual) > 1e-6;
    }
    if (numbers.length < 2) return what === "differ" && !found.includes(null) && !same(...found);
    return what === "below" ? numbers[0] < numbers[1] : numbers[0] !== numbers[1];
  }

  named(name, rope) {
    const [of, key] = name.split(".");
    if (/^[0-9]+$/.test(of)) return new Written(of, Number(of));
    if (of === "method") return this.method(rope);
    if (of === "look") {
      const taken = new Set(this.taken), value = this.look(key);  // a rule is no call
      this.taken = taken;
      return value;
    }
    return get({ given: this.file, rope, row: this.row }[of] ?? new Map(), key);
  }

  /* RoPE. */
  dictionaries() {
    const [old, fresh] = ["rope_scaling", "rope_parameters"].map((name) => dict(get(this.given, name)));
    const made = new Map();
    for (const [kind, own] of this.own("kinds")) {
      const plain = new Map(own.has("theta") ? [["rope_type", "default"]] : []);
      const one = fresh.has(kind) ? fresh.get(kind) : !fresh.size && own.has("rope") ? own.get("rope") : plain;
      if (!fresh.has(kind)) this.ofClass.add(kind);
      made.set(kind, one === null ? null : new Map([...dict(one), ...(own.get("stretched") ? old : [])]));
    }
    if (made.size) {
      if (fresh.size && ![...made.keys()].some((kind) => fresh.has(kind))) this.fault("flat", { kind: this.kind });
      return made;
    }
    const outer = old.size ? old : fresh.size ? fresh : this.own("rope");
    if (!old.size && !fresh.size) this.ofClass.add("");
    for (const [kind, one] of outer) if (Object.hasOwn(this.table.layers, kind)) made.set(kind, one === null ? null : dict(one));
    if (made.size && this.row.size) this.fault("nested", { kind: this.kind });
    return made.size ? made : new Map([["", outer]]);
  }

  method(rope) {
    const named = plain(get(rope, "rope_type") ?? get(rope, "type") ?? "default"), method = get(this.own("methods"), named) ?? named;
    const spec = Object.hasOwn(this.table.method, method) ? this.table.method[method] : {}, alpha = get(rope, "alpha");
    const reads = !this.row.size || (get(this.row, "inside") ?? []).includes("alpha");
    return reads && isNumber(alpha) && alpha.value ? spec.with_alpha ?? method : method;
  }

  rope() {
    const ropes = [...this.ropes].filter(([, rope]) => rope !== null), heads = ropes.map(([kind]) => this.head(kind));
    const head = heads[0] ?? 0, groups = this.layers();
    this.sayLayout();
    const own = ropes.flatMap(([kind, rope], n) => this.tables(rope, kind, heads[n]));
    this.scale(head);
    this.scoresBy(head);
    if (!groups.some(([kind, bare]) => this.turns(kind, bare))) this.fault("all_bare");
    this.groups = groups.map((group) => this.group(...group));
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
    const known = get(this.row, "layout") ?? this.what;
    return known === "rope_interleave" ? (this.look(known) !== false ? "interleaved" : "half") : known;
  }

  turn(end, ...names) {
    const layout = this.layout() ? `"${this.layout()}"` : "layout";
    return names.map((x) => `${x} = apply_rope(${x}, cos${end}, sin${end}, ${layout})`);
  }

  sayLayout() {
    const layout = this.layout();
    if (get(this.row, "layout") === "rope_interleave") this.fact("layout_by_key", { layout });
    else if (layout && !this.row.size) this.fact("layout_measured", { layout, kind: this.kind });
    else if (layout) this.fact("layout", { layout, kind: this.kind, file: get(this.row, "file") ?? this.kind });
    else this.mind("no_layout");
  }

  head(kind) {
    const own = get(dict(get(this.own("kinds"), kind)), "head") ?? "", of = this.end(kind) ? this.told("of_kind", { kind }) : "";
    for (const each of own ? dict(this.look("per_layer_config")).values() : []) {
      const head = get(dict(each), "head_dim");
      if (!isNumber(head)) continue;
      this.used.add(head.value);
      const wide = Math.trunc(head.value), source = this.told("from_key", { key: "per_layer_config" });
      this.fact("head_dim", { head: wide, source, of });
      return wide;
    }
    for (const name of ["qk_rope_head_dim", own, "head_dim"]) {
      const head = this.whole(name);
      if (!head) continue;
      this.used.add(head);
      this.fact(name === "qk_rope_head_dim" ? name : "head_dim", { head, source: this.source(name), of });
      return head;
    }
    const wide = this.whole("hidden_size"), heads = this.whole("heads");
    if (!wide || !heads) {
      this.fault("no_head");
      return 0;
    }
    const head = Math.floor(wide / heads);
    this.used.add(head);
    this.fact("wide", { head, wide, heads });
    return head;
  }

  turned(rope, head) {
    const own = get(this.row, "share"), name = get(this.row, "share_key") ?? "partial_rotary_factor";
    const share = get(rope, "partial_rotary_factor") ?? this.look(this.row.size ? name : "share");
    if (isNumber(share) && (own !== null || !this.row.size)) {
      this.used.add(share.value);
      this.taken.add("partial_rotary_factor");
      return Math.trunc(head * share.value);
    }
    if (!this.row.size || this.row.has("channels")) return Math.min(this.whole("rotary_dim") || head, head);
    return isNumber(own) ? Math.trunc(head * own.value) : head;
  }

  base(rope, kind) {
    const own = dict(get(this.own("kinds"), kind));
    const name = this.row.size ? get(own, "key") ?? get(this.row, "base_key") ?? "rope_theta" : "base";
    let base = get(rope, "rope_theta"), said = this.told("from_key", { key: "rope_theta" });
    if (rope.has("rope_theta")) this.taken.add("rope_theta");
    if (base !== null && this.ofClass.has(kind)) said = this.source("");
    if (base === null && this.look(name) !== null) [base, said] = [this.look(name), this.source(name)];
    else if (base === null) [base, said] = [get(own, "theta"), this.source("")];
    if (!isNumber(base)) {
      this.fault("no_base");
      return new Written("", 0);
    }
    this.used.add(base.value);
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
    const frequencies = `frequencies${end}`;
    let base = this.base(rope, kind), given = this.settings(rope, kind, method), now = frequencies;
    this.record(kind, head, turned, new Map([...given, ["rope_theta", base]]));
    if (spec.base) {
      base = new Written(fill(spec.base, { base: base.text, alpha: code(given.get("alpha")), head, less: head - 2 }), 0);
      given = new Map([["rope_type", "default"]]);
    }
    this.used.add(turned);
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

  record(kind, head, turned, given) {
    const made = Object.fromEntries([...given].map(([key, value]) => [key, number(value)]));
    if (made.rope_type === "ntk_alpha") made.rope_type = "dynamic";
    const whole = head + (this.whole("qk_rope_head_dim") && this.whole("qk_nope_head_dim"));
    if (made.rope_type === "proportional") turned = 2 * Math.trunc(Math.floor((made.partial_rotary_factor ?? 1) * head / 2));
    else if (turned !== whole) made.partial_rotary_factor = turned / Math.max(whole, 1);
    this.rotations.set(kind, [turned, whole, made]);
  }

  group(kind, bare, layers) {
    const near = Object.hasOwn(this.table.layers, kind) ? this.table.layers[kind] : "";
    const [turned, head, settings] = this.rotations.get(this.rotations.has(kind) ? kind : "") ?? [0, 0, {}];
    return {
      kind, layers, head, ...(this.turns(kind, bare) ? { turned, settings } : { turned: 0, settings: {} }),
      window: near === "sliding_window" ? this.window() : 0, chunk: near === "attention_chunk_size" ? this.whole(near) : 0,
    };
  }

  settings(rope, kind, method) {
    const made = new Map([["rope_type", method]]), spec = this.table.method[method];
    const longest = this.look("positions");
    this.taken.add("rope_type").add("type");
    for (const key of words(spec.keys)) {
      let found = get(rope, key);
      this.taken.add(key);
      const original = key === "original_max_position_embeddings" ? this.look(key) : null;
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
    this.used.add(turns);
    const layout = get(this.row, "shows") ?? this.layout();
    add(this.read, this.told("reading", { layout, turned: turns, head: whole }));
  }

  scale(head) {
    const rope = this.ropes.get("") ?? new Map(), [scale, factor] = ["mscale_all_dim", "factor"].map((key) => get(rope, key));
    const parts = this.row.has("mscale") || (!this.row.size && this.whole("qk_rope_head_dim"));
    if (this.method(rope) !== "yarn" || !parts || !isNumber(scale) || !isNumber(factor)) return;
    const whole = head + this.whole("qk_nope_head_dim");
    this.built.push(`scale = ${whole} ** -0.5 * (0.1 * ${scale.text} * math.log(${factor.text}) + 1) ** 2`);
    this.fact("scale");
  }

  scoresBy(head) {
    const keys = ["query_pre_attn_scalar", "attention_multiplier"], cap = this.look("attn_logit_softcapping");
    const how = this.row.size ? get(this.row, "scale") : keys.find((key) => this.look(key) !== null) ?? null;
    const value = typeof how === "string" ? this.look(how) : how;
    if (isNumber(value)) {
      const root = how === keys[0], by = root ? `${value.text} ** -0.5` : value.text, same = root && value.value === head;
      this.fact(same ? "scores_same" : "scores_by", { by, key: typeof how === "string" ? how : this.told("the_code") });
      this.by = same ? "" : by;
    }
    if (isNumber(cap)) {
      this.cap = cap.text;
      this.fact("capped", { cap: cap.text, key: "attn_logit_softcapping" });
    }
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
    const [size, more] = (get(this.row, "window_size") ?? "").split(" ");
    if (size && this.whole(size)) return this.whole(size) + Number(more);
    const window = this.whole(get(this.row, "window_key") ?? "sliding_window");
    return this.row.has("window_key") ? Math.floor(window / 2) + 1 : window;
  }

  kinds(many) {
    const given = this.look("cross_attention_layers") ?? get(this.row, "crossed") ?? [];
    const crossed = (Array.isArray(given) ? given : []).map(plain);
    return this.ownKinds(many).map((kind, n) => (crossed.includes(`${n}`) ? "cross_attention" : kind));
  }

  ownKinds(many) {
    const given = this.look("layer_types"), how = get(this.row, "window") ?? (this.row.size ? "" : "layer_types");
    const all = (kind, count = many) => Array(Math.max(count, 0)).fill(kind);
    if (this.isLifted() && !Array.isArray(given)) return all("full_attention");
    if (!["", "all"].includes(how) && Array.isArray(given)) {
      if (given.length !== many) this.fault("layer_types", { got: given.length, many });
      return given.map(plain);
    }
    const other = this.window() ? "sliding_attention" : "full_attention";
    if (how === "layer_types" && this.window()) {
      const key = get(this.row, "window_key") ?? "sliding_window";
      this[this.row.size ? "fault" : "mind"]("no_pattern", { key, kind: this.kind });
    }
    if (["", "layer_types", "all"].includes(how)) return all(how === "all" ? other : "full_attention");
    if (how === "beyond") {
      const first = this.whole("max_window_layers");
      return [...all("full_attention", Math.min(first, many)), ...all(other, many - first)];
    }
    if (how === "turning") return this.bare(many, []).map((each) => (each ? "full_attention" : "chunked_attention"));
    const [key, every, at, kind] = how.split(" "), value = this.look(key);
    if (value !== null && !isNumber(value)) this.fault("value", { key, expected: this.told("a_number"), got: shown(value) });
    const n = this.whole(key) || Number(every), full = at === "first" ? 0 : n - 1;
    const more = { last_and_end: many - 1, start_and_last: 0 }[at];
    return all(kind).map((each, i) => (i % n === full || i === more ? "full_attention" : each));
  }

  isLifted() { return this.row.has("lifted") && !this.window(); }
  turns(kind, bare) { return !bare && !(Object.hasOwn(this.table.layers, kind) && this.table.layers[kind] === "none"); }

  bare(many, kinds) {
    const how = get(this.row, "bare") ?? (this.row.size ? "" : "no_rope_layers");
    if (how !== "no_rope_layers") return kinds.map((kind) => (kind === how && !this.isLifted()) || this.ropes.get(kind) === null);
    const turns = this.look("no_rope_layers");
    this.byKey = "no_rope_layers";
    if (Array.isArray(turns) && turns.length) {
      if (turns.length !== many) this.fault("no_rope_layers", { got: turns.length, many });
      return turns.map((each) => plain(each) === "0");
    }
    const n = this.whole("no_rope_layer_interval");
    this.byKey = this.key("no_rope_layer_interval");
    return Array.from({ length: many }, (_, i) => n > 0 && (i + 1) % n === 0);
  }

  inside(kind, bare, numbers, many) {
    const part = this.whole("qk_rope_head_dim"), known = Object.hasOwn(this.table.layers, kind), near = known ? this.table.layers[kind] : "";
    let where = part ? this.told("each_part", { part }) : this.told("each_layer");
    if (many) where = this.told("some_layers", { layers: spans(numbers), kind });
    if (!known) this.fault("no_kind", { kind: shown(kind) });
    const lines = this.temperature(bare), end = this.end(this.ropes.has(kind) ? kind : "");
    if (this.turns(kind, bare)) lines.push(...this.turn(end, "q", "k"));
    else if (many && known) {
      const by = bare && this.byKey ? this.told("by_key", { key: this.byKey }) : "";
      this.fact("still", { layers: spans(numbers), kind, by });
    }
    lines.push(...this.seen(kind, near));
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
    this.import("decoding", "attention_mask");
    if (window) {
      const size = (get(this.row, "window_size") ?? "").split(" ")[0];
      const key = this.whole(size) ? size : get(this.row, "window_key") ?? "sliding_window";
      this.used.add(window).add(this.whole(key));
      this.fact("window", { window, key, source: this.source(key) });
    }
    const lines = [...(chunk ? [`chunks = positions // ${chunk}`] : []), listed("mask = attention_mask(", given, ")")];
    if (!chunk) add(this.forward, this.table.documents);
    const how = this.row.has("ends") ? "ends" : this.cap ? "capped" : sinks ? "sinks" : "";
    if (!how) {
      this.import("decoding", "attend");
      return [...lines, listed("output = attend(", ["q", "k", "v", "mask", ...(this.by ? [`scale=${this.by}`] : [])], ")")];
    }
    if (how === "sinks") this.import("sinks", "sink_softmax");
    return [...lines, ...fill(this.table[how], { scale: this.by || "q.shape[-1] ** -0.5", cap: this.cap }).trim().split("\n")];
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

let known = [];  // what was measured: its text, and what that holds

const opened = (text, { table, measured }) => {
  const read = new Json(text.replace(/^\ufeff/, ""), table.words), given = read.whole();
  if (!isDict(given)) throw new ConfigError(fill(table.words.no_object, { got: shown(given) }));
  if (measured !== known[0]) known = [measured, new Json(measured, table.words).whole()];
  return new Reading(given, read.twice, table, known[1]);
};

const read = (text, of, found) => {
  try {
    return found(opened(text, of));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [["title", of.table.words.unread], ["mind", error.message]];
  }
};

/* The answer to the text of a config.json: pairs of a kind and its words. */
export const readConfig = (text, of) => read(text, of, (reading) => reading.answer());

/* What describe_config returns for a text; pairs of a kind and its words if it cannot be read. */
export const describeConfig = (text, of) => read(text, of, (reading) => reading.description());
