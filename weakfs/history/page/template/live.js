// The page as a server serves it: it follows the session, and undoes work after a preview.

const previewDialog = document.getElementById("preview");
const SHORTEST_WAIT = 1000;
const TOKEN_KEY = "weakfs-token";
const HOWS = { undo: "Undo", redo: "Redo", revert: "Revert", restore: "Restore" };

// The token is in the address at first, and is then kept where only this tab and the pages of this server can read it.
function takeToken() {
  if (/^#[\w-]{20,}$/.test(location.hash)) {
    sessionStorage.setItem(TOKEN_KEY, location.hash.slice(1));
    history.replaceState(null, "", "/");
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

async function ask(path, body) {
  const headers = { Authorization: `Bearer ${takeToken()}` };
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

function connected(text) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) element.textContent = text;
}

let wait = null;
async function follow() {
  clearTimeout(wait);
  const began = performance.now();
  try {
    if (data.version === undefined || (await ask("/version")) !== data.version) replaceData(await ask("/data"));
    connected("Live");
  } catch (error) {
    connected(error instanceof TypeError ? "Not connected" : `Not live: ${shown(error.message)}`);
  }
  // A session that takes a long time to read is read less often.
  wait = setTimeout(follow, Math.max(SHORTEST_WAIT, 5 * (performance.now() - began)));
}

const identityOf = (row) => JSON.stringify([row.kind, row.number, row.name, row.action, row.first, row.last, row.lane]);
// What the panel shows of a row.
const detailsOf = (row) =>
  JSON.stringify([row, (row.files ?? []).map((file) => [contents[file.old] ?? null, contents[file.new] ?? null])]);

function replaceData(value) {
  const chosen = [selected.row, selected.other].map((number) => (number === null ? null : rows[number]));
  const before = chosen[0] && detailsOf(chosen[0]);
  const wasLast = moment === rows.length - 1 && !document.getElementById("files").hidden;
  const position = list.scrollTop;
  useData(value);
  known.clear();
  knownSize = 0;
  trees.clear();
  lanesWidth = LANE * (placeLanes() + 1) + 4;
  const places = new Map(rows.map((row, number) => [identityOf(row), number]));
  [selected.row, selected.other] = chosen.map((row) => (row ? places.get(identityOf(row)) ?? null : null));
  showData();
  if (selected.row === null) {
    isComparing = false;
    selected.other = null;
    showFirst();
    return;
  }
  list.scrollTop = position;
  draw(true);
  if (selected.other !== null) showComparison(selected.row, selected.other);
  else if (chosen[1] || detailsOf(rows[selected.row]) !== before) showRow(selected.row);
  // A viewer of the newest files sees them change.
  setMoment(wasLast ? rows.length - 1 : Math.min(moment, rows.length - 1));
}

function liveButtons(row) {
  if (!isLive || row.first === undefined) return [];
  const last = row.last ?? row.first;
  const button = (how, text, wanted) =>
    make("button", { type: "button", class: how, onclick: () => preview({ how, ...wanted }, `${HOWS[how]} ${text}`) }, `${HOWS[how]}…`);
  return [
    row.files ? button("revert", titleOf(row), { first: row.first, last }) : null,
    // Inside a merge, the files after a record are not those of the fork.
    row.lane ? null : button("restore", `the files after ${titleOf(row)}`, { first: last }),
  ];
}

async function preview(wanted, title) {
  let found;
  try {
    found = await ask("/take-back", wanted);
  } catch (error) {
    found = { error: error.message };
  }
  showPreview(wanted, title, found);
}

function showPreview(wanted, title, found, why = null) {
  const canApply = !found.error && found.digest && found.changes.length > 0 && !found.conflicts.length;
  const apply = make("button", { type: "button", id: "apply", onclick: () => change({ ...wanted, agreed: found.digest }, title) }, HOWS[wanted.how]);
  previewDialog.replaceChildren(
    make("h2", { id: "preview-title" }, title),
    ...[why, found.error && shown(found.error)].filter(Boolean).map((text) => make("p", { class: "note", role: "alert" }, text)),
    ...previewParts(found),
    make("p", { class: "actions" },
      canApply ? apply : null,
      make("button", { type: "button", id: "cancel", onclick: () => previewDialog.close() }, canApply ? "Cancel" : "Close")));
  if (!previewDialog.open) previewDialog.showModal();
}

function previewParts({ changes = [], conflicts = [], foreign = [], detached = [], error }) {
  const parts = [];
  const names = (text, paths) => paths.length && parts.push(make("p", { class: "note" }, `${text}: ${paths.map(shown).join(", ")}`));
  names("Changed by another program", foreign);
  names("Not open here, and left unchanged", detached);
  if (conflicts.length) {
    parts.push(make("p", { class: "note" }, "Later work changed the same lines. Nothing was changed."));
    for (const one of conflicts) parts.push(conflictElement(one));
  }
  if (changes.length) {
    parts.push(make("ul", { class: "changes" }, ...changes.map((one) => make("li", {},
      make("span", { class: `sign ${one.change}` }, SIGNS[one.change]), " ",
      one.source ? `${shown(one.source)} → ` : "", shown(one.path), " ",
      make("span", { class: "plus" }, `+${one.added}`), " ", make("span", { class: "minus" }, `−${one.removed}`)))));
  } else if (!conflicts.length && !error) parts.push(make("p", { class: "note" }, "Nothing would change."));
  return parts;
}

function conflictElement({ path, kind, ours, theirs }) {
  const side = (name, text) => make("div", {}, make("h4", {}, name),
    make("pre", { class: "code", tabindex: "0" }, text === null ? "(no file)" : visible(text)));
  return make("section", { class: "conflict" },
    make("h3", {}, `${shown(path)} (${shown(kind)})`),
    make("div", { class: "sides" }, side("Now", ours), side("Before", theirs)));
}

async function change(wanted, title) {
  document.getElementById("apply").disabled = true;
  let found;
  try {
    found = await ask("/take-back", wanted);
  } catch (error) {
    found = { error: error.message };
  }
  if (found.stale) {
    const { agreed, ...again } = wanted;
    await follow();
    showPreview(wanted, title, await ask("/take-back", again).catch((error) => ({ error: error.message })),
      "The session has changed since. This is what would happen now:");
    return;
  }
  if (!found.done) {
    showPreview(wanted, title, found);
    return;
  }
  previewDialog.close();
  say(`${title}: done`);
  await follow();
}

function startLive() {
  document.getElementById("live").hidden = false;
  for (const how of ["undo", "redo"]) {
    document.getElementById(how).addEventListener("click", () =>
      preview({ how }, how === "undo" ? "Undo the last operation" : "Redo the last undo"));
  }
  if (takeToken() === null) {
    connected("No token: open the address that weakfs serve printed");
    return;
  }
  follow();
}
