// The files after each row: those after its parent, with what the row changed.

// Assembled trees: by row, from path to [content, mode, blame].
const trees = new Map();
const MOST_TREES = 24;

const keyOf = (filesystem, path) => `${filesystem || ""}\u0000${path}`;
const pathOf = (key) => key.slice(key.indexOf("\u0000") + 1);
const filesystemOf = (key) => key.slice(0, key.indexOf("\u0000"));

// The files after a row; null if they are not known.
function treeAt(number) {
  const chain = [];
  let tree = null;
  for (let at = number; at !== undefined; at = rows[at].parent) {
    if (trees.has(at)) {
      tree = trees.get(at);
      break;
    }
    if (rows[at].state === null) break;
    chain.push(at);
  }
  if (tree === null && !chain.length) return null;
  // The earliest row of the chain lists all files if it has no parent whose files are known.
  tree = new Map(tree ?? []);
  for (const at of chain.reverse()) apply(tree, rows[at]);
  trees.set(number, tree);
  if (trees.size > MOST_TREES) trees.delete(trees.keys().next().value);
  return tree;
}

function apply(tree, row) {
  for (const [filesystem, path, content, mode, blame] of row.state ?? []) {
    if (content === undefined) tree.delete(keyOf(filesystem, path));
    else tree.set(keyOf(filesystem, path), [content, mode, blame]);
  }
  if (row.state !== undefined) return;
  for (const file of row.files ?? []) {
    const old = tree.get(keyOf(file.filesystem, file.source ?? file.path));
    if (file.source !== undefined) tree.delete(keyOf(file.filesystem, file.source));
    if (file.new === undefined) tree.delete(keyOf(file.filesystem, file.path));
    else tree.set(keyOf(file.filesystem, file.path), [file.new, file.new_mode, blameAfter(file.blame, old?.[2])]);
  }
}

function blameAfter(blame, old) {
  if (blame?.same === undefined) return blame;
  const [start, end] = blame.same;
  return [...old.slice(0, start), ...blame.between, ...old.slice(old.length - end)];
}

// How the files after two rows differ, as entries like `files` of a row; null if either is not known.
function differenceOf(one, other) {
  const [before, after] = [treeAt(one), treeAt(other)];
  if (before === null || after === null) return null;
  const found = [];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [old, now] = [before.get(key), after.get(key)];
    if (old && now && old[0] === now[0] && old[1] === now[1]) continue;
    const file = { path: pathOf(key), filesystem: filesystemOf(key) || undefined };
    if (old) [file.old, file.old_mode] = old;
    if (now) [file.new, file.new_mode] = now;
    found.push(file);
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}
