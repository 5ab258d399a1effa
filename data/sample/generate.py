"""Write the sample benchmark: generated histories with drawn pictures, in Mem-Gallery's layout (`data.loaders.mem_gallery`).

Everything comes from one seed. A folder is written aside and renamed, so that a reader never meets a half-written one, and
``sample.json`` in it says what it was made from: asking for the same sample again changes nothing.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from PIL import Image

from data.errors import DatasetError, Problem
from data.sample import picture_questions, questions
from data.sample.dialogue import Exchange, write_dialogue
from data.sample.draws import Draws
from data.sample.pictures import Content, draw_picture, make_content, vary_picture
from data.sample.questions import Asked, Maker, Source
from data.sample.vocabulary import FOLDER, Vocabulary, load_vocabulary
from data.sample.world import Share, World, make_world

STAMP = "sample.json"

logger = logging.getLogger(__name__)

QUOTAS: tuple[tuple[Maker, int], ...] = (
    (questions.headline_facts, 19),
    (questions.detail_facts, 12),
    (questions.several_sessions, 5),
    (questions.people_of_two_sessions, 2),
    (questions.latest_values, 3),
    (questions.event_dates, 9),
    (questions.share_dates, 3),
    (questions.event_orders, 3),
    (questions.event_gaps, 2),
    (picture_questions.dashboard_values, 14),
    (picture_questions.other_values, 21),
    (picture_questions.image_subjects, 6),
    (picture_questions.image_labels, 9),
    (picture_questions.image_companions, 1),
    (picture_questions.image_sets, 3),
    (picture_questions.question_images, 12),
    (picture_questions.text_aggregations, 8),
    (picture_questions.pixel_aggregations, 5),
    (questions.conflicts, 6),
    (questions.refusals, 7),
)
"""How many questions of each maker a full history gets; 150 in all."""


@dataclass(frozen=True)
class Stamp:
    """What a sample was made from; ``generator`` is a hash of this package's code and words."""

    seed: int
    n_histories: int
    n_questions: int
    generator: str


def generate_sample(folder: Path, *, seed: int, n_histories: int, n_questions: int) -> None:
    """Write a sample of ``n_histories`` histories with ``n_questions`` questions each into ``folder``.

    A folder that holds the same sample is left alone; one that holds another sample is replaced as a whole.

    Raises:
        DatasetError: the folder holds something else, or a size is out of range.
    """
    vocabulary = load_vocabulary()
    _check_sizes(folder, vocabulary, n_histories=n_histories, n_questions=n_questions)
    stamp = Stamp(seed, n_histories, n_questions, generator_version())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):  # several runs may start on a fresh folder at once
        _replace(folder, stamp, vocabulary)


def _replace(folder: Path, stamp: Stamp, vocabulary: Vocabulary) -> None:
    found = _read_stamp(folder)
    if found == asdict(stamp):
        return
    logger.info(
        "%s: %s the sample, %d histories with %d questions each",
        folder,
        "replacing" if found else "writing",
        stamp.n_histories,
        stamp.n_questions,
    )
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(aside / "new", stamp, vocabulary)
        if folder.exists():
            os.rename(folder, aside / "old")
        os.rename(aside / "new", folder)
    finally:
        shutil.rmtree(aside)


def generator_version() -> str:
    """SHA-256 (hex) over the source and the words of this package."""
    digest = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *FOLDER.glob("*.toml")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _check_sizes(folder: Path, vocabulary: Vocabulary, *, n_histories: int, n_questions: int) -> None:
    most_histories, most_questions = len(vocabulary.pools["personas"]), sum(quota for _, quota in QUOTAS)
    sizes = [("n_histories", n_histories, 1, most_histories), ("n_questions", n_questions, len(QUOTAS), most_questions)]
    wrong = [size for size in sizes if not size[2] <= size[1] <= size[3]]
    problems = [Problem("sample", name, f"is {value}", f"choose a number from {low} to {high}") for name, value, low, high in wrong]
    if problems:
        raise DatasetError(folder, problems)


