"""What people are shown of a memory is what it holds, and nothing that a history says does anything."""

import base64
import io
import re
import unicodedata
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from data.errors import ImageError
from data.history import History, ImageRef
from envs.evaluation.gallery import write_gallery
from envs.evaluation.look import print_memory
from envs.evaluation.losses import losses
from envs.evaluation.schema_log import events_line, table_log
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, SchemaEvent
from memory.bank import MemoryBank
from tests.memory.adamm.fakes import LabelModel, session
from tests.memory.adamm.fakes import build as build_adamm
from tests.memory.fakes import KeywordModel, draw
from tests.memory.fakes import build as build_bank

HOSTILE = '<script>alert(1)</script> [red]x[/red] :smile: \x1b[31m\x07\x9b2J \u202e {{ 7 * 7 }} "><img src=x onerror=y>'
SHOWN = HOSTILE.replace("\x1b", "\\x1b").replace("\x07", "\\x07").replace("\x9b", "\\x9b").replace("\u202e", "\\u202e")
PULSES = ("61 bpm", "64 bpm", "quite slow", "66 bpm", "58 bpm", "60 bpm")


@dataclass(frozen=True)
class Remembered:
    history: History
    bank: MemoryBank
    adamm: AdaMMMemory


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Remembered:
    """Two sessions that log three values a round, hostile in text, ids and captions, with a large picture and one without a file."""
    folder = tmp_path_factory.mktemp("remembered")
    picture = draw(folder / "large.png", 1200, 600)
    lines: list[str | tuple[str, ImageRef]] = [
        f"pulse: {pulse}; rest: {i}.5 h; remark: note {i} {HOSTILE}" for i, pulse in enumerate(PULSES)
    ]
    with_file, without = ImageRef(f"with {HOSTILE}", picture, HOSTILE), ImageRef(f"without {HOSTILE}", None, HOSTILE)
    sessions = (
        session("S1", "2031-01-01", *lines[:4], ("A dashboard, wonderful", with_file)),
        session(f"S2 {HOSTILE}", "", *lines[4:], ("Wonderful as well", without)),
    )
    history = History(f"health {HOSTILE}", sessions)
    return Remembered(history, build_bank(history, folder / "banks", KeywordModel()), build_adamm(history, folder, LabelModel()))


def printed(remembered: Remembered, *, width: int = 200, bank: bool = True, adamm: bool = True) -> list[str]:
    file = io.StringIO()
    print_memory(
        remembered.history,
        bank=remembered.bank if bank else None,
        adamm=remembered.adamm if adamm else None,
        console=Console(file=file, width=width),
    )
    return file.getvalue().splitlines()


