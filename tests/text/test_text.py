"""What users of `routepool.text` rely on: spans into the original text, a stable vocabulary, cuts that are told."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text import PAD, SPECIAL_WORDS, UNKNOWN, Encoded, Tokenizer, Truncation, count_words, read_tokenizer
from routepool.text.tokens import LONGEST_WORD

ENGLISH = "Dr. Smith's film cost $3.50. He didn't like it... <br />Well-made in the U.S., though!"
GERMAN = "Übermäßig schön, sagte Größe. Die Straße war naß!"
CHINESE = "这部电影很好看。我喜欢abc！"
ARABIC = "الفيلم جَيِّد جدا. هل أعجبك؟"
EMOJI = "Loved it 👩‍👩‍👧! 👍🏽 🇩🇪🇫🇷 ❤️ 1️⃣"
TYPICAL = [ENGLISH, GERMAN, CHINESE, ARABIC, EMOJI, "İstanbul'da e\u0301te\u0301 हिन्दी में می‌خواهم ดีมาก 한국어"]

anything = st.text(max_size=60) | st.lists(st.sampled_from([*TYPICAL, " ", "\n\n", "\x00", "\u200d", "<"])).map("".join)


def pieces(text: str, encoded: Encoded) -> list[str]:
    return [text[start:end] for start, end in encoded.spans.tolist()]


def lowered(text: str) -> str:
    # Letter by letter: Python alone turns a capital sigma at the end of a word into its final form.
    return "".join(letter.lower() for letter in text)


def split(text: str, **settings: Any) -> list[str]:
    return pieces(text, Tokenizer.build([], config=TextConfig(**settings)).encode([text])[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENGLISH, "Dr|.|Smith|'s|film|cost|$|3.50|.|He|did|n't|like|it|...|<br />|Well|-|made|in|the|U.S.|,|though|!"),
        (GERMAN, "Übermäßig|schön|,|sagte|Größe|.|Die|Straße|war|naß|!"),
        (CHINESE, "这|部|电|影|很|好|看|。|我|喜|欢|abc|！"),
        (ARABIC, "الفيلم|جَيِّد|جدا|.|هل|أعجبك|؟"),
        (EMOJI, "Loved|it|👩‍👩‍👧|!|👍🏽|🇩🇪|🇫🇷|❤️|1️⃣"),
        ("İstanbul'da e\u0301te\u0301 می‌خواهم", "İstanbul|'|da|e\u0301te\u0301|می‌خواهم"),
        ("CAN’T we've O'Neil", "CA|N’T|we|'ve|O|'|Neil"),
    ],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_words_of_many_scripts_are_found_in_the_original_text(text: str, words: str, lowercase: bool) -> None:
    assert split(text, lowercase=lowercase) == words.split("|")


@given(anything, st.sampled_from(["words", "spaces"]), st.booleans(), st.sampled_from([1, 2]))
def test_spans_cut_out_the_words_in_order(text: str, split: str, lowercase: bool, depth: int) -> None:
    tokenizer = Tokenizer.build([text], config=TextConfig(split=split, lowercase=lowercase, max_words=0))
    (encoded,) = tokenizer.encode([text], depth=depth)
    starts, ends = encoded.spans.T.tolist()
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert int(encoded.lengths.sum()) == len(encoded.ids) == len(encoded.spans)
    for word, row in zip(pieces(text, encoded), encoded.ids.tolist(), strict=True):
        assert row != PAD
        if row != UNKNOWN:  # a sentence's end may fall inside a word
            assert tokenizer.words[row] == (lowered(word) if lowercase else word)


@given(st.lists(st.sampled_from([*TYPICAL, "\n", "\u00a0", "..."]), max_size=5).map(" ".join), st.sampled_from([1, 2]))
def test_every_visible_character_belongs_to_a_word(text: str, depth: int) -> None:
    (encoded,) = Tokenizer.build([], config=TextConfig(max_words=0)).encode([text], depth=depth)
    covered = {place for start, end in encoded.spans.tolist() for place in range(start, end)}
    assert all(place in covered or letter.isspace() for place, letter in enumerate(text))


@given(st.lists(anything, max_size=4), st.sampled_from([1, 2]))
def test_a_text_reads_the_same_alone_and_in_company(texts: list[str], depth: int) -> None:
    tokenizer = Tokenizer.build(texts)
    together = tokenizer.encode(texts, depth=depth)
    for text, encoded in zip(texts, together, strict=True):
        (alone,) = tokenizer.encode([text], depth=depth)
        for one, other in zip(alone, encoded, strict=True):
            np.testing.assert_array_equal(one, other)


def test_more_texts_than_one_group_keep_their_order() -> None:
    texts = [str(number) for number in range(2500)]
    tokenizer = Tokenizer.build(texts)
    assert [tokenizer.words[encoded.ids[0]] for encoded in tokenizer.encode(texts)] == texts


def test_sentences_are_found_and_blank_ones_dropped() -> None:
    text = "Dr. Smith left. 👩‍👩‍👧 stayed!\n\n\n\nNew paragraph?   "
    (encoded,) = Tokenizer.build([]).encode([text], depth=2)
    assert encoded.lengths.tolist() == [5, 3, 3]
    assert pieces(text, encoded)[5:] == ["👩‍👩‍👧", "stayed", "!", "New", "paragraph", "?"]


@pytest.mark.parametrize(("text", "sentences"), [(GERMAN, 2), (CHINESE, 2), (ARABIC, 2)])
def test_sentences_of_other_languages_are_found(text: str, sentences: int) -> None:
    (encoded,) = Tokenizer.build([]).encode([text], depth=2)
    assert len(encoded.lengths) == sentences


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_an_empty_text_has_no_words(text: str) -> None:
    flat, document = (Tokenizer.build(["a"]).encode([text], depth=depth)[0] for depth in (1, 2))
    assert (flat.ids.tolist(), flat.lengths.tolist(), flat.spans.shape) == ([], [0], (0, 2))
    assert (document.ids.tolist(), document.lengths.tolist(), document.spans.shape) == ([], [], (0, 2))


def test_no_texts_give_no_encodings() -> None:
    assert Tokenizer.build([]).encode([], depth=2) == []


def test_a_separator_ends_sentences_and_is_no_word() -> None:
    config = TextConfig(split="spaces", separator="<sssss>")
    text = "not bad . <sssss> mr. x is e.g. fine <sssss>  <sssss>the end"
    tokenizer = Tokenizer.build([text], config=config)
    flat, document = (tokenizer.encode([text], depth=depth)[0] for depth in (1, 2))
    assert document.lengths.tolist() == [3, 5, 2]
    assert flat.lengths.tolist() == [10]
    words = text.replace("<sssss>", " ").split()
    assert pieces(text, document) == pieces(text, flat) == words


def test_tokenised_text_is_split_on_spaces_only() -> None:
    words = ["does", "n't", "-lrb-", "well-made", "-rrb-", "U.S.A"]
    assert split(" ".join(words), split="spaces") == words


def test_words_are_ordered_by_frequency_then_alphabet() -> None:
    tokenizer = Tokenizer.build(["b a c c", "d"], extra_words=["z", "y", "a", "z"])
    assert tokenizer.words == (*SPECIAL_WORDS, "c", "a", "b", "d", "z", "y")
    assert tokenizer.counts == (0, 0, 2, 1, 1, 1, 0, 0)


def test_rare_words_and_those_beyond_the_size_are_unknown_unless_extra() -> None:
    texts = ["a a a b b c"]
    assert Tokenizer.build(texts, min_frequency=2).words[2:] == ("a", "b")
    small = Tokenizer.build(texts, max_size=1, extra_words=["c", "Upper", "two words", "well-made"])
    assert small.words[2:] == ("a", "c")
    assert small.encode(["A b c"])[0].ids.tolist() == [2, UNKNOWN, 3]


def test_the_names_of_the_special_rows_are_no_words_of_a_text() -> None:
    for how in ("words", "spaces"):
        tokenizer = Tokenizer.build([" ".join(SPECIAL_WORDS)], config=TextConfig(split=how))
        assert not set(SPECIAL_WORDS) & set(tokenizer.words[2:])
        assert min(tokenizer.encode([" ".join(SPECIAL_WORDS)])[0].ids) > UNKNOWN


def test_cut_words_and_sentences_are_counted() -> None:
    tokenizer = Tokenizer.build([], config=TextConfig(separator="|", max_words=2, max_sentences=2))
    text = "a b c|d|e f g h"
    encoded = tokenizer.encode([text, "a b"], depth=2)
    assert pieces(text, encoded[0]) == ["a", "b", "d"]
    assert encoded[0].lengths.tolist() == [2, 1]
    assert (encoded[0].cut_words, encoded[0].cut_sentences) == (1 + 4, 1)
    assert Truncation.of(encoded) == (1, 1, 5)
    assert Truncation.of(tokenizer.encode([text])) == (1, 0, 8 - 2)


def test_a_limit_of_zero_or_beyond_reads_all() -> None:
    for limit in (0, 2**40):
        tokenizer = Tokenizer.build([], config=TextConfig(max_words=limit, max_sentences=limit))
        assert Truncation.of(tokenizer.encode(["a " * 3000])) == (0, 0, 0)


def test_long_runs_of_one_character_take_no_more_time_than_text() -> None:
    runs = [unit * 20_000 for unit in ("🇩", "👩‍", "a\u0301", "<a", "1,", "a.", "'", "n'")]
    assert len(Tokenizer.build(runs).encode(runs, depth=2)) == len(runs)


def test_a_lone_surrogate_is_read_as_one_unknown_character() -> None:
    assert pieces("a\ud800 b", Tokenizer.build(["a\ud800 b"]).encode(["a\ud800 b"])[0]) == ["a", "\ud800", "b"]


@given(st.lists(anything, max_size=3), st.booleans())
def test_a_saved_tokenizer_reads_texts_as_before(texts: list[str], lowercase: bool) -> None:
    config = TextConfig(lowercase=lowercase, separator="|", split="spaces", max_words=7, max_sentences=3)
    tokenizer = Tokenizer.build(texts, config=config, extra_words=["extra"])
    loaded = read_tokenizer(tokenizer.to_json().encode())
    assert loaded == tokenizer
    for one, other in zip(loaded.encode(texts), tokenizer.encode(texts), strict=True):
        assert one.ids.tolist() == other.ids.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 9}, "format version 1, got 9"),
        ({"settings": []}, "settings .* must be a table"),
        ({"settings": {"lowercas": True}}, "did you mean 'lowercase'"),
        ({"settings": {"split": "os.system"}}, "split must be one of words, spaces"),
        ({"words": ["a", 3]}, "list of strings"),
        ({"words": ["a", "\ud800"]}, "lone surrogates"),
        ({"words": ["a", "a"]}, "differ"),
        ({"words": [SPECIAL_WORDS[0], "a"]}, "differ"),
        ({"counts": [1, -1]}, "whole numbers"),
        ({"counts": [1]}, "each of its 2 words, got 1"),
    ],
)
def test_a_tokenizer_file_that_was_changed_is_refused(change: dict[str, Any], message: str) -> None:
    values = json.loads(Tokenizer.build(["a b"]).to_json())
    with pytest.raises(InputError, match=message):
        read_tokenizer(json.dumps({**values, **change}))


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, b"\xff\xfe"])
def test_a_file_that_is_no_tokenizer_is_refused(content: str | bytes) -> None:
    with pytest.raises(InputError, match="tokenizer"):
        read_tokenizer(content)


def test_wrong_arguments_are_named() -> None:
    tokenizer = Tokenizer.build(["a"])
    with pytest.raises(InputError, match=r"depth .* got 3"):
        tokenizer.encode(["a"], depth=3)
    with pytest.raises(InputError, match="put it in a list"):
        tokenizer.encode("a")
    with pytest.raises(InputError, match="must be a string, got nan"):
        tokenizer.encode(["a", float("nan")])  # type: ignore[list-item]


def test_word_counts_cover_every_word() -> None:
    assert count_words(["The film, the end."], config=TextConfig()) == {"the": 2, "film": 1, ",": 1, "end": 1, ".": 1}


def test_reading_text_and_vectors_needs_no_torch() -> None:
    code = "import sys, routepool.text.words, routepool.vectors; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("split", "endless"), [("words", "a"), ("words", "1"), ("words", "\u0301"), ("spaces", "1")])
def test_a_word_of_any_length_is_read(split: str, endless: str) -> None:
    text = "A good film. " + endless * 11_000_000 + " It works."
    tokenizer = Tokenizer.build([text], config=TextConfig(split=split, max_words=0))
    (encoded,) = tokenizer.encode([text], depth=2)
    assert len(encoded.lengths) == 2
    assert all(end - start <= LONGEST_WORD for start, end in encoded.spans.tolist())
    covered = "".join(pieces(text, encoded)).lower()
    assert covered == "".join(text.lower().split())
    assert max(map(len, tokenizer.words)) <= LONGEST_WORD


def test_only_a_word_that_is_too_long_is_read_in_parts() -> None:
    longest = "a" * LONGEST_WORD
    text = f"{longest} {longest}b " + "a " * LONGEST_WORD
    assert [len(word) for word in split(text, max_words=0)[:4]] == [LONGEST_WORD, LONGEST_WORD, 1, 1]
    assert len(split(text, max_words=0)) == 3 + LONGEST_WORD


def test_what_is_longer_than_any_word_takes_no_place_in_the_vocabulary() -> None:
    longest, too_long = "a" * 200, "b" * 201
    tokenizer = Tokenizer.build([f"{longest} {too_long}"], extra_words=["c" * 200, "d" * 201])
    assert tokenizer.words[2:] == (longest, "c" * 200)
