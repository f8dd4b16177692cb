/* Runs the graph of a Python function, as live_graph.py writes it: a list of nodes [operation, arguments, dtype], in which
   "@3" is what node 3 gave and the first nodes are the inputs. A tensor is {shape, data}, its numbers in one row; they are
   rounded to the node's dtype, so that float32 is float32. What OPERATIONS does not name, the build refuses. */
const count = (shape) => shape.reduce((product, size) => product * size, 1);
const steps = (shape) => shape.map((_, axis) => count(shape.slice(axis + 1)));
const from = (axis, rank) => (axis < 0 ? axis + rank : axis);
const tensor = (shape, data) => ({ shape, data: Float64Array.from(data) });
const filled = (shape, value) => ({ shape, data: new Float64Array(count(shape)).fill(value) });
const asTensor = (x) => (x?.data ? x : tensor([], [+x]));

const ROUND = { f4: Math.fround, i8: Math.trunc, i4: Math.trunc, b1: (x) => +Boolean(x) };
const rounded = (x, dtype) => {
  if (ROUND[dtype] && x?.data) x = { shape: x.shape, data: x.data.map(ROUND[dtype]) };
  return x;
};

/* The tensor of a shape whose entry at an index is x's entry at start + index · stride. */
const strided = (x, shape, stride, start = 0) => {
  const data = new Float64Array(count(shape)), index = shape.map(() => 0);
  for (let n = 0, place = start; n < data.length; n++) {
    data[n] = x.data[place];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += stride[axis];
      if (++index[axis] < shape[axis]) break;
      place -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return { shape, data };
};

const expand = (x, shape) => {
  const before = shape.length - x.shape.length, own = steps(x.shape);
  const sizes = shape.map((size, axis) => (size < 0 ? x.shape[axis - before] : size));
  if (sizes.length === x.shape.length && sizes.every((size, axis) => size === x.shape[axis])) return x;
  return strided(x, sizes, sizes.map((_, axis) => (axis < before || x.shape[axis - before] === 1 ? 0 : own[axis - before])));
};

const common = (shapes) => {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => shapes.reduce((size, shape) => {
    const own = shape[axis - rank + shape.length] ?? 1;
    return own === 1 ? size : own;
  }, 1));
};

const each = (f) => (...given) => {
  given = given.map(asTensor);
  const shape = common(given.map((x) => x.shape));
  const [a, b, c] = given.map((x) => expand(x, shape).data), data = new Float64Array(count(shape));
  for (let n = 0; n < data.length; n++) data[n] = f(a[n], b?.[n], c?.[n]);
  return { shape, data };
};

const slice = (x, axis, start, end, step = 1) => {
  axis = from(axis, x.shape.length);
  const size = x.shape[axis], own = steps(x.shape);
  const inside = (place) => Math.max(0, Math.min(place < 0 ? place + size : place, size));
  const first = inside(start ?? 0), length = Math.max(0, Math.ceil((inside(end ?? size) - first) / step));
  return strided(x, x.shape.with(axis, length), own.with(axis, own[axis] * step), first * own[axis]);
};
const reshape = (x, shape) => {
  const known = -count(shape);  // a size that is not said stands as -1
  return { shape: shape.map((size) => (size < 0 ? x.data.length / known : size)), data: x.data };
};

const cat = (parts, axis) => {
  parts = parts.filter((x) => x.shape.length > 1 || x.data.length);
  axis = from(axis, parts[0].shape.length);
  const out = filled(parts[0].shape.with(axis, parts.reduce((sum, x) => sum + x.shape[axis], 0)), 0);
  const outer = count(out.shape.slice(0, axis)), runs = parts.map((x) => x.data.length / outer);
  for (let o = 0, n = 0; o < outer; o++) parts.forEach(({ data }, part) => {
    for (let m = o * runs[part]; m < (o + 1) * runs[part]; m++) out.data[n++] = data[m];
  });
  return out;
};

