/* The box for a config.json: what is in it is read as it changes, and stays there whatever comes of it. Every word of an
   answer is put as text, never as HTML. */
import { compareConfigs, explainConfig } from "./explain.js";
import { readConfig } from "./read_config.js";

const form = document.querySelector(".config"), known = JSON.parse(form.querySelector("script").textContent);
const [kinds, box, second, status, answer] = ["select", "#config-text", ".second", "[role=status]", ".answer"]
  .map((name) => form.querySelector(name));
const [clear, copy, link] = ["clear", "copy", "link"].map((name) => form.querySelector(`[name=${name}]`));
const other = second.querySelector("textarea"), views = [...form.querySelectorAll("[name=view]")];
const view = () => views.find(({ checked }) => checked).value;

const element = (name, text, ...inside) => {
  const made = Object.assign(document.createElement(name), { textContent: text });
  made.append(...inside);
  return made;
};
const SHOWN = {
  title: (words, first) => element(first ? "h2" : "h3", words),
  fact: (words) => element("p", words),
  text: (words) => element("p", words),
  code: (words) => element("pre", "", element("code", words)),
  guess: (words) => element("pre", "", element("code", words)),
  shell: (words) => element("pre", "", element("code", words)),
  mind: (words) => element("p", words),
};

const showCode = () => {
  const parts = readConfig(box.value, known);
  answer.replaceChildren(...parts.map(([kind, words], n) => {
    const made = SHOWN[kind](words, n === 0);
    made.className = kind;
    for (const code of made.querySelectorAll("code")) code.tabIndex = 0;  // it may scroll
    return made;
  }));
  const [code, guess] = ["code", "guess"].map((name) => parts.some(([kind]) => kind === name));
  copy.disabled = !code;
  return code ? "Read." : guess ? "Read; the calls are a guess, in comments." : "Read; there are no calls.";
};

/* Sentences: a line above indented ones is a heading, one with an exclamation mark a note. */
const showLines = (lines) => {
  answer.replaceChildren(...lines.filter(Boolean).map((line, n, all) => {
    const mind = line.startsWith("! "), heads = !line.startsWith(" ") && all[n + 1]?.startsWith(" ");
    const made = element(n === 0 && !mind && !heads ? "h2" : heads ? "h3" : "p", mind ? line.slice(2) : line.trim());
    if (mind) made.className = "mind";
    return made;
  }));
  copy.disabled = !lines.length;
  return "Read.";
};

const linkPages = () => {  // of the last line
  const last = answer.lastElementChild, found = last?.textContent.match(/[\w-]+\/[\w-]+\//g) ?? [];
  if (!found.length || last.className) return;
  last.replaceChildren(last.textContent.split(found[0])[0], ...found.flatMap((page, n) => (
    [n ? ", " : "", Object.assign(element("a", page), { href: form.dataset.up + page })])));
};

const show = () => {
  const shown = view(), missing = shown === "comparison" && !other.value.trim();
  second.hidden = shown !== "comparison";
  link.disabled = !kinds.value;
  copy.disabled = true;
  if (!box.value.trim() || missing) {
    answer.replaceChildren();
    status.textContent = missing && box.value.trim() ? "Paste the second file." : "";
    return;
  }
  if (shown === "code") status.textContent = showCode();
  if (shown === "comparison") status.textContent = showLines(compareConfigs([box.value, other.value], known));
  if (shown === "explanation") {
    status.textContent = showLines(explainConfig(box.value, known));
    linkPages();
  }
};

box.addEventListener("input", () => {
  kinds.value = "";
  show();
});
const choose = () => {
  const kind = kinds.selectedOptions[0];
  if (!kind.value) return;
  box.value = kind.dataset.text ?? JSON.stringify({ model_type: kind.value }, null, 2);
  show();
};
kinds.addEventListener("change", choose);
other.addEventListener("input", show);
for (const each of views) each.addEventListener("change", show);
box.addEventListener("focus", () => {
  if (kinds.value) box.select();  // an example: what is pasted takes its place
});
clear.addEventListener("click", () => {
  [box.value, other.value, kinds.value] = ["", "", ""];
  show();
  box.focus();
});
const put = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
  } catch {
    status.textContent = "The browser did not let it be copied: select the text below.";
  }
};
copy.addEventListener("click", () => {
  const code = [...answer.querySelectorAll(".code code")].map((each) => each.textContent).join("\n\n");
  put(`${view() === "code" ? code : [...answer.children].map((each) => each.textContent).join("\n")}\n`);
});
link.addEventListener("click", () => {  // only a name from the list: no pasted text is in an address
  const chosen = new URLSearchParams({ model: kinds.selectedOptions[0].label, show: view() });
  put(`${location.href.split("#")[0]}#${chosen}`);
});

const asked = new URLSearchParams(location.hash.slice(1));
const named = [...kinds.options].find(({ label, value }) => value && label === asked.get("model"));
for (const each of views) if (each.value === asked.get("show")) each.checked = true;
if (named) kinds.value = named.value;
if (!box.value || named) choose();  // else it is what the browser kept
show();
