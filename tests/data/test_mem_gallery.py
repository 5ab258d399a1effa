"""The Mem-Gallery loader: what it reads, and that every fault of every file is named at once."""

import json
import logging
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data.errors import DatasetError
from data.history import ImageRef
from data.loaders import reading
from data.loaders.mem_gallery import load_mem_gallery

SHARED = Path(__file__).parents[3] / "shared" / "data" / "mem_gallery"

DIALOGUE: dict[str, Any] = {
    "character_profile": {"name": "Ada Quill"},
    "multi_session_dialogues": [
        {
            "session_id": "D1",
            "date": "2031-04-02",
            "dialogues": [
                {"round": "D1:1", "user": "I planted beans.", "assistant": "Good."},
                {
                    "round": "D1:2",
                    "user": "Two pots.",
                    "assistant": "Nice.",
                    "image_id": ["D1:IMG_001", "D1:IMG_002"],
                    "input_image": ["../image/Beans/D1_IMG_001.png", "../image/Beans/D1_IMG_002.png"],
                    "image_caption": ["A clay pot.", ""],
                },
            ],
        },
        {
            "session_id": "D2",
            "date": "2031-04-01",
            "dialogues": [{"round": "D2:1", "user": "Rain.", "assistant": "Good for beans.", "mood": 3}],
        },
    ],
    "human-annotated QAs": [
        {"point": "FR", "question": "What was planted?", "answer": "Beans.", "session_id": ["D1"], "clue": ["D1:1"]},
        {
            "point": "TTL",
            "question": "What is this?",
            "question_image": "../image/Beans/QA_IMG_001.png",
            "image_caption": "A pot.",
            "answer": "Clay pot.",
            "session_id": ["D1"],
            "clue": ["D1:2", "D1:1"],
        },
        {"point": "AR", "question": "What soil was used?", "answer": "Not mentioned.", "session_id": ["D1"], "clue": []},
    ],
}
SESSIONS, ASKED = "multi_session_dialogues", "human-annotated QAs"


def write_dialogue(root: Path, dialogue: object, name: str = "Beans") -> Path:
    """Write a dialogue and, the first time, the only image file that the dialogue above has."""
    (root / "dialog").mkdir(parents=True, exist_ok=True)
    (root / "image" / "Beans").mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4)).save(root / "image" / "Beans" / "D1_IMG_001.png")
    path = root / "dialog" / f"{name}.json"
    path.write_text(json.dumps(dialogue), encoding="utf-8")
    return path


def problems_of(root: Path) -> list[str]:
    with pytest.raises(DatasetError) as caught:
        load_mem_gallery(root)
    assert f"{len(caught.value.problems)} problem(s)" in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


def test_reads_histories_and_questions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "garden"
    write_dialogue(root, DIALOGUE)
    (root / "dialog" / ".DS_Store").write_bytes(b"\x00\x01")
    (root / "dialog" / "._Beans.json").write_bytes(b"\x00\x05")
    with caplog.at_level(logging.WARNING):
        dataset = load_mem_gallery(root)
    assert dataset.name == "garden"
    (history,) = dataset.histories
    assert history.id == "Beans"
    # the second session is earlier: file order is kept
    assert [(session.id, session.date, len(session.rounds)) for session in history.sessions] == [
        ("D1", "2031-04-02", 2),
        ("D2", "2031-04-01", 1),
    ]
    pots = list(history.rounds)[1]
    assert (pots.id, pots.user, pots.assistant) == ("D1:2", "Two pots.", "Nice.")
    file = (root / "image" / "Beans" / "D1_IMG_001.png").resolve()
    assert pots.images == (ImageRef("D1:IMG_001", file, "A clay pot."), ImageRef("D1:IMG_002", None, ""))
    planted, what, soil = dataset.questions
    assert (planted.id, planted.history_id, planted.category, planted.clue_round_ids) == ("Beans:0", "Beans", "FR", ("D1:1",))
    assert what.images == (ImageRef("QA_IMG_001", None, "A pot."),)
    assert what.clue_round_ids == ("D1:2", "D1:1")
    assert (soil.answer, soil.clue_round_ids, soil.images) == ("Not mentioned.", (), ())
    assert soil.category in dataset.refusal_categories and "refusal" in dataset.refusal_categories
    assert (dataset.n_images, dataset.n_missing_images) == (3, 2)
    assert "2 of 3 images have no file" in caplog.text


