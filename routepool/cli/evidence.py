"""What `routepool explain` shows: texts in colours, audits and reports of capsules as tables."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from routepool.cli import screen
from routepool.cli.explain import QuestionOptions
from routepool.cli.painting import paint
from routepool.datasets import Dataset, Example, options_for
from routepool.datasets.sources import looks_like_data
from routepool.errors import InputError
from routepool.explaining import Audit, CapsuleReport, Subject, audit, report_capsules
from routepool.explaining.audits import Measure
from routepool.explaining.couplings import Taken
from routepool.explaining.outputs import (
    AUDITS,
    EXPLANATIONS,
    REPORTS,
    check_asked,
    explain_file,
    write_explanations,
    write_findings,
)
from routepool.runs.sets import check_labels, load_part
from routepool.scoring.bulk import naming_rows
from routepool.scoring.predictor import Predictor, load
from routepool.text import Unread

_SHOWN = 8  # words of a capsule


def explain_texts(run: str, text: str, question: QuestionOptions, *, force: bool, **reading: Any) -> None:
    """Explain one text, or all of a file."""
    out = question.out or []
    asked: dict[str, Any] = {"label": question.label, "iterations": question.iterations}
    if text == "-" or _is_file(text):
        done = explain_file(run, text, out, method=question.method, force=force, **asked, **reading)
        screen.list_skipped(done.reader)
        source, examples, shown = done.reader.source, done.examples, done.explanations
    else:
        source, examples = "the text", [Example(1, text)]
        check_asked(out, EXPLANATIONS, method=question.method, force=force)
        model = load(run)
        with naming_rows(source, examples):
            shown = model.explain([text], method=question.method, **asked)
        write_explanations(out, shown)
    for one in shown:
        if question.as_json:
            screen.say(one.to_json())
        elif not out:
            paint(one)
    rows = [example.row for example in examples]
    screen.note_unread(source, Unread.of([one.reading for one in shown], rows))


def audit_methods(run: str, question: QuestionOptions, *, force: bool, **reading: Any) -> None:
    """Take away the words that the methods name, and show what that does."""
    check_asked(question.out or [], AUDITS, method=question.method, force=force)
    model = load(run)
    texts = [example.text for example in _labelled(model, question.audit or "", question, **reading).examples]
    found = audit(_subject(model), texts, methods=None if question.method is None else [question.method])
    _answer(question, found)
    if not question.as_json:
        show_audit(found)


def show_capsules(run: str, question: QuestionOptions, *, force: bool, **reading: Any) -> None:
    """Say what the capsules of a model hold."""
    check_asked(question.out or [], REPORTS, method=question.method, force=force)
    model = load(run)
    examples = _labelled(model, question.capsules or "", question, **reading).examples
    named = {"one_iteration": question.one_iteration, "projected_mean": question.projected_mean}
    controls = {name: _subject(load(other)) for name, other in named.items() if other}
    labels = [label for example in examples for label in (example.labels or ())[:1]]
    found = report_capsules(_subject(model), [example.text for example in examples], labels, **controls)
    _answer(question, found)
    if not question.as_json:
        show_report(found)


def _answer(question: QuestionOptions, found: Audit | CapsuleReport) -> None:
    write_findings(question.out or [], found)
    if question.as_json:
        screen.say(json.dumps(found.to_dict(), allow_nan=False))


def _is_file(text: str) -> bool:
    """A file that is there; what looks like the name of one that is not is a mistake, anything else a text."""
    with suppress(OSError, ValueError):  # too long for a name, or a NUL in it: a text
        if Path(text).exists():
            return True
    if looks_like_data(text) and not any(map(str.isspace, text)):
        raise InputError(f"{text}: no such file; check the name, or put a text in quotes")
    return False


def _labelled(model: Predictor, data: str, question: QuestionOptions, **reading: Any) -> Dataset:
    separator = (model.columns or {}).get("separator") if model.multi_label else None
    options = options_for(data, model.columns, **reading, multi_label=model.multi_label, separator=separator)
    examples = load_part(data, question.part, options)
    screen.list_skipped(examples)
    check_labels(examples, model.labels)
    number, most = len(examples.examples), question.texts
    return examples.select(place * number // most for place in range(most)) if number > most else examples


def _subject(model: Predictor) -> Subject:
    assert model.saved is not None
    return Subject.of(model.saved)


def show_audit(found: Audit) -> None:
    """One table for each way of removing words."""
    screen.say(
        f"{found.texts} texts. Comprehensiveness: what the label's probability loses without the best words, more is "
        "better; sufficiency: with only them, less is better. 1 is the loss of an empty text. Flips: other predictions "
        "without the best words, in %. Intervals are of 95 %."
    )
    for removal, loss in found.empty_loss.items():
        rows = [
            (
                row.order,
                _interval(row.normal_comprehensiveness),
                _interval(row.normal_sufficiency),
                *(f"{100 * flips.value:.1f}" for flips in row.flips),
            )
            for row in found.rows
            if row.removal == removal
        ]
        flips = (f"flips at {100 * share:.0f} %" for share in found.shares)
        title = f"removal: {removal} (an empty text loses {loss:.3f})"
        screen.table(title, ("order", "comprehensiveness", "sufficiency", *flips), rows)


def show_report(found: CapsuleReport) -> None:
    """Words, classes and nulls."""
    for view in found.capsules:
        classes = ", ".join(f"{label} {effect:+.2f}" for label, effect in view.classes.items())
        name = f"{found.part} {view.number} of {view.level}"
        screen.say(f"{name}: {100 * view.share:.1f} % of the couplings; without it {classes}")
        for name, taken in (("words", view.words), ("phrases", view.phrases)):
            if taken:
                screen.say(f"  {name}: {_listed(taken)}")
    screen.say(f"{found.texts} texts. Classes: what a label's log-odds lose when the {found.part} is set to zero.")
    rows = [(one.name, f"{100 * one.accuracy:.1f}", f"{100 * one.changed:.1f}") for one in found.by_iterations]
    title = f"dynamic? other numbers of iterations, trained with {found.iterations}, in %"
    screen.table(title, ("iterations", "accuracy", "changed"), rows)
    rows = [(one.name, f"{100 * one.accuracy:.1f}", f"{100 * one.changed:.1f}") for one in found.by_coupling]
    screen.table("dynamic? other couplings of the words, in %", ("coupling", "accuracy", "changed"), rows)
    one = found.variance
    shares = [f"{100 * share:.1f}" for share in (one.by_word, one.by_position, one.by_both, one.context)]
    screen.table(
        "variance of the coupling, in %", ("explained by", "word", "position", "both", "context"), [("", *shares)]
    )
    screen.table(
        "redundant? parts of a text's vector; probes in %",
        ("", "CKA", "cosine", "whole", "alone", "without one"),
        [
            (
                part.name,
                f"{part.cka:.2f}",
                f"{part.cosine:.2f}",
                f"{100 * part.whole:.1f}",
                _range(part.alone),
                _range(part.without),
            )
            for part in found.redundancy
        ],
    )


def _interval(measure: Measure) -> str:
    return f"{measure.value:.2f} ({measure.low:.2f} to {measure.high:.2f})"


def _range(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.1f} to {100 * max(shares):.1f}" if shares else "-"


def _listed(taken: Sequence[Taken]) -> str:
    return ", ".join(f"{one.words} ({one.times_share:.1f}x)" for one in taken[:_SHOWN])
