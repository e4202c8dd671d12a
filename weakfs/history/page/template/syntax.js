// Simple colors for source code, one line at a time: comments, strings, numbers and keywords.

const KEYWORDS = new Set(
  ("and as assert async await bool break case catch char class const continue def default del delete do double elif " +
    "else enum except export extends extern false False finally float fn for from func function global go if impl " +
    "implements import in int interface is lambda let long loop match mod module mut namespace new nil None nonlocal " +
    "not null or package pass private protected pub public raise return self static struct super switch this throw " +
    "trait true True try type typedef typeof union unsafe use using var void where while with yield")
    .split(" "),
);
const HASH = new Set("py rb sh bash zsh yaml yml toml pl r mk dockerfile makefile conf cfg ini".split(" "));
const SLASHES = new Set("js mjs ts tsx jsx c h cc cpp hpp rs go java kt swift cs php scala css scss json dart".split(" "));
const MOST_COLORED = 2000;

const TOKEN = {
  hash: /(#.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b\d[\w.]*)|([A-Za-z_]\w*)|[^#"'\dA-Za-z_]+|./g,
  slashes:
    /(\/\/.*$|\/\*.*?(?:\*\/|$)|^\s*\*.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*)|([A-Za-z_$][\w$]*)|[^/"'`\dA-Za-z_$]+|./g,
};

function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const ending = name.slice(name.lastIndexOf(".") + 1);
  return HASH.has(ending) ? "hash" : SLASHES.has(ending) ? "slashes" : null;
}

// Add a line to an element, as text.
function addColored(element, line, language) {
  const text = visible(line);
  if (language === null || text.length > MOST_COLORED) {
    element.append(text);
    return;
  }
  let plain = "";
  for (const found of text.matchAll(TOKEN[language])) {
    const [whole, comment, string, number, word] = found;
    const look = comment ? "comment" : string ? "string" : number ? "number" : KEYWORDS.has(word) ? "keyword" : null;
    if (look === null) {
      plain += whole;
      continue;
    }
    const colored = make("span", { class: look }, whole);
    element.append(plain, colored);
    plain = "";
  }
  element.append(plain);
}
