// The page as a whole: filters, selection, keys and tabs.

const byId = (id) => document.getElementById(id);
const details = byId("details");

let isComparing = false;
let moment = rows.length - 1;
let isTreeStale = true;

function select(number) {
  if (isComparing && selected.row !== null && number !== selected.row) {
    compareWith(number);
    return;
  }
  isComparing = false;
  selected.row = number;
  selected.other = null;
  reveal(number);
  draw(true);
  showRow(number);
  setMoment(number);
}

function compareWith(number) {
  isComparing = false;
  if (selected.row === null || number === selected.row) return;
  selected.other = number;
  draw(true);
  showTab("changes");
  showComparison(selected.row, number);
  say(`Comparing ${titleOf(rows[selected.row])} with ${titleOf(rows[number])}`);
}

function toggleComparing() {
  isComparing = !isComparing;
  showRow(selected.row);
  if (!isComparing) return;
  say("Select the row to compare with");
  closeDetails();
}

function setMoment(number) {
  moment = number;
  byId("moment").value = String(number);
  isTreeStale = true;
  if (!byId("files").hidden) refreshTree();
}

function refreshTree() {
  if (!isTreeStale || !rows.length) return;
  isTreeStale = false;
  showTree(moment);
}

function showTab(name) {
  for (const one of ["changes", "files"]) {
    const isShown = one === name;
    byId(one).hidden = !isShown;
    byId(`tab-${one}`).setAttribute("aria-selected", String(isShown));
    byId(`tab-${one}`).tabIndex = isShown ? 0 : -1;
  }
  if (name === "files") refreshTree();
}

// On a narrow screen the details cover the rows.
function openDetails() {
  document.body.classList.add("open");
  details.focus({ preventScroll: true });
}

function closeDetails() {
  document.body.classList.remove("open");
  draw(true);
  list.focus();
}

let searchable = [];
const textsOf = () => rows.map((row) =>
  [row.number, row.name, row.action, row.target, row.status, row.caller, row.lane ? forks[row.lane - 1].name : "",
    ...(row.files ?? []).flatMap((file) => [file.path, file.source])]
    .filter((one) => one !== undefined && one !== null).join("\n").toLowerCase());

function filter() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [kind, status, caller] = ["kind", "status", "caller"].map((id) => byId(id).value);
  const isChanged = byId("changed").checked;
  shownRows = [];
  rows.forEach((row, number) => {
    if (kind && row.kind !== kind) return;
    if (status === "failed" ? !row.status : status && (row.kind !== "call" || (row.status ?? "ok") !== status.slice(1))) return;
    if (caller && caller !== `c${row.caller ?? ""}` && caller !== `f${row.lane ? forks[row.lane - 1].name : ""}`) return;
    if (isChanged && !row.files) return;
    if (words.every((word) => searchable[number].includes(word))) shownRows.push(number);
  });
  byId("count").textContent = shownRows.length === rows.length
    ? plural(rows.length, "row") : `${shownRows.length.toLocaleString("en")} of ${plural(rows.length, "row")}`;
  byId("empty").hidden = shownRows.length > 0;
  draw(true);
}

function filterAgain() {
  filter();
  list.scrollTop = 0;
  if (selected.row !== null) reveal(selected.row);
  draw(true);
}

function fillSelect(id, all, options) {
  const chosen = byId(id).value;
  byId(id).replaceChildren(make("option", { value: "" }, all), ...options.map(([value, label]) => make("option", { value }, shown(label))));
  byId(id).value = chosen;
  if (byId(id).selectedIndex < 0) byId(id).value = "";
}

function fillFilters() {
  const distinct = (values) => [...new Set(values.filter(Boolean))].sort();
  fillSelect("kind", "All kinds", distinct(rows.map((row) => row.kind)).map((kind) => [kind, `${kind}s`]));
  const statuses = distinct(rows.map((row) => row.status));
  fillSelect("status", "Any status", [["=ok", "ok"], ["failed", "failed"], ...statuses.map((one) => [`=${one}`, one])]);
  fillSelect("caller", "Anyone", [
    ...distinct(rows.map((row) => row.caller)).map((one) => [`c${one}`, one]),
    ...distinct(forks.map((fork) => fork.name)).map((one) => [`f${one}`, `fork ${one}`]),
  ]);
}

