"""Tests of building banks: content, resuming, failing, and growing."""

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops

from data.errors import ImageError
from data.history import History, ImageRef, Round, Session
from memory.bank import MemoryBank
from memory.build import build_bank
from memory.errors import BankError
from models.errors import BackendError, ReplyError
from models.requests import Reply, Request, Usage
from tests.memory.fakes import SETTINGS, HashEncoder, KeywordModel, WordCounter, build, draw, quiet, two_sessions


def _never(requests: Sequence[Request]) -> list[Reply]:
    raise AssertionError(f"{len(requests)} requests were sent")


def test_content(tmp_path: Path) -> None:
    model = KeywordModel()
    bank = build(two_sessions(tmp_path), tmp_path / "banks", model)
    assert [episode.round_ids for episode in bank.episodes] == [("r1", "r2"), ("r3",), ("r4", "r5")]
    first, _, last = bank.episodes
    assert first.raw == (
        "user: I bought a kayak in Amsterdam\n[image img1]\nassistant: What a splendid kayak\n"
        "user: It is for the expedition in September\nassistant: Enjoy the expedition"
    )
    assert (first.session_id, first.date, first.summary) == ("S1", "2031-01-01", "user: I bought a kayak in Amsterdam [image")
    assert first.textual_anchors == {"amsterdam", "splendid", "expedition", "september"}
    assert first.visual_anchors == {"shownimg1"}  # the dataset's caption is hidden behind the pixels
    assert last.visual_anchors == {"shownimg2", "paddle"}  # the caption stands for the missing file
    assert last.textual_anchors == {"expedition", "amsterdam", "tomorrow", "remember", "paddle"}
    assert [(image.id, image.caption) for episode in bank.episodes for image in episode.images] == [
        ("img1", "picture img1"),
        ("img2", "wooden paddles"),
    ]
    assert last.images[0].picture is None and last.images[0].view is None
    assert dict(bank.counts) == {
        **{"episodes": 3, "rounds": 5, "anchors": 10, "edges": 1},
        **{"images": 2, "images_missing": 1, "captions_absent": 0, "views": 1, "views_absent": 0},
    }
    # Shared: amsterdam and expedition, each in two of three episodes: 2 · log(4 / 3).
    assert bank.edges == {(0, 2): pytest.approx(2 * np.log(4 / 3))}
    assert bank.anchors == tuple(sorted(set().union(*(episode.anchor_sets.all for episode in bank.episodes))))
    encoder = HashEncoder()
    np.testing.assert_array_equal(bank.summary_vectors, encoder.encode([episode.summary for episode in bank.episodes]))
    surfaces = {"paddle": "paddles", "amsterdam": "Amsterdam", "september": "September", "remember": "Remember", "welcome": "Welcome"}
    np.testing.assert_array_equal(bank.anchor_vectors, encoder.encode([surfaces.get(anchor, anchor) for anchor in bank.anchors]))


def test_one_call_an_episode_and_two_an_image(tmp_path: Path) -> None:
    model = KeywordModel()
    build(two_sessions(tmp_path), tmp_path / "banks", model)
    assert [request.task for request in model.asked] == ["memorise", "caption", "ground", "memorise", "memorise"]
    assert {request.phase for request in model.asked} == {"build"}
    ground = model.asked[2].inputs
    assert (ground.image_id, ground.context) == ("img1", model.asked[0].inputs.text)
    assert "concealed" not in json.dumps([request.messages for request in model.asked], default=str)


def test_dataset_captions_cost_no_calls(tmp_path: Path) -> None:
    model = KeywordModel()
    bank = build(two_sessions(tmp_path), tmp_path / "banks", model, replace(SETTINGS, captions="dataset"))
    assert "caption" not in [request.task for request in model.asked]
    assert bank.episodes[0].images[0].caption == "concealed"


def test_views_are_cut_from_the_original(tmp_path: Path) -> None:
    history = two_sessions(tmp_path)
    draw(tmp_path / "a.png", 2000, 1000)  # sent at 1448 × 724
    bank = build(history, tmp_path / "banks", KeywordModel(box=(0, 0, 500, 500)))
    image = bank.episodes[0].images[0]
    assert image.picture is not None and image.view is not None
    assert (image.picture.width, image.view.width, image.view.height) == (1448, 1000, 500)
    assert image.view.path.parent == bank.folder / "crops"
    with Image.open(tmp_path / "a.png") as original:
        assert ImageChops.difference(image.view.pixels(), original.crop((0, 0, 1000, 500))).getbbox() is None


