"""What is wrong with a tool call, as a type that says what is allowed."""

from dataclasses import dataclass
from typing import Literal

Code = Literal["unknown_tool", "arguments", "table", "column", "expression", "value", "operator", "budget", "timeout"]


@dataclass
class ToolError(Exception):
    """A call that cannot be run; nothing was changed. ``where`` is the argument's path, ``allowed`` says what would do."""

    code: Code
    where: str
    problem: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; allowed: {self.allowed}" if self.allowed else f"{self.where}: {self.problem}"
