"""From a composition to a scored answer: render, ask through the door, score. Memoised by (question, composition)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.metrics.text import MetricProfile
from envs.questions import PreparedQuestion
from memory.composition import EvidenceTokens, compose, evidence_tokens
from memory.forms import EvidenceForm
from models.requests import Reply, Request, TokenCounter
from models.tasks.answer import AnswerInputs, ShownMemory, answer_request


@dataclass(frozen=True)
class Outcome:
    """What came of one question under one composition.

    ``composition``: (K, F) bool, unavailable forms already off. ``evidence``: C(z) by form (Eq. 6).
    ``total_tokens``: input and output tokens of the answer call. ``bleu1`` and ``exact_match`` are None where the
    metric profile does not define them; ``recall`` is None without gold rounds.
    """

    composition: NDArray[np.bool_]
    request_key: str
    answer: str
    f1: float
    bleu1: float | None
    exact_match: bool | None
    evidence: EvidenceTokens
    total_tokens: int
    recall: float | None


class Answerer:
    """Answers questions with composed evidence, a batch of requests at a time.

    Outcomes are memoised by question and composition unless ``memoise`` is False.
    """

    def __init__(
        self,
        generate: Callable[[Sequence[Request]], list[Reply]],
        *,
        forms: Mapping[str, EvidenceForm],
        counter: TokenCounter,
        metric: MetricProfile,
        memoise: bool = True,
    ) -> None:
        self.forms = forms
        self._memoise = memoise
        self.metric = metric
        self._generate = generate
        self._counter = counter
        self._outcomes: dict[tuple[str, str, bytes], Outcome] = {}

    def answer(self, questions: Sequence[PreparedQuestion], compositions: NDArray[np.bool_]) -> list[Outcome]:
        """Answer each question with its composition.

        Args:
            questions: B questions.
            compositions: (B, K, F) bool; bits of unavailable forms are ignored.

        Returns:
            B outcomes, in order. Every outcome comes from a reply: a failed call raises.
        """
        if not self._memoise:
            self._outcomes.clear()
        masked = compositions & np.stack([question.available for question in questions])
        keys = [(item.question.history_id, item.question.id, bits.tobytes()) for item, bits in zip(questions, masked, strict=True)]
        new = {key: row for row, key in enumerate(keys) if key not in self._outcomes}
        if new:
            rows = list(new.values())
            shown = [self.compose(questions[row], masked[row]) for row in rows]
            requests = [
                answer_request(AnswerInputs(questions[row].question.text, questions[row].images, memories, questions[row].instruction))
                for row, memories in zip(rows, shown, strict=True)
            ]
            replies = self._generate(requests)
            for row, memories, reply in zip(rows, shown, replies, strict=True):
                self._outcomes[keys[row]] = self._score(questions[row], masked[row], memories, reply)
        return [self._outcomes[key] for key in keys]

    def compose(self, question: PreparedQuestion, composition: NDArray[np.bool_]) -> tuple[ShownMemory, ...]:
        """The memories that a (K, F) composition shows."""
        return compose(question.bank, question.candidates, composition[: len(question.candidates)], self.forms)

    def evidence_tokens(self, question: PreparedQuestion, composition: NDArray[np.bool_]) -> EvidenceTokens:
        """C(z) of a (K, F) composition, without asking anything."""
        return evidence_tokens(self.compose(question, composition), self._counter)

    def _score(self, item: PreparedQuestion, bits: NDArray[np.bool_], memories: tuple[ShownMemory, ...], reply: Reply) -> Outcome:
        gold = item.question.answer
        return Outcome(
            composition=bits,
            request_key=reply.key,
            answer=reply.text,
            f1=self.metric.f1(reply.text, gold),
            bleu1=self.metric.bleu1(reply.text, gold),
            exact_match=self.metric.exact_match(reply.text, gold),
            evidence=evidence_tokens(memories, self._counter),
            total_tokens=reply.usage.input_tokens + reply.usage.output_tokens,
            recall=item.recall(np.any(bits, axis=1, keepdims=False)),
        )
