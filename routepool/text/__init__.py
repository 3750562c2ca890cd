"""Text -> sentences -> tokens with their places in the text, and the vocabulary."""

from routepool.text.pieces import PieceTokenizer as PieceTokenizer
from routepool.text.pieces import words_of as words_of
from routepool.text.tokens import PAD as PAD
from routepool.text.tokens import UNKNOWN as UNKNOWN
from routepool.text.tokens import Encoded as Encoded
from routepool.text.tokens import TextReader as TextReader
from routepool.text.tokens import is_document as is_document
from routepool.text.unread import Reading as Reading
from routepool.text.unread import Truncation as Truncation
from routepool.text.unread import Unread as Unread
from routepool.text.unread import warn as warn
from routepool.text.words import SPECIAL_WORDS as SPECIAL_WORDS
from routepool.text.words import Tokenizer as Tokenizer
from routepool.text.words import count_words as count_words
from routepool.text.words import read_tokenizer as read_tokenizer
