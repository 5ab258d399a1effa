"""Hostile JSON files, read field by field: every fault is collected with its place and repair instead of raised at the first.

A reader that meets a fault notes it and goes on with a stand-in ("" or nothing), so that one pass finds them all; the
caller raises at the end if anything was noted, and no stand-in ever leaves a loader.
"""

import codecs
import json
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from data.errors import Problem

MAX_FILE_BYTES = 64 * 1000 * 1000
_GIT_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


@dataclass
class Findings:
    """The problems noted so far in one file; ``file`` is its name as problems show it."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    def note(self, record: str, field: str, what: str, repair: str) -> None:
        """Add one problem."""
        self.problems.append(Problem(record, field, what, repair, file=self.file))


@dataclass
class Record:
    """One JSON object under the name that messages use for it, with checked access to its fields."""

    name: str
    fields: dict[str, object]
    findings: Findings

    def text(self, field: str, *, meaning: str, may_be_blank: bool = False) -> str:
        """Return a field that must be a text; "" after noting why it is none. ``meaning`` completes "write …" in the repair."""
        if field not in self.fields:
            self.findings.note(self.name, field, "is missing", f"write {meaning}")
            return ""
        return self._checked_text(self.fields[field], field, meaning, may_be_blank)

    def texts(self, field: str, *, meaning: str, may_be_blank: bool = False) -> list[str] | None:
        """Return a field that must be a list of texts, "" standing in for each bad one; None after noting that it is no list."""
        entries = self._entries(field, meaning)
        if entries is None:
            return None
        return [self._checked_text(entry, f"{field}[{i}]", meaning, may_be_blank) for i, entry in enumerate(entries)]

    def records(self, field: str, *, meaning: str, name: Callable[[int, dict[str, object]], str], may_be_empty: bool = False) -> "Records":
        """Return a field that must be a list of objects, each named by its position and content."""
        entries = self._entries(field, meaning)
        if entries is None:
            return Records([], complete=False)
        if not entries and not may_be_empty:
            self.findings.note(self.name, field, "is empty", f"write {meaning}")
        found, complete = [], True
        for i, entry in enumerate(entries):
            if isinstance(entry, dict):
                found.append(Record(name(i, entry), entry, self.findings))
            else:
                self.findings.note(self.name, f"{field}[{i}]", f"is {_json_name(entry)} instead of an object", f"write {meaning}")
                complete = False
        return Records(found, complete=complete)

    def _entries(self, field: str, meaning: str) -> list[object] | None:
        if field not in self.fields:
            self.findings.note(self.name, field, "is missing", f"write {meaning}")
            return None
        value = self.fields[field]
        if not isinstance(value, list):
            self.findings.note(self.name, field, f"is {_json_name(value)} instead of a list", f"write {meaning}")
            return None
        return value

    def _checked_text(self, value: object, field: str, meaning: str, may_be_blank: bool) -> str:
        if not isinstance(value, str):
            what = f"is {_json_name(value)} instead of a text"
        elif not value.strip() and not may_be_blank:
            what = "is empty"
        elif not is_encodable(value):
            what = f"holds half a character, an unpaired surrogate ({shortened(value)})"
        else:
            return value
        self.findings.note(self.name, field, what, f"write {meaning}")
        return ""


@dataclass(frozen=True)
class Records:
    """The objects of a list; ``complete`` is False when the list or some entry could not be read."""

    found: list[Record]
    complete: bool


def read_json(path: Path, findings: Findings) -> Record | None:
    """Read a UTF-8 file that holds one JSON object; None after noting why that is impossible.

    Keys written twice in one object are noted, and the first value is kept.
    """
    text = _read_text(path, findings)
    if text is None:
        return None

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members: dict[str, object] = {}
        for key, value in pairs:
            if key in members:
                start = f"object that begins with {shortened(pairs[0][0])}: {shortened(pairs[0][1])}"
                findings.note(start, key[:80], "is written twice in one object", "keep one of the two")
            else:
                members[key] = value
        return members

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        findings.note(f"line {error.lineno}, column {error.colno}", "", f"not valid JSON ({error.msg})", "correct the file there")
    except RecursionError:
        findings.note("", "", "lists or objects are nested too deep", "write the layout that this loader describes")
    except ValueError as error:  # a number of thousands of digits
        findings.note("", "", f"not readable as JSON ({error})", "write the layout that this loader describes")
    else:
        if isinstance(value, dict):
            return Record("", value, findings)
        findings.note("top level", "", f"is {_json_name(value)} instead of an object", "write the layout that this loader describes")
    return None


def find_image(written: str, *, base: Path, root: Path, record: Record, field: str) -> Path | None:
    """Resolve an image path written in a dataset file.

    Args:
        written: The path as the file has it, relative to ``base``.
        base: The folder the path starts from, resolved.
        root: The dataset root, resolved; symlinks are followed before the path is compared with it.
        record: Where the path stands, for messages.
        field: The field it stands in, for messages.

    Returns:
        The file, or None when it is absent, is only a Git LFS pointer (a clone without the image data), or is
        refused; a refusal is noted, absence is not.
    """
    try:
        path = (base / written).resolve()
        if not path.is_relative_to(root):
            what, repair = f"{shortened(written)} leaves the dataset root {root}", "keep images under the root, as files and not as links"
        elif path.is_dir():
            what, repair = f"{shortened(written)} is a folder", "write the path of an image file"
        else:
            return path if path.is_file() and not _is_lfs_pointer(path) else None
    except (OSError, RuntimeError, ValueError) as error:  # name too long or not permitted; circular links; a NUL in the path
        what, repair = f"{shortened(written)} cannot be used as a path ({error})", "write the path of an image file"
    record.findings.note(record.name, field, what, repair)
    return None


def shortened(value: object) -> str:
    """Quote a value from a file for a message, cut to about 80 characters."""
    return _SHORT.repr(value)


def is_encodable(text: str) -> bool:
    """Tell whether a text can be written as UTF-8 (one with unpaired surrogates cannot)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_text(path: Path, findings: Findings) -> str | None:
    if not path.is_file():  # a folder, a broken link, or a pipe that would block
        findings.note("", "", "is not a regular file", "put the file itself there")
        return None
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            findings.note("", "", f"has {size} bytes, more than {MAX_FILE_BYTES}", "split the file into several dialogues")
            return None
        content = path.read_bytes()
    except OSError as error:
        findings.note("", "", f"cannot be read ({error.strerror})", "make it a readable file")
        return None
    if content.startswith(codecs.BOM_UTF8):
        findings.note("line 1, column 1", "", "begins with a byte order mark", "save the file as UTF-8 without it")
        content = content[len(codecs.BOM_UTF8) :]
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        findings.note(f"line {line}", "", f"byte {error.start} is not UTF-8", "save the file as UTF-8")
        return None


def _is_lfs_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GIT_LFS_POINTER)) == _GIT_LFS_POINTER


def _json_name(value: object) -> str:
    return _JSON_NAMES[type(value)]


_SHORT = reprlib.Repr()
_SHORT.maxstring = 80
_SHORT.maxother = 80
