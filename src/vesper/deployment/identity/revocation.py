"""List of revoked certificates: fingerprints of public keys, one per line.

    # the bank's old laptop
    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

These are the fingerprints that `vesper cert request` and `vesper cert approve` print. The file is
read at every connection. A list that cannot be read admits nobody: it may name anyone.
"""

import re
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from vesper.deployment.identity.request import fingerprint_of
from vesper.errors import InputError

_FINGERPRINT = re.compile("[0-9a-f]{64}")
MAX_LIST_BYTES = 1 << 22


def read_revoked(path: Path | None) -> frozenset[str]:
    """Read the list; None is an empty one.

    Raises:
        InputError: it cannot be read, or a line is not a fingerprint.
    """
    if path is None:
        return frozenset()
    try:
        with path.open("rb") as file:
            content = file.read(MAX_LIST_BYTES + 1)
        lines = content.decode("ascii").splitlines()
    except OSError as error:
        raise InputError(
            f"{path}: the list of revoked certificates cannot be read ({error.strerror}); restore "
            f"it, or remove tls.revoked"
        ) from None
    except UnicodeDecodeError:
        lines = ["not ASCII"]
    entries = [line.partition("#")[0].strip().lower() for line in lines]
    for number, entry in enumerate(entries, start=1):
        if len(content) > MAX_LIST_BYTES or (entry and not _FINGERPRINT.fullmatch(entry)):
            raise InputError(
                f"{path}, line {number}: expected the fingerprint of a certificate (64 hexadecimal "
                f"digits) or a comment (#), found something else"
            )
    return frozenset(filter(None, entries))


def is_revoked(certificate: x509.Certificate, path: Path | None) -> bool:
    """Whether a certificate is on the list.

    Raises:
        InputError: the list cannot be read.
    """
    revoked, key = read_revoked(path), certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return bool(revoked)  # no party of ours has such a key
    return fingerprint_of(key) in revoked
