"""Calls to a Parquet file and back. A file that comes in is hostile until every row of it was checked."""

import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from models.cache.calls import Call, CallCache
from models.cache.contents import Filter, batches
from models.errors import CacheError
from models.reply_schema import json_problem
from models.requests import Phase, content_key

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), float | None: pa.float64()}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], name == "first_token_seconds") for name, kind in Call.__annotations__.items()])
_ROWS_AT_ONCE = 500
_MAX_TEXT = 16 * 1024 * 1024
_MAX_TOKENS = 2**31 - 1
_N_PROBLEMS = 20
_DAY_SECONDS = 86_400


def export_calls(cache: CallCache, path: Path, *, only: Filter) -> int:
    """Write calls to a Parquet file, which appears when it is whole; returns how many.

    Raises:
        CacheError: the cache cannot be read or the file not written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    n_calls = 0
    try:
        with _told(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(aside, SCHEMA, compression="zstd") as writer:
                for calls in batches(cache, only=only):
                    writer.write_table(pa.Table.from_pylist([asdict(call) for call in calls], schema=SCHEMA))
                    n_calls += len(calls)
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return n_calls


def import_calls(cache: CallCache, path: Path) -> tuple[int, int]:
    """Check a whole Parquet file, then store its calls; calls that the cache has stay. Returns (in the file, stored).

    Raises:
        CacheError: the file is no export, or rows of it cannot be; nothing of it is stored then.
    """
    n_calls = sum(len(calls) for calls in _checked(path))
    return n_calls, sum(cache.put(calls, replace=False) for calls in _checked(path))


def _checked(path: Path) -> Iterator[Sequence[Call]]:
    """The calls of a file, in batches; raises at its end if a row cannot be."""
    problems: list[str] = []
    n_wrong = 0
    with _told(path, "read"), pq.ParquetFile(path) as file:
        if not file.schema_arrow.remove_metadata().equals(SCHEMA):
            have = {field.name: str(field.type) for field in file.schema_arrow}
            want = {field.name: str(field.type) for field in SCHEMA}
            wrong = sorted(name for name in have.keys() | want.keys() if have.get(name) != want.get(name))
            names = ", ".join(f"{name}: {have.get(name, 'missing')} for {want.get(name, 'nothing')}" for name in wrong)
            raise CacheError(f"{path} is no export of a call cache (columns: {names or 'order or nullability'}); make one with export")
        first = 0
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            rows = batch.to_pylist()
            found = [(first + place, problem) for place, row in enumerate(rows) for problem in row_problems(row)]
            n_wrong += len({number for number, _ in found})
            problems += [f"  - row {number}: {problem}" for number, problem in found[: _N_PROBLEMS - len(problems)]]
            first += len(rows)
            if not problems:
                yield [Call(**row) for row in rows]
    if problems:
        listed = "\n".join(problems)
        raise CacheError(f"{path}: {n_wrong} of {first} rows cannot be imported, so none is; remove them or export again:\n{listed}")


def row_problems(row: Mapping[str, Any]) -> list[str]:
    """What cannot be in one row of an import, by field."""
    empty = [name for name, value in row.items() if value is None and name != "first_token_seconds"]
    if empty:
        return [f"{name} is empty" for name in empty]
    problems = []
    for name, value in row.items():
        if isinstance(value, str) and (len(value) > _MAX_TEXT or "\0" in value):
            problems.append(f"{name} is over {_MAX_TEXT} characters or holds NUL")
        elif name.endswith("_tokens") and not 0 <= value <= _MAX_TOKENS:
            problems.append(f"{name}={value} must be from 0 to {_MAX_TOKENS}")
        elif name.endswith("seconds") and value is not None and not (math.isfinite(value) and value >= 0):
            problems.append(f"{name}={value} must be a finite number from 0")
    if row["image_tokens"] > row["input_tokens"]:
        problems.append(f"image_tokens={row['image_tokens']} must be part of input_tokens={row['input_tokens']}")
    if not 0 <= row["created"] <= time.time() + _DAY_SECONDS:
        problems.append(f"created={row['created']} is not in the past")
    if row["phase"] not in get_args(Phase):
        problems.append(f"phase={row['phase'][:40]!r} must be one of {', '.join(get_args(Phase))}")
    if not re.fullmatch(r"[a-z0-9_]{1,64}", row["task"]):
        problems.append(f"task={row['task'][:40]!r} must be up to 64 small letters, digits and _")
    return problems or _request_problems(row)


def _request_problems(row: Mapping[str, Any]) -> list[str]:
    """A key is the hash of its request, the request names the model, and the reply fits the request's schema unless it need not."""
    if content_key(row["request"]) != row["key"]:
        return [f"key={row['key'][:80]!r} is not the SHA-256 of the request"]
    try:
        request = json.loads(row["request"])
    except (ValueError, RecursionError) as error:
        return [f"request is not JSON: {error}"]
    if not isinstance(request, dict) or request.keys() - {"lenient"} != {"model", "messages", "decoding", "schema"}:
        return ["request is not an object of model, messages, decoding and schema"]
    if request["model"] != row["model_id"]:
        return [f"request is to {str(request['model'])[:80]!r}, model_id={row['model_id'][:80]!r}"]
    schema = request["schema"]
    if schema is None:
        return []
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [f"request has a schema that is none: {error.message[:200]}"]
    problem = None if request.get("lenient") is True else json_problem(row["reply"], schema)
    return [f"reply {problem}"] if problem else []


@contextmanager
def _told(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise CacheError(f"{path} cannot be {done} ({reason[:300]}); check the path, and that it is a Parquet file") from error