def _read_stamp(folder: Path) -> dict[str, Any] | None:
    """The stamp of an existing sample, None if there is no folder or an empty one; anything else is not ours to replace."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        if isinstance(stamp, dict) and stamp.keys() == {field.name for field in fields(Stamp)}:
            return stamp
        what = "has other fields than a generated sample's"
    except (OSError, ValueError) as error:
        what = f"cannot be read ({error})"
    raise DatasetError(folder, [Problem(STAMP, "", f"{what}: not a generated sample", "choose another folder, or move this one away")])


def _write(folder: Path, stamp: Stamp, vocabulary: Vocabulary) -> None:
    (folder / "dialog").mkdir(parents=True)
    names: set[str] = set()
    root = np.random.SeedSequence(stamp.seed)
    personas = np.random.default_rng(root.spawn(1)[0]).permutation(np.array(vocabulary.pools["personas"]))
    for name, source in zip(personas, root.spawn(stamp.n_histories), strict=False):
        _write_history(folder, str(name), np.random.default_rng(source), names, stamp.n_questions, vocabulary)
    (folder / STAMP).write_text(json.dumps(asdict(stamp), indent=2) + "\n", encoding="utf-8")


def _write_history(folder: Path, name: str, rng: np.random.Generator, names: set[str], n_questions: int, vocabulary: Vocabulary) -> None:
    draws = Draws(rng, pools=vocabulary.pools, names=names)
    world = make_world(draws, vocabulary=vocabulary, name=name)
    exchanges = write_dialogue(world, draws=draws, vocabulary=vocabulary)
    source = make_source(world, exchanges, draws, vocabulary)
    contents = source.contents
    asked = choose_questions(source, n_questions)
    history_id = f"{name}_{world.persona.surname}"
    images = folder / "image" / history_id
    images.mkdir(parents=True)
    pictures = {content.image_id: draw_picture(content, rng=rng) for content in contents}
    for image_id, picture in pictures.items():
        picture.save(images / f"{image_id.replace(':', '_')}.png")
    entry = {
        "character_profile": _profile(world),
        "multi_session_dialogues": _sessions(world, exchanges, contents, history_id),
        "human-annotated QAs": _questions(asked, source, images, pictures),
    }
    (folder / "dialog" / f"{history_id}.json").write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def make_source(world: World, exchanges: Mapping[str, Exchange], draws: Draws, vocabulary: Vocabulary) -> Source:
    """Draw what the pictures show, so that their values occur nowhere in the text, and gather all that questions need."""
    text = "\n".join([*world.dates, *(f"{exchange.user}\n{exchange.assistant}" for exchange in exchanges.values())])
    contents = []
    for placed in world.rounds:
        if isinstance(placed.what, Share):
            image_id = f"D{placed.session + 1}:IMG_001"
            contents.append(make_content(placed, placed.what, image_id=image_id, draws=draws, text=text, name=world.persona.name))
    captions = "\n".join(content.caption for content in contents)
    return Source(world, tuple(contents), f"{text}\n{captions}", draws, vocabulary)


def choose_questions(source: Source, n_questions: int) -> list[Asked]:
    """Every maker's share of ``n_questions``, at random, without equal texts (question images apart)."""
    total = sum(quota for _, quota in QUOTAS)
    shares = [quota * n_questions / total for _, quota in QUOTAS]
    counts = [max(1, int(share)) for share in shares]
    for place in sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])[: max(0, n_questions - sum(counts))]:
        counts[place] += 1
    while sum(counts) > n_questions:
        counts[counts.index(max(counts))] -= 1
    chosen: list[Asked] = []
    for (maker, _), count in zip(QUOTAS, counts, strict=True):
        seen = {(asked.text, asked.shown) for asked in chosen}
        found = {(asked.text, asked.shown): asked for asked in source.draws.shuffled(maker(source))}
        found = {key: asked for key, asked in found.items() if key not in seen}
        if len(found) < count:
            raise ValueError(f"{maker.__name__} found {len(found)} questions, {count} are wanted: add to the vocabulary")
        chosen += list(found.values())[:count]
    return chosen


def _profile(world: World) -> dict[str, Any]:
    persona = world.persona
    summary = f"{persona.name} {persona.surname} works as a {persona.job} in {persona.town} and tells an assistant about everyday life."
    return {
        "name": f"{persona.name} {persona.surname}",
        "persona_summary": summary,
        "traits": list(persona.traits),
        "conversation_style": "short, concrete, about the day",
    }


def _sessions(world: World, exchanges: dict[str, Exchange], contents: tuple[Content, ...], history_id: str) -> list[dict[str, Any]]:
    shared = {content.placed.round_id: content for content in contents}
    sessions: list[dict[str, Any]] = [{"session_id": f"D{i}", "date": day, "dialogues": []} for i, day in enumerate(world.dates, start=1)]
    for placed in world.rounds:
        exchange = exchanges[placed.round_id]
        entry: dict[str, Any] = {"round": placed.round_id, "user": exchange.user, "assistant": exchange.assistant}
        if placed.round_id in shared:
            content = shared[placed.round_id]
            entry["image_id"] = [content.image_id]
            entry["input_image"] = [f"../image/{history_id}/{content.image_id.replace(':', '_')}.png"]
            entry["image_caption"] = [content.caption]
        sessions[placed.session]["dialogues"].append(entry)
    return sessions


def _questions(asked: list[Asked], source: Source, images: Path, pictures: dict[str, Image.Image]) -> list[dict[str, Any]]:
    entries = []
    n_shown = 0
    captions = {content.image_id: content.caption for content in source.contents}
    for question in asked:
        sessions = sorted({round_id.split(":")[0] for round_id in question.rounds}) or ["D1"]
        entry: dict[str, Any] = {"point": question.category, "question": question.text, "answer": question.answer}
        if question.shown:
            n_shown += 1
            file = f"QA_IMG_{n_shown:03d}.png"
            vary_picture(pictures[question.shown], rng=source.draws.rng).save(images / file)
            entry["question_image"] = f"../image/{images.name}/{file}"
            entry["image_caption"] = f"Part of another photo. {captions[question.shown]}"
        entries.append({**entry, "session_id": sessions, "clue": list(question.rounds)})
    return entries
