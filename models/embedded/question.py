"""What a question asks for: the kind of answer, its topic, the days it names, the two sides it compares."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from models.embedded.dates import without_dates
from models.embedded.english import FUNCTION_WORDS, WORD, is_content, lemmas, stem, stem_list
from models.embedded.question_kinds import AUXILIARY, EXTREMES, KINDS, PICTURE, PLACED_FIRST, Kind
from models.embedded.word_lists import word_list

_CLAIM = re.compile(r"\bconflict|\bcontradict|determine whether", re.IGNORECASE)
_LEADING_AUXILIARY = re.compile(rf"^(?:[^?:]*[:,]\s*)?{AUXILIARY}\b", re.IGNORECASE)
_OTHER_WORDS = re.compile(r"\b(?:which|what|where|who|whom|how|when|why)\b", re.IGNORECASE)
_ASKING = stem_list("asking")
_CARRIERS = stem_list("carriers")
_LIGHT = stem_list("light")
_NAMED_THINGS = stem_list("named_things")
_SIDE_OPENING = re.compile(
    r"[,:]\s+|\bbetween\s+|\b(?:pay|paid|spend|spent) for\s+|\b(?:did|was|were|are|do) (?=the\b|my\b|[A-Z]\w+['’]s\b)|"
    r"\bnames? of\s+|\b(?:in|at|into|for|of) (?=the\b)",
    re.IGNORECASE,
)
_SIDE_END = re.compile(r"[?,]|\b(?:together|altogether|in total|combined|cost|that|which|whom)\b", re.IGNORECASE)
_BEFORE = re.compile(r"^(.*?)\b(before|after)\b(.*)$", re.IGNORECASE | re.DOTALL)
_BEFORE_SUBJECT = word_list("before_subject")
_PLURAL_WANTED = re.compile(r"\b(?:two|both|three|all|names of the|what are the|which \w+s)\b", re.IGNORECASE)
_TWO_WANTED = re.compile(
    r"\b(?:names|who are|where were|where are|who .* and who|(?:which|what)(?: are the| were the)? (?!is|was|does|has)\w+(?<!s)s\b)",
    re.IGNORECASE,
)
_THRESHOLD = re.compile(
    r"\b(?P<sense>above|over|more than|at least|greater than|exceed(?:ed|s)?|higher than|longer than|below|under|less than|at most|"
    r"lower than|fewer than|shorter than)\s+(?P<number>\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_LATEST = re.compile(
    r"\b(?:now|current|currently|present|latest|still|these days|most recent|final|finally|ultimately|at the moment)\b", re.IGNORECASE
)
_WRITTEN = re.compile(r"\b(?:wrote|written|write|writes|logs?|logged|notes?|noted|diary|diaries|entry|entries|typed)\b", re.IGNORECASE)
_DRAWN = re.compile(rf"\b(?:dashboards?|charts?|screens?|receipts?|graphs?|tables?|{PICTURE})\b", re.IGNORECASE)
_IN_UNIT = re.compile(r"\bin ([a-z]+s)\?", re.IGNORECASE)
_DIMENSIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "money",
        re.compile(
            r"\b(?:cost|costs|price|pay|paid|pays|charged?|spend|spent|fee|rent|expensive|bill)\b|\bhow much (?:is|was|were) (?!.*\bwater)",
            re.IGNORECASE,
        ),
    ),
    ("time", re.compile(r"\bhow long\b|\bhow many (?:seconds|minutes|hours|days|weeks|months|years)\b", re.IGNORECASE)),
    ("mass", re.compile(r"\b(?:weigh|weighs|weight|heavy)\b", re.IGNORECASE)),
    ("length", re.compile(r"\bhow (?:far|tall|high|deep|wide)\b|\bdistance\b", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Asked:
    """A parsed question.

    ``topic``: (stem, weight) of the words that evidence should share; ``heads``: stems of the noun that is asked for;
    ``subject``: stem of the person the question is about, whom first-person statements do not name ("" if none);
    ``prepositions``: those that govern the question word; ``sides``: the two things compared, if any; ``from_text`` and
    ``from_picture``: whether it speaks of what was written, of what a picture shows.
    """

    text: str
    kind: Kind
    topic: tuple[tuple[str, float], ...]
    heads: tuple[str, ...]
    subject: str
    prepositions: tuple[str, ...]
    sides: tuple[str, ...]
    plural: bool
    threshold: tuple[str, str] | None
    latest: bool
    dimension: str
    from_text: bool
    from_picture: bool
    negated: bool

    @property
    def stems(self) -> frozenset[str]:
        """The topic's stems."""
        return frozenset(found for found, _ in self.topic)

    @property
    def names_something(self) -> bool:
        """Whether the asked noun is a thing that has a name of its own."""
        return bool(frozenset(self.heads) & _NAMED_THINGS)

    @property
    def lists_two(self) -> bool:
        """Whether the same thing is asked of two sides, as in "the names of my dentist and my landlord"."""
        return len(self.sides) == 2 and self.kind in {Kind.THING, Kind.PERSON, Kind.PLACE} and bool(_TWO_WANTED.search(self.text))


