"""What users of an encoder's own tokenizer rely on: spans, sentences, nothing cut unasked, words from pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import tiny_encoder

from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text import PieceTokenizer, Tokenizer, read_tokenizer, words_of

ALL = TextConfig(max_words=0, max_sentences=0)


def tokenizer(config: TextConfig = ALL) -> PieceTokenizer:
    return PieceTokenizer(config, tiny_encoder.tokenizer().to_str())


def test_spans_are_characters_of_the_original_text() -> None:
    text = "Ünbelievably  GOOD — films! \N{GRINNING FACE} it was dull"
    (encoded,) = tokenizer().encode([text])
    parts = [text[start:end] for start, end in encoded.spans.tolist()]
    assert "".join(parts).lower() == "".join(text.lower().split())
    assert parts[-3:] == ["it", "was", "dull"]


def test_pieces_know_their_word_and_their_weights_add_up_to_its() -> None:
    text = "Films, goodness! The plot."
    (encoded,) = tokenizer().encode([text])
    words = words_of(encoded)
    assert [text[start:end] for start, end in words.spans.tolist()] == [
        "Films",
        ",",
        "goodness",
        "!",
        "The",
        "plot",
        ".",
    ]
    assert words.of_pieces.tolist() == [0, 0, 1, 2, 2, 3, 4, 5, 6]
    weights = np.random.default_rng(0).random((9, 3))
    total = words.add_up(weights)
    assert_allclose(total[0], weights[0] + weights[1])
    assert_allclose(total[2], weights[3] + weights[4])
    assert_allclose(total.sum(0), weights.sum(0))


def test_a_word_never_reaches_over_the_end_of_a_sentence_or_a_text() -> None:
    texts = ["Good films. Good films.", "goodness", "", "goodness"]
    encoded = tokenizer().encode(texts, depth=2)
    assert [len(words_of(one).spans) for one in encoded] == [6, 1, 0, 1]
    assert words_of(encoded[0]).of_pieces.tolist() == [0, 1, 1, 2, 3, 4, 4, 5]


def test_where_every_piece_is_a_word_weights_stay_as_they_are() -> None:
    (encoded,) = Tokenizer.build(["a good film"]).encode(["a good film"])
    weights = np.array([[0.2], [0.3], [0.5]])
    assert_allclose(words_of(encoded).add_up(weights), weights)


def test_sentences_are_those_of_every_other_model() -> None:
    text = "Dr. Good was dull. It was a very bad film! The plot, it was 3.50 bright."
    (pieces,) = tokenizer().encode([text], depth=2)
    (words,) = Tokenizer.build([text]).encode([text], depth=2)
    for encoded in (pieces, words):
        ends = np.cumsum(encoded.lengths)
        assert [text[encoded.spans[end - 1, 1] - 1] for end in ends] == [".", "!", "."]


def test_nothing_is_cut_or_padded_though_the_published_tokenizer_does_both() -> None:
    (short, long) = tokenizer().encode(["good", "bad " * 1000])
    assert (len(short.ids), len(long.ids), long.cut_words) == (1, 1000, 0)


def test_what_the_settings_cut_is_counted() -> None:
    (encoded,) = tokenizer(TextConfig(max_words=3)).encode(["goodness films was"])
    assert (len(encoded.ids), encoded.cut_words) == (3, 2)
    assert encoded.words is not None
    assert encoded.words.tolist() == [0, 0, 1]
    (encoded,) = tokenizer(TextConfig(max_sentences=1)).encode(["It was. Good films."], depth=2)
    assert (encoded.lengths.tolist(), encoded.cut_words, encoded.cut_sentences) == ([3], 4, 1)


def test_a_text_cannot_write_a_special_piece() -> None:
    known = tiny_encoder.vocabulary()
    (encoded,) = tokenizer().encode(["good [SEP] [CLS] [PAD] bad"])
    assert not {known["[SEP]"], known["[CLS]"], known["[PAD]"]} & set(encoded.ids.tolist())


def test_special_pieces_around_a_text_are_found() -> None:
    known = tiny_encoder.vocabulary()
    assert tokenizer().around() == ([known["[CLS]"]], [known["[SEP]"]])


def test_a_saved_tokenizer_reads_as_before() -> None:
    before = tokenizer(TextConfig(max_words=7))
    after = read_tokenizer(before.to_json())
    assert isinstance(after, PieceTokenizer)
    assert (after.config, after.words) == (before.config, before.words)
    text = "Goodness, films. It was a very bright plot!"
    for one, other in zip(before.encode([text], 2), after.encode([text], 2), strict=True):
        assert [np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)] == [True] * 6


def test_tokenizers_of_the_first_format_are_still_read() -> None:
    words = Tokenizer.build(["good films"])
    assert read_tokenizer(words.to_json()) == words


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format_version": 2}', '{"format_version": 2, "settings": {}, "pieces": {"model": 1}}']
)
def test_a_damaged_tokenizer_is_refused_in_one_sentence(content: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tokenizer(content)
    assert "\n" not in str(caught.value)


def test_characters_of_a_script_without_spaces_are_words() -> None:
    (encoded,) = tokenizer().encode(["\u4e16\u754c good"])
    assert words_of(encoded).of_pieces.tolist() == [0, 1, 2]
