"""English words: tokens, stems, content words and sentences. Everything is memoised by text."""

import re
from functools import lru_cache

from lemminflect import getAllLemmas
from nltk.stem.porter import PorterStemmer

from models.embedded.word_lists import word_list

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+(?:[.,:/-]\d+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:[\"'”’)\]]+)?\s+(?=[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st|no|vs|e\.g|i\.e|approx|jr|sr|(?<!\d )(?<!/)[a-z])\.$", re.IGNORECASE)
_PORTER = PorterStemmer()

FUNCTION_WORDS = word_list("function")


def words(text: str) -> list[str]:
    """The words and numbers of a text, as written."""
    return WORD.findall(text)


@lru_cache(maxsize=100_000)
def lemmas(word: str) -> dict[str, str]:
    """The first lemma of a lower-case word for each part of speech it can be (VERB, NOUN, ADJ, ADV, PROPN); {} for unknown words."""
    return {tag: forms[0] for tag, forms in getAllLemmas(word).items() if forms}


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Fold a word's inflections: "bought", "buys" and "buying" share a stem."""
    plain = _POSSESSIVE.sub("", word.casefold().replace("’", "'"))
    if not plain or not plain[0].isalpha():
        return plain.replace(",", "")
    found = lemmas(plain)
    lemma = found.get("VERB") or found.get("NOUN") or found.get("ADJ") or plain
    return str(_PORTER.stem(lemma))


def is_content(word: str) -> bool:
    """Whether a word carries meaning of its own."""
    plain = word.casefold().replace("’", "'")
    return (plain not in FUNCTION_WORDS and _POSSESSIVE.sub("", plain) not in FUNCTION_WORDS and len(plain) > 1) or plain.isdigit()


def stem_list(name: str) -> frozenset[str]:
    """The stems of a word list."""
    return frozenset(stem(word) for word in word_list(name))


@lru_cache(maxsize=100_000)
def content_stems(text: str) -> tuple[str, ...]:
    """The stems of a text's content words, in order; a hyphenated word also yields its parts."""
    found = []
    for word in words(text):
        if is_content(word):
            found.append(stem(word))
            if "-" in word and word[0].isalpha():
                found += [stem(part) for part in re.split(r"-", word) if is_content(part)]
    return tuple(found)


@lru_cache(maxsize=100_000)
def stem_set(text: str) -> frozenset[str]:
    """`content_stems` as a set."""
    return frozenset(content_stems(text))


@lru_cache(maxsize=20_000)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text; line breaks end one."""
    found: list[str] = []
    for line in text.splitlines():
        start = 0
        for end in _SENTENCE_END.finditer(line):
            if not _ABBREVIATION.search(line[start : end.start()]):
                found.append(line[start : end.end()])
                start = end.end()
        found.append(line[start:])
    return tuple(sentence.strip() for sentence in found if sentence.strip())