def test_captions_and_questions_may_be_left_out(tmp_path: Path) -> None:
    dialogue = deepcopy(DIALOGUE)
    del dialogue[SESSIONS][0]["dialogues"][1]["image_caption"]
    dialogue[SESSIONS][0]["dialogues"][1]["user"] = ""  # only the pictures were sent
    dialogue[ASKED] = []
    write_dialogue(tmp_path, dialogue)
    dataset = load_mem_gallery(tmp_path)
    assert [image.caption for image in dataset.histories[0].images] == ["", ""]
    assert dataset.questions == ()


def test_ids_are_scoped_by_dialogue_and_files_are_sorted(tmp_path: Path) -> None:
    write_dialogue(tmp_path, DIALOGUE)
    write_dialogue(tmp_path, DIALOGUE, name="Apples")
    dataset = load_mem_gallery(tmp_path)
    assert [history.id for history in dataset.histories] == ["Apples", "Beans"]
    assert dataset.questions[3].id == "Beans:0"


def test_a_git_lfs_pointer_is_an_absent_image(tmp_path: Path) -> None:
    write_dialogue(tmp_path, DIALOGUE)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    (tmp_path / "image" / "Beans" / "D1_IMG_001.png").write_text(pointer)
    assert load_mem_gallery(tmp_path).n_missing_images == 3


def session(dialogue: dict[str, Any]) -> dict[str, Any]:
    return dialogue[SESSIONS][0]  # type: ignore[no-any-return]  # JSON


