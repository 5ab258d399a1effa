"""The data model: what a benchmark's files become, whatever their format.

Every id is an opaque string: nothing in the framework parses one. All classes are frozen; the loaders check
their invariants once, so the rest of the code may rely on them:

* session, round and image ids are unique inside a history, history ids inside a dataset;
* ``Question.clue_round_ids`` name rounds of the question's own history.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class ImageRef:
    """An image that a round or a question mentions. ``path`` is None when the file is absent; ``caption`` may be ""."""

    id: str
    path: Path | None
    caption: str


@dataclass(frozen=True)
class Round:
    """One exchange between the user and the assistant, with the images shared in it."""

    id: str
    user: str
    assistant: str
    images: tuple[ImageRef, ...] = ()


@dataclass(frozen=True)
class Session:
    """A run of rounds on one date (ISO ``YYYY-MM-DD``, or "" where the benchmark gives none)."""

    id: str
    date: str
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class History:
    """Everything one user and the assistant said, in file order (which is taken as time order)."""

    id: str
    sessions: tuple[Session, ...]

    @property
    def rounds(self) -> Iterator[Round]:
        """All rounds in order, across sessions."""
        return (round_ for session in self.sessions for round_ in session.rounds)

    @property
    def images(self) -> Iterator[ImageRef]:
        """All images of all rounds, in order."""
        return (image for round_ in self.rounds for image in round_.images)


@dataclass(frozen=True)
class Question:
    """A question about one history, with its gold answer and the rounds that hold the evidence (may be empty)."""

    id: str
    history_id: str
    text: str
    answer: str
    category: str
    clue_round_ids: tuple[str, ...] = ()
    images: tuple[ImageRef, ...] = ()

    @property
    def retrieval_text(self) -> str:
        """What is embedded to retrieve memories: the question, then its images' captions, one a line."""
        return "\n".join([self.text, *(image.caption for image in self.images if image.caption)])


@dataclass(frozen=True)
class Dataset:
    """A loaded benchmark: its histories and questions, in file order.

    ``refusal_categories`` names the categories whose gold answer is always a refusal (Mem-Gallery's AR); they are
    evaluated apart and by default not trained on.
    """

    name: str
    histories: tuple[History, ...]
    questions: tuple[Question, ...]
    refusal_categories: frozenset[str] = frozenset()

    @property
    def n_images(self) -> int:
        """How many images the rounds and questions mention."""
        return sum(1 for _ in self._images())

    @property
    def n_missing_images(self) -> int:
        """How many of those have no file."""
        return sum(1 for image in self._images() if image.path is None)

    def _images(self) -> Iterator[ImageRef]:
        for history in self.histories:
            yield from history.images
        for question in self.questions:
            yield from question.images

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) over every text, id and image file of the dataset; image files count by their bytes."""
        digest = hashlib.sha256()
        for history in self.histories:
            digest.update(history_hash(history).encode())
        for question in self.questions:
            fields = [question.id, question.history_id, question.text, question.answer, question.category]
            digest.update(json.dumps([*fields, question.clue_round_ids]).encode())
            digest.update(_image_hashes(question.images))
        return digest.hexdigest()


def history_hash(history: History) -> str:
    """SHA-256 (hex) over one history: ids, dates, texts, captions and the bytes of its image files."""
    digest = hashlib.sha256(history.id.encode())
    for session in history.sessions:
        digest.update(json.dumps([session.id, session.date]).encode())
        for round_ in session.rounds:
            digest.update(json.dumps([round_.id, round_.user, round_.assistant]).encode())
            digest.update(_image_hashes(round_.images))
    return digest.hexdigest()


def _image_hashes(images: tuple[ImageRef, ...]) -> bytes:
    rows = []
    for image in images:
        content = "" if image.path is None else hashlib.sha256(image.path.read_bytes()).hexdigest()
        rows.append([image.id, image.caption, content])
    return json.dumps(rows).encode()
