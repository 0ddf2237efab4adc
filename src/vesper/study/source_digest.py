"""Which source made a result."""

import hashlib
from functools import cache
from pathlib import Path

import vesper

PACKAGE = Path(vesper.__file__).parent
MAKES_RESULTS = ("graph", "mechanism", "method", "model", "party", "privacy", "run")


@cache
def code_digest() -> str:
    """Digest of the source that results come from."""
    digest = hashlib.sha256()
    for package in MAKES_RESULTS:
        for path in sorted((PACKAGE / package).rglob("[!.]*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]
