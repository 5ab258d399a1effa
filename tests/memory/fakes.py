"""Small stand-ins for a model, a tokenizer and an encoder, and a history with drawn images."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from data.history import History, ImageRef, Round, Session
from memory.bank import MemoryBank
from memory.build import build_bank
from memory.settings import BankSettings
from models.requests import Reply, Request, Usage

SETTINGS = BankSettings(episode_tokens=12, k_edge=4, captions="model", visual_anchors=True, idf=True, visual_visual=False)


class WordCounter:
    """One token a word; one token for each 1,000 pixels of a picture, at least one."""

    def count_text(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def count_image(self, width: int, height: int) -> int:
        """Thousands of pixels."""
        return max(1, width * height // 1000)


class HashEncoder:
    """Unit vectors from the hash of a text: equal texts are equal, others are nearly orthogonal."""

    id = "hash-16"
    dimension = 16

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (n, 16) float32, unit norm."""
        rows = [np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])).normal(size=16) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(len(texts), 16)


class KeywordModel:
    """Anchors are the words of seven letters and more; the summary is the first words; boxes are the image's right half.

    Replies are kept by request, as the call cache does, and ``asked`` lists the requests that were not known.
    """

    def __init__(self, box: Sequence[float] | None = (500, 0, 1000, 1000)) -> None:
        self.asked: list[Request] = []
        self._box = box
        self._known: dict[str, Reply] = {}

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer in order."""
        for request in requests:
            key = request.key("keywords")
            if key not in self._known:
                self.asked.append(request)
                self._known[key] = Reply(key, self._answer(request), Usage(1, 1, 0), 0.0)
        return [self._known[request.key("keywords")] for request in requests]

    def _answer(self, request: Request) -> str:
        if request.task == "caption":
            return f" picture {request.inputs.image_id} \n"
        if request.task == "ground":
            return json.dumps({"target": "thing", "box": self._box})
        seen = " ".join(f"shown{image.image_id} {image.caption}" for image in request.inputs.images)
        return json.dumps(
            {
                "summary": " ".join(request.inputs.text.split()[:8]),
                "textual_anchors": re.findall(r"\w{7,}", request.inputs.text.replace("assistant", "")),
                "visual_anchors": re.findall(r"\w{7,}", seen),
            }
        )


def quiet(stage: str, done: int, total: int) -> None:
    """A progress hook that says nothing."""


def build(
    history: History, root: Path, model: KeywordModel | Callable[[Sequence[Request]], list[Reply]], settings: BankSettings = SETTINGS
) -> MemoryBank:
    """`build_bank` with the stand-ins."""
    return build_bank(
        history,
        root=root,
        generate=model.generate if isinstance(model, KeywordModel) else model,
        counter=WordCounter(),
        encoder=HashEncoder(),
        settings=settings,
        model_id="keywords",
        progress=quiet,
    )


def draw(path: Path, width: int, height: int) -> Path:
    """A picture whose left half is red and whose right half is blue, with a green dot that tells the sizes apart."""
    picture = Image.new("RGB", (width, height), "red")
    picture.paste("blue", (width // 2, 0, width, height))
    picture.putpixel((0, 0), (0, 255, 0))
    picture.save(path)
    return path


def two_sessions(folder: Path) -> History:
    """Two sessions of rounds, one image with a file and one without."""
    return History(
        "a dialogue: with / odd * signs",
        (
            Session(
                "S1",
                "2031-01-01",
                (
                    Round(
                        "r1",
                        "I bought a kayak in Amsterdam",
                        "What a splendid kayak",
                        (ImageRef("img1", draw(folder / "a.png", 200, 100), "concealed"),),
                    ),
                    Round("r2", "It is for the expedition in September", "Enjoy the expedition", ()),
                    Round("r3", "Thanks", "Welcome", ()),
                ),
            ),
            Session(
                "S2",
                "2031-02-01",
                (
                    Round(
                        "r4",
                        "The expedition starts in AMSTERDAM tomorrow",
                        "Remember your paddles",
                        (ImageRef("img2", None, "wooden paddles"),),
                    ),
                    Round("r5", "My paddles are in the cellar", "Good, paddles matter", ()),
                ),
            ),
        ),
    )


def sign(folder: Path) -> None:
    """Make the manifest agree with the files, as whoever forges a bank would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