@pytest.mark.parametrize("box", [None, (0, 0, 1000, 1000), (2000, 0, 3000, 10)])
def test_unusable_boxes_leave_the_view_out(tmp_path: Path, box: tuple[float, ...] | None) -> None:
    bank = build(two_sessions(tmp_path), tmp_path / "banks", KeywordModel(box=box))
    assert bank.episodes[0].images[0].view is None
    assert (bank.counts["views"], bank.counts["views_absent"]) == (0, 1)


def test_ablations(tmp_path: Path) -> None:
    history, root, model = two_sessions(tmp_path), tmp_path / "banks", KeywordModel()
    assert build(history, root, model, replace(SETTINGS, visual_anchors=False)).episodes[2].visual_anchors == frozenset()
    flat = build(history, root, model, replace(SETTINGS, idf=False))
    assert set(flat.anchor_idf.tolist()) == {1.0} and flat.edges == {(0, 2): 2.0}
    assert build(history, root, model, replace(SETTINGS, visual_visual=True)).visual_visual
    assert build(history, root, model, replace(SETTINGS, k_edge=0)).edges == {}
    assert len(model.asked) == 5  # all four banks from the same five calls


def test_an_unchanged_history_is_opened_not_built(tmp_path: Path) -> None:
    history, root = two_sessions(tmp_path), tmp_path / "banks"
    built = build(history, root, KeywordModel())
    written = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert_equal(build(history, root, _never), built)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == written


def test_everything_that_matters_makes_another_bank(tmp_path: Path) -> None:
    history, root = two_sessions(tmp_path), tmp_path / "banks"
    folders = {build(history, root, KeywordModel()).folder, build(history, root, KeywordModel(), replace(SETTINGS, k_edge=1)).folder}
    renamed = build_bank(
        history,
        root=root,
        generate=KeywordModel().generate,
        counter=WordCounter(),
        encoder=HashEncoder(),
        settings=SETTINGS,
        model_id="other",
        progress=quiet,
    )
    draw(tmp_path / "a.png", 210, 100)
    folders |= {renamed.folder, build(history, root, KeywordModel()).folder}
    assert len(folders) == 4
    assert {folder.name.rpartition("-")[0] for folder in folders} == {"a_dialogue_with_odd_signs-hive"}


def _grown(history: History) -> History:
    new = Session("S3", "2031-03-01", (Round("r6", "The expedition was a splendid adventure", "Congratulations, adventurer"),))
    return replace(history, sessions=(*history.sessions, new))


def test_a_new_session_asks_only_for_itself_and_equals_a_full_rebuild(tmp_path: Path) -> None:
    history, model = two_sessions(tmp_path), KeywordModel()
    build(history, tmp_path / "banks", model)
    before = len(model.asked)
    grown = build(_grown(history), tmp_path / "banks", model)
    assert [request.inputs.text.split("\n")[0] for request in model.asked[before:]] == ["user: The expedition was a splendid adventure"]
    assert_equal(grown, build(_grown(history), tmp_path / "elsewhere", KeywordModel()))
    assert len(grown.edges) == 3


def test_a_changed_round_asks_only_for_its_episode(tmp_path: Path) -> None:
    history, model = two_sessions(tmp_path), KeywordModel()
    build(history, tmp_path / "banks", model)
    before = len(model.asked)
    last = history.sessions[1]
    changed = replace(
        history,
        sessions=(history.sessions[0], replace(last, rounds=(last.rounds[0], replace(last.rounds[1], user="All paddles are lost")))),
    )
    build(changed, tmp_path / "banks", model)
    assert [request.task for request in model.asked[before:]] == ["memorise"]