const reduce = (f, first) => (x, axes, keep) => {
  const all = [...x.shape.keys()], asked = [axes ?? []].flat().map((axis) => from(axis, all.length));
  const gone = asked.length ? asked : all, kept = all.filter((axis) => !gone.includes(axis)), own = steps(x.shape);
  const last = [...kept, ...gone], { data } = strided(x, last.map((axis) => x.shape[axis]), last.map((axis) => own[axis]));
  const shape = keep ? x.shape.map((size, axis) => (gone.includes(axis) ? 1 : size)) : kept.map((axis) => x.shape[axis]);
  const out = filled(shape, first), size = data.length / out.data.length;
  for (let n = 0; n < data.length; n++) out.data[Math.trunc(n / size)] = f(out.data[Math.trunc(n / size)], data[n]);
  return out;
};
const sum = reduce((a, b) => a + b, 0), amax = reduce(Math.max, -Infinity), amin = reduce(Math.min, Infinity);

const running = (f) => (x, axis) => {
  const step = steps(x.shape).at(axis), size = x.shape.at(axis), data = x.data.slice();
  data.forEach((_, n) => { if (Math.floor(n / step) % size) data[n] = f(data[n - step], data[n]); });
  return { ...x, data };
};

const product = (a, b) => {
  const [rows, inner, columns] = [a.shape.at(-2), a.shape.at(-1), b.shape.at(-1)];
  const out = filled([...a.shape.slice(0, -1), columns], 0);
  out.data.forEach((_, n) => {
    const row = Math.floor(n / columns), batch = Math.floor(row / rows);
    for (let m = 0; m < inner; m++) out.data[n] += a.data[row * inner + m] * b.data[(batch * inner + m) * columns + (n % columns)];
  });
  return out;
};

const pick = (x, axis, which) => {  // one index tensor along one axis
  const inner = count(x.shape.slice(axis + 1)), outer = count(x.shape.slice(0, axis)), size = x.shape[axis], data = [];
  for (let o = 0; o < outer; o++) for (const n of which.data) {
    const start = (o * size + from(n, size)) * inner;
    data.push(...x.data.subarray(start, start + inner));
  }
  return tensor([...x.shape.slice(0, axis), ...which.shape, ...x.shape.slice(axis + 1)], data);
};

