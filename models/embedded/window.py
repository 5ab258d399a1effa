"""The engine's reading window: as a small model does, it reads only the first tokens of the evidence it is given.

What follows is not read, though it was sent and is paid for. So showing everything is not free of harm: raw text
of many memories pushes later memories, and the pictures in them, out of the window.
"""

from collections.abc import Callable
from dataclasses import replace

from models.requests import TokenCounter
from models.tasks.answer import AnswerInputs, ShownMemory, ShownPicture, ShownText

WINDOW_TOKENS = 1536
"""Evidence tokens that an answer may rest on."""


def read_window(inputs: AnswerInputs, *, count_text: Callable[[str], int], counter: TokenCounter) -> AnswerInputs:
    """The inputs with their evidence cut to the window: whole lines and whole pictures, in the order shown."""
    left = WINDOW_TOKENS
    memories: list[ShownMemory] = []
    for memory in inputs.memories:
        left -= count_text(memory.line)
        items: list[ShownText | ShownPicture] = []
        for item in memory.items:
            if left < 0:
                break
            if isinstance(item, ShownPicture):
                left -= count_text(item.line) + counter.count_image(item.picture.width, item.picture.height)
                if left >= 0:
                    items.append(item)
                continue
            left -= count_text(f"{item.form}:")
            read = []
            for line in item.text.split("\n"):
                left -= count_text(line)
                if left < 0:
                    break
                read.append(line)
            if read:
                items.append(ShownText(item.form, "\n".join(read)))
        if items:
            memories.append(replace(memory, items=tuple(items)))
        if left < 0:
            break
    return replace(inputs, memories=tuple(memories))