def assert_equal(one: MemoryBank, other: MemoryBank) -> None:
    """Two banks hold the same, whatever their folders."""
    for mine, theirs in zip(one.episodes, other.episodes, strict=True):
        assert replace(mine, images=()) == replace(theirs, images=())
        for left, right in zip(mine.images, theirs.images, strict=True):
            assert (left.id, left.caption, left.picture) == (right.id, right.caption, right.picture)
            assert (left.view and left.view.sha256) == (right.view and right.view.sha256)
    assert list(one.edges.items()) == list(other.edges.items())
    assert (one.anchors, dict(one.counts), one.encoder_id) == (other.anchors, dict(other.counts), other.encoder_id)
    for name in ("summary_vectors", "anchor_vectors", "anchor_idf"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-6)


def test_bad_images_are_reported_together_before_any_call(tmp_path: Path) -> None:
    history = two_sessions(tmp_path)
    (tmp_path / "a.png").write_bytes(b"not a picture")
    rounds = (Round("r9", "x", "y", (ImageRef("img9", tmp_path / "gone.png", ""),)),)
    history = replace(history, sessions=(*history.sessions, Session("S9", "", rounds)))
    with pytest.raises(ImageError, match=r"(?s)2 unusable image\(s\).*'img1'.*not a readable image.*'img9'.*cannot be read"):
        build(history, tmp_path / "banks", _never)
    assert not (tmp_path / "banks").exists()


def test_bad_replies_are_reported_together_and_nothing_is_left(tmp_path: Path) -> None:
    def broken(requests: Sequence[Request]) -> list[Reply]:
        return [Reply("k", "no JSON" if request.task != "caption" else "fine", Usage(1, 1, 0), 0.0) for request in requests]

    with pytest.raises(
        ReplyError, match=r"(?s)4 unusable replies.*memorise of 0: .*not JSON.*ground of 'img1'.*memorise of 1.*memorise of 2"
    ):
        build(two_sessions(tmp_path), tmp_path / "banks", broken)
    assert [path.name for path in (tmp_path / "banks").iterdir() if not path.name.endswith(".lock")] == []


def test_a_failed_call_leaves_nothing_and_the_next_build_goes_on(tmp_path: Path) -> None:
    history, root, model = two_sessions(tmp_path), tmp_path / "banks", KeywordModel()

    def failing(requests: Sequence[Request]) -> list[Reply]:
        model.generate(requests[:2])
        raise BackendError("the server is gone; start it again")

    with pytest.raises(BackendError, match="server is gone"):
        build(history, root, failing)
    assert [path for path in root.iterdir() if path.is_dir()] == []
    build(history, root, model)
    assert len(model.asked) == 5


def test_what_killed_builds_left_is_removed(tmp_path: Path) -> None:
    history, root = two_sessions(tmp_path), tmp_path / "banks"
    name = build(history, tmp_path / "other", KeywordModel()).folder.name
    leftovers = [root / f".{name}.building-abc", root / ".another-0123456789abcdef.building-abc"]
    for leftover in leftovers:
        leftover.mkdir(parents=True)
        (leftover / "manifest.json").write_text("{}")
    assert build(history, root, KeywordModel()).folder == root / name
    assert [leftover for leftover in leftovers if leftover.exists()] == []


def test_one_of_two_builders_waits_and_asks_nothing(tmp_path: Path) -> None:
    history, root, model = two_sessions(tmp_path), tmp_path / "banks", KeywordModel()
    started, go_on = threading.Event(), threading.Event()

    def slow(requests: Sequence[Request]) -> list[Reply]:
        started.set()
        assert go_on.wait(20)
        return model.generate(requests)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(build, history, root, slow)
        assert started.wait(20)
        second = pool.submit(build, history, root, _never)
        other = build(_grown(history), root, KeywordModel())  # leaves the folder of the running build alone
        go_on.set()
        assert_equal(first.result(), second.result())
    assert sorted(path for path in root.iterdir() if path.is_dir()) == sorted([first.result().folder, other.folder])


def test_an_empty_history_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BankError, match="history 'empty' has no rounds"):
        build(History("empty", (Session("S", "", ()),)), tmp_path / "banks", _never)


def test_progress_ends_where_it_said(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    build_bank(
        two_sessions(tmp_path),
        root=tmp_path / "banks",
        generate=KeywordModel().generate,
        counter=WordCounter(),
        encoder=HashEncoder(),
        settings=SETTINGS,
        model_id="keywords",
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )
    assert told == [("asking the model", 0, 5), ("asking the model", 5, 5), ("embedding", 0, 13), ("embedding", 13, 13)]