const same = (x) => x;
const scaled = (f) => (a, b, alpha) => each((x, y) => f(x, alpha * y))(a, b);
/* One a line: the build reads their names. */
const OPERATIONS = {
  abs: each(Math.abs),
  ceil: each(Math.ceil),
  cos: each(Math.cos),
  exp: each(Math.exp),
  floor: each(Math.floor),
  log: each(Math.log),
  log1p: each(Math.log1p),
  log2: each(Math.log2),
  log10: each(Math.log10),
  sign: each(Math.sign),
  sin: each(Math.sin),
  sqrt: each(Math.sqrt),
  tanh: each(Math.tanh),
  neg: each((x) => -x),
  reciprocal: each((x) => 1 / x),
  relu: each((x) => Math.max(x, 0)),
  sigmoid: each((x) => 1 / (1 + Math.exp(-x))),
  atan2: each(Math.atan2),
  add: scaled((x, y) => x + y),
  sub: scaled((x, y) => x - y),
  mul: each((x, y) => x * y),
  pow: each(Math.pow),
  fmod: each((x, y) => x % y),
  remainder: each((x, y) => x - y * Math.floor(x / y)),
  div: (a, b, mode) => each((x, y) => (Math[mode] ?? same)(x / y))(a, b),
  maximum: each((x, y) => Math.max(x, y)),
  minimum: each((x, y) => Math.min(x, y)),
  clamp: (x, low, high) => each((v) => Math.min(Math.max(v, low ?? -Infinity), high ?? Infinity))(x),
  eq: each((x, y) => x === y),
  ne: each((x, y) => x !== y),
  lt: each((x, y) => x < y),
  le: each((x, y) => x <= y),
  gt: each((x, y) => x > y),
  ge: each((x, y) => x >= y),
  logical_and: each((x, y) => x && y),
  logical_or: each((x, y) => x || y),
  logical_not: each((x) => !x),
  bitwise_and: each((x, y) => x & y),
  bitwise_or: each((x, y) => x | y),
  bitwise_not: each((x) => !x),
  where: each((condition, x, y) => (condition ? x : y)),
  _to_copy: same,
  clone: same,
  alias: same,
  lift_fresh_copy: same,
  constant: (data, shape) => tensor(shape, data),
  empty: (shape) => filled(shape, 0),
  full: filled,
  scalar_tensor: (x) => filled([], x),
  full_like: (x, value) => filled(x.shape, value),
  copy: (x, given) => expand(asTensor(given), x.shape),
  arange: (start, end, step) => tensor([Math.ceil((end - start) / step)],
    Array.from({ length: Math.ceil((end - start) / step) }, (_, n) => start + n * step)),
  view: reshape,
  expand: (x, shape) => expand(x, shape),
  slice,
  slice_scatter: (x, given, ...range) => {
    const data = x.data.slice(), places = slice({ shape: x.shape, data: data.map((_, n) => n) }, ...range).data;
    given.data.forEach((value, n) => { data[places[n]] = value; });
    return { ...x, data };
  },
  unsqueeze: (x, axis) => ({ ...x, shape: x.shape.toSpliced(from(axis, x.shape.length + 1), 0, 1) }),
  squeeze: (x, axes) => {
    const gone = [axes].flat().map((axis) => from(axis, x.shape.length));
    return { ...x, shape: x.shape.filter((size, axis) => size !== 1 || !gone.includes(axis)) };
  },
  permute: (x, order) => strided(x, order.map((axis) => x.shape.at(axis)), order.map((axis) => steps(x.shape).at(axis))),
  select: (x, axis, n) => {
    const one = slice(x, axis, n, n + 1 || undefined);
    return { ...one, shape: one.shape.toSpliced(from(axis, x.shape.length), 1) };
  },
  cat,
  split_with_sizes: (x, sizes, axis) => {
    let start = 0;
    return sizes.map((size) => slice(x, axis, start, start += size));
  },
  getitem: (parts, n) => parts[n],
  flip: (x, axes) => axes.reduce((y, axis) => pick(y, from(axis, y.shape.length),
    tensor([y.shape.at(axis)], Array.from({ length: y.shape.at(axis) }, (_, n) => y.shape.at(axis) - 1 - n))), x),
  cumsum: running((a, b) => a + b),
  cummax: (x, axis) => [running(Math.max)(x, axis)],
  sum,
  amax,
  amin,
  any: reduce((a, b) => a || b, 0),
  mean: (x, axes, keep) => {
    const total = sum(x, axes, keep);
    return each((y) => y * total.data.length / x.data.length)(total);
  },
  linalg_vector_norm: (x, order, axes, keep) =>
    each((v) => v ** (1 / order))(sum(each((v) => Math.abs(v) ** order)(x), axes, keep)),
  mm: product,
  addmm: (c, a, b, beta, alpha) => each((x, y) => beta * x + alpha * y)(c, product(a, b)),
  bmm: product,
  _softmax: (x, axis) => {
    const top = amax(x, [axis], true), grown = each((v, most) => Math.exp(v - most))(x, top);
    return each((v, all) => v / all)(grown, sum(grown, [axis], true));
  },
  gather: (x, axis, which) => {
    const along = from(axis, x.shape.length), own = steps(x.shape), to = steps(which.shape);
    return { shape: which.shape, data: which.data.map((n, place) => x.data[to.reduce(
      (at, step, d) => at + (d === along ? n : Math.floor(place / step) % which.shape[d]) * own[d], 0)]) };
  },
  index_select: pick,
  embedding: (table, which) => pick(table, 0, which),
  index: (x, which) => pick(x, which.findIndex(Boolean), which.find(Boolean)),
};

/* What the graph gives for these inputs, numbers and lists of them in the order of its first nodes: {name: tensor}. */
export const run = ({ inputs, nodes, outputs }, values) => {
  const given = values.slice(0, inputs).map((value) => (value.length ? tensor([value.length], value) : filled([], value)));
  const read = (x) => {
    if (Array.isArray(x)) return x.map(read);
    return typeof x === "string" && x[0] === "@" ? given[x.slice(1)] : x;
  };
  for (const [operation, parts, dtype] of nodes) given.push(rounded(OPERATIONS[operation](...parts.map(read)), dtype));
  return Object.fromEntries(Object.entries(outputs).map(([name, place]) => [name, given[place]]));
};
