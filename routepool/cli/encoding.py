"""What `routepool encode` does: texts read, encoded and written a piece at a time."""

from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from routepool.cli.notices import list_skipped, telling_unread
from routepool.cli.streaming import check_out, counted, new_file, read_for, with_examples
from routepool.errors import InputError
from routepool.persistence.vector_files import VECTOR_FILES
from routepool.scoring.predictor import load

ROWS = 1024  # written at once


def encode_file(run: str, source: str, out: str, *, capsules: bool, force: bool, **reading: Any) -> None:
    """Write the vectors of all texts of a file or of standard input; the options are those of `datasets.read`."""
    form = Path(out).suffix.lower().removeprefix(".")
    if form not in VECTOR_FILES.names():
        wanted = ", ".join(f".{name}" for name in VECTOR_FILES.names())
        raise InputError(f"{out}: the name of --out must end in one of {wanted}, which says the format")
    check_out(Path(out), force=force)
    make = VECTOR_FILES[form]
    model = load(run)
    reader = read_for(model, source, **reading)
    shape = model.encode([], capsules=capsules).shape[1:]
    results = with_examples(reader, lambda texts: model.stream_encodings(texts, capsules=capsules))
    pairs = counted(telling_unread(reader.source, results))
    with new_file(out) as file, closing(make(file, shape)) as written:
        while piece := list(islice(pairs, ROWS)):
            written.write([example.row for example, _ in piece], np.stack([one.vector for _, one in piece]))
    list_skipped(reader)
