"""What those rely on who bring a published tokenizer: its kind is known, and what is accepted reads any text."""

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from support import tiny_encoder
from support.tiny_vectors import flipped
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text import PieceTokenizer
from routepool.text.piece_files import is_charsmap

GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LETTERS = list("abcdefghijklmnopqrstuvwxyz")
TEXTS = [
    "",
    "A good film.",
    "\u0301" * 50,
    "\ufb01lm \N{GRINNING FACE} 电影",
    "a" * 5000,
    "\x00\x1c \u200d\ufeff",
    "1" * 3000,
]


def word_piece() -> Tokenizer:
    return Tokenizer(models.WordPiece(tiny_encoder.vocabulary(), unk_token="[UNK]"))


def byte_pairs() -> Tokenizer:
    known = {letter: place for place, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE({**known, "fi": 256}, [("f", "i")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(("a", known["a"]), ("b", known["b"]))
    return made


def unigram() -> Tokenizer:
    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("\u2581", -1.0), *((one, -2.0) for one in LETTERS)], unk_id=0))
    made.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="a $A b", special_tokens=[("a", 2), ("b", 3)])
    return made


def normalized() -> Iterator[Tokenizer]:
    kinds = [normalizers.Lowercase(), normalizers.NFD(), normalizers.Strip(), normalizers.StripAccents()]
    for kind in [*kinds, normalizers.Prepend("_"), normalizers.Replace("``", '"'), normalizers.ByteLevel()]:
        made = word_piece()
        made.normalizer = kind
        yield made


def split() -> Iterator[Tokenizer]:
    kinds: list[Any] = [pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    kinds += [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.CharDelimiterSplit("-")]
    kinds += [pre_tokenizers.UnicodeScripts(), pre_tokenizers.Split(Regex(GPT_2), "isolated")]
    for kind in [
        *kinds,
        pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Split("-", "removed")]),
    ]:
        made = word_piece()
        made.pre_tokenizer = kind
        yield made


@pytest.mark.parametrize("made", [tiny_encoder.tokenizer(), byte_pairs(), unigram(), *normalized(), *split()])
def test_tokenizers_of_known_kinds_read_any_text_as_their_package_does(made: Tokenizer) -> None:
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = True
    reader = PieceTokenizer(TextConfig(max_words=0), made.to_str())
    for text, encoded in zip(TEXTS, reader.encode(TEXTS), strict=True):
        assert encoded.ids.tolist() == made.encode(text, add_special_tokens=False).ids


def test_a_file_that_is_older_than_the_types_of_models_is_read() -> None:
    for made in (tiny_encoder.tokenizer(), byte_pairs(), unigram()):
        content = json.loads(made.to_str())
        del content["model"]["type"]
        assert (
            PieceTokenizer(TextConfig(), json.dumps(content)).words == PieceTokenizer(TextConfig(), made.to_str()).words
        )


def test_a_word_of_any_length_is_read_in_pieces() -> None:
    for made in (tiny_encoder.tokenizer(), byte_pairs()):
        reader = PieceTokenizer(TextConfig(max_words=0), made.to_str())
        (encoded,) = reader.encode(["good " + "1" * 1_000_000 + " good"])
        assert encoded.spans[-1].tolist()[1] == 1_000_010


def charsmap() -> bytes:
    """Replaces the ligature fi, three bytes, by two letters: a double array of four blocks."""
    units, place, children = [0] * 1024, 0, 256
    units[0] = children << 10
    for byte, following in zip("\ufb01".encode(), (512, 768, 256), strict=True):
        place = children ^ byte
        units[place] = (place ^ following) << 10 | byte | (256 if following == 256 else 0)
        children = following
    units[children] = 1 << 31
    return struct.pack("<1025I", 4096, *units) + b"fi\0"


def with_charsmap(table: bytes) -> str:
    content = json.loads(unigram().to_str())
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}
    return json.dumps(content)


def test_a_whole_table_of_characters_is_used() -> None:
    reader = PieceTokenizer(TextConfig(), with_charsmap(charsmap()))
    (encoded,) = reader.encode(["\ufb01lm"])
    assert [reader.words[place] for place in encoded.ids] == ["\u2581", "f", "i", "l", "m"]


def test_a_damaged_table_of_characters_is_refused_or_harmless() -> None:
    whole, refused = charsmap(), 0
    used = [place for place in range(len(whole)) if whole[place] or place < 4 or place >= 4100]
    for place in (8 * byte + bit for byte in used for bit in range(8)):
        table = flipped(whole, place)
        if is_charsmap(base64.b64encode(table).decode()):
            PieceTokenizer(TextConfig(), with_charsmap(table)).encode([*TEXTS, "\ufb01\ufb02"])
        else:
            refused += 1
            with pytest.raises(InputError, match="precompiled_charsmap of the normalizer Precompiled"):
                PieceTokenizer(TextConfig(), with_charsmap(table))
    assert refused > 50