def round_(dialogue: dict[str, Any], index: int) -> dict[str, Any]:
    return session(dialogue)["dialogues"][index]  # type: ignore[no-any-return]  # JSON


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no sessions field": (
        lambda d: d.pop(SESSIONS),
        "dialogue, field 'multi_session_dialogues': is missing. Repair: write a list of at least one",
    ),
    "no questions field": (lambda d: d.pop(ASKED), "dialogue, field 'human-annotated QAs': is missing"),
    "sessions no list": (lambda d: d.update({SESSIONS: {}}), "dialogue, field 'multi_session_dialogues': is an object instead of a list"),
    "session no object": (
        lambda d: d[SESSIONS].append("D3"),
        "dialogue, field 'multi_session_dialogues[2]': is a text instead of an object",
    ),
    "no rounds": (
        lambda d: d[SESSIONS][1].update(dialogues=[]),
        "session D2, field 'dialogues': is empty. Repair: write a list of at least one round",
    ),
    "no session id": (lambda d: session(d).pop("session_id"), "session number 1, field 'session_id': is missing"),
    "same session id": (
        lambda d: d[SESSIONS][1].update(session_id="D1"),
        "session D1, field 'session_id': session id 'D1' was already used by session D1",
    ),
    "no date": (lambda d: session(d).update(date=""), "session D1, field 'date': is empty. Repair: write the session's date as YYYY-MM-DD"),
    "compact date": (lambda d: session(d).update(date="20310402"), "session D1, field 'date': '20310402' is not a date"),
    "impossible date": (lambda d: session(d).update(date="2031-02-30"), "session D1, field 'date': '2031-02-30' is not a date"),
    "round id is null": (lambda d: round_(d, 0).update(round=None), "session D1, round number 1, field 'round': is null instead of a text"),
    "same round id": (
        lambda d: d[SESSIONS][1]["dialogues"][0].update(round="D1:2"),
        "session D2, round D1:2, field 'round': round id 'D1:2' was already used by session D1, round D1:2. Repair: give every round",
    ),
    "text is a number": (lambda d: round_(d, 0).update(user=7), "session D1, round D1:1, field 'user': is a number instead of a text"),
    "no assistant": (lambda d: round_(d, 0).pop("assistant"), "session D1, round D1:1, field 'assistant': is missing"),
    "nothing said": (
        lambda d: round_(d, 0).update(user=" ", assistant=""),
        "session D1, round D1:1, field 'user, assistant': are both empty",
    ),
    "half a character": (lambda d: round_(d, 0).update(user="\ud83d"), "session D1, round D1:1, field 'user': holds half a character"),
    "image lists differ": (
        lambda d: round_(d, 1)["image_id"].append("D1:IMG_003"),
        "session D1, round D1:2, field 'image_id, input_image, image_caption': the lists have 3, 2 and 2 entries. Repair: write one id",
    ),
    "caption lists differ": (lambda d: round_(d, 1)["image_caption"].pop(), "the lists have 2, 2 and 1 entries"),
    "image without path": (lambda d: round_(d, 1).pop("input_image"), "session D1, round D1:2, field 'input_image': is missing"),
    "image id no text": (
        lambda d: round_(d, 1).update(image_id=["x", 5]),
        "session D1, round D1:2, field 'image_id[1]': is a number instead of a text",
    ),
    "same image id": (
        lambda d: round_(d, 1).update(image_id=["x", "x"]),
        "field 'image_id': image id 'x' was already used by session D1, round D1:2",
    ),
    "path leaves the root": (
        lambda d: round_(d, 1).update(input_image=["../image/Beans/D1_IMG_001.png", "../../../etc/passwd"]),
        "session D1, round D1:2, field 'input_image': '../../../etc/passwd' leaves the dataset root",
    ),
    "absolute path": (
        lambda d: d[ASKED][1].update(question_image="/etc/passwd"),
        "question 1, field 'question_image': '/etc/passwd' leaves the dataset root",
    ),
    "path is a folder": (
        lambda d: d[ASKED][1].update(question_image="../image"),
        "question 1, field 'question_image': '../image' is a folder",
    ),
    "path with NUL": (
        lambda d: d[ASKED][1].update(question_image="a\0b"),
        "question 1, field 'question_image': 'a\\x00b' cannot be used as a path",
    ),
    "path too long": (lambda d: d[ASKED][1].update(question_image="a" * 5000), "cannot be used as a path"),
    "unknown clue": (
        lambda d: d[ASKED][0].update(clue=["D9:9"]),
        "question 0, field 'clue': names round 'D9:9', which the dialogue does not have",
    ),
    "same clue twice": (lambda d: d[ASKED][0].update(clue=["D1:1", "D1:1"]), "question 0, field 'clue': names round 'D1:1' twice"),
    "clue no list": (lambda d: d[ASKED][0].update(clue="D1:1"), "question 0, field 'clue': is a text instead of a list"),
    "no gold answer": (lambda d: d[ASKED][2].pop("answer"), "question 2, field 'answer': is missing. Repair: write the gold answer"),
    "blank gold answer": (lambda d: d[ASKED][2].update(answer="  "), "question 2, field 'answer': is empty. Repair: write the gold answer"),
    "blank question": (lambda d: d[ASKED][2].update(question=""), "question 2, field 'question': is empty"),
    "category a list": (lambda d: d[ASKED][2].update(point=["AR"]), "question 2, field 'point': is a list instead of a text"),
    "question image a list": (
        lambda d: d[ASKED][1].update(question_image=["x.png"]),
        "question 1, field 'question_image': is a list instead of a text",
    ),
    "question caption null": (
        lambda d: d[ASKED][1].update(image_caption=None),
        "question 1, field 'image_caption': is null instead of a text",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_once(tmp_path: Path, fault: str) -> None:
    damage, expected = FAULTS[fault]
    dialogue = deepcopy(DIALOGUE)
    damage(dialogue)
    write_dialogue(tmp_path, dialogue)
    (problem,) = problems_of(tmp_path)  # and no other follows from it
    assert problem.startswith("dialog/Beans.json, ")
    assert expected in problem
    assert ". Repair: " in problem


def test_an_empty_history_is_refused(tmp_path: Path) -> None:
    write_dialogue(tmp_path, {SESSIONS: [], ASKED: []})
    (problem,) = problems_of(tmp_path)
    assert "field 'multi_session_dialogues': is empty" in problem


def test_all_faults_of_all_files_come_together(tmp_path: Path) -> None:
    first, second = deepcopy(DIALOGUE), deepcopy(DIALOGUE)
    round_(first, 0).pop("user")
    first[ASKED][0]["clue"] = ["D7:1"]
    session(second)["date"] = "tomorrow"
    write_dialogue(tmp_path, first, name="A")
    write_dialogue(tmp_path, second, name="B")
    (tmp_path / "dialog" / "C.json").write_text("{")
    assert [problem.split(", ")[0] for problem in problems_of(tmp_path)] == ["dialog/A.json"] * 2 + ["dialog/B.json", "dialog/C.json"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{\n "a": 1,\n}', "line 3, column 1: not valid JSON"),
        (b"[]", "top level: is a list instead of an object"),
        (b'{"a": "\xe9"}', "line 1: byte 7 is not UTF-8"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not readable as JSON"),
        (b'{"a":' * 200_000, "nested too deep"),
        (b"", "line 1, column 1: not valid JSON"),
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes, expected: str) -> None:
    write_dialogue(tmp_path, DIALOGUE).write_bytes(content)
    (problem,) = problems_of(tmp_path)
    assert expected in problem


def test_a_byte_order_mark_does_not_hide_other_faults(tmp_path: Path) -> None:
    dialogue = deepcopy(DIALOGUE)
    del dialogue[ASKED][0]["answer"]
    path = write_dialogue(tmp_path, dialogue)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    mark, answer = problems_of(tmp_path)
    assert "begins with a byte order mark" in mark
    assert "question 0, field 'answer': is missing" in answer


def test_a_key_written_twice_is_named(tmp_path: Path) -> None:
    path = write_dialogue(tmp_path, DIALOGUE)
    path.write_text(path.read_text().replace('"user": "Rain."', '"user": "Rain.", "user": "Sun."'))
    (problem,) = problems_of(tmp_path)
    assert "object that begins with 'round': 'D2:1', field 'user': is written twice in one object" in problem


def test_a_file_over_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_dialogue(tmp_path, DIALOGUE)
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", path.stat().st_size - 1)
    (problem,) = problems_of(tmp_path)
    assert f"has {path.stat().st_size} bytes, more than" in problem


def test_missing_folders_and_files(tmp_path: Path) -> None:
    assert "the dataset folder does not exist" in problems_of(tmp_path / "nowhere")[0]
    assert "has no folder dialog/" in problems_of(tmp_path)[0]
    (tmp_path / "dialog").mkdir()
    assert "dialog: no dialogue file (*.json) in it" in problems_of(tmp_path)[0]
    (tmp_path / "dialog" / "A.json").mkdir()
    os.mkfifo(tmp_path / "dialog" / "B.json")
    assert ["is not a regular file" in problem for problem in problems_of(tmp_path)] == [True, True]


def test_links_are_followed_before_the_root_is_compared(tmp_path: Path) -> None:
    root, outside = tmp_path / "set", tmp_path / "secret.png"
    write_dialogue(root, DIALOGUE)
    outside.write_bytes(b"x")
    (root / "image" / "Beans" / "QA_IMG_001.png").symlink_to(outside)
    (root / "image" / "Beans" / "D1_IMG_002.png").symlink_to(root / "image" / "Beans" / "D1_IMG_001.png")
    (problem,) = problems_of(root)
    assert "question 1, field 'question_image'" in problem and "leaves the dataset root" in problem
    (root / "image" / "Beans" / "QA_IMG_001.png").unlink()
    linked = tmp_path / "link"
    linked.symlink_to(root)  # the root itself may be a link
    assert load_mem_gallery(linked).n_missing_images == 1


def test_long_values_and_lists_are_cut_in_the_message(tmp_path: Path) -> None:
    dialogue = deepcopy(DIALOGUE)
    dialogue[ASKED] = [{"point": "FR", "question": "?", "answer": "x", "clue": ["y" * 5000]}] * 300
    write_dialogue(tmp_path, dialogue)
    with pytest.raises(DatasetError) as caught:
        load_mem_gallery(tmp_path)
    assert len(caught.value.problems) == 300
    assert str(caught.value).endswith("... and 100 more")
    assert len(str(caught.value)) < 300 * 200


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared Mem-Gallery dialogues (../shared/data/mem_gallery) are absent")
def test_shared_dialogues(caplog: pytest.LogCaptureFixture) -> None:
    dataset = load_mem_gallery(SHARED)
    # 14 of the 20 public dialogues, counted by summing their rows of the published table
    assert len(dataset.histories) == 14
    assert sum(len(history.sessions) for history in dataset.histories) == 166
    assert sum(1 for history in dataset.histories for _ in history.rounds) == 2703
    assert len(dataset.questions) == 1141
    # 633 images in rounds and 296 of questions, and no file for any of them
    assert (dataset.n_images, dataset.n_missing_images) == (929, 929)
    assert "929 of 929 images have no file" in caplog.text
    assert (
        sum(question.category == "AR" for question in dataset.questions)
        == sum(not question.clue_round_ids for question in dataset.questions)
        == 130
    )