def one_side(asked: Asked, side: int) -> Asked:
    """The question about one of its two sides: the topic without the other side's words."""
    other = frozenset(found for found, _ in topic_of(asked.sides[1 - side])) - frozenset(found for found, _ in topic_of(asked.sides[side]))
    return replace(asked, topic=tuple(pair for pair in asked.topic if pair[0] not in other))


@lru_cache(maxsize=20_000)
def parse_question(text: str) -> Asked:
    """Read a question."""
    subject = _subject(text)
    heads = _heads(text)
    sides = _sides(text)
    threshold = _THRESHOLD.search(text)
    return Asked(
        text,
        _kind(text),
        _topic(text, heads, subject),
        heads,
        subject,
        _prepositions(text),
        sides,
        bool(_PLURAL_WANTED.search(text)),
        (threshold["sense"].casefold(), threshold["number"]) if threshold else None,
        bool(_LATEST.search(text)),
        "" if _IN_UNIT.search(text) else next((name for name, pattern in _DIMENSIONS if pattern.search(text)), ""),
        bool(_WRITTEN.search(text)),
        bool(_DRAWN.search(text)),
        bool(re.search(r"\b(?:not|no|without)\b|n['’]t\b", text)),
    )


def _subject(text: str) -> str:
    """The stem of the single capitalised word that owns something, else of the first one that does something; "" without one."""
    found = WORD.findall(text)
    names = [word[0].isupper() and is_content(word) for word in found]
    doing = ""
    for place, word in enumerate(found):
        owns = word.endswith(("'s", "’s"))
        if not names[place] or (place and names[place - 1]) or (place + 1 < len(found) and names[place + 1] and not owns):
            continue
        if owns:
            return stem(word)
        acts = place and place + 1 < len(found) and _only_verb(found[place + 1])
        if not doing and (acts or (place and found[place - 1].casefold() in _BEFORE_SUBJECT)):
            doing = stem(word)
    return doing


def _only_verb(word: str) -> bool:
    tags = lemmas(word.casefold())
    return "VERB" in tags and not ({"NOUN", "ADJ", "PROPN"} & tags.keys())


def _inflected_verb(word: str) -> bool:
    lemma = lemmas(word.casefold()).get("VERB")
    return lemma is not None and lemma != word.casefold()


def _kind(text: str) -> Kind:
    if _CLAIM.search(text):
        return Kind.YES_NO
    if _LEADING_AUXILIARY.match(text) and not re.search(r"\bor\b", text) and not _OTHER_WORDS.search(text):
        return Kind.YES_NO
    found = [(kind, match.start()) for kind, pattern in KINDS if (match := pattern.search(text))]
    if not found:
        return Kind.THING
    if found[0][0] in EXTREMES:
        return min((pair for pair in found if pair[0] in EXTREMES), key=lambda pair: pair[1])[0]
    if found[0][0] not in PLACED_FIRST:
        return found[0][0]
    first = _OTHER_WORDS.search(text)
    kind, start = min(found, key=lambda pair: pair[1])
    asks_thing = first is not None and first.group().casefold() in {"which", "what"} and first.start() + 8 < start
    return Kind.THING if asks_thing else kind


