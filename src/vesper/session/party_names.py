"""Names of parties and hosts in certificates, which can never be mistaken for each other.

    party   one word: letters, digits, hyphens     platform, bank-2
    host    a name with a dot, an IP address, or localhost

A party is identified by its name; hosts are for people who inspect a certificate with other tools.
As no host is a single word except localhost, which no party may be called, nobody can become
`platform` by requesting a host of that name.
"""

import ipaddress
import re

_WORD = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PARTY = re.compile(_WORD, flags=re.ASCII)
_HOST = re.compile(rf"{_WORD}(?:\.{_WORD})+", flags=re.ASCII)


def party_name(text: str) -> str:
    """Check the name of a party and return it.

    >>> party_name("bank-2")
    'bank-2'

    Raises:
        ValueError: it cannot be the name of a party.
    """
    if not _PARTY.fullmatch(text) or text == "localhost":
        raise ValueError(
            "expected one word of at most 63 lower-case letters, digits and hyphens, such as "
            "'platform'"
        )
    return text


def host_name(text: str) -> str:
    """Check a host and return it.

    Raises:
        ValueError: it is neither a name with a dot, nor an IP address, nor localhost.
    """
    if text == "localhost" or is_ip(text) or (len(text) < 254 and _HOST.fullmatch(text)):
        return text
    raise ValueError(
        "expected an IP address or a lower-case name with a dot, such as 'db.bank.example'"
    )


def is_ip(text: str) -> bool:
    """Whether a host is an IP address.

    >>> is_ip("::1"), is_ip("10.0.0.1"), is_ip("bank.example")
    (True, True, False)
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a scope id means something on one machine only
