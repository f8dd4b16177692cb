/* Asks the theme's own search worker, without a browser: node search.js WORKER INDEX, queries as JSON on the input.
   Gives what each finds, and the seconds of work from reading the index to the first answer. */
const { readFileSync } = require("node:fs");
const [worker, index] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
let hear, answer;
globalThis.self = globalThis;
globalThis.addEventListener = (_, listener) => { hear = listener; };
globalThis.postMessage = (message) => { answer = message.data; };
new Function(worker)();
/* Type 0 sets the worker up, 2 asks it. */
const ask = async (type, data) => { await hear({ data: { type, data } }); return answer; };
(async () => {
  const began = process.cpuUsage();
  let first;
  await ask(0, { ...JSON.parse(index), options: { suggest: false } });
  const found = {};
  for (const query of JSON.parse(readFileSync(0, "utf8"))) {
    const { items } = await ask(2, query);
    first ??= process.cpuUsage(began);
    found[query] = items.map(([{ location }]) => location.split("#")[0]);
  }
  process.stdout.write(JSON.stringify({ found, seconds: (first.user + first.system) / 1e6 }));
})();
