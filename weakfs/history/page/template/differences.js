// How two texts differ, line by line (Myers, "An O(ND) Difference Algorithm"), and patches in the format of `git diff`.

// The maximum number of steps for one comparison; what is not matched by then counts as replaced.
const MOST_STEPS = 4_000_000;
const CONTEXT = 3;

// Return [old start, old end, new start, new end] for each place where two lists of lines differ.
function changesOf(before, after) {
  let start = 0;
  let oldEnd = before.length;
  let newEnd = after.length;
  while (start < oldEnd && start < newEnd && before[start] === after[start]) start++;
  while (oldEnd > start && newEnd > start && before[oldEnd - 1] === after[newEnd - 1]) {
    oldEnd--;
    newEnd--;
  }
  if (start === oldEnd && start === newEnd) return [];
  if (start === oldEnd || start === newEnd) return [[start, oldEnd, start, newEnd]];
  const numbers = new Map();
  const numbered = (lines) =>
    Int32Array.from(lines, (line) => {
      if (!numbers.has(line)) numbers.set(line, numbers.size);
      return numbers.get(line);
    });
  const pairs = matches(numbered(before.slice(start, oldEnd)), numbered(after.slice(start, newEnd)));
  if (pairs === null) return [[start, oldEnd, start, newEnd]];
  const found = [];
  let [x, y] = [0, 0];
  for (const [oldAt, newAt] of [...pairs, [oldEnd - start, newEnd - start]]) {
    if (oldAt > x || newAt > y) found.push([start + x, start + oldAt, start + y, start + newAt]);
    [x, y] = [oldAt + 1, newAt + 1];
  }
  return found;
}

// Return the pairs of equal lines of a shortest difference, or null if it takes too many steps.
function matches(before, after) {
  const [n, m] = [before.length, after.length];
  const furthest = new Int32Array(2 * (n + m) + 3);
  const middle = n + m + 1;
  const trace = [];
  let steps = 0;
  for (let d = 0; d <= n + m; d++) {
    steps += 2 * d + 1;
    if (steps > MOST_STEPS) return null;
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && furthest[middle + k - 1] < furthest[middle + k + 1]);
      let x = isDown ? furthest[middle + k + 1] : furthest[middle + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && before[x] === after[y]) {
        x++;
        y++;
        steps++;
      }
      furthest[middle + k] = x;
      if (x >= n && y >= m) {
        trace.push(furthest.slice(middle - d, middle + d + 1));
        return backwards(trace, n, m);
      }
    }
    trace.push(furthest.slice(middle - d, middle + d + 1));
  }
  return null;
}

function backwards(trace, n, m) {
  const pairs = [];
  let [x, y] = [n, m];
  for (let d = trace.length - 1; d > 0; d--) {
    const before = trace[d - 1];
    const at = (k) => (k < -(d - 1) || k > d - 1 ? -1 : before[k + d - 1]);
    const k = x - y;
    const isDown = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const previous = isDown ? k + 1 : k - 1;
    const fromX = at(previous);
    const fromY = fromX - previous;
    const startX = isDown ? fromX : fromX + 1;
    while (x > startX) pairs.push([--x, --y]);
    [x, y] = [fromX, fromY];
  }
  while (x > 0) pairs.push([--x, --y]);
  return pairs.reverse();
}

// Group changes that are close together into hunks.
function hunksOf(changes) {
  const hunks = [];
  for (const change of changes) {
    const last = hunks.at(-1)?.at(-1);
    if (last && change[0] - last[1] <= 2 * CONTEXT) hunks.at(-1).push(change);
    else hunks.push([change]);
  }
  return hunks;
}

// The lines of a hunk: [sign, line, number in old, number in new].
function* linesOfHunk(hunk, before, after) {
  let at = Math.max(hunk[0][0] - CONTEXT, 0);
  let shift = hunk[0][2] - hunk[0][0];
  for (const [oldStart, oldEnd, newStart, newEnd] of hunk) {
    for (; at < oldStart; at++) yield [" ", before[at], at + 1, at + 1 + shift];
    for (; at < oldEnd; at++) yield ["-", before[at], at + 1, null];
    for (let added = newStart; added < newEnd; added++) yield ["+", after[added], null, added + 1];
    shift = newEnd - oldEnd;
  }
  const end = Math.min(at + CONTEXT, before.length);
  for (; at < end; at++) yield [" ", before[at], at + 1, at + 1 + shift];
}

function rangesOf(hunk, before) {
  const [first, last] = [hunk[0], hunk.at(-1)];
  const start = Math.max(first[0] - CONTEXT, 0);
  const end = Math.min(last[1] + CONTEXT, before.length);
  const newStart = first[2] - (first[0] - start);
  const newEnd = last[3] + (end - last[1]);
  const range = (from, to) => (to - from === 1 ? `${to}` : `${to === from ? from : from + 1},${to - from}`);
  return `@@ -${range(start, end)} +${range(newStart, newEnd)} @@`;
}

// A name as git writes it: in double quotes with escapes if it has special characters.
function quoted(prefix, path) {
  const name = prefix ? prefix + path : path.slice(1);
  if (!/["\\\u0000-\u001f\u007f-\u{10ffff}]/u.test(name)) return name;
  const bytes = [];
  for (const character of name) {
    const code = character.codePointAt(0);
    // Bytes of a name that are not UTF-8 are lone surrogates.
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
    else bytes.push(...new TextEncoder().encode(character));
  }
  const escaped = bytes.map((byte) => {
    if (byte === 34 || byte === 92) return `\\${String.fromCharCode(byte)}`;
    return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`;
  });
  return `"${escaped.join("")}"`;
}

// The patch of one file, which ends with a line break.
function patchOf(file) {
  const source = file.source ?? file.path;
  const [isNew, isGone] = [file.old === undefined, file.new === undefined];
  const [oldName, newName] = [quoted("a", source), quoted("b", file.path)];
  const lines = [`diff --git ${oldName} ${newName}`];
  if (isNew) lines.push(`new file mode ${file.new_mode.toString(8)}`);
  else if (isGone) lines.push(`deleted file mode ${file.old_mode.toString(8)}`);
  else {
    if (file.old_mode !== file.new_mode) {
      lines.push(`old mode ${file.old_mode.toString(8)}`, `new mode ${file.new_mode.toString(8)}`);
    }
    if (source !== file.path) {
      if (file.old === file.new) lines.push("similarity index 100%");
      lines.push(`rename from ${quoted("", source)}`, `rename to ${quoted("", file.path)}`);
    }
  }
  const head = lines.map((line) => line + "\n").join("");
  if (file.old === file.new) return head;
  const names = [isNew ? "/dev/null" : oldName, isGone ? "/dev/null" : newName];
  const [old, now] = [isNew ? "" : exactText(file.old), isGone ? "" : exactText(file.new)];
  if (old === null || now === null) return `${head}Binary files ${names[0]} and ${names[1]} differ\n`;
  const [before, after] = [linesOf(old), linesOf(now)];
  const hunks = hunksOf(changesOf(before, after));
  if (!hunks.length) return head;
  const body = hunks.flatMap((hunk) => [
    rangesOf(hunk, before) + "\n",
    ...Array.from(linesOfHunk(hunk, before, after), ([sign, line]) =>
      line.endsWith("\n") ? sign + line : `${sign}${line}\n\\ No newline at end of file\n`),
  ]);
  return `${head}--- ${names[0]}\n+++ ${names[1]}\n${body.join("")}`;
}

function exactText(number) {
  return whyNot(number) === null ? textOf(number) : null;
}
