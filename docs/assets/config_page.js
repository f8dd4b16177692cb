/* The box for a config.json: what is in it is read as it changes, and stays there whatever comes of it. Every word of an
   answer is put as text, never as HTML. */
import { readConfig } from "./read_config.js";

const form = document.querySelector(".config"), known = JSON.parse(form.querySelector("script").textContent);
const [kinds, box, status, answer] = ["select", "textarea", "[role=status]", ".answer"].map((name) => form.querySelector(name));
const [clear, copy] = ["clear", "copy"].map((name) => form.querySelector(`[name=${name}]`));

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

const show = () => {
  const parts = box.value.trim() ? readConfig(box.value, known) : [];
  answer.replaceChildren(...parts.map(([kind, words], n) => {
    const made = SHOWN[kind](words, n === 0);
    made.className = kind;
    for (const code of made.querySelectorAll("code")) code.tabIndex = 0;  // it may scroll
    return made;
  }));
  const [code, guess] = ["code", "guess"].map((name) => parts.some(([kind]) => kind === name));
  const said = code ? "Read." : guess ? "Read; the calls are a guess, in comments." : "Read; there are no calls.";
  copy.disabled = !code;
  status.textContent = parts.length ? said : "";
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
box.addEventListener("focus", () => {
  if (kinds.value) box.select();  // an example: what is pasted takes its place
});
clear.addEventListener("click", () => {
  [box.value, kinds.value] = ["", ""];
  show();
  box.focus();
});
copy.addEventListener("click", async () => {
  const code = [...answer.querySelectorAll(".code code")].map((each) => each.textContent).join("\n\n");
  try {
    await navigator.clipboard.writeText(`${code}\n`);
    status.textContent = "Copied.";
  } catch {
    status.textContent = "The browser did not let it be copied: select the code below.";
  }
});
if (!box.value) choose();  // else it is what the browser kept
show();
