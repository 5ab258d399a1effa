from pathlib import Path

from models.embedded.window import WINDOW_TOKENS, read_window
from models.tasks.answer import AnswerInputs, ShownMemory, ShownPicture, ShownText
from models.tokens import smart_resize_tokens
from tests.pictures import draw_lines


class WordCounter:
    def count_text(self, text: str) -> int:
        return len(text.split())

    def count_image(self, width: int, height: int) -> int:
        return smart_resize_tokens(width, height)


def read(*memories: ShownMemory) -> tuple[ShownMemory, ...]:
    counter = WordCounter()
    return read_window(AnswerInputs("?", (), memories), count_text=counter.count_text, counter=counter).memories


def test_what_fits_is_read_whole(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["one"])
    memory = ShownMemory(1, "2031-01-01", (ShownText("raw", "user: hi\nassistant: hello"), ShownPicture("image", "I1", picture)))
    assert read(memory) == (memory,)


def test_text_is_cut_at_a_line_and_what_follows_is_not_read(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["one"])  # 320 × 240: 80 tokens
    # The heading "[Memory 1] 2031-01-01" has 3 words, the label 1: lines of 100 words fit until 4 + 15 * 100 = 1504.
    line = " ".join(["word"] * 100)
    assert WINDOW_TOKENS == 1536
    long = ShownMemory(1, "2031-01-01", (ShownText("raw", "\n".join([line] * 20)), ShownPicture("image", "I1", picture)))
    after = ShownMemory(2, "2031-01-02", (ShownText("summary", "short"),))
    (shown,) = read(long, after)
    assert shown.items == (ShownText("raw", "\n".join([line] * 15)),)


def test_a_picture_that_does_not_fit_is_not_read(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["one"])
    text = ShownText("raw", "\n".join([" ".join(["word"] * 100)] * 15))  # 1504 with the heading; 32 tokens left, the picture needs 2 + 80
    (shown,) = read(ShownMemory(1, "2031-01-01", (text, ShownPicture("image", "I1", picture))))
    assert shown.items == (text,)