class Page(HTMLParser):
    """A page's tags with attributes, its text by the tag that it is in, and its tables' rows; refuses tags that do not pair."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(content)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += f"[{data}]" if self._open[-1] in ("small", "s") else data

    def attributes(self, tag: str, name: str) -> list[str]:
        return [value for found, attributes in self.tags if found == tag for value in [attributes.get(name)] if value is not None]


def page(remembered: Remembered, path: Path, *, bank: bool = True, adamm: bool = True, embedded: bool = True) -> Page:
    parts = {"bank": remembered.bank if bank else None, "adamm": remembered.adamm if adamm else None}
    write_gallery(path, remembered.history, **parts, embedded=embedded)
    return Page(path.read_text(encoding="utf-8"))


def steering(text: str) -> set[str]:
    """The characters that a terminal or a browser would act on."""
    return {mark for mark in text if unicodedata.category(mark) in ("Cc", "Cs") or mark == "\u202e"} - {"\n"}


def test_the_printed_numbers_are_the_banks(remembered: Remembered) -> None:
    lines, bank = printed(remembered, adamm=False), remembered.bank
    assert "2 sessions, 8 rounds, 2 images (1 without a file)" in lines[0]
    assert any(line.startswith(f"HiVe-Mem: {len(bank.episodes)} memory episodes of 2 sessions") for line in lines)
    for episode in bank.episodes:
        (line,) = [line for line in lines if re.match(rf" *{episode.index} (2031|–)", line)]
        numbers = [len(episode.round_ids), len(episode.images), len(episode.anchor_sets.all), len(bank.neighbours[episode.index])]
        assert " ".join(map(str, numbers)) in " ".join(line.split())
        assert episode.summary.split()[0] in line
    assert bank.edges
    (graph,) = [line for line in lines if line.startswith("affinity graph")]
    degrees = [sum(i in edge for edge in bank.edges) for i in range(len(bank.episodes))]
    assert f"{len(bank.edges)} edges, {min(degrees)} to {max(degrees)} an episode" in graph
    assert any(line.startswith(f"anchors: {len(bank.anchors)}, in most episodes: ") for line in lines)
    assert "  1 images have no file: their captions stand for them" in lines


def test_the_printed_numbers_are_adamms(remembered: Remembered) -> None:
    lines, memory = printed(remembered, bank=False), remembered.adamm
    (table,) = memory.tables
    words = [line.split() for line in lines]
    assert f"AdaMM: 1 tables with 6 rows, from {memory.counts['observations']} observations in 8 rounds" in lines
    assert f"{table.name}: 6 rows" in lines
    assert ["pulse", "number", "bpm", "5", "1", "61"] in [found[:6] for found in words]
    assert ["rest", "duration", "h", "6", "0", "0.5"] in [found[:6] for found in words]
    nodes = {level: len(found) for level, found in memory.nodes.items()}
    assert f"{nodes['event']} events (rounds), {nodes['episode']} AdaMM episodes, {nodes['topic']} topics" in "\n".join(lines)
    assert [topic.index for topic in memory.nodes["topic"]] == [
        int(found[0]) for found in words if found[1:2] == ["2031-01-01"] or found[1:2] == ["–"]
    ]
    assert "  1 cells left empty: the value is not of the column's type and unit" in lines
    assert f"  after round {memory.round_ids[4 - 1]}: discovered as pulse, remark, rest (all_conf 1.000)" in lines


def test_every_count_of_a_build_has_its_words(remembered: Remembered) -> None:
    for counts in (remembered.bank.counts, remembered.adamm.counts):
        told = losses(dict.fromkeys(counts, 7))
        assert told
        assert not [words for _, words in told if words in counts]
    assert losses({"images_missing": 0, "rounds": 3, "anything_new": 2}) == [(2, "anything_new")]


def test_what_happened_to_a_schema_is_told(remembered: Remembered) -> None:
    events = (
        SchemaEvent(0, "discovered", 0, ("a", "b"), "all_conf", 0.75),
        SchemaEvent(1, "discovered", 1, ("b", "c"), "all_conf", 0.6),
        SchemaEvent(1, "rejected", 0, ("a", "b", "d"), "ext_conf", 0.5),
        SchemaEvent(2, "rejected", 0, ("a", "b", "e"), "ext_conf", 0.7999),
        SchemaEvent(3, "extended", 0, ("a", "b", "c"), "ext_conf", 0.8),
        SchemaEvent(3, "merged", 1, ("b", "c"), "into", 0.0),
        SchemaEvent(4, "capped", None, (), "tested", 100.0),
    )
    memory = replace(remembered.adamm, schema_events=events, round_ids=tuple("ABCDEFGH"))
    assert table_log(memory, 0) == [
        "after round A: discovered as a, b (all_conf 0.750)",
        "after round D: extended with c (ext_conf 0.800)",
        "after round D: took in the schema of b, c",
        "refused to extend it with 2 sets of attributes; the nearest: e, after round C (ext_conf 0.800)",
    ]
    assert events_line(memory) == "schemas: 2 discovered, 1 extended, 1 merged, 2 rejected, 1 capped"


def test_hostile_text_is_printed_as_it_is_written(remembered: Remembered) -> None:
    odd = replace(remembered.bank.episodes[0], summary="half \ud800\x00 and " + HOSTILE)
    changed = replace(remembered, bank=replace(remembered.bank, episodes=(odd, *remembered.bank.episodes[1:])))
    text = "\n".join(printed(changed, width=400))
    assert not steering(text)
    assert f"health {SHOWN}: 2 sessions" in text
    assert "half \\ud800\\x00 and " + SHOWN in text
    assert f"note 0 {SHOWN}"[:60] in text  # a value of a column


@pytest.mark.parametrize("width", [80, 120])
def test_a_record_is_one_line_however_narrow(remembered: Remembered, width: int) -> None:
    lines = printed(remembered, width=width)
    assert max(map(len, lines)) <= width
    dates = [episode.date for episode in remembered.bank.episodes] + [topic.dates[0] for topic in remembered.adamm.nodes["topic"]]
    starts = [line.split(":")[0] for line in lines]
    assert starts.index("affinity graph") - starts.index("HiVe-Mem") - 3 == len(remembered.bank.episodes)  # after names and a rule
    assert [line.split()[1] for line in lines if re.match(r" *\d+ (2031|–)", line)] == [date or "–" for date in dates]
    assert ["pulse", "number", "bpm", "5", "1"] in [line.split()[:5] for line in lines]


def test_the_page_holds_everything_and_fetches_nothing(remembered: Remembered, tmp_path: Path) -> None:
    shown = page(remembered, tmp_path / "page.html")
    for episode in remembered.bank.episodes:
        assert episode.summary.split()[0] in shown.text
    anchors = [attributes for tag, attributes in shown.tags if tag == "li" and "anchor" in (attributes.get("class") or "")]
    assert len(anchors) == sum(len(e.textual_anchors) + len(e.visual_anchors) for e in remembered.bank.episodes)
    assert [attributes for tag, attributes in shown.tags if attributes.get("class") == "wrong"] == [{"class": "wrong"}]  # "no file"
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/jpeg;base64,")))) for url in shown.attributes("img", "src")
    ]
    assert [picture.size for picture in pictures] == [(320, 160), (320, 320)]  # the picture, and its right half as the view
    red, _, blue = pictures[1].convert("RGB").getpixel((160, 160))  # type: ignore[misc]
    assert blue > 200 > 50 > red
    links, targets = shown.attributes("a", "href"), {attributes.get("id") for _, attributes in shown.tags}
    assert len(links) == 2 + 6 + sum(len(topic.rounds) for topic in remembered.adamm.nodes["topic"])
    assert {link[1:] for link in links} <= targets
    assert {link[0] for link in links} == {"#"}
    assert shown.attributes("meta", "content")[1] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert {tag for tag, _ in shown.tags} & {"script", "link", "iframe", "object", "base", "form"} == set()


def test_the_page_shows_the_tables_rows(remembered: Remembered, tmp_path: Path) -> None:
    heading, *rows = page(remembered, tmp_path / "page.html").rows
    assert heading == ["round", "date", "pulse[number, bpm]", "remark[text]", "rest[duration, h]"]
    (table,) = remembered.adamm.tables
    stored = TableStore(remembered.adamm.folder / DATABASE, timeout_seconds=10).query(
        f'SELECT source, "time", pulse, rest / 3600 FROM induced.{table.name} ORDER BY round_order', ()
    )
    assert [row[:2] for row in rows] == [[source.replace(HOSTILE, SHOWN), day.isoformat() if day else ""] for source, day, _, _ in stored]
    assert [row[2] for row in rows] == ["[quite slow]" if pulse is None else f"{pulse:g} bpm" for _, _, pulse, _ in stored]
    assert [row[4] for row in rows] == [f"{rest:g} h" for *_, rest in stored]
    assert [row[3] for row in rows] == [f"note {i} {SHOWN}" for i in range(6)]


def test_hostile_text_does_nothing_in_the_page(remembered: Remembered, tmp_path: Path) -> None:
    first = remembered.history.sessions[0]
    odd = replace(first, rounds=(replace(first.rounds[0], user="half \ud800 " + HOSTILE), *first.rounds[1:]))
    changed = replace(remembered, history=replace(remembered.history, sessions=(odd, *remembered.history.sessions[1:])))
    shown = page(changed, tmp_path / "page.html")
    assert not steering((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"half \\ud800 {SHOWN}" in shown.text
    assert f"Memory of health {SHOWN}" in shown.text
    assert f"with {SHOWN}: picture with {SHOWN}" in shown.text  # id and caption
    assert f"image with {SHOWN}" in shown.attributes("img", "alt")
    assert not [name for _, attributes in shown.tags for name in attributes if name.startswith("on")]


@pytest.mark.parametrize(("bank", "adamm"), [(False, False), (True, False), (False, True)])
def test_either_part_may_be_missing(remembered: Remembered, tmp_path: Path, bank: bool, adamm: bool) -> None:
    text = "\n".join(printed(remembered, bank=bank, adamm=adamm))
    shown = page(remembered, tmp_path / "page.html", bank=bank, adamm=adamm, embedded=False)
    for name, found in (("HiVe-Mem: ", bank), ("AdaMM: ", adamm)):
        assert (name in text, name in shown.text) == (found, found)
    assert "embedded engine" not in shown.text
    assert ("Memory episode 0" in shown.text, bool(shown.rows)) == (bank, adamm)
    assert len(shown.attributes("img", "src")) == 1 + bank
    assert f"{'picture with' if bank else ''} {SHOWN}".strip() in shown.text  # the remembered caption, else the data's
    assert "Wonderful as well" in shown.text


def test_a_long_table_is_cut_and_says_so(tmp_path: Path) -> None:
    lines = [f"pulse: {i} bpm; rest: 7 h" for i in range(203)]
    history = History("long", (session("S", "2031-01-01", *lines),))
    write_gallery(tmp_path / "page.html", history, bank=None, adamm=build_adamm(history, tmp_path, LabelModel()), embedded=True)
    shown = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [row[2] for row in shown.rows[1:]] == [f"{i} bpm" for i in range(200)]
    assert "The first 200 of 203 rows." in shown.text


def test_an_image_that_has_gone_leaves_the_page_as_it_was(tmp_path: Path) -> None:
    image = ImageRef("I", draw(tmp_path / "a.png", 40, 20), "a board")
    history = History("small", (session("S", "2031-01-01", ("Look", image)),))
    path = tmp_path / "page.html"
    write_gallery(path, history, bank=None, adamm=None, embedded=True)
    before = path.read_bytes()
    (tmp_path / "a.png").unlink()
    with pytest.raises(ImageError, match=r"a\.png"):
        write_gallery(path, history, bank=None, adamm=None, embedded=True)
    assert [path.read_bytes(), sorted(tmp_path.iterdir())] == [before, [path]]
