"""The kinds of answers that questions want, and the wordings that tell them."""

import re
from enum import Enum, auto


class Kind(Enum):
    """The kind of answer a question wants."""

    IMAGE = auto()
    IMAGE_COUNT = auto()
    DATE = auto()
    CLOCK = auto()
    DAYS_BETWEEN = auto()
    ORDER = auto()
    YES_NO = auto()
    COUNT = auto()
    AVERAGE = auto()
    HIGHEST = auto()
    LOWEST = auto()
    TOTAL = auto()
    DIFFERENCE = auto()
    DEARER = auto()
    TREND = auto()
    QUANTITY = auto()
    PERSON = auto()
    PLACE = auto()
    EXPLANATION = auto()
    THING = auto()


AUXILIARY = r"(?:is|are|was|were|am|did|does|do|has|have|had|can|could|would|will|should)"
PICTURE = r"(?:image|picture|photo|photograph|screenshot|snapshot|pic)s?"
_ABSTRACT = (
    r"aspects?|benefits?|challenges?|characteristics?|concerns?|differences?|experiences?|explanations?|factors?|features?|feedback|"
    r"habits?|ideas?|impacts?|insights?|methods?|motivat\w+|opinions?|perspectives?|principles?|reasons?|relationship|risks?|roles?|"
    r"steps?|strateg\w+|suggestions?|symptoms?|techniques?|tips?|views?|ways?"
)
_SAYING = r"say|said|says|think|thinks|mention|express|describe|suggest|advise|feel"
_PERSONS = r"friend|person|colleague|neighbour|neighbor|guest|man|woman|child|relative"
_OCCASIONS = r"days|nights|entries|occasions|readings|logs|records|mornings|evenings"
_LIMITS = r"above|over|below|under|more|less|at least|at most|exceed"
_WORDINGS: tuple[tuple[Kind, str], ...] = (
    (Kind.IMAGE_COUNT, rf"\bhow many (?:[\w-]+ ){{0,4}}{PICTURE}\b"),
    (Kind.IMAGE, rf"\b(?:which|what)(?: of)? (?:[\w'’-]+ ){{0,3}}{PICTURE}\b"),
    (Kind.IMAGE, rf"\b(?:find|search|give|return|identify|list|show)\b[^.?]* {PICTURE}\b|\bimage[ _]ids?\b"),
    (Kind.DAYS_BETWEEN, r"\bhow (?:many days|long)\b.*\b(?:between|passed|elapsed|from .* (?:to|until))\b"),
    (Kind.DAYS_BETWEEN, r"\bhow many days (?:after|before|later|earlier)\b"),
    (Kind.TREND, r"\b(?:increase|decrease|rise|fall|go up|go down|going up|improve|grow|drop)\w*\b.*\bor\b|\btrend\b"),
    (Kind.DEARER, r"\b(?:cost|costs|paid|pay|was|is|were)\b.*\b(?:more|less|expensive|cheaper|dearer)\b.*\bor\b"),
    (Kind.DEARER, r"\b(?:more expensive|cheaper)\b.*\bor\b"),
    (Kind.ORDER, r"\b(?:which|what|who|did)\b.*\b(?:first|earlier|later|last|before|after|sooner|more recently)\b.*\bor\b"),
    (Kind.AVERAGE, r"\b(?:average|mean)\b"),
    (Kind.HIGHEST, r"\b(?:highest|maximum|largest|biggest|longest|greatest|most expensive|tallest)\b"),
    (Kind.LOWEST, r"\b(?:lowest|minimum|smallest|shortest|least|cheapest)\b"),
    (Kind.DIFFERENCE, r"\bhow (?:much|many) (?:\w+ )?(?:more|less|fewer|higher|lower|longer|shorter)\b|\bdifference\b|\bby how much\b"),
    (Kind.TOTAL, r"\b(?:in total|altogether|together|combined|sum)\b|\btotal (?:of|amount|number|cost|price)\b"),
    (Kind.COUNT, rf"\bhow (?:many times|often)\b|\b[io]n how many\b|\bhow many (?:{_OCCASIONS})\b.*\b(?:{_LIMITS})"),
    (Kind.CLOCK, r"\b(?:at what|at which|what) time\b|\bwhen (?:does|do|is|are)\b"),
    (Kind.DATE, r"\bwhen\b|\b(?:which|what) (?:\w+ )?(?:date|day)\b"),
    (Kind.QUANTITY, r"\b(?:what|which) (?:amount|quantity|percentage) of\b"),
    (Kind.QUANTITY, r"\bhow (?:much|many|long|far|old|tall|big|heavy|large|high|fast|warm|cold)\b"),
    (Kind.PERSON, rf"\bwho(?:se|m)?\b|\b(?:which|what) (?:other )?(?:{_PERSONS})\b|\bname of the person\b"),
    (Kind.PLACE, r"\bwhere\b|\b(?:in|at|on) (?:which|what) (?:place|corner|spot|location)\b"),
    (Kind.EXPLANATION, r"\bwhy\b|\bhow\b|\b(?:list|summari[sz]e|describe|explain|remember what)\b"),
    (Kind.EXPLANATION, rf"\bwhat (?:did|does|do|had|has) .*\b(?:{_SAYING})\b"),
    (Kind.EXPLANATION, rf"\bwhat (?:are|were|is|was)? ?(?:the |some )?(?:[\w-]+ )?(?:{_ABSTRACT})\b"),
)
KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple((kind, re.compile(wording, re.IGNORECASE)) for kind, wording in _WORDINGS)
"""The wordings of each kind; earlier ones take precedence."""
EXTREMES = frozenset({Kind.AVERAGE, Kind.HIGHEST, Kind.LOWEST})
"""Kinds of which the first one in the question counts ("the highest average pulse")."""
PLACED_FIRST = frozenset({Kind.PERSON, Kind.PLACE, Kind.CLOCK, Kind.DATE, Kind.QUANTITY, Kind.EXPLANATION})
"""Kinds that the first question word decides, so that "who was there when …" asks for a person."""
