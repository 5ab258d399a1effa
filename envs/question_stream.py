"""Which question comes next: seeded permutations of the question set, joined end to end."""

import numpy as np
from numpy.typing import NDArray


class QuestionStream:
    """Draws every question once per epoch, in an order that depends only on the seed and the epoch's number.

    The only state is ``n_drawn``, so a resumed run continues with the very next question.
    """

    def __init__(self, n_questions: int, *, seed: int) -> None:
        if n_questions < 1:
            raise ValueError("a question stream needs at least one question; the split is empty")
        self.n_questions = n_questions
        self.n_drawn = 0
        self._seed = seed

    def draw(self, n: int) -> NDArray[np.int64]:
        """The next ``n`` question numbers, (n,) int64, across an epoch's end if need be."""
        places = np.arange(self.n_drawn, self.n_drawn + n)
        self.n_drawn += n
        epochs = places // self.n_questions
        orders = {epoch: np.random.default_rng([self._seed, int(epoch)]).permutation(self.n_questions) for epoch in np.unique(epochs)}
        return np.array([orders[epoch][place % self.n_questions] for epoch, place in zip(epochs, places, strict=True)], np.int64)
