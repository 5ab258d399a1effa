"""Reading pictures: recognised lines, layout, captions, grounding, and which picture a question's picture is."""

import json
from pathlib import Path

import pytest

from data.images import Picture, load_picture
from models.embedded.caption import caption
from models.embedded.ground import ground
from models.embedded.layout import layout_of
from models.embedded.ocr import Line, TextReader, rows_of
from models.embedded.pictures import PictureMatcher
from models.encoders.efficientnet import EfficientNetLite0
from models.store import ContentStore
from models.tasks.hive import CaptionInputs, GroundInputs, parse_ground
from tests.pictures import draw_lines

BOARD = ["POOL REPORT", "Water depth: 3.4 m", "Visitors: 61", "Chlorine level: 0.72 mg"]


@pytest.fixture(scope="module")
def store() -> ContentStore:
    return ContentStore(None)


@pytest.fixture(scope="module")
def reader(store: ContentStore) -> TextReader:
    return TextReader(store)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Picture:
    return draw_lines(tmp_path_factory.mktemp("boards") / "board.png", BOARD)


def test_every_line_is_read_exactly_and_in_order(reader: TextReader, board: Picture) -> None:
    lines = reader.lines(board)
    assert [line.text for line in lines] == BOARD
    for row, line in enumerate(lines):  # the fixture draws line r at x 12, y 10 + 34 r with a 20-pixel font
        left, top, right, bottom = line.box
        assert abs(left - 12) <= 6 and abs(top - (10 + 34 * row)) <= 8 and 14 <= bottom - top <= 34 and right < board.width


def test_a_picture_is_recognised_once_per_content(
    store: ContentStore, reader: TextReader, board: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reader.lines(board)
    copy = tmp_path / "elsewhere.png"
    copy.write_bytes(board.path.read_bytes())

    def fail(self: TextReader, picture: Picture) -> tuple[Line, ...]:
        raise AssertionError("recognised again")

    monkeypatch.setattr(TextReader, "_read", fail)
    assert TextReader(store).lines(load_picture(copy)) == first
    with pytest.raises(AssertionError, match="recognised again"):
        TextReader(ContentStore(None)).lines(board)


def _line(text: str, left: int, top: int, height: int = 20) -> Line:
    return Line(text, (left, top, left + 10 * len(text), top + height))


def test_pieces_beside_each_other_are_one_row() -> None:
    lines = [_line("61", 200, 52), _line("Visitors", 10, 50), _line("Depth", 10, 90)]
    assert [[line.text for line in row] for row in rows_of(lines)] == [["Visitors", "61"], ["Depth"]]


@pytest.mark.parametrize(
    ("lines", "title", "rows"),
    [
        # label and value as separate pieces, with and without a colon
        ([_line("Pool", 10, 5, 30), _line("Visitors:", 10, 50), _line("61", 200, 50)], "Pool", [("Visitors", "61")]),
        ([_line("Lido Kiosk", 10, 5), _line("Iced tea", 10, 50), _line("3.20 EUR", 200, 50)], "Lido Kiosk", [("Iced tea", "3.20 EUR")]),
        # the first row is a label with its value: there is no title
        ([_line("Depth: 3 m", 10, 5), _line("Visitors: 61", 10, 50)], "", [("Depth", "3 m"), ("Visitors", "61")]),
        # a value in words
        ([_line("Status board", 10, 5, 30), _line("Gate: closed", 10, 50)], "Status board", [("Gate", "closed")]),
        ([], "", []),
    ],
)
def test_layout_tells_title_labels_and_values(lines: list[Line], title: str, rows: list[tuple[str, str]]) -> None:
    layout = layout_of(tuple(lines))
    assert layout.title == title
    assert [(row.label, row.value) for row in layout.rows] == rows


def test_a_caption_names_the_title_and_neither_labels_nor_values(reader: TextReader, board: Picture) -> None:
    text = caption(CaptionInputs("X", board), reader=reader)
    assert "POOL REPORT" in text
    assert not any(character.isdigit() for character in text)
    assert not any(word in text.casefold() for word in ("depth", "visitors", "chlorine"))


def test_a_picture_without_text_says_so(reader: TextReader, tmp_path: Path) -> None:
    blank = draw_lines(tmp_path / "blank.png", [])
    assert caption(CaptionInputs("X", blank), reader=reader) == "A picture without readable text."
    reply = parse_ground(ground(GroundInputs("X", blank, "user: Look at the pool."), reader=reader))
    assert reply.box is None


def _rows_inside(picture: Picture, box: tuple[float, float, float, float], reader: TextReader) -> set[str]:
    left, top, right, bottom = (side * scale / 1000 for side, scale in zip(box, (picture.width, picture.height) * 2, strict=True))
    return {
        line.text
        for line in reader.lines(picture)
        if line.box[0] >= left - 1 and line.box[1] >= top - 1 and line.box[2] <= right + 1 and line.box[3] <= bottom + 1
    }


def test_the_box_holds_the_rows_that_the_context_names(reader: TextReader, board: Picture) -> None:
    reply = parse_ground(ground(GroundInputs("X", board, "user: How many visitors were there, and the chlorine level?"), reader=reader))
    assert reply.box is not None
    assert _rows_inside(board, reply.box, reader) == {"Visitors: 61", "Chlorine level: 0.72 mg"}


def test_a_context_that_names_only_the_title_gets_all_text(reader: TextReader, board: Picture) -> None:
    reply = parse_ground(ground(GroundInputs("X", board, "user: Here is the report of the pool."), reader=reader))
    assert reply.target == "POOL REPORT" and reply.box is not None
    assert _rows_inside(board, reply.box, reader) == set(BOARD)
    assert (reply.box[2] - reply.box[0]) * (reply.box[3] - reply.box[1]) < 0.7 * 1000 * 1000  # the empty margin is cut off


def test_a_context_about_something_else_gets_no_box(reader: TextReader, board: Picture) -> None:
    assert json.loads(ground(GroundInputs("X", board, "user: We had soup."), reader=reader))["box"] is None


def test_a_part_of_a_picture_is_found_and_a_stranger_is_not(
    store: ContentStore, reader: TextReader, board: Picture, tmp_path: Path
) -> None:
    other = draw_lines(tmp_path / "other.png", ["TRAIN TIMES", "Platform: 9", "Delay: 12 min", "Carriages: 7"])
    stranger = draw_lines(tmp_path / "stranger.png", ["SHOPPING", "Plums: 6", "Bread rolls: 4", "Candles: 2"])
    part = tmp_path / "part.png"
    board.pixels().crop((0, 30, 300, 140)).save(part)
    matcher = PictureMatcher(EfficientNetLite0(store), reader=reader)
    assert matcher.find(load_picture(part), [other, board]) == 1
    assert matcher.find(stranger, [other, board]) is None
    assert matcher.find(stranger, []) is None
