"""URLs of servers, with options and with passwords that are never shown, and URLs of folders.

A folder is `folder:PATH`, where the path may be any text, optionally followed by `?durability=power` or another
durability. If the path itself ends like that, an empty `?durability=` is appended.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote

# An option is secret if its name contains one of these.
_SECRET = ("password", "secret", "token", "passfile", "credential", "account_key", "access_key", "sas")
_FOLDER = re.compile(r"folder:(.*?)(?:\?durability=([^?=]*))?", re.DOTALL)
_START = re.compile(r"[^:/?#@]+://")
# Hosts with their ports, the part before the path.
_HOSTS = re.compile(r"(?:\[[^]]*\]|[^:\[\]])*(?::\d*)?(?:,(?:\[[^]]*\]|[^:\[\]])*(?::\d*)?)*")


def folder_url(path: str, durability: str = "") -> str:
    """Return the URL of a folder; the inverse of `split_folder`."""
    url = f"folder:{path}"
    return url if split_folder(url) == (path, durability) else f"{url}?durability={durability}"


def split_folder(url: str) -> tuple[str, str]:
    """Return the path and the durability in the URL of a folder; "" if it states none."""
    found = _FOLDER.fullmatch(url)
    assert found is not None
    return found[1], found[2] or ""


def redacted(url: str) -> str:
    """Return a URL without passwords, wherever they occur in it, even unescaped ones that make it invalid."""
    start, end = _userinfo(url)
    user = url[start:end].partition(":")[0]
    address, options = _split(url[end:])
    return url[:start] + user + _join(address, [option for option in options if not _is_secret(option)])


def without_secrets(message: str, url: str) -> str:
    """Return a client's message without the passwords of `url`."""
    end = _userinfo(url)[1]
    values = [option.partition("=")[2] for option in _split(url[end:])[1] if _is_secret(option)]
    secrets = {_password(url), *values, *map(_password, map(unquote, values))}
    for secret in sorted(filter(None, {*secrets, *map(unquote, secrets)}), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message


def shown_cause(error: Exception, url: str) -> Exception | None:
    """Return a client's error as the cause of ours, unless its message contains a password of `url`."""
    message = f"{error!r} {error}"
    return error if without_secrets(message, url) == message else None


def take_options(url: str, names: Collection[str] | None = None) -> tuple[str, dict[str, str]]:
    """Return a URL without the options that have these names, by default all of them, and those options.

    Raises `ValueError` if it is unclear where its password ends.
    """
    start, end = _userinfo(url)
    if re.search("[/?#@]", url[start:end]):
        raise ValueError(
            f"invalid URL {redacted(url)!r}: a user or password cannot contain '/', '?', '#' or '@'; write %2F, %3F, "
            f"%23 or %40 instead"
        )
    address, options = _split(url)
    left, taken = list[str](), dict[str, str]()
    for option in options:
        name, _, value = option.partition("=")
        if names is None or name in names:
            taken[name] = unquote(value)
        else:
            left.append(option)
    return _join(address, left), taken


def _userinfo(url: str) -> tuple[int, int]:
    """Return where user and password begin and end in a URL: they precede an `@`, and may contain delimiters."""
    found = _START.match(url)
    if found is None:
        return 0, 0
    start = found.end()
    rest = url[start:]
    head, slash, path = rest.partition("/")
    hosts = re.split("[?#]", head)[0]
    if "@" in head:
        return start, start + head.rindex("@")
    if not _HOSTS.fullmatch(hosts):
        return start, start + max(rest.rfind("@"), 0)
    # The text that looks like a port may be the beginning of a password.
    after = f"{head}{slash}{re.split(r'[?#][^?#]*=', path)[0]}"
    return start, start + (after.rindex("@") if ":" in hosts and "@" in after else 0)


def _split(url: str) -> tuple[str, list[str]]:
    address, _, query = url.partition("?")
    return address, [option for option in query.split("&") if option]


def _join(address: str, options: list[str]) -> str:
    return f"{address}?{'&'.join(options)}" if options else address


def _is_secret(option: str) -> bool:
    name, _, value = unquote(option).partition("=")
    # The value may be the URL of a proxy.
    return any(part in name.lower() for part in _SECRET) or _password(value) != ""


def _password(url: str) -> str:
    start, end = _userinfo(url)
    return url[start:end].partition(":")[2]
