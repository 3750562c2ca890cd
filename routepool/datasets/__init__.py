"""Files and known sets -> examples. Every error names the file and the row.

`read` yields examples one by one in bounded memory, `load_dataset` collects them, `load_named` gives a known set's
parts, `split` holds a stratified part out.

A row is the 1-based number of the line on which a record starts, as editors show it. Where newlines in texts or blank
lines make the two differ, an error adds the record's number. In Parquet a row is the record's number.

Formats, by suffix or by name; any may be compressed (.gz, .bz2, .xz, known by their first bytes):

- csv: quoted as in RFC 4180; a delimiter other than the comma is found in a header that names known columns.
- tsv: tabs, no quoting. A TSV with quoted fields is read with `format="csv"`.
- jsonl: one object a line. A JSON list of labels is a label set.
- fasttext: `__label__a __label__b the text`. A .txt file that starts with `__label__` is one.
- lines: one text a line, no labels; other .txt files and standard input.
- parquet: with the extra `parquet`.
- tang: the files of Tang et al. (2015), suffix .ss.

Header: the first row of a csv or tsv file is one if columns are asked for by name, if it holds a known column name
(text, review, label, stars, ...), or if it has several cells, all of one to three words, none of them a number, that do
not come again in their columns in the next 100 rows. Otherwise the columns are numbered from 1. `header` overrules.

Encoding: UTF-8, or the one that is named; a byte order mark (UTF-8, UTF-16, UTF-32) wins and is dropped. Labels are
strings without spaces around them; a missing one is an error, or the empty set where several are allowed. An empty text
is legal for prediction. Blank lines are no records, except in `lines`.

Rows that cannot be used: where labels are wanted, rows with an empty text and rows that repeat the header, as in joined
files, are left out, counted and listed. Any other such row raises. With `on_error="stop"` the first of any kind raises;
with `on_error="skip"` all are left out, counted and listed. A damaged file or an unusable first row always raises.

Bounds: a row has at most `longest_row` characters, a CSV or TSV file at most 16,384 columns, and a compressed file
swells to a limited size (`routepool.files.compression`); more raises.
"""

from routepool.datasets.loading import Dataset as Dataset
from routepool.datasets.loading import check_trainable as check_trainable
from routepool.datasets.loading import load_dataset as load_dataset
from routepool.datasets.loading import natural_order as natural_order
from routepool.datasets.loading import split as split
from routepool.datasets.named import NAMED as NAMED
from routepool.datasets.named import Parts as Parts
from routepool.datasets.named import load_named as load_named
from routepool.datasets.reading import Reader as Reader
from routepool.datasets.reading import options_for as options_for
from routepool.datasets.reading import read as read
from routepool.datasets.reading import skipped_lines as skipped_lines
from routepool.datasets.records import Example as Example
from routepool.datasets.records import Kind as Kind
from routepool.datasets.records import ReadOptions as ReadOptions
from routepool.datasets.records import Skipped as Skipped
