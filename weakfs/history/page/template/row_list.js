// The list of rows: only those in sight are elements, so that many rows scroll smoothly. Forks are lanes beside them.

const LANE = 14;
const MOST_LANES = 8;
const narrow = matchMedia("(max-width: 700px)");
const SVG = "http://www.w3.org/2000/svg";

const list = document.getElementById("rows");
const space = document.getElementById("space");

// The positions of the rows that match the filter, and the selected rows: the one shown, and one to compare with.
let shownRows = rows.map((_, number) => number);
const selected = { row: null, other: null };

// Make an element; texts are only ever set as text.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const rowHeight = () => (narrow.matches ? 56 : 30);

// Give each fork a column beside those that are open at the same time.
function placeLanes() {
  const ends = [];
  const byStart = forks.map((fork) => fork).sort((a, b) => (a.start ?? -1) - (b.start ?? -1) || a.end - b.end);
  for (const fork of byStart) {
    let column = ends.findIndex((end) => end <= (fork.start ?? -1));
    if (column < 0) column = ends.length;
    ends[column] = fork.end;
    fork.column = Math.min(column + 1, MOST_LANES);
  }
  return Math.min(ends.length, MOST_LANES);
}
let lanesWidth = LANE * (placeLanes() + 1) + 4;
const columnX = (column) => LANE / 2 + 2 + LANE * column;
const columnOf = (row) => (row.lane ? forks[row.lane - 1].column : 0);

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function lanesOf(number) {
  const [row, height] = [rows[number], rowHeight()];
  const half = height / 2;
  const image = svg("svg", { width: lanesWidth, height, "aria-hidden": "true", class: "lanes" });
  const path = (d, column) => image.append(svg("path", { d, class: `lane c${column % 6}` }));
  const from = number === 0 ? half : 0;
  const to = number === rows.length - 1 ? half : height;
  path(`M${columnX(0)} ${from}V${to}`, 0);
  for (const fork of forks) {
    const start = fork.start ?? -1;
    if (number < start || number > fork.end) continue;
    const x = columnX(fork.column);
    if (number === start) {
      const own = columnX(columnOf(row));
      path(`M${own} ${half}C${x} ${half} ${x} ${half} ${x} ${height}`, fork.column);
    } else if (number === fork.end) {
      const own = columnX(columnOf(row));
      path(`M${x} 0C${x} ${half} ${x} ${half} ${own} ${half}`, fork.column);
    } else path(`M${x} 0V${height}`, fork.column);
  }
  const x = columnX(columnOf(row));
  const look = `node ${row.kind} c${columnOf(row) % 6}${row.status ? " failed" : ""}`;
  if (row.kind === "snapshot") image.append(svg("rect", { x: x - 4, y: half - 4, width: 8, height: 8, class: look }));
  else image.append(svg("circle", { cx: x, cy: half, r: row.kind === "merge" ? 5 : 4, class: look }));
  return image;
}

const sums = (row) =>
  (row.files ?? []).reduce(([added, removed], one) => [added + (one.added ?? 0), removed + (one.removed ?? 0)], [0, 0]);

const TIME = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: "UTC" });
const timeOf = (row) => TIME.format(row.at);

function tookOf(row) {
  if (row.took === undefined) return "";
  const ms = row.took / 1e6;
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${ms >= 10 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const whoOf = (row) => [row.caller, row.lane ? forks[row.lane - 1].name : null].filter(Boolean).map(shown).join(" · ");

function titleOf(row) {
  const name = row.kind === "call" ? `#${row.number} ` : "";
  return `${name}${shown(row.action)}${row.target ? ` ${shown(row.target)}` : ""}`;
}

function spoken(row) {
  const [added, removed] = sums(row);
  const lines = row.files ? `${plural(row.files.length, "file")}, ${added} lines added, ${removed} removed` : "";
  const parts = [titleOf(row), row.kind === "call" ? row.status ?? "ok" : row.kind, timeOf(row), whoOf(row), lines];
  return parts.filter(Boolean).map((part) => shown(part)).join(", ");
}

function rowElement(position) {
  const number = shownRows[position];
  const row = rows[number];
  const [added, removed] = sums(row);
  const isSelected = number === selected.row || number === selected.other;
  const element = make(
    "div",
    {
      role: "option",
      id: `row-${number}`,
      class: `row ${row.kind}${row.status ? " failed" : ""}${number === selected.other ? " other" : ""}`,
      "aria-selected": String(isSelected),
      "aria-posinset": position + 1,
      "aria-setsize": shownRows.length,
      "aria-label": spoken(row),
    },
    lanesOf(number),
    make("span", { class: "number" }, row.kind === "call" ? String(row.number) : ""),
    make("span", { class: "action" }, shown(row.action)),
    make("span", { class: "target", title: shown(row.target ?? "") }, shown(row.target ?? "")),
    make("span", { class: "result" }, row.status ? make("b", {}, shown(row.status)) : ""),
    make("span", { class: "lines" },
      row.files ? make("span", { class: "plus" }, `+${added}`) : "", " ",
      row.files ? make("span", { class: "minus" }, `−${removed}`) : ""),
    make("span", { class: "count" }, row.files ? plural(row.files.length, "file") : ""),
    make("span", { class: "took" }, tookOf(row)),
    make("span", { class: "who" }, whoOf(row)),
    make("time", { class: "time", datetime: new Date(row.at).toISOString() }, timeOf(row)),
  );
  element.style.top = `${position * rowHeight()}px`;
  element.style.height = `${rowHeight()}px`;
  return element;
}

let drawn = [-1, -1];
function draw(isForced = false) {
  const height = rowHeight();
  const first = Math.max(Math.floor(list.scrollTop / height) - 8, 0);
  const last = Math.min(Math.ceil((list.scrollTop + list.clientHeight) / height) + 8, shownRows.length);
  if (!isForced && drawn[0] === first && drawn[1] === last) return;
  drawn = [first, last];
  space.style.height = `${shownRows.length * height}px`;
  const elements = [];
  for (let position = first; position < last; position++) elements.push(rowElement(position));
  space.replaceChildren(...elements);
  const active = document.getElementById(`row-${selected.row}`);
  if (active) list.setAttribute("aria-activedescendant", active.id);
  else list.removeAttribute("aria-activedescendant");
}

// Scroll until a row is in sight.
function reveal(number) {
  const position = shownRows.indexOf(number);
  if (position < 0) return;
  const [top, height] = [position * rowHeight(), rowHeight()];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
}

const STEPS = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };
// The position that a key leads to, or null.
function positionAfter(key) {
  const at = shownRows.indexOf(selected.row);
  const page = Math.max(Math.floor(list.clientHeight / rowHeight()) - 1, 1);
  const last = shownRows.length - 1;
  const limited = (position) => Math.min(Math.max(position, 0), last);
  if (last < 0) return null;
  if (key in STEPS) return at < 0 ? 0 : limited(at + STEPS[key]);
  if (key === "PageDown") return limited(at + page);
  if (key === "PageUp") return limited(at - page);
  return key === "Home" ? 0 : key === "End" ? last : null;
}
