"""The vocabulary of a model, and how text is split into its words.

Words are split so that vectors such as GloVe's are found: contractions are split ("do n't", "film 's"), a hyphen is a
word of its own, "U.S." and "3.50" stay whole. GloVe then has 91 % of the word types of 3,000 film reviews; with
contractions or hyphens left joined, 87 or 86 %. In scripts written without spaces each character, with its marks, is a
word.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text.pieces import FORMAT_VERSION as OF_PIECES
from routepool.text.pieces import PieceTokenizer
from routepool.text.tokens import SURROGATES, UNKNOWN, TextReader, clean, sentences_of

SPECIAL_WORDS = ("[no word]", "[unknown word]")  # the space keeps them apart from every word of a text
FORMAT_VERSION = 1  # of tokenizer.json; version 2 holds pieces

_LONGEST = 200  # characters of a word of the vocabulary
# No \X for the last case: it is quadratic on a long run of flag letters.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_NOT = r"[nN]['’][tT](?!\p{L})"
_CASES = (
    r"</?\p{L}+\ ?/?>",  # <br />: one token, not four
    r"(?:\p{L}\.){2,}",
    r"\p{N}+(?:[.,:]\p{N}+)+",
    # The joiners stand inside words of Persian and of Indic scripts.
    rf"(?:(?!{_NOT})[[\p{{L}}\p{{M}}\p{{N}}_\x{{200C}}\x{{200D}}]&&[^{_SPACELESS}]])+",
    _NOT,
    r"['’](?i:s|re|ve|ll|d|m)(?!\p{L})",
    r"\.{2,}|-{2,}",
    r"[\x{1F1E6}-\x{1F1FF}]{2}",  # a flag is two letters
    # Any other character with its marks, skin tone and flag tags, and what a joiner ties to it: an emoji family.
    r"\S(?:[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]|\x{200D}\S)*",
)
# A saved model names its way of splitting: change none of these, add another name.
SPLITS = {"words": "|".join(_CASES), "spaces": r"\S+"}


@dataclass(frozen=True)
class Tokenizer(TextReader):
    """A vocabulary and the settings it was made with: text -> ids and spans.

    Args:
        config: how text becomes words.
        words: the vocabulary; a word's place is its id. The first two stand for padding and for unknown words.
        counts: how often each was seen in training; 0 for the first two and for extra words.
    """

    config: TextConfig
    words: tuple[str, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    _engine: tokenizers.Tokenizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_engine", _engine(self.config, self.words))

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        *,
        config: TextConfig | None = None,
        min_frequency: int = 1,
        max_size: int = 0,
        extra_words: Iterable[str] = (),
    ) -> Self:
        """Make the vocabulary of a training set, the most frequent words first, equals in alphabetical order.

        Args:
            texts: read once.
            config: how text becomes words.
            min_frequency: leave out words seen less often.
            max_size: the most words to take from the texts; 0 is all.
            extra_words: words to know without having seen them. Those that would be lower-cased or split in any
                text are left out.

        Nothing of more than 200 characters becomes a word.

        >>> Tokenizer.build(["a b", "b c"], min_frequency=2, extra_words=["d", "D", "e-f"]).words[2:]
        ('b', 'd')
        """
        config = config or TextConfig()
        seen = count_words(texts, config=config)
        known = [(-count, word) for word, count in seen.items() if count >= min_frequency and len(word) <= _LONGEST]
        words = [word for _, word in sorted(known)[: max_size or None]]
        present, split = set(words), _splitter(config)
        new = (word for word in dict.fromkeys(extra_words) if word not in present and len(word) <= _LONGEST)
        extra = [word for word in new if split(word) == [word]]
        return cls(config, (*SPECIAL_WORDS, *words, *extra), (0, 0, *(seen[word] for word in words), *[0] * len(extra)))

    def to_json(self) -> str:
        content = {
            "format_version": FORMAT_VERSION,
            "settings": self.config.to_dict(),
            "words": self.words[len(SPECIAL_WORDS) :],
            "counts": self.counts[len(SPECIAL_WORDS) :],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_values(cls, values: Any, *, rows: int | None = None) -> Self:
        """Read the parsed content of `to_json`, which must have a word for each of so many rows."""
        settings, words, counts = _checked(values, rows)
        return cls(TextConfig.from_dict(settings), (*SPECIAL_WORDS, *words), (0, 0, *counts))


def read_tokenizer(content: str | bytes, *, rows: int | None = None) -> TextReader:
    """Read a `tokenizer.json` of any version, of words or of pieces.

    Args:
        content: of the file.
        rows: of the model's table; a tokenizer that does not fit it is refused before it is built.

    >>> read_tokenizer(Tokenizer.build(["It works."]).to_json()).words[2:]
    ('.', 'it', 'works')
    """
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the tokenizer is not JSON ({error}); copy the model folder again") from error
    of_pieces = isinstance(values, dict) and values.get("format_version") == OF_PIECES
    return (PieceTokenizer if of_pieces else Tokenizer).from_values(values, rows=rows)


def count_words(texts: Iterable[str], *, config: TextConfig) -> Counter[str]:
    """How often each word occurs.

    >>> count_words(["It is what it is."], config=TextConfig()).most_common(2)
    [('it', 2), ('is', 2)]
    """
    split = _splitter(config)
    counts: Counter[str] = Counter()
    for text in texts:
        for _, part in chain.from_iterable(sentences_of(clean(text), config, 1)):
            counts.update(split(part))
    return counts


def _engine(config: TextConfig, words: Sequence[str]) -> tokenizers.Tokenizer:
    ids = {word: row for row, word in enumerate(words)}
    engine = tokenizers.Tokenizer(models.WordLevel(ids, unk_token=SPECIAL_WORDS[UNKNOWN]))
    engine.normalizer = normalizers.Sequence([normalizers.Lowercase()] if config.lowercase else [])
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(SPLITS[config.split]), "removed", invert=True)
    return engine


def _splitter(config: TextConfig) -> Callable[[str], list[str]]:
    engine = _engine(config, SPECIAL_WORDS)

    def split(text: str) -> list[str]:
        lowered = engine.normalizer.normalize_str(text)
        return [word for word, _ in engine.pre_tokenizer.pre_tokenize_str(lowered)]

    return split


def _checked(values: Any, rows: int | None) -> tuple[dict[str, Any], list[str], list[int]]:
    if not isinstance(values, dict) or values.get("format_version") != FORMAT_VERSION:
        found = values.get("format_version") if isinstance(values, dict) else values
        raise InputError(f"wanted a tokenizer of format version {FORMAT_VERSION}, got {found!r:.80}; update routepool")
    settings, words, counts = (values.get(key) for key in ("settings", "words", "counts"))
    if not isinstance(settings, dict):
        raise InputError(f"settings of the tokenizer must be a table, got {settings!r:.80}")
    if rows is not None and isinstance(words, list) and len(words) + len(SPECIAL_WORDS) != rows:
        raise InputError(
            f"the tokenizer must have {rows - len(SPECIAL_WORDS)} words, as the weights do, got {len(words)}"
        )
    if not isinstance(words, list) or not all(isinstance(word, str) and not SURROGATES.search(word) for word in words):
        raise InputError("words of the tokenizer must be a list of strings without lone surrogates")
    if len({*words, *SPECIAL_WORDS}) != len(words) + len(SPECIAL_WORDS):
        raise InputError("words of the tokenizer must differ from one another")
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        raise InputError("counts of the tokenizer must be a list of whole numbers from 0")
    if len(counts) != len(words):
        raise InputError(f"the tokenizer must have a count for each of its {len(words)} words, got {len(counts)}")
    return settings, words, counts
