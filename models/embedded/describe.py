"""The describe task: an extractive description of an episode's events or a topic's episodes."""

from models.embedded.summary import central_sentences
from models.embedded.turns import read_turns
from models.tasks.adamm import DescribeInputs

_WORDS = 70
_MOST_WORDS = 80
_MOST_SENTENCES = 3


def describe(inputs: DescribeInputs) -> str:
    """Describe some parts in their most central sentences, at most three and 80 words in all."""
    sentences = [sentence for part in inputs.parts for sentence in read_turns(part)]
    chosen = central_sentences(sentences, budget=_WORDS, most=_MOST_SENTENCES, count=lambda text: len(text.split()))
    words = " ".join(chosen or inputs.parts).split()
    return " ".join(words[:_MOST_WORDS]) or "Nothing was said."
