"""Text -> sentences -> tokens with their places in the text, and the vocabulary."""

from routepool.text.pieces import PieceTokenizer, Words, words_of
from routepool.text.tokens import PAD, UNKNOWN, Encoded, TextReader, is_document
from routepool.text.unread import Reading, Truncation, Unread, warn
from routepool.text.words import SPECIAL_WORDS, Tokenizer, count_words, read_tokenizer

__all__ = [
    "PAD",
    "SPECIAL_WORDS",
    "UNKNOWN",
    "Encoded",
    "PieceTokenizer",
    "Reading",
    "TextReader",
    "Tokenizer",
    "Truncation",
    "Unread",
    "Words",
    "count_words",
    "is_document",
    "read_tokenizer",
    "warn",
    "words_of",
]
