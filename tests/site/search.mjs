/* Asks the search's own worker, without a browser: node search.mjs WORKER INDEX, queries as JSON on the input.
   Gives what it answers to each, and the seconds of work from reading the index to the first answer. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [worker, index] = process.argv.slice(2);
let hear, answer;
globalThis.addEventListener = (_, listener) => { hear = listener; };
globalThis.postMessage = (message) => { answer = message.data; };
await import(pathToFileURL(worker));
/* Type 0 sets the worker up, 2 asks it. */
const ask = (type, data) => { hear({ data: { type, data } }); return answer; };
const began = process.cpuUsage();
ask(0, JSON.parse(readFileSync(index, "utf8")));
const found = {};
let first;
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  found[query] = ask(2, query).items;
  first ??= process.cpuUsage(began);
}
process.stdout.write(JSON.stringify({ found, seconds: (first.user + first.system) / 1e6 }));
