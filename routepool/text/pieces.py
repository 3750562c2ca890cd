"""Text -> the pieces of words that a pre-trained encoder reads, by the tokenizer it was published with."""

# N pieces  W words

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import tokenizers

from routepool.arrays import Floats, Integers
from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text.piece_files import checked_pieces, vocabulary_of
from routepool.text.tokens import Encoded, TextReader

FORMAT_VERSION = 2  # of tokenizer.json; version 1 holds words


@dataclass(frozen=True)
class PieceTokenizer(TextReader):
    """A tokenizer of the tokenizers package, used as `Tokenizer` is: sentences first, spans in the original text.

    It cuts texts only where the settings say so, and takes nothing in a text for a special token.

    Args:
        config: where sentences end and what is cut; case and words are left to the tokenizer.
        content: the JSON of its `tokenizer.json`.

    >>> pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "film": 1, "##s": 2}))
    >>> pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    >>> (text,) = PieceTokenizer(TextConfig(), pieces.to_str()).encode(["film films"])
    >>> text.ids.tolist(), text.words.tolist()
    ([1, 1, 2], [0, 1, 1])
    >>> text.spans.tolist()
    [[0, 4], [5, 9], [9, 10]]
    """

    config: TextConfig
    content: str = field(repr=False)
    _engine: tokenizers.Tokenizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            pieces = checked_pieces(json.loads(self.content))
            engine = tokenizers.Tokenizer.from_str(json.dumps(pieces))
        except InputError:
            raise
        except Exception as error:  # the package raises nothing narrower
            raise InputError(f"wanted the JSON of a tokenizer, got something else ({error!s:.200})") from error
        engine.encode_special_tokens = True
        object.__setattr__(self, "_engine", engine)

    @cached_property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every piece at the place of its id; an empty string where an id has none."""
        vocabulary = self._engine.get_vocab(with_added_tokens=True)
        names = [""] * (max(vocabulary.values(), default=-1) + 1)
        for name, place in vocabulary.items():
            names[place] = name
        return tuple(names)

    @cached_property
    def unknown(self) -> int | None:
        model = json.loads(self.content)["model"]
        if isinstance(model.get("unk_id"), int):
            return int(model["unk_id"])
        return self._engine.token_to_id(model["unk_token"]) if model.get("unk_token") else None

    def around(self) -> tuple[list[int], list[int]]:
        """The special ids that the encoder expects before and behind a text, such as [CLS] and [SEP].

        >>> pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}))
        >>> pieces.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        >>> PieceTokenizer(TextConfig(), pieces.to_str()).around()
        ([1], [2])
        """
        encoding = self._engine.encode("a")
        real = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        first, last = (real[0], real[-1]) if real else (len(encoding.ids), len(encoding.ids))
        return encoding.ids[:first], encoding.ids[last + 1 :]

    def _words_of(self, encodings: Sequence[tokenizers.Encoding]) -> Integers:
        numbers = [
            np.fromiter((-1 if word is None else word for word in each.word_ids), np.int32, len(each))
            for each in encodings
        ]
        # A new word begins where the number changes, and with every sentence.
        begins = [np.diff(of_one, prepend=-2) != 0 for of_one in numbers]
        return np.concatenate([np.empty(0, np.bool_), *begins]).cumsum(dtype=np.int32)

    def to_json(self) -> str:
        content = {
            "format_version": FORMAT_VERSION,
            "settings": self.config.to_dict(),
            "pieces": json.loads(self.content),
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, rows: int | None = None) -> Self:
        """Read the parsed content of `to_json`, whose ids must all be below the number of rows."""
        settings, pieces = values.get("settings"), values.get("pieces")
        if not isinstance(settings, dict) or not isinstance(pieces, dict):
            raise InputError(f"wanted a tokenizer of format version {FORMAT_VERSION} with its settings and pieces")
        _check_rows(len(vocabulary_of(pieces.get("model"))), rows)
        made = cls(TextConfig.from_dict(settings), json.dumps(pieces, ensure_ascii=False))
        _check_rows(len(made.words), rows)
        return made


class Words(NamedTuple):
    """Which word each piece belongs to, so that what a model says of pieces can be said of words."""

    spans: Integers  # (W, 2) characters of each word in the original text
    of_pieces: Integers  # (N,) the word of each piece

    def add_up(self, weights: Floats) -> Floats:
        """(N, ...) weights of the pieces -> (W, ...) weights of the words, with the same sum."""
        total = np.zeros((len(self.spans), *weights.shape[1:]), dtype=weights.dtype)
        np.add.at(total, self.of_pieces, weights)
        return total


def words_of(encoded: Encoded) -> Words:
    """The words of a text that was read by words or by pieces.

    >>> from routepool.text import Tokenizer
    >>> text = Tokenizer.build(["two words"]).encode(["two words"])[0]
    >>> words_of(text).add_up(np.array([0.25, 0.75])).tolist()
    [0.25, 0.75]
    """
    if encoded.words is None:
        return Words(encoded.spans, np.arange(len(encoded.ids), dtype=np.int32))
    begins = np.diff(encoded.words, prepend=-1) != 0
    ends = np.append(begins[1:], True)[: len(begins)]
    spans = np.stack([encoded.spans[begins, 0], encoded.spans[ends, 1]], axis=1)
    return Words(spans, begins.cumsum(dtype=np.int32) - np.int32(1))


def _check_rows(pieces: int, rows: int | None) -> None:
    if rows is not None and pieces > rows:
        raise InputError(f"the encoder knows ids below {rows}, but its tokenizer has {pieces}")
