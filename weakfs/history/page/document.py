"""The timeline of a session as one self-contained HTML document, without a server or network access."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from weakfs.history.page.contents import PageLimits
from weakfs.history.page.rows import page_data
from weakfs.session import Session

# The parts of the script; later ones use earlier ones.
SCRIPTS = (
    *("contents.js", "differences.js", "syntax.js", "trees.js", "row_list.js", "live.js", "details.js", "page.js"),
)

# Characters that could end the data block or be read as markup, and lone surrogates, which UTF-8 cannot represent.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def timeline_page(session: Session, where: str, *, limits: PageLimits | None = None, with_contents: bool = True) -> str:
    """Return an HTML page of a session's timeline that needs no server and loads nothing.

    `where` is the file or location of the session as typed in a shell, for the commands that the page shows. Without
    `with_contents`, the page has the names of files and the numbers of lines, but no contents. Contents beyond `limits`
    are left out, and the page says how many.

    The page runs one script and allows no other; all data of the session is shown as text.
    """
    data = {**page_data(session, limits=limits, with_contents=with_contents), "where": where}
    return _document(data, connect="'none'")[0]


def live_page() -> tuple[str, str]:
    """Return the page without data, which it requests from its server, and its content security policy."""
    nothing: dict[str, object] = {"rows": [], "forks": [], "contents": [], "left_out": {}}
    return _document({"session": "", "where": "", "is_live": True, **nothing}, connect="'self'")


def _document(data: object, *, connect: str) -> tuple[str, str]:
    style, script = _template("page.css"), "".join(map(_template, SCRIPTS))
    # The script does not use the global scope.
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script, "DATA": embedded(data)}
    return re.sub("@([A-Z]+)@", lambda found: parts[found[1]], _template("page.html")), policy


def embedded(value: object) -> str:
    """Return JSON that is safe in a `script` element: markup characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _template(name: str) -> str:
    return (files("weakfs.history.page") / "template" / name).read_text("utf-8")


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
