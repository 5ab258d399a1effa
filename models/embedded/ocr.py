"""Recognised text of pictures, through rapidocr (the only module that imports it)."""

import json
import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from data.images import Picture
from models.encoders.cached import content_key
from models.errors import WeightsError
from models.store import ContentStore

if TYPE_CHECKING:
    from rapidocr import RapidOCR

_SETTINGS: dict[str, Any] = {
    "Global.log_level": "error",
    "Det.limit_type": "max",
    "Det.limit_side_len": 480,
    "EngineConfig.onnxruntime.intra_op_num_threads": 2,
}


_MIN_SIDE = 16
"""The least side, in pixels, of a picture scaled for text detection; the detector cannot take less."""


@dataclass(frozen=True)
class Line:
    """A line of text in a picture; ``box`` is left, top, right, bottom in the sent picture's pixels."""

    text: str
    box: tuple[int, int, int, int]

    @property
    def height(self) -> int:
        """Height of the box in pixels."""
        return self.box[3] - self.box[1]


class TextReader:
    """Reads the text of pictures; every picture's lines are computed once and kept in a `ContentStore`."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._known: dict[str, tuple[Line, ...]] = {}

    @cached_property
    def version(self) -> str:
        """Names the recogniser and its settings."""
        sides = f"{_SETTINGS['Det.limit_type']}{_SETTINGS['Det.limit_side_len']}"
        return f"rapidocr-{version('rapidocr')}-onnxruntime-{version('onnxruntime')}-{sides}-NFKC"

    def lines(self, picture: Picture) -> tuple[Line, ...]:
        """The lines of a picture, from top to bottom, then left to right."""
        key = content_key(picture)
        if key not in self._known:
            namespace = f"lines of {self.version}"
            stored = self._store.get(namespace, [key])
            if key in stored:
                self._known[key] = tuple(Line(text, (box[0], box[1], box[2], box[3])) for text, box in json.loads(stored[key]))
            else:
                self._known[key] = self._read(picture)
                rows = [[line.text, line.box] for line in self._known[key]]
                self._store.put(namespace, {key: json.dumps(rows).encode()})
        return self._known[key]

    @cached_property
    def _engine(self) -> "RapidOCR":
        try:
            from rapidocr import RapidOCR
        except ImportError as error:
            raise WeightsError("rapidocr is not installed: pip install rapidocr onnxruntime") from error
        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        return RapidOCR(params=_SETTINGS)

    def _read(self, picture: Picture) -> tuple[Line, ...]:
        if min(picture.width, picture.height) * _SETTINGS["Det.limit_side_len"] < max(picture.width, picture.height) * _MIN_SIDE:
            return ()  # so long and thin that the detector's copy would have no readable side
        blue_green_red = np.ascontiguousarray(np.asarray(picture.pixels())[:, :, ::-1])
        result: Any = self._engine(blue_green_red, use_cls=False)  # its type depends on the stages run, all of them here
        texts: Sequence[str] = result.txts or ()
        found = []
        for text, corners in zip(texts, result.boxes if texts else (), strict=True):
            left, top = np.floor(corners.min(axis=0)).astype(int).tolist()
            right, bottom = np.ceil(corners.max(axis=0)).astype(int).tolist()
            plain = unicodedata.normalize("NFKC", text).strip()
            if plain:
                found.append(Line(plain, (max(0, left), max(0, top), min(picture.width, right), min(picture.height, bottom))))
        return tuple(line for row in rows_of(found) for line in row)


def rows_of(lines: Sequence[Line]) -> list[tuple[Line, ...]]:
    """Group lines that stand beside each other (their vertical centres within half a line), rows from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.box[1] + line.box[3], line.box[0])):
        centre = (line.box[1] + line.box[3]) / 2
        if rows:
            last = rows[-1][0]
            if abs(centre - (last.box[1] + last.box[3]) / 2) < min(line.height, last.height) / 2:
                rows[-1].append(line)
                continue
        rows.append([line])
    return [tuple(sorted(row, key=lambda line: line.box[0])) for row in rows]
