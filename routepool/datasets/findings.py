"""What to know about a data set before training on it: balance, lengths, duplicates, leaks, broken characters."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from routepool.arrays import Integers
from routepool.datasets import Dataset, Example
from routepool.datasets.reading import LEFT_OUT
from routepool.printable import plural

SHOWN = 5  # example rows in a finding
FEW = 10  # examples below which a class is hardly learnt
IMBALANCE = 10  # largest class over smallest
NEAR = 0.8  # share of character pieces that near duplicates have in common
_PIECE = 5  # characters
_LONGEST = 4096  # pieces of one text that are compared; a fixed sample of longer ones
# The share is estimated: a pair is reported every other time at 80 %, 19 times of 20 at 85 %, 1 in 10 at 75 %.
_BANDS, _ROWS = 16, 8
_SUSPECTS = {
    "mojibake": (
        re.compile("[ÂÃ][\x80-\xbf]|â€|ï»¿|Ã[\u2010-\u2122]"),
        "UTF-8 read as Latin-1, such as Ã©; decode them again",
    ),
    "replacement": (re.compile("\ufffd"), "characters already lost (U+FFFD); export the data again"),
    "control": (re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"), "control characters; remove them"),
    "html": (
        re.compile(
            r"</?(?:br|p|div|span|a|b|i|em|strong|li|ul|ol|td|tr|table|img|script|style|h[1-6])\b[^<>]*>"
            r"|&(?:amp|lt|gt|quot|nbsp|#\d+);",
            re.IGNORECASE,
        ),
        "HTML tags or entities; unescape and strip them",
    ),
}  # fmt: skip

Severity = Literal["error", "warning", "info"]
Rows = tuple[tuple[int, ...], ...]
Groups = dict[str, list[Example]]  # the examples of each different text


@dataclass(frozen=True)
class Finding:
    """One thing to know or to mend, how often it occurs, and example rows; those that belong together in one tuple."""

    severity: Severity
    kind: str
    message: str
    count: int
    rows: Rows = ()


@dataclass(frozen=True)
class Report:
    """All findings about one data set, with its counts."""

    source: str
    examples: int
    labels: dict[str, int]
    words: dict[str, float]
    characters: dict[str, float]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_lines(self) -> list[str]:
        """Plain text, the gravest findings first."""
        lines = [f"{self.source}: {plural(self.examples, 'example')}, {plural(len(self.labels), 'label')}"]
        total = sum(self.labels.values())
        lines += [f"  label {name}: {count} ({count / total:.1%})" for name, count in self.labels.items()]
        for name, lengths in (("words", self.words), ("characters", self.characters)):
            lines.append(f"  {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in lengths.items()))
        for finding in self.findings:
            rows = ", ".join(" = ".join(map(str, group)) for group in finding.rows)
            lines.append(f"{finding.severity}: {finding.message}" + (f" (rows {rows})" if rows else ""))
        return lines


def check(data: Dataset, *, against: Dataset | None = None) -> Report:
    r"""Check a data set, and a second one for leaks; load both with `on_error="skip"` to see every finding.

    >>> from io import BytesIO
    >>> from routepool.datasets import load_dataset
    >>> data = load_dataset(BytesIO(b"text,label\na good day,1\na good day,0"), format="csv")
    >>> print(check(data).to_lines()[-1])
    warning: same text, different labels: 1 text (rows 2 = 3)
    """
    texts = [example.text for example in data.examples]
    first, second = _by_text(data.examples), _by_text(against.examples if against else ())
    findings = [*_skipped(data), *_labels(data), *_texts(data), *_repeats(first), *_overlap(first, second)]
    findings += [*_near(first, second), *(_unseen(data, against) if against else ())]
    return Report(
        source=data.source,
        examples=len(texts),
        labels=_balance(data),
        words=_distribution([len(text.split()) for text in texts]),
        characters=_distribution([len(text) for text in texts]),
        findings=tuple(sorted(findings, key=lambda finding: ("error", "warning", "info").index(finding.severity))),
    )


def _distribution(lengths: Sequence[int]) -> dict[str, float]:
    values = np.asarray(lengths)
    low, median, high, most = (float(value) for value in np.quantile(values, [0, 0.5, 0.95, 1]))
    return {"least": low, "median": median, "mean": float(values.mean()), "95 %": high, "most": most}


def _balance(data: Dataset) -> dict[str, int]:
    counts = Counter(label for example in data.examples for label in example.labels or ())
    return {label: counts[label] for label in data.labels}


def _skipped(data: Dataset) -> Iterator[Finding]:
    for kind, count in data.skipped_kinds.items():
        rows = tuple((item.row,) for item in data.skipped if item.kind == kind)[:SHOWN]
        if kind in LEFT_OUT:
            yield Finding("warning", kind, f"{LEFT_OUT[kind]} left out: {count}", count, rows)
        else:
            first = next(item.reason for item in data.skipped if item.kind == kind)
            message = f"{plural(count, 'row')} could not be read, the first: {first}"
            yield Finding("error", kind, message, count, rows)


def _labels(data: Dataset) -> Iterator[Finding]:
    counts = _balance(data)
    if len(counts) == 1 and not data.multi_label:
        yield Finding("error", "one-class", f"every example is labelled {data.labels[0]!r}", len(data.examples))
    few = {label: count for label, count in counts.items() if count < FEW}
    if few:
        listed = ", ".join(f"{label!r} ({count})" for label, count in few.items())
        yield Finding("warning", "few", f"fewer than {FEW} examples of {listed}", len(few))
    if counts and max(counts.values()) > IMBALANCE * max(min(counts.values()), 1):
        message = f"the largest class has over {IMBALANCE} times the examples of the smallest; consider class weights"
        yield Finding("warning", "imbalance", message, len(counts))
    folded = Counter(label.casefold() for label in counts)
    twins = [label for label in counts if folded[label.casefold()] > 1]
    if twins:
        yield Finding("warning", "case", f"labels that differ in case only: {', '.join(twins)}", len(twins))


def _texts(data: Dataset) -> Iterator[Finding]:
    empty = [(example.row,) for example in data.examples if not example.text.strip()]
    yield from _found("warning", "empty", plural(len(empty), "empty text"), empty)
    for kind, (pattern, meaning) in _SUSPECTS.items():
        rows = [(example.row,) for example in data.examples if pattern.search(example.text)]
        yield from _found("warning", kind, f"{plural(len(rows), 'text')} with {meaning}", rows)


def _found(severity: Severity, kind: str, message: str, groups: Sequence[tuple[int, ...]]) -> Iterator[Finding]:
    if groups:
        shown = tuple(group[:SHOWN] for group in groups[:SHOWN])
        yield Finding(severity, kind, message, len(groups), shown)


def _by_text(examples: Sequence[Example]) -> Groups:
    groups = defaultdict(list)
    for example in examples:
        if example.text.strip():
            groups[example.text.strip()].append(example)
    return groups


def _repeats(groups: Groups) -> Iterator[Finding]:
    repeated = [group for group in groups.values() if len(group) > 1]
    conflicts = [group for group in repeated if len({frozenset(example.labels or ()) for example in group}) > 1]
    for kind, what, found in (
        ("duplicate", "exact duplicates", repeated),
        ("conflict", "same text, different labels", conflicts),
    ):
        rows = [tuple(example.row for example in group) for group in found]
        yield from _found("warning", kind, f"{what}: {plural(len(rows), 'text')}", rows)


def _unseen(data: Dataset, against: Dataset) -> Iterator[Finding]:
    unseen = [label for label in against.labels if label not in data.labels]
    rows = [(example.row,) for example in against.examples if set(example.labels or ()) & set(unseen)]
    message = (
        f"{plural(len(rows), 'row')} of {against.source} with labels that {data.source} lacks: {', '.join(unseen)}"
    )
    yield from _found("error", "unseen-label", message, rows)


def _overlap(first: Groups, second: Groups) -> Iterator[Finding]:
    """Texts of the second file that the first one holds; in each pair of rows the first file's comes first."""
    same = [(first[text][0].row, second[text][0].row) for text in second if text in first]
    yield from _found(
        "error", "overlap", f"overlap: {plural(len(same), 'text')} of the second file also in the first", same
    )


