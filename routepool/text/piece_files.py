"""A `tokenizer.json` of the tokenizers package, checked before the package is handed it.

The package trusts its files. Some make it panic, abort or fill the memory when they are read, others when they meet the
right text. So every part must be in a closed list, of parts that read any text in linear time, and only what was
checked is handed on.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from routepool.errors import InputError

_MOST_IDS = 2**22  # the largest vocabularies that are published have a million pieces
_MOST_PARTS = 32  # of a sequence or a template
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


def _fits(value: Any, fields: Fields) -> bool:
    """Whether a table has none but these fields."""
    return isinstance(value, dict) and all(key in fields and fields[key](one) for key, one in value.items())


def _is_id(value: Any) -> bool:
    """Whether it can be the id of a piece; the largest id decides how long a table of pieces is."""
    return type(value) is int and 0 <= value < _MOST_IDS


def _is_scored(value: Any) -> bool:
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


def _list_of(rule: Rule, most: int = _MOST_PARTS) -> Rule:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(rule, value))


def _letters(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MOST_LETTERS


def _plain(*kinds: str) -> Parts:
    return {kind: {} for kind in kinds}


def _anything(value: Any) -> bool:
    return True


def _pattern(value: Any) -> bool:
    return _fits(value, {"String": _text(1000), "Regex": _one_of(*_EXPRESSIONS)}) and len(value) == 1


def is_charsmap(encoded: Any) -> bool:
    """Whether no step leads outside the table by which a `Precompiled` normalizer replaces characters.

    The engine follows offsets in the table without asking whether they lie inside it. The layout: the size of a double
    array in bytes (4), its entries (4 each), then the replacements, each ended by a zero. An entry holds a label, an
    offset to its children, and whether one of these is a leaf; a leaf holds the place of a replacement.

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
    entries = np.frombuffer(content, dtype="<u4", count=size // 4, offset=4)
    places = np.arange(len(entries), dtype=np.uint64)
    inner = (entries & _LEAF) == 0
    # Children lie in the block of 256 that the offset names; the engine looks at any of them.
    children = places ^ ((entries >> 10).astype(np.uint64) << ((entries & 512) >> 6))
    if ((children | 255) >= len(entries))[inner].any():
        return False
    leaves = entries[children[inner & (entries & 256 != 0)]]
    starts = np.frombuffer(b"\0" + replacements[:-1], dtype=np.uint8) == 0  # where a replacement begins
    within = ((leaves & _LEAF) != 0) & (leaves ^ _LEAF < len(starts))
    return bool(within.all() and starts[leaves ^ _LEAF].all())


def _special(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _text(1000)(value[0]) and _is_id(value[1])


def _template(value: Any) -> bool:
    item = {"Sequence": lambda one: _fits(one, _SEQUENCE), "SpecialToken": lambda one: _fits(one, _SPECIAL)}
    return _list_of(lambda one: _fits(one, item) and len(one) == 1)(value)


def _single(value: Any) -> bool:
    """Whether it is a template in which the text comes once."""
    return _template(value) and sum("Sequence" in item for item in value) == 1


def _specials(value: Any) -> bool:
    return isinstance(value, dict) and _list_of(lambda one: _fits(one, _TOKENS))(list(value.values()))


_MARK = _optional(_text(16, least=0))
_BEHAVIOUR = _one_of("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_SPECIAL: Fields = {"id": _text(1000), "type_id": _is_id}
_SEQUENCE: Fields = {"id": _one_of("A", "B"), "type_id": _is_id}
_TOKENS: Fields = {"id": _text(1000), "ids": _list_of(_is_id), "tokens": _list_of(_text(1000))}
_BYTES: Fields = dict.fromkeys(("add_prefix_space", "trim_offsets", "use_regex"), _flag)

_ADDED: Fields = {
    "id": _is_id,
    "content": _text(1000),
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), _flag),
}
_MODELS: Parts = {
    "WordPiece": {
        "vocab": _anything,  # see `vocabulary_of`
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
    "Unigram": {"vocab": _anything, "unk_id": _is_id, "byte_fallback": _flag},
    "WordLevel": {"vocab": _anything, "unk_token": _text(1000)},
}
_NORMALIZERS: Parts = {
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
_PRE_TOKENIZERS: Parts = {
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
_POST_PROCESSORS: Parts = {
    "ByteLevel": _BYTES,
    "BertProcessing": dict.fromkeys(("sep", "cls"), _special),
    "RobertaProcessing": {
        **dict.fromkeys(("sep", "cls"), _special),
        **dict.fromkeys(("trim_offsets", "add_prefix_space"), _flag),
    },
    "TemplateProcessing": {"single": _single, "pair": _template, "special_tokens": _specials},
}
_PARTS: Mapping[str, tuple[str, Parts]] = {  # with the key of a sequence of them
    "normalizer": ("normalizers", _NORMALIZERS),
    "pre_tokenizer": ("pretokenizers", _PRE_TOKENIZERS),
    "post_processor": ("processors", _POST_PROCESSORS),
}


def checked_pieces(content: Any) -> dict[str, Any]:
    """The parts of a tokenizer that read text; those that write or cut it are left out."""
    _need("the tokenizer", content, isinstance(content, dict))
    model = _typed(content.get("model"))
    _check("model", model, _MODELS)
    _check_unknown(model, vocabulary_of(model))
    tokens = content.get("added_tokens") or []
    _need("added_tokens", tokens, isinstance(tokens, list) and all(_fits(token, _ADDED) for token in tokens))
    read: dict[str, Any] = {"version": "1.0", "added_tokens": tokens, "model": model}
    for name, (key, known) in _PARTS.items():
        read[name] = content.get(name)
        for part in _in_order(name, key, read[name]):
            _check(name, part, known)
    return read


def vocabulary_of(model: Any) -> dict[str, int]:
    """Piece -> id, in the model of a tokenizer."""
    listed = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(listed, list):  # places for ids, and scores: Unigram
        _need("vocab", listed, all(map(_is_scored, listed)))
        listed = {piece: place for place, (piece, _) in enumerate(listed)}
    if not isinstance(listed, dict) or not listed:
        raise InputError(f"vocab of the tokenizer must be a table of its pieces, got {listed!r:.80}")
    wrong = [place for place in listed.values() if not _is_id(place)]
    _need("an id", wrong[:1], not wrong)
    return listed


def _check_unknown(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> None:
    """Refuse a model without a piece for what it does not know: it would fail at a text."""
    if model["type"] == "Unigram":
        place = model.get("unk_id")
        _need("unk_id", place, type(place) is int and 0 <= place < len(vocabulary))
    else:
        name = model.get("unk_token")
        _need("unk_token", name, name in vocabulary or (name is None and model["type"] == "BPE"))


def _typed(model: Any) -> Any:
    """The model with its type, which older files lack."""
    if not isinstance(model, dict) or "type" in model:
        return model
    marks = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
    return {"type": next((kind for mark, kind in marks.items() if mark in model), "WordLevel"), **model}


def _in_order(name: str, key: str, part: Any) -> list[Any]:
    """The parts of a sequence, which may hold no other sequence."""
    if not isinstance(part, dict) or part.get("type") != "Sequence":
        return [] if part is None else [part]
    parts = part.get(key)
    _need(name, parts, isinstance(parts, list) and len(parts) <= _MOST_PARTS and part.keys() == {"type", key})
    return list(parts or [])


def _check(name: str, part: Any, known: Parts) -> None:
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(kind, str) or kind not in known:
        raise InputError(f"{name} of the tokenizer must be one of {', '.join(known)}, got {kind!r:.80}")
    for field, value in part.items():
        if field != "type":
            _need(f"{field!s:.80} of the {name} {kind}", value, _fits({field: value}, known[kind]))


def _need(name: str, value: Any, right: object) -> None:
    if not right:
        raise InputError(f"{name} is none that a tokenizer can have here, got {value!r:.80}")
