// The details of a row: its facts and differences; two rows compared; the files at a moment, and who wrote their lines.

const changesPanel = document.getElementById("changes");
const treePanel = document.getElementById("tree");
const filePanel = document.getElementById("file");

// How many lines, and how many files, are shown before the reader asks for more.
const MOST_LINES = 1500;
const MOST_OPEN = 12;
const MOST_FILES = 300;

function say(text) {
  document.getElementById("said").textContent = text;
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that are opened as files may have no clipboard.
    const area = make("textarea", { "aria-hidden": "true", class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`${what} copied`);
}

function copyButton(label, what, text) {
  const button = make("button", { type: "button", onclick: async () => {
    await copy(text(), what);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

// Add lines to an element, a number of them at a time.
function addInParts(element, items, makeOne, more = "lines") {
  let at = 0;
  const button = make("button", { type: "button", class: "more", onclick: () => add() });
  const add = () => {
    button.remove();
    const part = document.createDocumentFragment();
    for (const end = Math.min(at + MOST_LINES, items.length); at < end; at++) part.append(makeOne(items[at], at));
    element.append(part);
    if (at < items.length) {
      button.textContent = `Show more: ${(items.length - at).toLocaleString("en")} ${more} are left`;
      element.append(button);
    }
  };
  add();
}

function noteOn(file) {
  const whys = [file.old, file.new].filter((one) => one !== undefined).map(whyNot).filter(Boolean);
  const sizes = [file.old, file.new].map((one) => (one === undefined ? 0 : sizeOf(one)));
  const isShown = [file.old, file.new].every((one) => one === undefined || textOf(one) !== null);
  const size = sizes.some((one) => one) ? ` (${sizes.map((one) => (one ?? "?").toLocaleString("en")).join(" → ")} bytes)` : "";
  return { isShown, text: whys.length ? `${WHY[whys[0]]}${isShown ? "; other bytes are shown as �" : size}` : null };
}

function differenceElement(file) {
  const box = make("div", { class: "code", role: "region", tabindex: "0", "aria-label": `Difference of ${shown(file.path)}` });
  const note = noteOn(file);
  if (note.text) box.append(make("p", { class: "note" }, note.text));
  if (!note.isShown) return box;
  if (file.old === file.new) {
    box.append(make("p", { class: "note" }, file.old_mode !== file.new_mode
      ? `mode ${file.old_mode.toString(8)} → ${file.new_mode.toString(8)}` : "same content"));
    return box;
  }
  const before = linesOf(file.old === undefined ? "" : textOf(file.old));
  const after = linesOf(file.new === undefined ? "" : textOf(file.new));
  const hunks = hunksOf(changesOf(before, after));
  if (!hunks.length) box.append(make("p", { class: "note" }, "an empty file"));
  const language = languageOf(file.path);
  const lines = hunks.flatMap((hunk) => [["@", rangesOf(hunk, before)], ...linesOfHunk(hunk, before, after)]);
  addInParts(box, lines, ([sign, line, old, now]) => {
    if (sign === "@") return make("div", { class: "line hunk" }, line);
    const text = make("span", { class: "text" });
    addColored(text, line.replace(/\n$/, ""), language);
    const look = { "+": "added", "-": "removed", " ": "" }[sign];
    return make("div", { class: `line ${look}` },
      make("span", { class: "at" }, String(old ?? "")), make("span", { class: "at" }, String(now ?? "")),
      make("span", { class: "sign" }, sign), text,
      line.endsWith("\n") ? null : make("span", { class: "note" }, " no line break at the end"));
  });
  return box;
}

const SIGNS = { added: "A", removed: "D", moved: "R", changed: "M" };
function changeOf(file) {
  if (file.source !== undefined) return "moved";
  return file.old === undefined ? "added" : file.new === undefined ? "removed" : "changed";
}

function fileElement(file, isOpen) {
  const change = changeOf(file);
  const element = make("details", { class: "file" },
    make("summary", {},
      make("span", { class: `sign ${change}`, title: change, "aria-label": change }, SIGNS[change]),
      make("span", { class: "path" },
        file.filesystem ? `${shown(file.filesystem)}: ` : "",
        file.source === undefined ? "" : `${shown(file.source)} → `, shown(file.path)),
      file.added === undefined ? null : make("span", { class: "lines" },
        make("span", { class: "plus" }, `+${file.added ?? "?"}`), " ", make("span", { class: "minus" }, `−${file.removed ?? "?"}`))));
  const fill = () => {
    if (element.open && element.children.length === 1) element.append(differenceElement(file));
  };
  element.addEventListener("toggle", fill);
  element.open = isOpen;
  return element;
}

function filesElements(files) {
  if (!files.length) return [make("p", { class: "note" }, "No files differ.")];
  const elements = files.slice(0, MOST_FILES).map((file, at) => fileElement(file, at < MOST_OPEN));
  const left = files.length - elements.length;
  if (left > 0) elements.push(make("p", { class: "note" }, `${plural(left, "more file")} not listed; the patch has all of them.`));
  return elements;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return make("dl", {}, ...known.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, typeof value === "string" ? shown(value) : value))));
}

const recordsOf = (row) => (row.last === undefined ? `${row.first}` : `${row.first}-${row.last}`);

function revertCommand(row) {
  if (!row.files || row.first === undefined) return null;
  const root = row.files.some((file) => file.filesystem) ? " --root DIR" : "";
  return `weakfs revert ${data.where} ${recordsOf(row)}${root} --preview`;
}

function commandElement(command) {
  return make("div", { class: "command" },
    make("span", { class: "label" }, "To revert it (this command only previews):"),
    make("code", { tabindex: "0" }, shown(command)), copyButton("Copy", "Command", () => command));
}

const patchesOf = (files) => files.map(patchOf).join("");

function showRow(number) {
  const row = rows[number];
  const files = row.files ?? [];
  const command = revertCommand(row);
  const why = row.compacted ? "What it changed is not known: older records were compacted away."
    : row.kind === "merge" ? "The changes of the merge are in the rows of the fork, above it."
    : row.kind === "snapshot" ? "A snapshot changes no files; see the tab Files."
    : "It changed no files.";
  changesPanel.replaceChildren(
    make("h2", {}, titleOf(row)),
    facts([
      ["status", row.kind === "call" ? row.status ?? "ok" : row.kind],
      ["caller", row.caller], ["fork", row.lane ? forks[row.lane - 1].name : ""],
      ["time", `${timeOf(row)} UTC`], ["took", tookOf(row)], ["id", row.name],
      ["records", row.first === undefined ? "" : recordsOf(row)],
    ]),
    make("p", { class: "actions" },
      files.length ? copyButton("Copy as patch", "Patch", () => patchesOf(files)) : null,
      make("button", { type: "button", id: "compare", "aria-pressed": String(isComparing), onclick: toggleComparing },
        isComparing ? "Select a row to compare…" : "Compare with…"),
      ...liveButtons(row)),
    ...(command ? [commandElement(command)] : []),
    ...(files.length ? filesElements(files) : [make("p", { class: "note" }, why)]),
  );
}

function showComparison(one, other) {
  const [first, last] = one < other ? [one, other] : [other, one];
  const files = differenceOf(first, last);
  changesPanel.replaceChildren(
    make("h2", {}, "Compare"),
    facts([["from", titleOf(rows[first])], ["to", titleOf(rows[last])], ["files", files ? String(files.length) : "not known"]]),
    make("p", { class: "actions" },
      files?.length ? copyButton("Copy as patch", "Patch", () => patchesOf(files)) : null,
      make("button", { type: "button", id: "compare", onclick: () => select(selected.row) }, "Stop comparing")),
    ...(files ? filesElements(files)
      : [make("p", { class: "note" }, "The files after one of these rows are not known: records were compacted away, or there are too many files.")]),
  );
}

// The directory or file that was opened in the tree.
let openPath = null;

function showTree(number) {
  const tree = treeAt(number);
  document.getElementById("moment-row").textContent = `${titleOf(rows[number])} · ${timeOf(rows[number])} UTC`;
  document.getElementById("moment").setAttribute("aria-valuetext", `${number + 1} of ${rows.length}: ${titleOf(rows[number])}`);
  if (tree === null) {
    treePanel.replaceChildren(make("p", { class: "note" },
      "The files at this moment are not known: records were compacted away, or there are too many files for the page."));
    filePanel.replaceChildren();
    return;
  }
  const changed = new Set((rows[number].files ?? []).map((file) => keyOf(file.filesystem, file.path)));
  treePanel.replaceChildren(
    make("p", { class: "note" }, plural(tree.size, "file")), directoryElement(nested(tree), changed, tree.size <= 200));
  if (openPath !== null && tree.has(openPath)) showFile(openPath, tree.get(openPath));
  else filePanel.replaceChildren();
}

// A tree as maps in maps; the leaves are keys.
function nested(tree) {
  const root = new Map();
  for (const key of [...tree.keys()].sort()) {
    const filesystem = filesystemOf(key);
    const parts = pathOf(key).split("/").slice(1);
    if (filesystem) parts.unshift(`${filesystem}:`);
    let at = root;
    for (const part of parts.slice(0, -1)) {
      if (!(at.get(part) instanceof Map)) at.set(part, new Map());
      at = at.get(part);
    }
    at.set(parts.at(-1), key);
  }
  return root;
}

function directoryElement(directory, changed, isOpen) {
  const element = make("ul");
  const entries = [...directory].sort(([a, x], [b, y]) => (y instanceof Map) - (x instanceof Map) || (a < b ? -1 : 1));
  addInParts(element, entries, ([name, below]) => {
    if (!(below instanceof Map)) {
      const button = make("button", {
        type: "button", class: `entry${changed.has(below) ? " touched" : ""}`, "aria-current": String(below === openPath),
        onclick: () => {
          openPath = below;
          for (const one of treePanel.querySelectorAll("[aria-current=true]")) one.setAttribute("aria-current", "false");
          button.setAttribute("aria-current", "true");
          showFile(below, treeAt(moment).get(below));
        },
      }, shown(name), changed.has(below) ? make("span", { class: "unseen" }, " (changed by this row)") : null);
      return make("li", {}, button);
    }
    const inside = make("details", {}, make("summary", {}, `${shown(name)}/`));
    const fill = () => {
      if (inside.open && inside.children.length === 1) inside.append(directoryElement(below, changed, isOpen));
    };
    inside.addEventListener("toggle", fill);
    inside.open = isOpen;
    return make("li", {}, inside);
  }, "entries");
  return element;
}

let isBlamed = true;
function showFile(key, [content, mode, blame]) {
  const path = pathOf(key);
  const text = textOf(content);
  const box = make("div", { class: "code", role: "region", tabindex: "0", "aria-label": `Content of ${shown(path)}` });
  const toggle = make("input", { type: "checkbox", id: "blame", disabled: !blame, onchange: () => {
    isBlamed = toggle.checked;
    showFile(key, [content, mode, blame]);
    document.getElementById("blame").focus();
  } });
  toggle.checked = Boolean(blame) && isBlamed;
  const why = blame ? "" : " (not included for this version)";
  filePanel.replaceChildren(
    make("h2", {}, shown(path)),
    make("p", { class: "actions" }, make("label", {}, toggle, ` Blame${why}`), make("span", { class: "note" }, `mode ${mode.toString(8)}`)),
    box);
  if (whyNot(content)) box.append(make("p", { class: "note" }, WHY[whyNot(content)]));
  if (text === null) return;
  const origins = toggle.checked ? originsOf(blame) : null;
  const language = languageOf(path);
  addInParts(box, linesOf(text), (line, at) => {
    const shownLine = make("span", { class: "text" });
    addColored(shownLine, line.replace(/\n$/, ""), language);
    return make("div", { class: "line" }, origins && originElement(origins, at), make("span", { class: "at" }, String(at + 1)), shownLine);
  });
}

function originsOf(blame) {
  const origins = [];
  for (let at = 0; at < blame.length; at += 2) {
    const start = origins.length;
    origins.length += blame[at + 1];
    origins.fill(blame[at], start);
  }
  return origins;
}

function originElement(origins, at) {
  const number = origins[at];
  if (at > 0 && origins[at - 1] === number) return make("span", { class: "origin" });
  if (number === null || number === undefined) return make("span", { class: "origin" }, "before");
  const row = rows[number];
  const label = row.kind === "call" ? `#${row.number} ${shown(row.action)}` : shown(row.action);
  return make("button", { type: "button", class: "origin", title: spoken(row), onclick: () => {
    showTab("changes");
    select(number);
  } }, label);
}