def _near(first: Groups, second: Groups) -> Iterator[Finding]:
    texts = list(first) + [text for text in second if text not in first]
    rows = [group[0].row for group in first.values()]
    rows += [second[text][0].row for text in texts[len(first) :]]
    pairs = near_duplicates(texts)
    within = [(rows[i], rows[j]) for i, j in pairs if j < len(first)]
    across = [(rows[i], rows[j]) for i, j in pairs if i < len(first) <= j]
    yield from _found("info", "near-duplicate", f"near duplicates: {plural(len(within), 'text')}", within)
    message = f"near overlap: {plural(len(across), 'text')} of the second file"
    yield from _found("warning", "near-overlap", message, across)


def near_duplicates(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of places whose texts share most of their pieces, by MinHash and banding; each later text comes once.

    Case, punctuation and spacing do not count. Time grows with the number of texts, not with its square.

    >>> near_duplicates(["We liked the slow boat home.", "A quiet town", "we liked the slow boat home!"])
    [(0, 2)]
    """
    if not texts:
        return []
    signatures = np.stack([_signature(text) for text in texts])
    found: dict[int, int] = {}
    for band in range(_BANDS):
        keys = np.ascontiguousarray(signatures[:, band * _ROWS : (band + 1) * _ROWS])
        for early, late in _bucketed(keys):
            alike = (signatures[early] == signatures[late]).mean(axis=1) >= NEAR
            for i, j in zip(early[alike].tolist(), late[alike].tolist(), strict=True):
                found[j] = min(i, found.get(j, i))
    return sorted((i, j) for j, i in found.items())


def _bucketed(keys: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Of texts with equal keys, each beside the one before it, and each beside the first."""
    whole = keys.view(f"V{keys.shape[1] * keys.itemsize}").ravel()
    _, bucket = np.unique(whole, return_inverse=True)
    order = np.argsort(bucket, kind="stable")
    same = bucket[order][1:] == bucket[order][:-1]
    starts = np.maximum.accumulate(np.where(np.append(True, ~same), np.arange(len(order)), 0))
    yield order[:-1][same], order[1:][same]
    yield order[starts[1:]][same], order[1:][same]


_RANDOM = np.random.default_rng(0)
_FACTORS = _RANDOM.integers(0, 2**31, size=(_BANDS * _ROWS, 1), dtype=np.uint32) * np.uint32(2) + np.uint32(1)
_SHIFTS = _RANDOM.integers(0, 2**32, size=(_BANDS * _ROWS, 1), dtype=np.uint32)


def _signature(text: str) -> Integers:
    """The smallest of the pieces' hashes under each of 128 hash functions."""
    smallest: Integers = (_FACTORS * _pieces(text) + _SHIFTS).min(axis=1)
    return smallest


def _pieces(text: str) -> Integers:
    plain = re.sub(r"\W+", " ", text.lower()).strip() or text
    codes = np.frombuffer(plain.ljust(_PIECE).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    hashes = np.zeros(len(codes) - _PIECE + 1, dtype=np.uint64)
    for offset in range(_PIECE):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + codes[offset : offset + len(hashes)]
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    mixed = (hashes >> np.uint64(32)).astype(np.uint32)
    return np.unique(mixed)[:_LONGEST] if len(mixed) > _LONGEST else mixed
