/* Gives live figures a hand: a control moves, the graph of the tested code runs, and the picture takes its numbers.
   What a figure says of itself is written by live_html.py. */
import { run } from "./graph.js";

const { arrange, lay } = document.querySelector(".cards") ? await import("./cards.js") : {};

const FIELD = /\{(\w+)(?:\|([^}]*)|:(,?)(?:\.(\d+)f(?: (up|down))?)?)?\}/g;
export const fill = (text, values) => text.replace(FIELD, (_, name, words, comma, digits, side) => {
  const value = values[name], list = words?.split("|");
  if (list) return list[Math.min(Math.round(value), list.length - 1)];
  const near = digits && Number(value.toFixed(digits)), inward = side === "up" ? near < value : side === "down" && near > value;
  const kept = inward ? near + (side === "up" ? 1 : -1) * 10 ** -digits : near;
  const number = digits ? (Number(kept.toFixed(digits)) || 0).toFixed(digits) : String(value);  // 0: never -0
  return comma ? number.replace("-", "\u2212").replace(/\d(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "$&,") : number;
});

/* From the units of an axis to those of the picture, and back. */
const place = ([start, slope, log], value) => start + slope * (log ? Math.log10(value) : value);
const value = ([start, slope, log], at) => (log ? 10 ** ((at - start) / slope) : (at - start) / slope);
const short = (x) => String(Math.round(x * 1000) / 1000);
const points = ({ x, y }, { data }) => Array.from({ length: data.length / 2 }, (_, n) => [place(x, data[2 * n]), place(y, data[2 * n + 1])]);
const beyond = ({ x, y }, { data }) => data.some((at, n) => {
  const [, , , low, high] = n % 2 ? y : x, room = (high - low) / 1e6;
  return Number.isFinite(at) && (at < low - room || at > high + room);
});

const put = (mark, [x, y]) => { mark.setAttribute("x", short(x)); mark.setAttribute("y", short(y)); };
const seen = (at) => at.every(Number.isFinite);
const scatter = (group, all) => {
  const marks = [...group.querySelectorAll("use")], home = marks[0]?.parentNode;
  while (home && marks.length < all.length) marks.push(home.appendChild(marks[0].cloneNode()));
  marks.forEach((mark, n) => {
    mark.setAttribute("visibility", all[n] && seen(all[n]) ? "visible" : "hidden");
    if (all[n] && seen(all[n])) put(mark, all[n]);
  });
};

const COLOURS = { blue: [26, 122, 204], orange: [224, 107, 20] };
const DRAW = {
  line([group], move, made) {
    const all = points(move, made), path = [...group.children].find((child) => child.tagName === "path");
    path?.setAttribute("d", all.map((at, n) => (seen(at) ? `${n && seen(all[n - 1]) ? "L" : "M"}${at.map(short).join(" ")}` : "")).join(""));
    scatter(group, all);
  },
  points([group], move, made) { scatter(group, points(move, made)); },
  bars(groups, { x, y, spans }, { data }) {
    groups.forEach((group, n) => {
      const [left, right] = spans[n].map((at) => short(place(x, at))), [foot, top] = [0, data[n]].map((at) => short(place(y, at)));
      group.querySelector("path").setAttribute("d", `M${left} ${foot}L${right} ${foot}L${right} ${top}L${left} ${top}z`);
    });
  },
  image([image], { map, limits: [low, high], upwards }, { shape: [rows, columns], data }) {
    const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    const context = canvas.getContext("2d"), pixels = context.createImageData(columns, rows);
    data.forEach((at, n) => {
      const share = Math.max(0, Math.min((at - low) / (high - low), 1)), signed = 2 * share - 1, row = Math.floor(n / columns);
      const colour = map === "signed" && signed > 0 ? COLOURS.orange : COLOURS.blue, strength = map === "signed" ? Math.abs(signed) : share;
      pixels.data.set([...colour, Math.round(255 * strength)], 4 * ((upwards ? rows - 1 - row : row) * columns + (n % columns)));
    });
    context.putImageData(pixels, 0, 0);
    image.setAttribute("href", canvas.toDataURL());
  },
  text([group], { x, y }, { data }, { data: first }) {  // the words keep their place beside the point
    const text = group.querySelector("text");
    text.begins ??= ["x", "y"].map((axis) => Number(text.getAttribute(axis)));
    put(text, [x, y].map((axis, n) => text.begins[n] + place(axis, data[n]) - place(axis, first[n])));
  },
};

const same = (a, b) => String(a) === String(b);
const enliven = (figure) => {
  const svg = figure.querySelector("svg"), panel = figure.querySelector(".live"), name = figure.dataset.live;
  const { controls, moves, graphs, texts, ...words } = JSON.parse(panel.querySelector("script").textContent);
  const says = panel.querySelector(".says"), call = panel.querySelector("code"), keys = Object.keys(controls);
  const input = Object.fromEntries(keys.map((key) => [key, document.getElementById(`${name}.${key}`)]));
  const sliders = keys.filter((key) => !controls[key].options), choices = keys.filter((key) => controls[key].options);
  const rows = Object.fromEntries(keys.filter((key) => controls[key].cards).map((key) => [key, [...input[key].children]]));
  const start = Object.fromEntries(keys.map((key) => [key, rows[key] ? [...rows[key].keys()] : controls[key].start]));
  const values = { ...start };
  const groups = Object.fromEntries(Object.keys(moves).map((key) => [key, [...svg.querySelectorAll(`[data-artist^="${key}-"]`)]]));
  const numbers = (of) => run(graphs[choices.map((key) => of[key]).join("|")], sliders.map((key) => of[key]));
  let first, waiting, playing = 0;

  const draw = () => {
    waiting = 0;
    first ??= numbers(start);
    const made = figure.made = numbers(values), known = { ...values };
    for (const key in rows) known[key] = values[key].map((card) => controls[key].cards[card]).join(" ");
    for (const [key, { data }] of Object.entries(made)) if (!moves[key]) known[key] = data[0];
    for (const [key, move] of Object.entries(moves)) {
      if (made[key]) DRAW[move.kind](groups[key], move, made[key], first[key]);
      if (texts[key]) groups[key][0].querySelector("text").textContent = fill(texts[key], known);
    }
    const outside = Object.entries(moves).some(([key, move]) => ["line", "points"].includes(move.kind) && beyond(move, made[key]));
    says.textContent = fill(words.says, known) + (outside ? " Part of it lies outside the picture." : "");
    svg.setAttribute("aria-label", says.textContent);
    if (call) call.textContent = fill(words.call, known);
  };

  const show = (key) => {
    const { options, log, shows } = controls[key], control = input[key];
    if (rows[key]) lay(rows[key], values[key]);
    else if (!options) {
      const text = fill(shows, { value: values[key] });
      control.value = log ? Math.log10(values[key]) : values[key];
      control.previousElementSibling.textContent = text;
      control.setAttribute("aria-valuetext", text);
    } else if (control.options) control.value = values[key];
    else for (const button of control.children) button.setAttribute("aria-pressed", button.value === values[key]);
  };

  const set = (key, to) => {
    const { low, high, step, log, options } = controls[key];
    if (rows[key] ? !same(to.toSorted(), start[key].toSorted()) : options ? !options.includes(to) : !Number.isFinite(to)) return;
    if (log) to = Number(to.toPrecision(3));
    else if (step) to = Number((low + step * Math.round((to - low) / step)).toPrecision(12));
    if (step) to = Math.max(low, Math.min(to, high));
    values[key] = to;
    show(key);
    waiting ||= requestAnimationFrame(draw);
  };

  /* The address keeps what differs from the start. */
  const remember = () => {
    const address = new URL(location);
    for (const key of keys) {
      if (same(values[key], start[key])) address.searchParams.delete(`${name}.${key}`);
      else address.searchParams.set(`${name}.${key}`, values[key]);
    }
    history.replaceState(history.state, "", address);
  };
  const change = (key, to) => { playing++; set(key, to); remember(); };

  const asked = new URLSearchParams(location.search);
  for (const key of keys) {
    const to = asked.get(`${name}.${key}`);
    if (to === null) continue;
    set(key, rows[key] ? to.split(",").map(Number) : controls[key].options ? to : Number(to));
    for (let fold = figure; (fold = fold.parentElement.closest("details")); ) fold.open = true;
    figure.scrollIntoView({ block: "nearest" });
  }

  /* Once from end to end, and back to where it stood. */
  const play = (key) => {
    const { low, high, log } = controls[key], before = values[key], began = performance.now(), mine = ++playing;
    const frame = (now) => {
      if (mine !== playing) return;
      const share = Math.max(0, (now - began) / 4000);
      set(key, share > 1.1 ? before : log ? low * (high / low) ** share : low + share * (high - low));
      if (share <= 1.1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };

  for (const key of keys) {
    const { low, high, step, log, options } = controls[key], control = input[key];
    if (rows[key]) {
      arrange(control, rows[key], () => values[key], (to) => { playing++; set(key, to); }, remember);
      continue;
    }
    if (options) {
      control.addEventListener("change", () => change(key, control.value));
      control.addEventListener("click", ({ target }) => { if (target.matches("button")) change(key, target.value); });
      continue;
    }
    control.addEventListener("input", () => { playing++; set(key, log ? 10 ** control.value : Number(control.value)); });
    control.addEventListener("change", remember);
    const button = control.nextElementSibling;
    button?.addEventListener("click", () => {
      if (button.matches(".play")) play(key);
      else change(key, values[key] + step > high ? low : values[key] + step);
    });
  }

  /* What is near enough to the pointer is dragged, as far as the pointer goes; each of these has a slider as its twin. */
  const near = ({ clientX, clientY }) => {
    const far = (key) => {
      const box = groups[controls[key].drag][0].getBoundingClientRect();
      return Math.hypot(Math.max(box.left - clientX, 0, clientX - box.right), Math.max(box.top - clientY, 0, clientY - box.bottom));
    };
    const drags = sliders.filter((key) => controls[key].drag), closest = drags.toSorted((a, b) => far(a) - far(b))[0];
    return closest && far(closest) < 24 ? drags.filter((key) => controls[key].drag === controls[closest].drag) : [];
  };
  const named = ({ target }) => choices.find((key) => target.closest("text") && controls[key].options.includes(target.textContent));
  const under = ({ clientX, clientY }, key) => {
    const { drag, along } = controls[key], at = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
    return value(moves[drag][along], at[along]);
  };
  let held = [];
  svg.addEventListener("pointerdown", (event) => {
    held = near(event).map((key) => [key, values[key] - under(event, key)]);
    if (held.length) { playing++; svg.setPointerCapture(event.pointerId); event.preventDefault(); }
  });
  svg.addEventListener("touchstart", (event) => { if (held.length) event.preventDefault(); }, { passive: false });
  svg.addEventListener("pointermove", (event) => {
    svg.style.cursor = held.length || near(event).length ? "grab" : named(event) ? "pointer" : "";
    for (const [key, before] of held) set(key, before + under(event, key));
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { if (held.length) remember(); held = []; });
  svg.addEventListener("click", (event) => { if (named(event)) change(named(event), event.target.textContent); });
  Object.assign(figure, { set, draw });
};

document.documentElement.classList.add("js");
for (const figure of document.querySelectorAll("figure[data-live]")) enliven(figure);
