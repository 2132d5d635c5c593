"""Secrets in addresses: whether a text has one, and the same text without it.

A password before an @ and a parameter whose name says so (`pwd`, `access_token`) are secrets for certain. Any other
parameter of an address may be one, unless its name is known (`PLAIN`): it is not shown and not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote, unquote_plus

MASK = "***"
SECRET = re.compile(
    r"pass|pwd|pw$|secret|token|key$|auth(?!ors?$)|sig$|signature|credential|session|sid$|jwt|bearer|otp$|cookie"
)
PLAIN = re.compile(
    # the SPARQL protocol and common servers
    r"(default|named|using|using-named)-graph-uri|graph|context|format|output|results|timeout|limit|infer(ence)?"
    r"|reasoning|repo(sitory)?|dataset|database|db|catalog|namespace|version|lang|charset"
    # libpq
    r"|host(addr)?|port|dbname|user|passfile|require_auth|channel_binding|connect_timeout|client_encoding|options"
    r"|(fallback_)?application_name|keepalives(_idle|_interval|_count)?|tcp_user_timeout|replication|gssencmode|requiressl"
    r"|ssl(mode|negotiation|compression|cert|key|certmode|rootcert|crl|crldir|sni)|requirepeer|krbsrvname|gsslib"
    r"|(ssl_)?(min|max)_protocol_version|gssdelegation|service|target_session_attrs|load_balance_hosts"
)
"""The names of parameters that hold no secret."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"']+")
LOGIN = re.compile(r"//([^/?\s]*)@")
AFTER_PORT = re.compile(r"//[^/?#@]*:[^/?#@]*/[^?#]*@")  # a password with a slash in it looks like a port and a path
PARAMETER = re.compile(r"([?&;#\s:,])([^=&;#?\s:,/@]+)=([^&;#\s]*)")
UNNAMED = re.compile(r"([?&])([^=&;#\s]+)(?=[&;#\s]|$)")
LEAST_HIDDEN = 4  # characters: shorter values are not looked for in what others say


def has_secret(address: str) -> bool:
    """Whether an address has a password before an @, or a parameter whose name says that it is a secret."""
    logins = LOGIN.findall(address) + LOGIN.findall(unquote(address.partition("?")[2]))
    if any(":" in unquote(login) for login in logins) or AFTER_PORT.search(address):
        return True
    return any(_is_secret(name) for _, name, _ in PARAMETER.findall(address))


def redacted(text: str) -> str:
    """Return any text without what is certainly a secret in the addresses in it."""
    if "@" not in text and "=" not in text:
        return text
    return URL.sub(lambda found: _masked(found[0], _is_secret), text)


def redacted_address(address: str) -> str:
    """Return an address without anything that may be a secret."""
    return UNNAMED.sub(rf"\1{MASK}", _masked(address, _may_be_secret))


def without_values(text: str, address: str) -> str:
    """Return what a server or a library says about an address, without the parts that may be secret."""
    given = [value for _, name, value in PARAMETER.findall(address) if _may_be_secret(name)]
    given += [value for _, value in UNNAMED.findall(address)]
    hidden = {form for value in given for form in (value, unquote_plus(value)) if len(form) >= LEAST_HIDDEN}
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, MASK)
    return redacted(text)


def _masked(address: str, is_hidden: Callable[[str], bool]) -> str:
    on_the_web = re.match(r"(sparql:)?https?:", address, re.IGNORECASE)
    address = AFTER_PORT.sub(f"//{MASK}@", address)
    address = LOGIN.sub(lambda found: f"//{MASK}@" if on_the_web or ":" in unquote(found[1]) else found[0], address)

    def masked(found: re.Match[str]) -> str:
        start, name, value = found.groups()
        return f"{start}{name}={MASK}" if is_hidden(name) or LOGIN.search(unquote(value)) else found[0]

    return PARAMETER.sub(masked, address)


def _is_secret(name: str) -> bool:
    plain = unquote_plus(name).lower()
    return not PLAIN.fullmatch(plain) and SECRET.search(re.sub("[^a-z]", "", plain)) is not None


def _may_be_secret(name: str) -> bool:
    return PLAIN.fullmatch(unquote_plus(name).lower()) is None
