"""Tests of cutting a history into interaction episodes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.history import History, ImageRef, Round, Session
from data.loaders.mem_gallery import load_mem_gallery
from memory.hive.episodes import cut_episodes
from tests.memory.fakes import WordCounter

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "mem_gallery"


def _history(*sessions: list[int]) -> History:
    """Sessions of rounds with that many user words, each answered by one word."""
    return History(
        "h",
        tuple(
            Session(f"S{s}", f"2031-01-0{s + 1}", tuple(Round(f"S{s}:{r}", " ".join(["w"] * n), "ok") for r, n in enumerate(rounds)))
            for s, rounds in enumerate(sessions)
        ),
    )


def test_closes_at_the_first_round_end_at_or_past_the_limit() -> None:
    # Rounds count n + 1 words. Limit 10: 5 + 5 reaches 10 exactly, 4 + 21 passes it, 2 is left; S1 starts afresh.
    episodes = cut_episodes(_history([4, 4, 3, 20, 1], [1, 1]), limit_tokens=10, counter=WordCounter())
    assert [tuple(round_.id for round_ in episode.rounds) for episode in episodes] == [
        ("S0:0", "S0:1"),
        ("S0:2", "S0:3"),
        ("S0:4",),
        ("S1:0", "S1:1"),
    ]
    assert [episode.index for episode in episodes] == [0, 1, 2, 3]
    assert [(episode.session_id, episode.date) for episode in episodes][-1] == ("S1", "2031-01-02")


@given(st.lists(st.lists(st.integers(0, 12), max_size=6), max_size=4), st.integers(1, 20))
def test_episodes_partition_the_history(sessions: list[list[int]], limit: int) -> None:
    history = _history(*sessions)
    episodes = cut_episodes(history, limit_tokens=limit, counter=WordCounter())
    assert [round_ for episode in episodes for round_ in episode.rounds] == list(history.rounds)
    last_of_session = {episode.session_id: episode.index for episode in episodes}
    for episode in episodes:
        sizes = [len(round_.user.split()) + 1 for round_ in episode.rounds]
        assert {round_.id.split(":")[0] for round_ in episode.rounds} == {episode.session_id}
        assert sum(sizes[:-1]) < limit
        assert sum(sizes) >= limit or last_of_session[episode.session_id] == episode.index


def test_text_has_image_ids_and_no_captions() -> None:
    image = ImageRef("D1:IMG_001", None, "a secret caption")
    history = History("h", (Session("S", "", (Round("r1", "Look!", "Nice.", (image,)), Round("r2", "Two\nlines", ""))),))
    (episode,) = cut_episodes(history, limit_tokens=100, counter=WordCounter())
    assert episode.text == "user: Look!\n[image D1:IMG_001]\nassistant: Nice.\nuser: Two\nlines"
    assert episode.images == (image,)


def test_passage_is_the_round_and_its_neighbours() -> None:
    rounds = tuple(Round(f"r{n}", f"said {n}", "", (ImageRef(f"i{n}", None, ""),)) for n in range(5))
    (episode,) = cut_episodes(History("h", (Session("S", "", rounds),)), limit_tokens=100, counter=WordCounter())
    assert episode.passage_around("i0") == "user: said 0\n[image i0]\nuser: said 1\n[image i1]"
    assert episode.passage_around("i3").split("\n")[::2] == ["user: said 2", "user: said 3", "user: said 4"]


@pytest.mark.skipif(not REAL.is_dir(), reason="the shared Mem-Gallery dialogues are not here")
def test_real_dialogues_are_cut_whole() -> None:
    for history in load_mem_gallery(REAL).histories:
        episodes = cut_episodes(history, limit_tokens=200, counter=WordCounter())
        assert [round_ for episode in episodes for round_ in episode.rounds] == list(history.rounds)
        assert len(episodes) < len(list(history.rounds)) / 2
