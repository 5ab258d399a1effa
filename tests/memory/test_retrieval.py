"""Tests of retrieval on a bank small enough to work out by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from memory.bank import MemoryBank, MemoryEpisode
from memory.hive.retrieval import Candidate, expansion_scores, retrieve
from memory.settings import RetrievalSettings

QUERY = np.array([1, 0], np.float32)
TWO_AND_TWO = RetrievalSettings(k_ret=2, k_exp=2, expansion=True)


def _at(cosine: float) -> list[float]:
    """A unit vector whose similarity with the query is ``cosine``."""
    return [cosine, (1 - cosine**2) ** 0.5]


def bank_of(
    similarities: Sequence[float],
    anchors: Sequence[tuple[str, str]],
    known: Mapping[str, tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    visual_visual: bool = False,
) -> MemoryBank:
    """A bank: summary similarities, (T, V) as strings of letters, anchor to (IDF, similarity), and edges."""
    episodes = tuple(
        MemoryEpisode(i, "S", "2031-01-01", (f"r{i}",), f"raw {i}", f"summary {i}", (), frozenset(textual), frozenset(visual))
        for i, (textual, visual) in enumerate(anchors)
    )
    return MemoryBank(
        history_id="h",
        folder=Path(),
        encoder_id="hand",
        episodes=episodes,
        summary_vectors=np.array([_at(similarity) for similarity in similarities], np.float32),
        anchors=tuple(sorted(known)),
        anchor_vectors=np.array([_at(known[anchor][1]) for anchor in sorted(known)], np.float32).reshape(-1, 2),
        anchor_idf=np.array([known[anchor][0] for anchor in sorted(known)], np.float64),
        edges=dict.fromkeys(edges, 1.0),
        visual_visual=visual_visual,
    )


def test_expansion_counts_anchors_shared_with_any_seed() -> None:
    # Seeds are 1 and 0. Neighbours: 2 (of 0), 3 (of 1), 5 (of 0); 4 is no neighbour although it shares everything.
    # B_2 = {a, b}: b is shared with seed 1, whose edge to 2 did not survive the cap. S = 2·0.5 + 3·0.9 = 3.7.
    # B_3 = {b} = 2.7 (c is shared with no seed). B_5 = {a}, counted once although both kinds match: 1.0.
    bank = bank_of(
        [0.8, 0.9, 0.1, 0.2, 0.3, 0.4],
        [("a", "a"), ("b", ""), ("ab", ""), ("bc", ""), ("ab", ""), ("a", "a")],
        {"a": (2.0, 0.5), "b": (3.0, 0.9), "c": (9.0, 0.9)},
        [(0, 2), (1, 3), (0, 5)],
    )
    scores = expansion_scores(bank, QUERY, [1, 0])
    assert scores == pytest.approx({2: 3.7, 3: 2.7, 5: 1.0})
    found = retrieve(bank, QUERY, TWO_AND_TWO)
    assert [(candidate.episode, candidate.origin) for candidate in found] == [(1, "seed"), (0, "seed"), (2, "expansion"), (3, "expansion")]
    assert [candidate.score for candidate in found] == pytest.approx([0.9, 0.8, 3.7, 2.7])


def test_neighbours() -> None:
    assert bank_of([0, 0, 0, 0], [("", "")] * 4, {}, [(1, 2), (0, 2)]).neighbours == ((2,), (2,), (0, 1), ())


def test_negative_scores_still_fill_free_places_in_order() -> None:
    anchors = [("ab", ""), ("", ""), ("a", ""), ("b", ""), ("a", "")]
    bank = bank_of([0.9, 0.8, 0.1, 0.1, 0.1], anchors, {"a": (1, -0.5), "b": (1, -0.1)}, [(0, 2), (0, 3), (0, 4)])
    assert [candidate.episode for candidate in retrieve(bank, QUERY, TWO_AND_TWO)] == [0, 1, 3, 2]


def test_seeds_are_not_expanded_to() -> None:
    # The seeds 0 and 1 are neighbours of each other and share more than either shares with 2.
    bank = bank_of([0.9, 0.8, 0.1], [("ab", ""), ("ab", ""), ("a", "")], {"a": (1, 0.5), "b": (1, 0.5)}, [(0, 1), (1, 2)])
    assert [candidate.episode for candidate in retrieve(bank, QUERY, TWO_AND_TWO)] == [0, 1, 2]


def test_without_neighbours_there_are_only_seeds() -> None:
    bank = bank_of([0.1, 0.9, 0.5], [("a", "")] * 3, {"a": (1, 1)}, [])
    assert [candidate.episode for candidate in retrieve(bank, QUERY, TWO_AND_TWO)] == [1, 2]


def test_similarity_ties_go_to_the_earlier_episode() -> None:
    bank = bank_of([0.3, 0.7, 0.7, 0.7], [("", "")] * 4, {}, [])
    assert [candidate.episode for candidate in retrieve(bank, QUERY, TWO_AND_TWO)] == [1, 2]


def test_without_expansion_the_most_similar_fill_all_places() -> None:
    bank = bank_of([0.1, 0.9, 0.5, 0.7, 0.6], [("a", "")] * 5, {"a": (1, 1)}, [(0, 1)])
    settings = RetrievalSettings(k_ret=2, k_exp=2, expansion=False)
    found = retrieve(bank, QUERY, settings)
    assert [candidate.episode for candidate in found] == [1, 3, 4, 2]
    assert {candidate.origin for candidate in found} == {"seed"}
    assert isinstance(found[0], Candidate) and isinstance(found[0].episode, int)


def test_visual_anchors_match_each_other_only_in_the_ablation() -> None:
    arguments = ([0.9, 0.8, 0.1], [("", "v"), ("", ""), ("", "v")], {"v": (1.0, 0.5)}, [(0, 2)])
    assert expansion_scores(bank_of(*arguments), QUERY, [0, 1]) == {2: 0.0}
    assert expansion_scores(bank_of(*arguments, visual_visual=True), QUERY, [0, 1]) == pytest.approx({2: 0.5})


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"k_ret must be at least 1, got 0; k_exp must be at least 0, got -1"):
        RetrievalSettings(k_ret=0, k_exp=-1, expansion=True)
