"""Mem-Gallery's public layout: one JSON file per dialogue under ``dialog/``, images under ``image/``.

    <root>/dialog/<dialogue>.json
        multi_session_dialogues: [{session_id, date, dialogues: [{round, user, assistant,
                                   image_id: [..], input_image: [..], image_caption: [..]}]}]
        human-annotated QAs:     [{point, question, answer, clue: [..], question_image, image_caption}]
    <root>/image/<dialogue>/...

A round names its images by three lists of equal length; a round without images has none of them. ``image_caption``
may be left out (no captions). Image paths are relative to ``dialog/``. The file's stem is the history's id,
``<stem>:<position>`` (from 0) a question's, the image file's stem a question image's. Fields not named here are ignored.
"""

import logging
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from data.errors import DatasetError, Problem
from data.history import Dataset, History, ImageRef, Question, Round, Session
from data.loaders.reading import Findings, Record, find_image, is_encodable, read_json, shortened

REFUSAL_CATEGORIES = frozenset({"AR", "refusal"})
"""Categories whose gold answer is always a refusal: the benchmark's code, and the generated sample's."""

_IMAGE_FIELDS = ("image_id", "input_image", "image_caption")

logger = logging.getLogger(__name__)


def load_mem_gallery(root: Path) -> Dataset:
    """Load every dialogue under ``root``; the dataset is named after the folder.

    Images whose file is absent get ``path=None``; a warning says how many, and `Dataset.n_missing_images` counts them.

    Raises:
        DatasetError: anything is wrong in any file; it lists every problem of all files.
    """
    problems: list[Problem] = []
    histories: list[History] = []
    questions: list[Question] = []
    for path in _dialogue_files(root, problems):
        reader = _DialogueReader(path, root.resolve(), Findings(f"dialog/{path.name}"))
        history, its_questions = reader.read()
        problems.extend(reader.findings.problems)
        histories.append(history)
        questions.extend(its_questions)
    if problems:
        raise DatasetError(root, problems)
    dataset = Dataset(root.resolve().name, tuple(histories), tuple(questions), REFUSAL_CATEGORIES)
    if dataset.n_missing_images:
        logger.warning("%s: %d of %d images have no file; their captions are used", root, dataset.n_missing_images, dataset.n_images)
    return dataset


def _dialogue_files(root: Path, problems: list[Problem]) -> list[Path]:
    folder = root / "dialog"
    if not root.is_dir():
        problems.append(Problem("", "", "the dataset folder does not exist", "give the folder that holds dialog/ and image/"))
    elif not folder.is_dir():
        problems.append(Problem("", "", "has no folder dialog/", "give the folder that holds dialog/ and image/"))
    else:
        files = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
        for path in files:
            if not is_encodable(path.name):
                problems.append(Problem("", "", "the file name is not UTF-8", "rename the file", file=ascii(f"dialog/{path.name}")))
        if not files:
            problems.append(Problem("", "", "no dialogue file (*.json) in it", "put one JSON file per dialogue there", file="dialog"))
        return [path for path in files if is_encodable(path.name)]
    return []


@dataclass
class _FirstUses:
    """Ids of one kind (session, round, image) and the record that used each first."""

    kind: str
    first: dict[str, str] = field(default_factory=dict)

    def check(self, record: Record, field: str, used_id: str) -> None:
        """Note an id that was used before; "" stands for an id already noted as bad."""
        if used_id in self.first:
            what = f"{self.kind} id {shortened(used_id)} was already used by {self.first[used_id]}"
            record.findings.note(record.name, field, what, f"give every {self.kind} of a dialogue its own id")
        elif used_id:
            self.first[used_id] = record.name


