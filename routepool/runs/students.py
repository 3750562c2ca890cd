"""What a student adds to a run: its teachers, and texts without labels for them to answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from routepool.datasets import NAMED, Example, load_named
from routepool.datasets.remembered import options_for
from routepool.persistence.folder import MANIFEST
from routepool.printable import plural
from routepool.runs.reporter import Reporter
from routepool.runs.sets import DataSource, Note, Sets, absolute, load_texts, remembered
from routepool.training import Task, Teacher, check_teachers, teacher_logits


@dataclass(frozen=True)
class Distillation:
    """What a student learns from besides its data.

    Args:
        teachers: folders of trained models, whose answers are averaged.
        unlabelled: a file of texts, or a known set for the texts of its training part; None for those of the data only.
    """

    teachers: tuple[str, ...]
    unlabelled: str | None = None

    @property
    def unlabelled_is_named(self) -> bool:
        """A known set; its name is no path."""
        return self.unlabelled in NAMED.names()

    def absolute(self) -> "Distillation":
        """The same folders and file, found from any folder."""
        file = self.unlabelled
        found = file if file is None or self.unlabelled_is_named else absolute(file)
        return Distillation(tuple(map(absolute, self.teachers)), found)

    def files(self) -> list[tuple[str, Path]]:
        """The role and path of each file; a teacher's manifest holds the hashes of all its files."""
        facts = [("teacher's", Path(folder) / MANIFEST) for folder in self.teachers]
        if self.unlabelled is not None:
            files = load_named(self.unlabelled).train.files if self.unlabelled_is_named else [self.unlabelled]
            facts += [("unlabelled", Path(file)) for file in files]
        return facts

    def check(self, source: DataSource, sets: Sets, labels: Sequence[str], reporter: Reporter) -> None:
        """Raise InputError for teachers of other labels and unreadable texts, before anything is computed."""
        teachers = [Teacher.read(folder) for folder in self.teachers]
        check_teachers(teachers, labels, multi_label=sets.train.multi_label)
        if self.unlabelled is not None:
            new = len(_new_texts(self.unlabelled, source, sets, reporter.note))
            reporter.say(f"{self.unlabelled}: {plural(new, 'new text')} without labels")

    def teach(self, task: Task, source: DataSource, sets: Sets, reporter: Reporter) -> Task:
        """Add the texts without labels to a task, and what the teachers answer to all its texts."""
        added = [] if self.unlabelled is None else _new_texts(self.unlabelled, source, sets)
        train = [*task.train, *(Example(row, text) for row, text in enumerate(added, 1))]
        names = ", ".join(Path(folder).name for folder in self.teachers)
        reporter.say(f"{names}: answers to {plural(len(train), 'text')}, kept for other students")
        answers = teacher_logits(
            [Teacher.read(folder) for folder in self.teachers],
            [example.text for example in train],
            task.labels,
            multi_label=task.multi_label,
            watch=reporter.counted,
        )
        return replace(task, train=train, teacher_logits=answers)

    def limit(self) -> str:
        """A line for the model card."""
        names = ", ".join(Path(folder).name for folder in self.teachers)
        more = "" if self.unlabelled is None else f" and to those of {Path(self.unlabelled).name}"
        return f"A student: it learned what {names} answered to the training texts{more}."


def _new_texts(unlabelled: str, source: DataSource, sets: Sets, note: Note | None = None) -> list[str]:
    """Each text once, without those that are labelled already or scored later, so that scores stay honest."""
    asked = {name: source.options[name] for name in ("encoding", "on_error") if name in source.options}
    reading = options_for(unlabelled, remembered(source, sets), labels=False, **asked)
    texts = load_texts(unlabelled, folder=source.folder, note=note, **reading)
    labelled = sets.all
    if source.is_named:  # its test part is kept out whether or not it is to be scored
        labelled.append(load_named(source.data, folder=source.folder).test)
    known = {example.text for data in labelled for example in data.examples}
    return [text for text in dict.fromkeys(texts) if text.strip() and text not in known]
