"""`routepool vectors`: how much of a data set a source of word vectors knows."""

from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import Encoding, TextColumn, unfold

_SHOWN = 20


@unfold
def vectors(
    spec: Annotated[str, typer.Argument(metavar="FILE[,FILE]", help="Files of vectors, or wordllama.")],
    data: Annotated[str, typer.Option(metavar="DATA", help="A file of texts, or a known set (its training part).")],
    text_column: TextColumn = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Report how much of a data set word vectors cover, by words and by running text.

    `routepool vectors glove.6B.300d.txt --data reviews.csv`
    """
    # Here and not above: `routepool --help` must not wait for them.
    from routepool.runs.sets import load_texts  # noqa: PLC0415
    from routepool.settings import text_settings  # noqa: PLC0415
    from routepool.text import Tokenizer  # noqa: PLC0415
    from routepool.vectors import load_vectors  # noqa: PLC0415

    texts = load_texts(data, text_column=text_column, encoding=encoding)
    tokenizer = Tokenizer.build(texts, config=text_settings(data))
    found = load_vectors(spec, tokenizer.words, counts=tokenizer.counts)
    for coverage in found.coverage:
        screen.say(str(coverage))
    screen.say(f"size of a vector: {found.table.shape[1]}")
    missing = [word for word, known in zip(tokenizer.words[2:], found.known[2:], strict=True) if not known]
    if missing:
        screen.say(f"most frequent words without a vector: {' '.join(missing[:_SHOWN])}")
