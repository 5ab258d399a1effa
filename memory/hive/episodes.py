"""Interaction episodes: contiguous stretches of a history, the raw material of memory episodes (HiVe-Mem, §3.1, A.1)."""

from dataclasses import dataclass

from data.history import History, ImageRef, Round
from models.requests import TokenCounter


@dataclass(frozen=True)
class InteractionEpisode:
    """One episode e_i: whole rounds of one session. ``index`` counts from 0 through the history, in file order."""

    index: int
    session_id: str
    date: str
    rounds: tuple[Round, ...]

    @property
    def text(self) -> str:
        """The raw text r: what both sides said, and the id of each image where it was shared; never a caption."""
        return "\n".join(round_text(round_) for round_ in self.rounds)

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The images of all rounds, in order."""
        return tuple(image for round_ in self.rounds for image in round_.images)

    def passage_around(self, image_id: str) -> str:
        """The text of the round that shares the image and of the rounds before and after it inside the episode."""
        at = next(place for place, round_ in enumerate(self.rounds) if any(image.id == image_id for image in round_.images))
        return "\n".join(round_text(round_) for round_ in self.rounds[max(0, at - 1) : at + 2])


def round_text(round_: Round) -> str:
    """One round as text: the user's line, a line ``[image ID]`` for each image, the assistant's line."""
    lines = [f"user: {round_.user}"] if round_.user else []
    lines += [f"[image {image.id}]" for image in round_.images]
    lines += [f"assistant: {round_.assistant}"] if round_.assistant else []
    return "\n".join(lines)


def cut_episodes(history: History, *, limit_tokens: int, counter: TokenCounter) -> tuple[InteractionEpisode, ...]:
    """Cut a history into episodes.

    An episode closes at the first round end at or past ``limit_tokens`` of what user and assistant said, and at the
    end of its session: rounds are never split and sessions never crossed.
    """
    episodes: list[InteractionEpisode] = []
    for session in history.sessions:
        rounds: list[Round] = []
        n_tokens = 0
        for place, round_ in enumerate(session.rounds, start=1):
            rounds.append(round_)
            n_tokens += counter.count_text(round_.user) + counter.count_text(round_.assistant)
            if n_tokens >= limit_tokens or place == len(session.rounds):
                episodes.append(InteractionEpisode(len(episodes), session.id, session.date, tuple(rounds)))
                rounds, n_tokens = [], 0
    return tuple(episodes)
