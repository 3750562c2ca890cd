"""Which parts a tokenizer of pieces may have, and what their fields may hold: what reads any text in linear time."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MOST_IDS = 2**22  # the largest vocabularies that are published have a million pieces
MOST_PARTS = 32  # of a sequence or a template
_MOST_LETTERS = 200  # of a word that word pieces are sought in, at a cost of their square; published files have 100

# The expressions of published tokenizers: those of GPT-2 and of Llama 3, and runs of blanks.
_EXPRESSIONS = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    " {2,}",
)

_LEAF = np.uint32(1 << 31)  # of a table of replacements

Rule = Callable[[Any], bool]
Fields = Mapping[str, Rule]
Parts = Mapping[str, Fields]  # by their type


def fits(value: Any, fields: Fields) -> bool:
    """Whether a table has these fields and no others."""
    return isinstance(value, dict) and all(key in fields and fields[key](one) for key, one in value.items())


def is_id(value: Any) -> bool:
    """Whether it can be the place of a piece; a table of pieces is as long as the last one."""
    return type(value) is int and 0 <= value < MOST_IDS


def is_scored(value: Any) -> bool:
    """Whether it is a piece and its score."""
    pair = isinstance(value, list) and len(value) == 2 and _text(1000)(value[0])
    return pair and type(value[1]) in (int, float) and abs(value[1]) < 1e9  # so that NaN is none


def _text(most: int, least: int = 1) -> Rule:
    return lambda value: isinstance(value, str) and least <= len(value) <= most


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*choices: Any) -> Rule:
    return lambda value: any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)


def _optional(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _list_of(rule: Rule, most: int = MOST_PARTS) -> Rule:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(rule, value))


def _letters(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MOST_LETTERS


def _plain(*kinds: str) -> Parts:
    """Parts without a field."""
    return {kind: {} for kind in kinds}


def _anything(value: Any) -> bool:
    return True


def _pattern(value: Any) -> bool:
    return fits(value, {"String": _text(1000), "Regex": _one_of(*_EXPRESSIONS)}) and len(value) == 1


def is_charsmap(encoded: Any) -> bool:
    """Whether no step leads outside the table of a `Precompiled` normalizer, what sentencepiece replaces characters by.

    The engine takes offsets from the table without asking whether they lie inside it. The layout: the size of a double
    array in bytes (4), its units (4 each), then the replacements, each ended by a zero. A unit holds a label, an offset
    to its children, and whether one of these is a leaf; a leaf holds the place of a replacement.

    >>> is_charsmap("AAAA")
    False
    """
    try:
        return isinstance(encoded, str) and _is_whole(base64.b64decode(encoded, validate=True))
    except ValueError:  # no base64, or replacements that are no UTF-8
        return False


def _is_whole(content: bytes) -> bool:
    size = int.from_bytes(content[:4], "little")
    replacements = content[4 + size :]
    replacements.decode()
    if len(content) < 4 + size or size % 4 or not size or not replacements.endswith(b"\0"):
        return False
    units = np.frombuffer(content, dtype="<u4", count=size // 4, offset=4)
    places = np.arange(len(units), dtype=np.uint64)
    inner = (units & _LEAF) == 0
    # Children lie in the block of 256 that the offset names; the engine looks at any of them.
    children = places ^ ((units >> 10).astype(np.uint64) << ((units & 512) >> 6))
    if ((children | 255) >= len(units))[inner].any():
        return False
    leaves = units[children[inner & (units & 256 != 0)]]
    starts = np.frombuffer(b"\0" + replacements[:-1], dtype=np.uint8) == 0  # where a replacement begins
    within = ((leaves & _LEAF) != 0) & (leaves ^ _LEAF < len(starts))
    return bool(within.all() and starts[leaves ^ _LEAF].all())


def _special(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _text(1000)(value[0]) and is_id(value[1])


def _template(value: Any) -> bool:
    item = {"Sequence": lambda one: fits(one, _SEQUENCE), "SpecialToken": lambda one: fits(one, _SPECIAL)}
    return _list_of(lambda one: fits(one, item) and len(one) == 1)(value)


def _single(value: Any) -> bool:
    """A template in which the text comes once."""
    return _template(value) and sum("Sequence" in item for item in value) == 1


def _specials(value: Any) -> bool:
    return isinstance(value, dict) and _list_of(lambda one: fits(one, _TOKENS))(list(value.values()))


_MARK = _optional(_text(16, least=0))
_BEHAVIOUR = _one_of("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_SPECIAL: Fields = {"id": _text(1000), "type_id": is_id}
_SEQUENCE: Fields = {"id": _one_of("A", "B"), "type_id": is_id}
_TOKENS: Fields = {"id": _text(1000), "ids": _list_of(is_id), "tokens": _list_of(_text(1000))}
_BYTES: Fields = dict.fromkeys(("add_prefix_space", "trim_offsets", "use_regex"), _flag)

ADDED: Fields = {
    "id": is_id,
    "content": _text(1000),
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), _flag),
}
MODELS: Parts = {
    "WordPiece": {
        "vocab": _anything,  # see `checked_pieces`
        "unk_token": _text(1000),
        "continuing_subword_prefix": _MARK,
        "max_input_chars_per_word": _letters,
    },
    "BPE": {
        "vocab": _anything,
        "merges": _anything,  # the package checks that they are of pieces
        "unk_token": _optional(_text(1000)),
        "continuing_subword_prefix": _MARK,
        "end_of_word_suffix": _MARK,
        "dropout": _one_of(None),  # else a text would not always be the same pieces
        **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), _flag),
    },
    "Unigram": {"vocab": _anything, "unk_id": is_id, "byte_fallback": _flag},
    "WordLevel": {"vocab": _anything, "unk_token": _text(1000)},
}
NORMALIZERS: Parts = {
    "BertNormalizer": {
        **dict.fromkeys(("clean_text", "handle_chinese_chars", "lowercase"), _flag),
        "strip_accents": _optional(_flag),
    },
    **_plain("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents", "ByteLevel"),
    "Strip": dict.fromkeys(("strip_left", "strip_right"), _flag),
    "Prepend": {"prepend": _text(16)},
    "Replace": {"pattern": _pattern, "content": _text(1, least=0)},  # no longer: a chain of them would double a text
    "Precompiled": {"precompiled_charsmap": is_charsmap},
}
PRE_TOKENIZERS: Parts = {
    **_plain("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts"),
    "ByteLevel": _BYTES,
    "Metaspace": {
        **dict.fromkeys(("replacement", "str_rep"), _text(1)),
        "prepend_scheme": _one_of("always", "first", "never"),
        **dict.fromkeys(("split", "add_prefix_space"), _flag),
    },
    "Digits": {"individual_digits": _flag},
    "Punctuation": {"behavior": _BEHAVIOUR},
    "CharDelimiterSplit": {"delimiter": _text(1)},
    "Split": {"pattern": _pattern, "behavior": _BEHAVIOUR, "invert": _flag},
}
POST_PROCESSORS: Parts = {
    "ByteLevel": _BYTES,
    "BertProcessing": dict.fromkeys(("sep", "cls"), _special),
    "RobertaProcessing": {
        **dict.fromkeys(("sep", "cls"), _special),
        **dict.fromkeys(("trim_offsets", "add_prefix_space"), _flag),
    },
    "TemplateProcessing": {"single": _single, "pair": _template, "special_tokens": _specials},
}
