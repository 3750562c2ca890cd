"""What the name of a data file says of its format."""

from pathlib import Path

COMPRESSED = (".gz", ".bz2", ".xz")
PLAIN = ("", ".txt")  # lines of text, or fastText's format: the first line tells
FORMAT_OF = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".ss": "tang", ".ft": "fasttext", ".fasttext": "fasttext",
}  # fmt: skip


def suffix_of(name: str | Path) -> str:
    """The last suffix in lower case, that of a compression apart.

    >>> suffix_of("reviews.CSV.gz"), suffix_of("reviews"), suffix_of("-")
    ('.csv', '', '')
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")


def looks_like_data(name: str) -> bool:
    """Does it end as the name of a data file does?

    >>> looks_like_data("reviews.csv.gz"), looks_like_data("great."), looks_like_data("3.50")
    (True, False, False)
    """
    return name.lower().endswith((*FORMAT_OF, ".txt", *COMPRESSED))
