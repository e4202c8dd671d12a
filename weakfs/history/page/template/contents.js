// The data of the page, and the contents of files: whole, or as the difference from another one.

let data, rows, forks, contents;
function useData(value) {
  data = value;
  ({ rows, forks, contents } = data);
}
useData(JSON.parse(document.getElementById("data").textContent));
const isLive = Boolean(data.is_live);

const WHY = {
  binary: "binary file",
  missing: "its content is no longer stored",
  large: "too large for the page",
  full: "left out: the page is full",
  unchanged: "left out: no row changed it",
  omitted: "left out on request",
  encoding: "not UTF-8",
};

// Assembled texts, newest last, up to a number of characters.
const known = new Map();
const MOST_KNOWN = 20_000_000;
let knownSize = 0;

// The text of a content, or null if the page does not have it.
function textOf(number) {
  const chain = [];
  let text = null;
  for (let at = number; ; at = contents[at][0]) {
    const entry = contents[at];
    if (known.has(at)) text = known.get(at);
    else if (typeof entry === "string") text = entry;
    else if (!Array.isArray(entry)) text = entry.text ?? null;
    if (text !== null || !Array.isArray(entry)) break;
    chain.push(entry);
  }
  if (text === null) return null;
  for (const [, start, end, middle] of chain.reverse()) {
    text = text.slice(0, start) + middle + (end ? text.slice(-end) : "");
  }
  if (chain.length) remember(number, text);
  return text;
}

function remember(number, text) {
  known.set(number, text);
  knownSize += text.length;
  for (const [oldest, one] of known) {
    if (knownSize <= MOST_KNOWN) break;
    known.delete(oldest);
    knownSize -= one.length;
  }
}

// Why the page does not have the exact text of a content, or null if it does.
function whyNot(number) {
  const entry = contents[number];
  return typeof entry === "string" || Array.isArray(entry) ? null : entry.why;
}

function sizeOf(number) {
  return contents[number]?.size ?? null;
}

// The lines of a text, each with its line ending.
function linesOf(text) {
  if (text === "") return [];
  const lines = text.split("\n").map((line) => line + "\n");
  const last = lines.pop();
  if (last !== "\n") lines.push(last.slice(0, -1));
  return lines;
}

// Characters that do not show, or that change the direction of writing, become escapes; tabs and line breaks stay.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e007f}]",
  "gu",
);
function visible(text) {
  return text.replace(HIDDEN, (found) => {
    const code = found.codePointAt(0);
    if (code > 0xffff) return `\\u{${code.toString(16)}}`;
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

// A name on one line.
function shown(text) {
  return visible(text).replace(/\n/g, "\\n").replace(/\t/g, "\\t");
}