def topic_of(text: str) -> tuple[tuple[str, float], ...]:
    """(stem, weight) of a text's content words: names count more, words that can only be verbs less."""
    return _topic(text, (), "")


def _topic(text: str, heads: tuple[str, ...], subject: str) -> tuple[tuple[str, float], ...]:
    weights: dict[str, float] = {}
    fallback: dict[str, float] = {}
    for number, match in enumerate(WORD.finditer(without_dates(text))):
        word = match.group()
        if not is_content(word):
            continue
        found = stem(word)
        weight = 1.3 if number and word[0].isupper() else 0.4 if _only_verb(word) or found in _LIGHT else 1.0
        if found in heads:
            weight = min(weight, 0.4)
        fallback[found] = weight
        if found not in _ASKING and found != subject:
            weights[found] = max(weight, weights.get(found, 0.0))
    return tuple((weights or fallback).items())


def _heads(text: str) -> tuple[str, ...]:
    """The noun after "which", "what" or "how many"; of "the name of the dentist" both nouns."""
    words = WORD.findall(text)
    lower = [word.casefold() for word in words]
    start = next((place + 1 for place, word in enumerate(lower) if word in {"which", "what"}), None)
    if start is None:
        start = next((place + 2 for place, word in enumerate(lower[:-1]) if word == "how" and lower[place + 1] in {"many", "much"}), None)
    if start is None:
        unit = _IN_UNIT.search(text)
        return (stem(unit.group(1)),) if unit else ()
    heads: list[str] = []
    place = start
    while place < len(words) and lower[place] in {"is", "was", "are", "were", "the", "a", "an", "of", "exact", "specific", "other"}:
        place += 1
    while place < len(words):
        noun, place = _noun_at(words, place)
        if not noun:
            break
        heads.append(stem(noun))
        if stem(noun) not in _CARRIERS or place >= len(words) or lower[place] != "of":
            break
        place += 1
    return tuple(heads)


def _noun_at(words: list[str], place: int) -> tuple[str, int]:
    """The last noun of the noun phrase that begins at a word, and the place after it."""
    noun = ""
    while place < len(words):
        word = words[place]
        if word.casefold() in {"the", "a", "an", "my"} or word.endswith(("'s", "’s")):
            place += 1
            continue
        if word.casefold() in FUNCTION_WORDS or _only_verb(word) or (noun and _inflected_verb(word)) or (noun and word[0].isupper()):
            break
        noun, place = word, place + 1
    return noun, place


def _sides(text: str) -> tuple[str, ...]:
    """What stands on the two sides of the "and" or "or" that a comparison or a list joins; () without one."""
    joins = list(re.finditer(r"\s(?:and|or)\s", text))
    if not joins:
        return ()
    join = joins[-1]
    before, after = text[: join.start()].rstrip(" ,"), text[join.end() :]
    openings = list(_SIDE_OPENING.finditer(before))
    one = before[openings[-1].end() :] if openings else before
    two = _SIDE_END.split(after)[0]
    return (one.strip(), two.strip()) if one.strip() and two.strip() else ()


def _prepositions(text: str) -> tuple[str, ...]:
    """The preposition before the question word, or left at the end of the question."""
    match = re.search(r"\b(with|from|to|at|in|on|by|for|of|under)\s+(?:which|what|whom|whose|how)\b", text, re.IGNORECASE)
    last = re.search(r"\b(with|from|to|at|in|on|by|for|of|under|about)(?:\s+[A-Z]\w+)?\s*\?\s*$", text)
    beside = re.search(r"\bwho\b.*\b(with)\b", text, re.IGNORECASE)
    return tuple(dict.fromkeys(found.group(1).casefold() for found in (match, last, beside) if found))


def before_after(text: str) -> tuple[str, str, str] | None:
    """The two events of "did A before B", and which word joins them."""
    match = _BEFORE.match(text)
    return (match.group(1), match.group(2).casefold(), match.group(3)) if match and WORD.search(match.group(3)) else None