class _DialogueReader:
    """Reads one dialogue file into a history and its questions, noting every problem."""

    def __init__(self, path: Path, root: Path, findings: Findings) -> None:
        self.path = path
        self.root = root
        self.findings = findings
        self.history_id = path.stem
        self.session_ids, self.round_ids, self.image_ids = _FirstUses("session"), _FirstUses("round"), _FirstUses("image")
        self.all_rounds_known = True

    def read(self) -> tuple[History, list[Question]]:
        """Return what could be read; it is only sound if no problem was noted."""
        top = read_json(self.path, self.findings)
        if top is None:
            return History(self.history_id, ()), []
        top.name = "dialogue"
        meaning = "a list of at least one session"
        sessions = top.records(
            "multi_session_dialogues",
            meaning=meaning,
            name=lambda i, entry: _named("session", entry.get("session_id"), i),
        )
        self.all_rounds_known &= sessions.complete
        history = History(self.history_id, tuple(self._session(session) for session in sessions.found))
        meaning = "a list of questions ([] if there are none)"
        asked = top.records("human-annotated QAs", meaning=meaning, name=lambda i, _: f"question {i}", may_be_empty=True)
        return history, [self._question(record, i) for i, record in enumerate(asked.found)]

    def _session(self, record: Record) -> Session:
        session_id = record.text("session_id", meaning="the session's id")
        self.session_ids.check(record, "session_id", session_id)
        day = record.text("date", meaning="the session's date as YYYY-MM-DD")
        if day and not _is_iso_date(day):
            record.findings.note(record.name, "date", f"{shortened(day)} is not a date", "write an existing day as YYYY-MM-DD")
        rounds = record.records(
            "dialogues",
            meaning="a list of at least one round",
            name=lambda i, entry: f"{record.name}, {_named('round', entry.get('round'), i)}",
        )
        self.all_rounds_known &= rounds.complete
        return Session(session_id, day, tuple(self._round(entry) for entry in rounds.found))

    def _round(self, record: Record) -> Round:
        round_id = record.text("round", meaning="the round's id")
        self.all_rounds_known &= bool(round_id)
        self.round_ids.check(record, "round", round_id)
        n_before = len(record.findings.problems)
        user = record.text("user", meaning="what the user said", may_be_blank=True)
        assistant = record.text("assistant", meaning="what the assistant said", may_be_blank=True)
        if not (user.strip() or assistant.strip()) and len(record.findings.problems) == n_before:
            record.findings.note(record.name, "user, assistant", "are both empty", "write what was said or remove the round")
        return Round(round_id, user, assistant, self._round_images(record))

    def _round_images(self, record: Record) -> tuple[ImageRef, ...]:
        if not any(name in record.fields for name in _IMAGE_FIELDS):
            return ()
        ids = record.texts("image_id", meaning="the ids of the round's images")
        paths = record.texts("input_image", meaning="the paths of the round's images, relative to dialog/")
        captions: list[str] | None = [""] * len(ids or ())
        if "image_caption" in record.fields:
            captions = record.texts("image_caption", meaning='the captions of the round\'s images ("" for none)', may_be_blank=True)
        for image_id in ids or ():
            self.image_ids.check(record, "image_id", image_id)
        found = [self._find(path, record, "input_image") for path in paths or ()]
        if ids is None or paths is None or captions is None:
            return ()
        if not len(ids) == len(paths) == len(captions):
            what = f"the lists have {len(ids)}, {len(paths)} and {len(captions)} entries"
            record.findings.note(record.name, ", ".join(_IMAGE_FIELDS), what, "write one id, one path and one caption per image")
            return ()
        return tuple(ImageRef(*parts) for parts in zip(ids, found, captions, strict=True))

    def _question(self, record: Record, index: int) -> Question:
        text = record.text("question", meaning="the question")
        answer = record.text("answer", meaning="the gold answer")
        category = record.text("point", meaning="the question's category")
        clues = record.texts("clue", meaning="the ids of the rounds that hold the evidence ([] for none)") or []
        for i, clue in enumerate(clues):
            if clue and clue in clues[:i]:
                record.findings.note(record.name, "clue", f"names round {shortened(clue)} twice", "name each round once")
            elif clue and clue not in self.round_ids.first and self.all_rounds_known:
                what = f"names round {shortened(clue)}, which the dialogue does not have"
                record.findings.note(record.name, "clue", what, "name one of the dialogue's rounds or remove the entry")
        images: tuple[ImageRef, ...] = ()
        if "question_image" in record.fields:
            path = record.text("question_image", meaning="the path of the question's image, relative to dialog/")
            caption = ""
            if "image_caption" in record.fields:
                caption = record.text("image_caption", meaning='the caption of the question\'s image ("" for none)', may_be_blank=True)
            images = (ImageRef(Path(path).stem, self._find(path, record, "question_image"), caption),)
        return Question(f"{self.history_id}:{index}", self.history_id, text, answer, category, tuple(clues), images)

    def _find(self, written: str, record: Record, field: str) -> Path | None:
        if not written:  # already noted
            return None
        return find_image(written, base=self.root / "dialog", root=self.root, record=record, field=field)


def _named(kind: str, own_id: object, index: int) -> str:
    if not isinstance(own_id, str) or not own_id.strip():
        return f"{kind} number {index + 1}"
    return f"{kind} {own_id if own_id.isprintable() and len(own_id) <= 80 else shortened(own_id)}"


def _is_iso_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
