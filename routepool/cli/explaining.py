"""What `routepool explain` does: texts or a data set in; a terminal, a page, a picture or JSON out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routepool.cli import screen
from routepool.cli.explained_tables import show_audit, show_report
from routepool.cli.notices import list_skipped, naming_rows, tell_unread
from routepool.cli.painting import paint
from routepool.cli.streaming import check_out, new_file, read_for
from routepool.datasets import Dataset, Example
from routepool.datasets.suffixes import looks_like_data
from routepool.errors import InputError
from routepool.explaining import METHODS, Explanation, Subject, audit, render_page, report_capsules
from routepool.explaining.pictures import draw
from routepool.runs.sets import check_labels, load_part, options_for
from routepool.scoring.predictor import Predictor, load

PICTURES = (".png", ".svg")
TEXT_FORMS = (".html", ".json", ".jsonl", *PICTURES)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of which model, and where the answer goes.

    Args:
        run: the model folder.
        out: files, their suffix says what is written; none for standard output.
        as_json: JSON on standard output.
        force: replace files that are there.
        method: of importance; None for the usual one, or for all in an audit.
    """

    run: str
    out: tuple[str, ...] = ()
    as_json: bool = False
    force: bool = False
    method: str | None = None

    def check(self, forms: Sequence[str]) -> None:
        """Refuse what cannot be written or computed, before anything is."""
        if self.method is not None:
            METHODS[self.method]
        for name in self.out:
            if Path(name).suffix.lower() not in forms:
                raise InputError(f"{name}: wanted a name that ends in {', '.join(forms)}, to know what to write")
            check_out(Path(name), force=self.force)


def explain_texts(question: Question, text: str, *, label: str | None, iterations: bool, **reading: Any) -> None:
    """Explain one text, or all of a file."""
    question.check(TEXT_FORMS)
    model = load(question.run)
    source, examples = _texts(model, text, **reading)
    for name in question.out:
        if len(examples) != 1 and Path(name).suffix.lower() in (".json", *PICTURES):
            raise InputError(f"{name}: holds one text, got {len(examples)}; write .jsonl or .html")
    texts = [example.text for example in examples]
    with naming_rows(source, examples):
        shown = model.explain(texts, method=question.method, label=label, iterations=iterations)
    for name in question.out:
        _write(name, shown)
    if question.as_json:
        for one in shown:
            screen.say(one.to_json())
    elif not question.out:
        for one in shown:
            paint(one)
    tell_unread(source, examples, [one.reading for one in shown])


def audit_methods(question: Question, data: str, *, part: str, most: int, **reading: Any) -> None:
    """Take away the words that the methods name, and show what that does."""
    question.check((".json", *PICTURES))
    model = load(question.run)
    examples = _labelled(model, data, part=part, most=most, **reading)
    methods = None if question.method is None else [question.method]
    found = audit(_subject(model), [example.text for example in examples.examples], methods=methods)
    for name in question.out:
        if Path(name).suffix.lower() in PICTURES:
            with new_file(name) as file:
                draw("audit", file, found, form=Path(name).suffix.lower()[1:])
    _answer(question, found.to_dict())
    if not question.as_json:
        show_audit(found)


def show_capsules(
    question: Question, data: str, controls: Mapping[str, str | None], *, part: str, most: int, **reading: Any
) -> None:
    """Say what the capsules of a model hold."""
    question.check((".json",))
    model = load(question.run)
    examples = _labelled(model, data, part=part, most=most, **reading)
    others = {name: _subject(load(run)) for name, run in controls.items() if run}
    labels = [label for example in examples.examples for label in (example.labels or ())[:1]]
    found = report_capsules(_subject(model), [example.text for example in examples.examples], labels, **others)
    _answer(question, found.to_dict())
    if not question.as_json:
        show_report(found)


def _answer(question: Question, values: dict[str, Any]) -> None:
    for name in question.out:
        if Path(name).suffix.lower() == ".json":
            _write_bytes(name, json.dumps(values, indent=2, allow_nan=False) + "\n")
    if question.as_json:
        screen.say(json.dumps(values, allow_nan=False))


def _texts(model: Predictor, text: str, **reading: Any) -> tuple[str, list[Example]]:
    """The texts, and the name of where they come from."""
    if text != "-" and not _is_file(text):
        if looks_like_data(text) and not any(map(str.isspace, text)):
            raise InputError(f"{text}: no such file; check the name, or put a text in quotes")
        return "the text", [Example(1, text)]
    reader = read_for(model, text, **reading)
    examples = list(reader)
    list_skipped(reader)
    if not examples:
        raise InputError(f"{reader.source}: no text to explain")
    return reader.source, examples


def _is_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or a NUL in it: a text
        return False


def _labelled(model: Predictor, data: str, *, part: str, most: int, **reading: Any) -> Dataset:
    separator = (model.columns or {}).get("separator") if model.multi_label else None
    asked = {**reading, "multi_label": model.multi_label, "separator": separator}
    examples = load_part(data, part, options_for(data, model.columns, **asked))
    list_skipped(examples)
    check_labels(examples, model.labels)
    number = len(examples.examples)
    return examples.select(place * number // most for place in range(most)) if number > most else examples


def _subject(model: Predictor) -> Subject:
    assert model.saved is not None
    return Subject.of(model.saved)


def _write(name: str, shown: Sequence[Explanation]) -> None:
    form = Path(name).suffix.lower()
    if form == ".html":
        _write_bytes(name, render_page(shown))
    elif form in PICTURES:
        with new_file(name) as file:
            draw("rounds" if shown[0].rounds else "explanation", file, shown[0], form=form[1:])
    else:
        _write_bytes(name, "".join(one.to_json() + "\n" for one in shown))


def _write_bytes(name: str, content: str) -> None:
    with new_file(name) as file:
        file.write(content.encode("utf-8", "replace"))
