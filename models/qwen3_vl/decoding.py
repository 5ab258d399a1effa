"""What each reply of a batch may say next: text only, never nothing, and JSON of the request's schema where there is one."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.errors import BackendError
from models.qwen3_vl.grammar import Grammar, TokenBytes

if TYPE_CHECKING:
    import torch


class ReplyRules:
    """A logits processor of ``generate`` for one batch.

    A reply holds tokens of text and then an end token; it does not begin with the end or with blanks, so it is never
    empty. A reply with a grammar follows it and is complete within the token limit.
    """

    def __init__(
        self,
        grammars: Sequence[Grammar | None],
        *,
        tokens: TokenBytes,
        ends: Sequence[int],
        prompt_length: int,
        max_output_tokens: int,
    ) -> None:
        """``grammars``: one for each row of the batch, None for plain text; ``prompt_length``: columns before the replies.

        Raises:
            BackendError: the limit is too small for the shortest reply that a grammar allows.
        """
        needed = max((grammar.shortest for grammar in grammars if grammar), default=0)
        if needed > max_output_tokens:
            raise BackendError(
                f"max_output_tokens is {max_output_tokens}, but the shortest reply of this form may take {needed}: raise the limit"
            )
        self.first_token_time: float | None = None
        self._grammars = grammars
        self._states = [grammar.start if grammar else 0 for grammar in grammars]
        self._tokens = tokens
        self._ends = np.array(ends)
        self._prompt_length = prompt_length
        self._max_output_tokens = max_output_tokens
        self._is_done = [False] * len(grammars)
        self._later = tokens.text.copy()
        self._later[self._ends] = True

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Forbid what a reply may not say next.

        Args:
            input_ids: (batch, length so far) int64.
            scores: (batch, vocabulary) logits.

        Returns:
            The scores, with minus infinity for what is forbidden.
        """
        import torch

        n_written = input_ids.shape[1] - self._prompt_length
        if n_written:
            self._advance(input_ids[:, -1].tolist())
        else:
            if torch.isnan(scores).any():  # also waits for the device, so that the time below is the first token's
                raise BackendError("the model's logits are not numbers; use dtype bfloat16 or float32")
            self.first_token_time = time.perf_counter()
        allowed = np.stack([self._allowed(row, n_written) for row in range(len(self._grammars))])
        return scores.masked_fill(torch.from_numpy(~allowed).to(scores.device), -torch.inf)

    def _advance(self, tokens: Sequence[int]) -> None:
        for row, token in enumerate(tokens):
            self._is_done[row] = self._is_done[row] or token in self._ends
            grammar = self._grammars[row]
            if grammar and not self._is_done[row]:
                self._states[row] = grammar.next_state(self._states[row], token)

    def _allowed(self, row: int, n_written: int) -> NDArray[np.bool_]:
        grammar = self._grammars[row]
        if self._is_done[row]:
            return self._later  # generate pads a finished reply, whatever the scores say
        if grammar is None:
            return self._later if n_written else self._tokens.visible
        allowed = grammar.allowed(self._states[row], tokens_left=self._max_output_tokens - n_written - 1)
        if grammar.is_complete(self._states[row]):
            allowed = allowed.copy()
            allowed[self._ends] = True
        return allowed