const LEFT_OUT = {
  rows: "older row", trees: "listing of all files", blames: "version of a file without blame", large: "large content",
  full: "content beyond the page's limit", unchanged: "unchanged content", missing: "content no longer stored",
  omitted: "content, on request",
};

function summarize() {
  byId("session").textContent = shown(data.session);
  document.title = `Timeline of ${shown(data.session)}`;
  const calls = rows.filter((row) => row.kind === "call");
  const failed = calls.filter((row) => row.status).length;
  const left = Object.entries(LEFT_OUT).filter(([why]) => data.left_out[why])
    .map(([why, noun]) => `${data.left_out[why].toLocaleString("en")} × ${noun}`);
  byId("summary").textContent =
    [plural(calls.length, "call"), failed ? `${failed} failed` : "", forks.length ? plural(forks.length, "merged fork") : "",
      left.length ? `left out: ${left.join(", ")}` : ""].filter(Boolean).join(" · ");
}

const THEMES = [["Auto", "as the system", ""], ["Light", "light", "light"], ["Dark", "dark", "dark"]];
function nextTheme() {
  const at = THEMES.findIndex(([label]) => label === byId("theme").textContent);
  const [label, spokenName, name] = THEMES[(at + 1) % THEMES.length];
  byId("theme").textContent = label;
  byId("theme").setAttribute("aria-label", `Colors: ${spokenName}`);
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

function onListKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const position = positionAfter(event.key);
  if (position !== null) {
    event.preventDefault();
    if (event.shiftKey) compareWith(shownRows[position]);
    else select(shownRows[position]);
  } else if (event.key === "Enter" && selected.row !== null) {
    event.preventDefault();
    openDetails();
  } else if (event.key === "c" && selected.row !== null) {
    isComparing = true;
    showRow(selected.row);
    say("Select the row to compare with");
  }
}

function onListClick(event) {
  const element = event.target.closest("[role=option]");
  if (!element) return;
  const number = Number(element.id.slice(4));
  const isSecond = (event.shiftKey || event.ctrlKey || event.metaKey) && selected.row !== null;
  if (isSecond) compareWith(number);
  else select(number);
  document.body.classList.add("open");
}

function onKey(event) {
  if (byId("preview").open) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    byId("search").focus();
  } else if (event.key === "Escape") {
    if (event.target === byId("search")) {
      byId("search").value = "";
      filterAgain();
    }
    if (isComparing && selected.row !== null) toggleComparing();
    closeDetails();
  }
}

function onTabKey(event) {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const name = byId("changes").hidden ? "changes" : "files";
  showTab(name);
  byId(`tab-${name}`).focus();
}

function showData() {
  searchable = textsOf();
  summarize();
  fillFilters();
  byId("moment").max = String(Math.max(rows.length - 1, 0));
  byId("moment").disabled = !rows.length;
  byId("empty").textContent = rows.length ? "No row matches the filter." : "The session has no rows yet.";
  filter();
}

function showFirst() {
  if (rows.length) {
    const first = rows.findIndex((row) => row.files);
    select(Math.max(first, 0));
    list.scrollTop = 0;
    draw(true);
  } else {
    changesPanel.replaceChildren(make("p", { class: "note" }, "Nothing has happened in this session."));
  }
}

function start() {
  list.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
  list.addEventListener("keydown", onListKey);
  list.addEventListener("click", onListClick);
  addEventListener("resize", () => draw(true));
  addEventListener("keydown", onKey);
  byId("filters").addEventListener("input", filterAgain);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("theme").addEventListener("click", nextTheme);
  byId("back").addEventListener("click", closeDetails);
  for (const name of ["changes", "files"]) {
    byId(`tab-${name}`).addEventListener("click", () => showTab(name));
    byId(`tab-${name}`).addEventListener("keydown", onTabKey);
  }
  byId("moment").addEventListener("input", (event) => {
    isTreeStale = true;
    moment = Number(event.target.value);
    refreshTree();
  });
  if (isLive) {
    startLive();
    return;
  }
  showData();
  showFirst();
}

start();
