"""URLs of servers: our own options, and passwords, which are never shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote

# An option is secret if its name contains one of these.
_SECRET = ("password", "secret", "token", "passfile", "credential", "account_key", "access_key", "sas")
_USER = re.compile(r"^([^:/?#]+://)([^/?#@]*)@")


def redacted(url: str) -> str:
    """Return a URL without passwords, wherever in it they are."""
    address, options = _split(url)
    address = _USER.sub(lambda found: f"{found[1]}{found[2].partition(':')[0]}@", address)
    return _join(address, [option for option in options if not _is_secret(option)])


def without_secrets(message: str, url: str) -> str:
    """Return a client's message without the passwords of `url`."""
    address, options = _split(url)
    found = _USER.match(address)
    secrets = [found[2].partition(":")[2]] if found else []
    secrets += [option.partition("=")[2] for option in options if _is_secret(option)]
    for secret in filter(None, {*secrets, *map(unquote, secrets)}):
        message = message.replace(secret, "***")
    return message


def take_options(url: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return a URL without the options of these names, and these options."""
    address, options = _split(url)
    left, taken = list[str](), dict[str, str]()
    for option in options:
        name, _, value = option.partition("=")
        if name in names:
            taken[name] = unquote(value)
        else:
            left.append(option)
    return _join(address, left), taken


def _split(url: str) -> tuple[str, list[str]]:
    address, _, query = url.partition("?")
    return address, [option for option in query.split("&") if option]


def _join(address: str, options: list[str]) -> str:
    return f"{address}?{'&'.join(options)}" if options else address


def _is_secret(option: str) -> bool:
    return any(part in option.partition("=")[0].lower() for part in _SECRET)
