"""Why a model predicts what it does: which word went where, how much each mattered, and whether to believe that.

- `explain` gives an `Explanation` of each text, which becomes a page, a picture, JSON or lines of a terminal.
- `explain_file` does so for all texts of a file, and writes them; `write_explanations` and `write_findings` write.
- `audit` takes away the words that a method names, and measures what the model says then.
- `report_capsules` measures what the capsules hold, whether routing is dynamic, and whether capsules differ.
- `costs_of` estimates how much an explanation reads, before it is begun.

>>> from routepool.model import Classifier
>>> from routepool.settings import ModelConfig
>>> from routepool.text import Tokenizer
>>> texts, labels = ["A good film", "a bad film"] * 5, ["pos", "neg"] * 5
>>> tokenizer, small = Tokenizer.build(texts), ModelConfig(embedding_size=4, hidden_size=4)
>>> model = Classifier.build(small, vocabulary_size=len(tokenizer.words), classes=2)
>>> subject = Subject(model=model, tokenizer=tokenizer, labels=("neg", "pos"))
>>> (shown,) = explain(subject, texts[:1])
>>> [shown.of(word) for word in shown.words], shown.parts[-1], shown.method
(['A', 'good', 'film'], 'capsule 5', 'integrated-gradients')
>>> [costs_of(subject, texts[:1], method=method) for method in ("gradient", "leave-one-out")]
[[12], [12]]
>>> found = audit(subject, texts[:1], methods=["gradient"], removals=["drop"], random_orders=2)
>>> [row.order for row in found.rows]
['random', 'gradient', 'rare words first', 'leave-one-out', 'search']
>>> report = report_capsules(subject, texts, labels)
>>> len(report.capsules), [one.name for one in report.by_iterations]
(5, ['1', '2', '3', '4', '5', '6'])
"""

from routepool.explaining.audits import Audit, audit
from routepool.explaining.capsules import CapsuleReport, report_capsules
from routepool.explaining.explanation import Explanation, Span, SpanLevel
from routepool.explaining.methods import DEFAULT_METHOD, METHODS, costs_of
from routepool.explaining.outputs import explain_file, write_explanations, write_findings
from routepool.explaining.page import render_page
from routepool.explaining.subject import Subject
from routepool.explaining.texts import explain

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "Audit",
    "CapsuleReport",
    "Explanation",
    "Span",
    "SpanLevel",
    "Subject",
    "audit",
    "costs_of",
    "explain",
    "explain_file",
    "render_page",
    "report_capsules",
    "write_explanations",
    "write_findings",
]
