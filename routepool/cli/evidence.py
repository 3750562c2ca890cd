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
from routepool.datasets.reading import looks_like_data
from routepool.errors import InputError
from routepool.explaining import Audit, CapsuleReport, Subject, audit, report_capsules
from routepool.explaining.audits import Measure
from routepool.explaining.outputs import (
    AUDITS,
    EXPLANATIONS,
    REPORTS,
    check_asked,
    explain_file,
    write_explanations,
    write_findings,
)
from routepool.printable import plural
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
    subject = Subject.of(model.saved)
    texts = [example.text for example in _labelled(model, question.audit or "", question, **reading).examples]
    found = audit(subject, texts, methods=None if question.method is None else [question.method])
    _answer(question, found)
    if not question.as_json:
        _show_audit(found)


def show_capsules(run: str, question: QuestionOptions, *, force: bool, **reading: Any) -> None:
    """Say what the capsules of a model hold."""
    check_asked(question.out or [], REPORTS, method=question.method, force=force)
    model = load(run)
    subject = Subject.of(model.saved)
    named = {"one_iteration": question.one_iteration, "projected_mean": question.projected_mean}
    controls = {name: Subject.of(load(other).saved) for name, other in named.items() if other}
    examples = _labelled(model, question.capsules or "", question, **reading).examples
    labels = [label for example in examples for label in (example.labels or ())[:1]]
    found = report_capsules(subject, [example.text for example in examples], labels, **controls)
    _answer(question, found)
    if not question.as_json:
        _show_report(found)


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


def _show_audit(found: Audit) -> None:
    screen.say(
        f"{plural(found.texts, 'text')}. Comprehensiveness: what the label's probability loses without the best words, "
        "more is better; sufficiency: with only them, less is better. 1 is the loss of an empty text. Flips: other "
        "predictions without the best words, in %. Intervals are of 95 %."
    )
    flips = (f"flips at {100 * share:.0f} %" for share in found.shares)
    columns = ("order", "comprehensiveness", "sufficiency", *flips)
    for removal, loss in found.empty_loss.items():
        rows = [
            (
                row.order,
                _interval(row.normal_comprehensiveness),
                _interval(row.normal_sufficiency),
                *(_percent(flips.value) for flips in row.flips),
            )
            for row in found.rows
            if row.removal == removal
        ]
        screen.table(f"removal: {removal} (an empty text loses {loss:.3f})", columns, rows)


def _show_report(found: CapsuleReport) -> None:
    for view in found.capsules:
        classes = ", ".join(f"{label} {effect:+.2f}" for label, effect in view.classes.items())
        name = f"{found.part} {view.number} of {view.level}"
        screen.say(f"{name}: {_percent(view.share)} % of the couplings; without it {classes}")
        for name, taken in (("words", view.words), ("phrases", view.phrases)):
            if taken:
                listed = ", ".join(f"{one.words} ({one.times_share:.1f}x)" for one in taken[:_SHOWN])
                screen.say(f"  {name}: {listed}")
    screen.say(
        f"{plural(found.texts, 'text')}. Classes: what a label's log-odds lose when the {found.part} is set to zero."
    )
    for title, name, changed in (
        (f"other numbers of iterations, trained with {found.iterations}", "iterations", found.by_iterations),
        ("other couplings of the words", "coupling", found.by_coupling),
    ):
        rows = [(one.name, _percent(one.accuracy), _percent(one.changed)) for one in changed]
        screen.table(f"dynamic? {title}, in %", (name, "accuracy", "changed"), rows)
    of = found.variance
    shares = map(_percent, (of.by_word, of.by_position, of.by_both, of.context))
    columns = ("explained by", "word", "position", "both", "context")
    screen.table("variance of the coupling, in %", columns, [("", *shares)])
    table = []
    for part in found.redundancy:
        probes = (_percent(part.whole), _range(part.alone), _range(part.without))
        table.append((part.name, f"{part.cka:.2f}", f"{part.cosine:.2f}", *probes))
    of_parts = ("", "CKA", "cosine", "whole", "alone", "without one")
    screen.table("redundant? parts of a text's vector; probes in %", of_parts, table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(measure: Measure) -> str:
    return f"{measure.value:.2f} ({measure.low:.2f} to {measure.high:.2f})"


def _range(shares: Sequence[float]) -> str:
    return f"{_percent(min(shares))} to {_percent(max(shares))}" if shares else "-"
