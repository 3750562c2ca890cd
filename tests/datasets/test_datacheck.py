"""The data check finds what it promises, with rows, in bounded time."""

import io
import json
import random
from typing import Any

import pytest

from routepool.datasets import Dataset, load_dataset
from routepool.datasets.findings import Finding, Report, check, near_duplicates

WORDS = ["river", "stone", "quiet", "harbour", "lamp", "evening", "bread", "window", "garden", "letter", "winter"]


def data(rows: list[tuple[str, str]], **options: Any) -> Dataset:
    content = "\n".join(json.dumps({"text": text, "label": label}) for text, label in rows)
    return load_dataset(io.BytesIO(content.encode()), format="jsonl", on_error="skip", **options)


def found(report: Report) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def sentence(seed: int, words: int = 20) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words)) + f" number {seed}"


CLEAN = [(sentence(i), "ab"[i % 2]) for i in range(40)]


def test_clean_data_give_counts_balance_and_lengths_and_no_findings() -> None:
    report = check(data(CLEAN))
    assert (report.examples, report.labels, report.findings) == (40, {"a": 20, "b": 20}, ())
    assert report.words == {"least": 22, "median": 22, "mean": 22, "95 %": 22, "most": 22}
    assert report.characters["most"] == max(len(text) for text, _ in CLEAN)


def test_exact_duplicates_and_conflicting_labels_are_told_apart() -> None:
    findings = found(check(data([*CLEAN, ("one text", "a"), ("one text", "a"), ("two", "a"), (" two", "b")])))
    assert findings["duplicate"].rows == ((41, 42), (43, 44))
    assert findings["conflict"].rows == ((43, 44),)


def test_near_duplicates_are_found_and_different_texts_are_not() -> None:
    text = sentence(7, 30)
    rows = [*CLEAN, (text, "a"), (text.replace("number", "Number,") + "!", "a"), (text + " indeed", "a")]
    assert found(check(data(rows)))["near-duplicate"].rows == ((41, 42), (41, 43))


def test_texts_of_a_second_file_found_in_the_first_are_leaks() -> None:
    report = check(data(CLEAN), against=data([CLEAN[4], ("fresh words here", "a"), (CLEAN[5][0].upper(), "a")]))
    findings = found(report)
    assert (findings["overlap"].severity, findings["overlap"].rows) == ("error", ((5, 1),))
    assert findings["near-overlap"].rows == ((6, 3),)


def test_labels_that_only_the_second_file_has_are_an_error() -> None:
    finding = found(check(data(CLEAN), against=data([("fresh", "a"), ("other", "z")])))["unseen-label"]
    assert (finding.severity, finding.count, finding.rows) == ("error", 1, ((2,),))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("mojibake", "the cafÃ© was shut"),
        ("mojibake", "donâ€™t go"),
        ("replacement", "the caf\ufffd was shut"),
        ("control", "a bell \x07 rang"),
        ("html", "first line<br />second"),
        ("html", "salt &amp; pepper"),
        ("empty", "   "),
    ],
)
def test_suspicious_texts_are_shown_with_their_rows(kind: str, text: str) -> None:
    finding = found(check(data([*CLEAN, (text, "a")])))[kind]
    assert (finding.severity, finding.count, finding.rows) == ("warning", 1, ((41,),))


@pytest.mark.parametrize(
    "text", ["Não, a ÃO é aqui", "naïve café — déjà vu", "x < y and y > z", "tab\tand\nnewline", "R&D"]
)
def test_sound_texts_are_not_suspected(text: str) -> None:
    assert check(data([*CLEAN, (text, "a")])).findings == ()


def test_rare_unbalanced_lone_and_twin_labels_are_warned_about() -> None:
    many = [(sentence(i), "a") for i in range(40)]
    assert {"few", "imbalance"} <= found(check(data([*many, ("odd one", "b")]))).keys()
    assert "one-class" in found(check(data(many)))
    assert "A, a" in found(check(data([*CLEAN, ("odd one", "A")])))["case"].message


def test_rows_that_could_not_be_read_are_reported() -> None:
    rows = "text,label\n" + "".join(f"{text},{label}\n" for text, label in CLEAN) + "x,y,z\n"
    finding = found(check(load_dataset(io.BytesIO(rows.encode()), format="csv", on_error="skip")))["unreadable"]
    assert (finding.count, finding.rows) == (1, ((42,),))


def test_a_finding_shows_five_rows_and_counts_all() -> None:
    finding = found(check(data([*CLEAN, *[("", "a")] * 9])))["empty"]
    assert (finding.count, len(finding.rows)) == (9, 5)


def test_a_report_is_json_and_plain_lines_gravest_first() -> None:
    report = check(data([*CLEAN, ("<p>", "a")]), against=data([CLEAN[0]]))
    assert json.loads(json.dumps(report.to_dict()))["findings"][0]["kind"] == "overlap"
    lines = report.to_lines()
    assert lines[0] == "stream: 41 examples, 2 labels"
    assert lines[1] == f"  label a: 21 ({21 / 41:.1%})"
    assert [line.split(":")[0] for line in lines[-2:]] == ["error", "warning"]


def test_label_sets_without_labels_are_checked_too() -> None:
    rows = b'{"text": "one", "label": []}\n{"text": "two", "label": ["a", "b"]}'
    assert check(load_dataset(io.BytesIO(rows), format="jsonl", multi_label=True)).labels == {"a": 1, "b": 1}


def test_texts_without_spaces_or_letters_are_compared_by_their_characters() -> None:
    chinese = "今天的天气非常好我们一起去公园散步然后在湖边喝茶看书"
    assert near_duplicates([chinese, "🙂🙂", chinese + "。", "", "!?"]) == [(0, 2)]


def test_two_texts_of_a_million_words_are_found_alike_among_ten_thousand() -> None:
    body = " ".join(f"word{i}" for i in range(1_000_000))
    texts = [sentence(i) for i in range(10_000)] + [f"long {body}", f"tall {body}"]
    assert (10_000, 10_001) in near_duplicates(texts)
