/* Runs one program of Python and ends: what it prints, line by line, and then the report of its error, or nothing. */
import { loadMicroPython } from "./micropython.mjs";

onmessage = async ({ data }) => {
  const decoder = new TextDecoder();
  let line = "";
  const flush = () => {
    if (line) postMessage({ text: line });
    line = "";
  };
  const stdout = (bytes) => {
    line += decoder.decode(bytes, { stream: true });
    if (line.endsWith("\n") || line.length > 1000) flush();
  };
  let python;
  try { python = await loadMicroPython({ stdout, linebuffer: false }); } catch { return postMessage({ lost: true }); }
  postMessage({ begun: true });
  let report = "";
  try { python.runPython(data); } catch (error) { report = error.message; }
  flush();
  postMessage({ ended: report });
};
