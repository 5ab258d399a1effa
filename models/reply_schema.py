"""Whether a reply is the JSON that its request asked for."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

# An empty registry: a schema that refers to an address is never fetched.
_NOTHING: Registry[Any] = Registry()


def json_problem(text: str, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``text`` as JSON under ``schema``, in a few words; None if nothing is."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    try:
        breach = best_match(Draft202012Validator(schema, registry=_NOTHING).iter_errors(value))
    except (Unresolvable, RecursionError) as error:
        return f"cannot be checked against its schema: {error}"
    return None if breach is None else f"breaks the schema at {breach.json_path}: {breach.message[:200]}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
