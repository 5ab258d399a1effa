"""Tests of the affinity graph against hand-worked numbers and a direct reading of Eq. 2 and 3."""

import math
import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.bank import AnchorSets
from memory.hive.affinity import affinity_graph, inverse_document_frequencies


def _sets(*pairs: tuple[str, str]) -> list[AnchorSets]:
    return [AnchorSets(frozenset(textual), frozenset(visual)) for textual, visual in pairs]


def _graph(sets: list[AnchorSets], k_edge: int = 4, idf: bool = True, visual_visual: bool = False) -> dict[tuple[int, int], float]:
    return affinity_graph(sets, weights=inverse_document_frequencies(sets, idf=idf), k_edge=k_edge, visual_visual=visual_visual)


def test_idf() -> None:
    # N = 3: a is in two episodes (once as both kinds: counted once), b in one, c in all three.
    sets = _sets(("ac", "a"), ("c", "a"), ("bc", ""))
    assert inverse_document_frequencies(sets, idf=True) == {"a": math.log(4 / 3), "b": math.log(2), "c": 0.0}
    assert inverse_document_frequencies(sets, idf=False) == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_the_three_terms_of_the_matching_set() -> None:
    # Pairs: (0, 1) share t as text and text; (0, 2) as text and visual; (2, 3) v only as visual and visual.
    sets = _sets(("t", ""), ("t", ""), ("", "tv"), ("", "v"))
    weight = math.log(5 / 4)  # df(t) = 3, N = 4
    assert _graph(sets) == {(0, 1): weight, (0, 2): weight, (1, 2): weight}
    assert _graph(sets, visual_visual=True)[2, 3] == math.log(5 / 3)  # df(v) = 2
    assert sets[0].matching(sets[2], visual_visual=False) == sets[2].matching(sets[0], visual_visual=False) == {"t"}
    assert sets[2].matching(sets[3], visual_visual=False) == frozenset()
    assert sets[2].matching(sets[3], visual_visual=True) == {"v"}


def test_an_anchor_of_both_kinds_counts_once() -> None:
    sets = _sets(("a", "a"), ("a", "a"), ("b", ""))
    assert _graph(sets) == {(0, 1): math.log(4 / 3)}


def test_ubiquitous_anchors_make_no_edge() -> None:
    assert _graph(_sets(("a", ""), ("a", ""))) == {}  # IDF = log(3 / 3) = 0
    assert _graph(_sets(("a", ""), ("a", "")), idf=False) == {(0, 1): 1.0}


def test_greedy_respects_the_cap_and_breaks_ties_by_indices() -> None:
    # Without IDF all pairs of four episodes weigh 1, (2, 3) weighs 2. Cap 1: (2, 3) first, then (0, 1).
    sets = _sets(("a", ""), ("a", ""), ("ab", ""), ("ab", ""))
    assert list(_graph(sets, k_edge=1, idf=False).items()) == [((2, 3), 2.0), ((0, 1), 1.0)]
    # Cap 2: after (2, 3) the ties (0, 1), (0, 2) fill 0; (1, 3) is next; (1, 2) and (0, 3) would pass the cap.
    assert list(_graph(sets, k_edge=2, idf=False)) == [(2, 3), (0, 1), (0, 2), (1, 3)]
    assert _graph(sets, k_edge=0) == {}


LETTERS = st.frozensets(st.sampled_from("abcdefgh"), max_size=5)


@given(st.lists(st.builds(AnchorSets, LETTERS, LETTERS), max_size=9), st.integers(0, 4), st.booleans(), st.booleans())
def test_equals_a_direct_reading(sets: list[AnchorSets], k_edge: int, idf: bool, visual_visual: bool) -> None:
    weights = inverse_document_frequencies(sets, idf=idf)
    candidates = []
    for i, one in enumerate(sets):
        for j in range(i + 1, len(sets)):
            other = sets[j]
            shared = (one.textual & other.textual) | (one.textual & other.visual) | (one.visual & other.textual)
            shared |= (one.visual & other.visual) if visual_visual else frozenset()
            weight = 0.0
            for anchor in sorted(shared):
                weight += weights[anchor]
            if weight > 0:
                candidates.append((-weight, i, j))
    expected: dict[tuple[int, int], float] = {}
    for negative, i, j in sorted(candidates):
        if all(sum(node in edge for edge in expected) < k_edge for node in (i, j)):
            expected[i, j] = -negative
    assert list(_graph(sets, k_edge, idf, visual_visual).items()) == list(expected.items())


def test_many_episodes() -> None:
    # 20 anchors an episode, drawn with frequencies like those of words: two million edges to choose from.
    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, size=(2000, 20)) % 20_000
    sets = [AnchorSets(frozenset(f"w{word}" for word in row), frozenset()) for row in words]
    started = time.process_time()
    edges = _graph(sets)
    assert time.process_time() - started < 15  # 0.5 s; a Python loop over pairs and anchors takes over a minute
    degrees = np.bincount([node for edge in edges for node in edge], minlength=2000)
    assert degrees.max() == 4
    assert (degrees < 4).sum() <= 1 or not _joinable(sets, edges, degrees)


def _joinable(sets: list[AnchorSets], edges: dict[tuple[int, int], float], degrees: np.ndarray) -> bool:
    """Whether two episodes with free places could still be joined."""
    free = np.flatnonzero(degrees < 4).tolist()
    return any((i, j) not in edges and sets[i].matching(sets[j], visual_visual=False) for i in free for j in free if i < j)
