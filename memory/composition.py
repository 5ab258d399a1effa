"""From an action to what is shown: which forms of which retrieved memories, rendered and counted (HiVe-Mem, §3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.bank import MemoryBank
from memory.forms import EvidenceForm, Shown
from memory.hive.retrieval import Candidate
from models.requests import TokenCounter
from models.tasks.answer import ShownMemory, ShownPicture

Forms = Mapping[str, EvidenceForm]


@dataclass(frozen=True)
class EvidenceTokens:
    """Tokens of shown evidence, C(z) of Eq. 6: ``total`` = all of ``by_form`` (form name to tokens) + ``headings``."""

    total: int
    by_form: Mapping[str, int]
    headings: int


def available(bank: MemoryBank, candidates: Sequence[Candidate], forms: Forms) -> NDArray[np.bool_]:
    """Which forms each candidate has: (K, F) bool for K candidates and F forms."""
    cells = [[bool(form(bank.episodes[candidate.episode])) for form in forms.values()] for candidate in candidates]
    return np.array(cells, np.bool_).reshape(len(candidates), len(forms))


def compose(bank: MemoryBank, candidates: Sequence[Candidate], bits: NDArray[np.bool_], forms: Forms) -> tuple[ShownMemory, ...]:
    """Render the chosen forms.

    Args:
        bank: where the candidates are from.
        candidates: in retrieval order: seeds by similarity, then expansions by S_exp.
        bits: (K, F) bool, True for a chosen form; bits of forms that an episode does not have are ignored.
        forms: in the order of the bits, which is the order inside a memory.

    Returns:
        The memories that show at least one form, in retrieval order, numbered from 1.
    """
    if bits.shape != (len(candidates), len(forms)):
        raise ValueError(f"bits must have shape {(len(candidates), len(forms))} (candidates, forms), got {bits.shape}")
    shown: list[ShownMemory] = []
    for candidate, row in zip(candidates, bits, strict=True):
        episode = bank.episodes[candidate.episode]
        items = tuple(item for form, chosen in zip(forms.values(), row, strict=True) if chosen for item in form(episode))
        if items:
            shown.append(ShownMemory(len(shown) + 1, episode.date, items))
    return tuple(shown)


def evidence_tokens(shown: Sequence[ShownMemory], counter: TokenCounter) -> EvidenceTokens:
    """Count shown memories as they are rendered: every line, heading and picture."""
    by_form: dict[str, int] = {}
    headings = 0
    for memory in shown:
        headings += counter.count_text(memory.line)
        for item in memory.items:
            name = item.form.partition(" ")[0]  # a caption's label is "caption ID"
            by_form[name] = by_form.get(name, 0) + _tokens((item,), counter)
    return EvidenceTokens(sum(by_form.values()) + headings, by_form, headings)


def form_tokens(bank: MemoryBank, candidates: Sequence[Candidate], forms: Forms, counter: TokenCounter) -> NDArray[np.int64]:
    """Tokens τ of each form of each candidate, without headings: (K, F) int64, 0 where the form is absent."""
    cells = [[_tokens(form(bank.episodes[candidate.episode]), counter) for form in forms.values()] for candidate in candidates]
    return np.array(cells, np.int64).reshape(len(candidates), len(forms))


@dataclass(frozen=True)
class ViewTokens:
    """Tokens of all grounded views and of the images they were cut from."""

    views: int
    images: int


def view_tokens(bank: MemoryBank, counter: TokenCounter) -> ViewTokens:
    """Compare the views of a bank with their images, in image tokens."""
    images = [image for episode in bank.episodes for image in episode.images]
    pairs = [(image.view, image.picture) for image in images if image.view is not None and image.picture is not None]
    return ViewTokens(
        views=sum(counter.count_image(view.width, view.height) for view, _ in pairs),
        images=sum(counter.count_image(picture.width, picture.height) for _, picture in pairs),
    )


def _tokens(shown: Shown, counter: TokenCounter) -> int:
    text = sum(counter.count_text(item.line) for item in shown)
    return text + sum(counter.count_image(item.picture.width, item.picture.height) for item in shown if isinstance(item, ShownPicture))
