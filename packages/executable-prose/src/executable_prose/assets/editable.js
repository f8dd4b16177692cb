/* Code that a reader changes and runs: its field can be written in. Nothing else is loaded until it runs. */
const [SECONDS, MOST] = [5, 10_000];  // that it may take, and characters that it may print
const STOPPED = {
  late: `Stopped after ${SECONDS} seconds. Is there a loop that never ends?`,
  long: `Stopped after ${MOST.toLocaleString("en")} characters.`,
  lost: "Python could not be loaded. Are you still online? Then run it again.",
};

/* The last line of an error's report, after the line of code that it came from. */
const brief = (report) => {
  const lines = report.trim().split("\n");
  const line = report.match(/line (\d+)(?=[^]*$)(?![^]*line \d)/)?.[1];
  return (line ? `Line ${line}: ` : "") + lines.at(-1).replace(/:$/, "");
};

/* Each run has a worker of its own, which can be ended whatever it does. */
const run = (code, print, end) => {
  const worker = new Worker(new URL("editable-worker.js", import.meta.url), { type: "module" });
  let [clock, printed] = [0, 0];
  const quit = () => {
    clearTimeout(clock);
    worker.terminate();
  };
  const stop = (said) => {
    quit();
    end(said);
  };
  worker.onerror = () => stop(STOPPED.lost);
  worker.onmessage = ({ data: { lost, begun, text, ended } }) => {
    if (lost) stop(STOPPED.lost);
    if (begun) clock = setTimeout(stop, 1000 * SECONDS, STOPPED.late);
    if (text !== undefined) {
      print(text.slice(0, MOST - printed));
      printed += text.length;
      if (printed > MOST) stop(STOPPED.long);
    }
    if (ended !== undefined) stop(ended && brief(ended));
  };
  worker.postMessage(code);
  return quit;
};

for (const box of document.querySelectorAll(".editable")) {
  const [field, state, result] = ["textarea", ".state", ".printed code"].map((part) => box.querySelector(part));
  const told = result.textContent;
  let quit = () => {};
  /* What an earlier run printed stays until there is more to see, so that nothing jumps. */
  const start = () => {
    quit();
    let printed = "";
    const print = (text) => { result.textContent = printed += text; };
    state.textContent = "Running …";
    quit = run(field.value, print, (said) => {
      print("");
      state.textContent = said;
    });
  };
  const reset = () => {
    quit();
    [field.value, result.textContent, state.textContent] = [field.defaultValue, told, ""];
  };
  [...box.querySelectorAll("button")].forEach((button, n) => { button.onclick = [start, reset][n]; });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    start();
  });
  field.readOnly = false;
}
