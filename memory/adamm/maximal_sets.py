"""Search for the largest sets of attributes that recur, with look-ahead: never by listing subsets.

Sets of rounds are bits of an integer, so the support of a set of attributes is the number of bits that its attributes' rounds share.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass
class Tests:
    """The sets tested in a round: ``done`` so far, of those ``allowed``; ``capped`` once a search had to stop.

    No result changes in fewer than ``margin`` + 1 further rounds: as much is every set found above its threshold and every set
    found wanting below it, and a round changes a support by at most one, a threshold too.
    """

    allowed: int
    done: int = 0
    capped: bool = False
    margin: float = float("inf")


def maximal_sets(
    head: tuple[int, ...],
    rounds: int,
    tail: Sequence[int],
    *,
    threshold: int,
    columns: Sequence[int],
    hopeless: Callable[[tuple[int, ...]], bool],
    tests: Tests,
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Find the sets of ``head`` and some of ``tail`` that ``threshold`` rounds hold and that no other attribute of ``tail`` can join.

    Depth first: a branch is a set and the attributes that may still join it. All of them together are tested first, so that a set
    that recurs unchanged costs one test, whatever its size; then each alone. One that is in all rounds of the set joins it at once;
    the others that are in enough make a branch each, the rarest first. A set is found before those that it contains, so a caller
    that wants no contained ones says of these that they are hopeless.

    Args:
        head: a set of attributes that ``threshold`` rounds hold.
        rounds: the rounds that hold it.
        tail: the attributes that may join it.
        threshold: rounds.
        columns: the rounds of every attribute; bits outside ``rounds`` do not matter.
        hopeless: whether no set within these attributes is wanted, asked anew at every branch.
        tests: counts the tests. The search stops before the branch that could exceed them.

    Yields:
        A set, unordered, and the rounds that hold it.
    """
    branches = [(head, rounds, list(tail))]
    while branches:
        head, rounds, tail = branches.pop()
        if hopeless((*head, *tail)):
            continue
        if tests.done + 1 + len(tail) > tests.allowed:
            tests.capped = True
            return
        tests.done += 1
        whole = rounds
        for attribute in tail:
            whole &= columns[attribute]
        spare = whole.bit_count() - threshold
        if spare >= 0:
            tests.margin = min(tests.margin, spare)
            yield (*head, *tail), whole
            continue
        tests.done += len(tail)
        missing = -spare
        joining = []
        for attribute in tail:
            joint = rounds & columns[attribute]
            support = joint.bit_count()
            if support < threshold:
                missing = min(missing, threshold - support)
            elif joint == rounds:
                head += (attribute,)
            else:
                joining.append((support, attribute, joint))
        tests.margin = min(tests.margin, missing - 1)
        if joining:
            joining.sort()
            later: list[int] = []
            for _, attribute, joint in reversed(joining):
                branches.append(((*head, attribute), joint, later))
                later = [attribute, *later]
        elif not hopeless(head):
            tests.margin = min(tests.margin, rounds.bit_count() - threshold)
            yield head, rounds
