from dataclasses import replace
from pathlib import Path

from data.history import Dataset, History, ImageRef, Question, Round, Session, history_hash
from tests.pictures import draw_lines


def small_history(image: Path | None = None) -> History:
    images = (ImageRef("I1", image, "a cup"),)
    return History("h", (Session("S1", "2031-01-01", (Round("R1", "hi", "hello", images), Round("R2", "bye", "see you"))),))


def test_the_hash_sees_texts_captions_and_image_bytes(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["one"]).path
    with_image = small_history(picture)
    hashes = {history_hash(small_history()), history_hash(with_image)}
    draw_lines(picture, ["two"])
    hashes.add(history_hash(with_image))
    session = with_image.sessions[0]
    hashes.add(history_hash(replace(with_image, sessions=(replace(session, date="2031-01-02"),))))
    assert len(hashes) == 4


def test_the_hash_does_not_depend_on_where_the_files_are(tmp_path: Path) -> None:
    first, second = (draw_lines(tmp_path / name / "a.png", ["one"]).path for name in ("x", "y"))
    assert history_hash(small_history(first)) == history_hash(small_history(second))


def test_retrieval_text_has_the_captions_of_the_questions_images() -> None:
    images = (ImageRef("Q", None, "A red boat."), ImageRef("Q2", None, ""))
    assert Question("q", "h", "What is this?", "a boat", "TTL", images=images).retrieval_text == "What is this?\nA red boat."


def test_missing_images_of_rounds_and_questions_are_counted(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["one"]).path
    question = Question("q", "h", "?", "!", "VS", images=(ImageRef("Q", picture, ""),))
    dataset = Dataset("d", (small_history(),), (question,))
    assert (dataset.n_images, dataset.n_missing_images) == (2, 1)
