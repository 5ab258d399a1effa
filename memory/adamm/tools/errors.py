"""What is wrong with a tool call, as a type that says what is allowed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Code = Literal["unknown_tool", "arguments", "table", "column", "expression", "value", "operator", "budget", "timeout"]


@dataclass(eq=False)
class ToolError(Exception):
    """A call that cannot be run; nothing was changed. ``where`` is the argument's path, ``allowed`` says what would do."""

    code: Code
    where: str
    problem: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; allowed: {self.allowed}" if self.allowed else f"{self.where}: {self.problem}"


@contextmanager
def collected(errors: list[ToolError]) -> Iterator[None]:
    """Go on after an error of the block, and keep it."""
    try:
        yield
    except ToolError as error:
        errors.append(error)


def raise_all(errors: Sequence[ToolError]) -> None:
    """Raise one error that names every problem, so that one more try can repair them all; it has the first one's code and place."""
    if not errors:
        return
    first, *others = errors
    problems = [first.problem, *(f"{error.where}: {error.problem}" for error in others)]
    allowed = dict.fromkeys(error.allowed for error in errors if error.allowed)
    raise ToolError(first.code, first.where, "; ".join(problems), "; ".join(allowed))
