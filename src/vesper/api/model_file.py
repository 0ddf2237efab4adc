"""File of a fitted model: arrays and facts in one .npz, without pickle.

    facts      JSON: format, version, what is in the file and for whose eyes, digest of the arrays
    others     arrays by name, with a prefix that says whose they are

The file is complete or absent, readable by this user only, and contains no source of noise. A file
that was damaged is refused whatever part of it was hit: zip has checksums of its members, and the
facts have a digest of all arrays and of themselves.
"""

import json
import struct
import zlib
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.files import read_arrays, replace_file
from vesper.version import VERSION

FORMAT = 1
Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    BadZipFile,
    NotImplementedError,  # an unknown way of compression
    RuntimeError,  # an encrypted member
    OverflowError,
    MemoryError,  # a shape that no file could have
    SyntaxError,  # a header that is no Python literal
    TokenError,
    struct.error,
    zlib.error,
)


def digest_of_arrays(arrays: Arrays) -> str:
    """Digest names, types, shapes and values.

    >>> digest_of_arrays({"a": np.zeros(2)}) == digest_of_arrays({"a": np.zeros(3)})
    False
    """
    digest = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes() if array.ndim == 0 else _bytes(array))
    return digest.hexdigest()


def encode_model(facts: Facts, arrays: Arrays) -> bytes:
    """Return the content of the file of a model."""
    whole = {"format": FORMAT, "version": VERSION, **facts, "arrays": digest_of_arrays(arrays)}
    text = json.dumps(whole, indent=1).encode()
    check = np.frombuffer(blake2b(text, digest_size=16).digest(), dtype=np.uint8)
    buffer = BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        **{"facts": np.frombuffer(text, dtype=np.uint8), "facts_digest": check, **arrays},
    )
    return buffer.getvalue()


def decode_model(content: bytes, *, where: str) -> tuple[Facts, Arrays]:
    """Read what `encode_model` returned; `where` names the file in messages.

    Raises:
        InputError: it is not such a file, of another format, or damaged.
    """
    if not content.startswith(b"PK"):
        raise InputError(f"{where}: expected a model saved by vesper, found something else")
    try:
        with ZipFile(BytesIO(content)) as archive:  # checksums first: numpy parses what it reads
            if (broken := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {broken} does not match")
        arrays = read_arrays(content)
        text, check = arrays.pop("facts").tobytes(), arrays.pop("facts_digest").tobytes()
        if blake2b(text, digest_size=16).digest() != check:
            raise ValueError("its description was changed")
        facts = json.loads(text)
        written_as = facts["format"]
        if written_as == FORMAT and facts["arrays"] != digest_of_arrays(arrays):
            raise ValueError("its arrays were changed")
    except DAMAGED as error:
        raise InputError(
            f"{where}: the file of this model is damaged ({str(error) or type(error).__name__}); "
            f"restore it from a copy, or fit again"
        ) from None
    if written_as != FORMAT:
        raise InputError(
            f"{where}: expected format {FORMAT}, found {written_as}, written by vesper "
            f"{facts.get('version')}; this is vesper {VERSION}: load it with that version"
        )
    return facts, arrays


def write_model(path: Path, content: bytes) -> None:
    """Write the file as a whole.

    Raises:
        InputError: it cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def read_model(path: Path) -> bytes:
    """Read the file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: expected the file of a saved model, got '{error.strerror}'; check the path"
        ) from None


def _bytes(array: NDArray[Any]) -> memoryview | bytes:
    values = np.ascontiguousarray(array)
    return values.tobytes() if values.dtype.kind in "US" else values.data
