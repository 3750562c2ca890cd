"""A `tokenizer.json` of the tokenizers package, checked before the package is handed it.

The package trusts its files. Some make it panic, abort or fill the memory when they are read, others when they meet the
right text. So every part must be in a closed list (`piece_rules`), and only what was checked is handed on.
"""

from collections.abc import Mapping
from typing import Any

from routepool.errors import InputError
from routepool.text.piece_rules import (
    ADDED,
    MODELS,
    MOST_PARTS,
    NORMALIZERS,
    POST_PROCESSORS,
    PRE_TOKENIZERS,
    Parts,
    fits,
    is_id,
    is_scored,
)

_PARTS: Mapping[str, tuple[str, Parts]] = {  # with the key of a sequence of them
    "normalizer": ("normalizers", NORMALIZERS),
    "pre_tokenizer": ("pretokenizers", PRE_TOKENIZERS),
    "post_processor": ("processors", POST_PROCESSORS),
}


def checked_pieces(content: Any) -> dict[str, Any]:
    """The parts of a tokenizer that read a text; those that write or cut one are left out."""
    _need("the tokenizer", content, isinstance(content, dict))
    model = _typed(content.get("model"))
    _check("model", model, MODELS)
    _check_unknown(model, vocabulary_of(model))
    tokens = content.get("added_tokens") or []
    _need("added_tokens", tokens, isinstance(tokens, list) and all(fits(token, ADDED) for token in tokens))
    read: dict[str, Any] = {"version": "1.0", "added_tokens": tokens, "model": model}
    for name, (key, known) in _PARTS.items():
        read[name] = content.get(name)
        for part in _in_order(name, key, read[name]):
            _check(name, part, known)
    return read


def vocabulary_of(model: Any) -> dict[str, int]:
    """Piece -> id, of the model of a tokenizer."""
    listed = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(listed, list):  # places for ids, and scores: Unigram
        _need("vocab", listed, all(map(is_scored, listed)))
        listed = {piece: place for place, (piece, _) in enumerate(listed)}
    if not isinstance(listed, dict) or not listed:
        raise InputError(f"vocab of the tokenizer must be a table of its pieces, got {listed!r:.80}")
    wrong = [place for place in listed.values() if not is_id(place)]
    _need("an id", wrong[:1], not wrong)
    return listed


def _check_unknown(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> None:
    """Refuse a model that has no piece for what it does not know: it would fail at a text."""
    if model["type"] == "Unigram":
        place = model.get("unk_id")
        _need("unk_id", place, type(place) is int and 0 <= place < len(vocabulary))
    else:
        name = model.get("unk_token")
        _need("unk_token", name, name in vocabulary or (name is None and model["type"] == "BPE"))


def _typed(model: Any) -> Any:
    """The model of a file that is older than the types, with its type."""
    if not isinstance(model, dict) or "type" in model:
        return model
    marks = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
    return {"type": next((kind for mark, kind in marks.items() if mark in model), "WordLevel"), **model}


def _in_order(name: str, key: str, part: Any) -> list[Any]:
    """The parts of a sequence; a sequence in a sequence is none of them."""
    if not isinstance(part, dict) or part.get("type") != "Sequence":
        return [] if part is None else [part]
    parts = part.get(key)
    _need(name, parts, isinstance(parts, list) and len(parts) <= MOST_PARTS and part.keys() == {"type", key})
    return list(parts or [])


def _check(name: str, part: Any, known: Parts) -> None:
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(kind, str) or kind not in known:
        raise InputError(f"{name} of the tokenizer must be one of {', '.join(known)}, got {kind!r:.80}")
    for field, value in part.items():
        if field != "type":
            _need(f"{field!s:.80} of the {name} {kind}", value, fits({field: value}, known[kind]))


def _need(name: str, value: Any, right: object) -> None:
    if not right:
        raise InputError(f"{name} is none that a tokenizer can have here, got {value!r:.80}")
