"""Source files on disk: read as Python reads them, written back byte-faithfully."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import shutil
import stat
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path

LIMIT = 10_000_000


class UnreadableSource(Exception):
    """A file that cannot be checked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text with its line ends as they are, and what it takes to write it back."""

    path: Path
    text: str
    encoding: str = "utf-8"
    byte_order_mark: bool = False


def read_source(path: Path) -> SourceFile:
    """Read `path`. Raises UnreadableSource: not there, no permission, larger than 10 MB, binary, or not in
    its declared encoding.
    """
    try:
        if path.is_dir():
            raise UnreadableSource(f"{path} is a directory, not a file")
        size = path.stat().st_size
        if size > LIMIT:
            raise UnreadableSource(
                f"{path} has {size:,} bytes; more than {LIMIT:,} are not checked. Exclude it or split it"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"{path} cannot be read: {error.strerror or error}") from error
    return decode_source(path, data)


def decode_source(path: Path, data: bytes) -> SourceFile:
    """Decode `data` by its byte order mark or PEP 263 declaration, UTF-8 without either. Raises
    UnreadableSource.
    """
    if len(data) > LIMIT:
        raise UnreadableSource(f"{path} has {len(data):,} bytes; more than {LIMIT:,} bytes are not checked")
    if b"\0" in data[:8192]:
        raise UnreadableSource(f"{path} is a binary file (it contains null bytes), not Python source")
    marked = data.startswith(codecs.BOM_UTF8)
    try:
        encoding = _declared_encoding(data)
        text = data[len(codecs.BOM_UTF8) if marked else 0 :].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(
            f"{path} is not valid {error.encoding}: byte 0x{data[error.start]:02x} on line {line}. "
            "Save it as UTF-8, or declare its encoding in its first line: # -*- coding: latin-1 -*-"
        ) from error
    except (SyntaxError, LookupError) as error:
        raise UnreadableSource(
            f"{path}: {getattr(error, 'msg', None) or error}. "
            "Declare an encoding that Python knows, or save it as UTF-8"
        ) from error
    return SourceFile(path, text, encoding, marked)


def _declared_encoding(data: bytes) -> str:
    """The encoding of source bytes by PEP 263. Raises SyntaxError for one that does not exist,
    UnicodeDecodeError for UTF-8 that is none.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        # The first lines may simply not be UTF-8; then the byte at fault says more.
        if b"coding" not in data[:500]:
            data.decode("utf-8")
        raise
    return "utf-8" if encoding == "utf-8-sig" else encoding


def write_source(file: SourceFile, text: str) -> None:
    """Replace the file's text in one step; mode, encoding and byte order mark stay, a link keeps pointing to
    its file.

    Raises UnreadableSource where the text cannot be written in the file's encoding, or the file cannot be
    written.
    """
    try:
        data = text.encode(file.encoding)
    except UnicodeEncodeError as error:
        raise UnreadableSource(
            f"{file.path} is declared as {file.encoding}, which has no {text[error.start]!r}; "
            "nothing was written"
        ) from error
    if file.byte_order_mark:
        data = codecs.BOM_UTF8 + data
    target = Path(os.path.realpath(file.path))
    try:
        if not os.access(target, os.W_OK):
            raise UnreadableSource(f"{file.path} is read-only; nothing was written")
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            shutil.copymode(target, name)
            with contextlib.suppress(OSError):
                status = target.stat()
                os.chown(name, status.st_uid, status.st_gid)
                os.chmod(name, stat.S_IMODE(status.st_mode))
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise UnreadableSource(f"{file.path} cannot be written: {error.strerror or error}") from error
