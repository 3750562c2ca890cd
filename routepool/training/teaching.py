"""Distillation: what trained models answer to texts, for a student to learn (Hinton, Vinyals and Dean, 2015).

The answers are logits, not probabilities: from their squared error a student learns how sure its teachers are, also of
the labels that they did not choose. Several teachers are averaged.
"""

# N texts  K classes

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch

from routepool.arrays import Floats32
from routepool.errors import InputError
from routepool.files.caching import default_folder, find, keep
from routepool.files.disk import read_file
from routepool.persistence import SavedModel, load_model
from routepool.persistence.folder import MANIFEST
from routepool.persistence.tensors import parse, stream
from routepool.scoring.torch_backend import depth_of, logits_of
from routepool.training.fitting import labels_in_words

logger = logging.getLogger(__name__)

CHUNK = 4096  # texts whose answers are kept in one file: an interruption costs no more
_LAYOUT = "logits-2"  # raise the number when the format of the files changes
_MOST_MANIFEST, _MOST_CHUNK = 1_000_000, 2**32  # bytes


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained model whose answers are kept on disk.

    A file of answers is named after the hash of the model and of the texts. The next student finds it, as does one that
    was interrupted, and it cannot be mistaken for the answers of another model or to other texts.

    Args:
        name: of its folder.
        saved: the model.
        digest: of all its files.
    """

    name: str
    saved: SavedModel
    digest: str

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """The model in a folder, every file checked."""
        saved = load_model(folder)
        manifest = read_file(Path(folder) / MANIFEST, at_most=_MOST_MANIFEST)  # it holds the hashes of all files
        return cls(str(folder), saved, hashlib.sha256(manifest).hexdigest())

    def answers(self, texts: Sequence[str], *, folder: Path | None = None) -> Iterator[Floats32]:
        """The logits (K,) of each text, in the order of the model's labels.

        Args:
            texts: N of them.
            folder: where answers are kept; None for the folder of parsed vectors, see `routepool.files.caching`.
        """
        for start in range(0, len(texts), CHUNK):
            yield from self._cached(texts[start : start + CHUNK], folder or default_folder())

    def _cached(self, texts: Sequence[str], folder: Path) -> Floats32:
        key = hashlib.sha256(json.dumps([self.digest, *texts]).encode()).hexdigest()
        file = find(folder / _LAYOUT, key)
        if file is not None:
            return parse(file, read_file(file, at_most=_MOST_CHUNK))["logits"].numpy()
        answers = self.compute(texts)
        content = stream({"logits": torch.from_numpy(answers)})
        try:
            keep(folder / _LAYOUT, key, lambda output: output.writelines(content))
        except OSError as error:
            logger.warning("%s: answers of the teacher are not kept (%s)", folder / _LAYOUT, error)
        return answers

    def compute(self, texts: Sequence[str]) -> Floats32:
        """The same, always computed."""
        encoded = self.saved.tokenizer.encode(texts, depth_of(self.saved.classifier))
        return logits_of(self.saved.classifier, encoded)


def check_teachers(teachers: Sequence[Teacher], labels: Sequence[str], *, multi_label: bool = False) -> None:
    """Raise InputError for a teacher whose labels are not those of the data."""
    for teacher in teachers:
        saved = teacher.saved
        if set(saved.labels) != set(labels) or saved.multi_label != multi_label:
            raise InputError(
                f"{teacher.name}: the teacher gives {labels_in_words(saved.labels, saved.multi_label)}; the data must "
                f"have the same, got {labels_in_words(labels, multi_label)}; take another teacher or other data"
            )


def teacher_logits(
    teachers: Sequence[Teacher],
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    multi_label: bool = False,
    folder: Path | None = None,
    watch: Callable[[Iterable[Floats32]], Iterable[Floats32]] = iter,
) -> Floats32:
    """What a student is to answer: the mean of its teachers' logits, (N, K) in the order of `labels`.

    With one label a text, only differences between logits have a meaning, so the logits of each text are shifted to a
    mean of 0: equal answers of two teachers are then equal numbers, and a student need not learn a meaningless shift.

    Args:
        teachers: one at least, such as `Teacher.read("runs/large")`.
        texts: N of them.
        labels: of the student.
        multi_label: a text may have any number of labels.
        folder: where answers are kept, see `Teacher.answers`.
        watch: takes each teacher's answers and yields them again, for a progress bar.
    """
    check_teachers(teachers, labels, multi_label=multi_label)
    total = np.zeros((len(texts), len(labels)))
    for teacher in teachers:
        answers = np.array(list(watch(teacher.answers(texts, folder=folder))), dtype=np.float64)
        total += answers.reshape(total.shape)[:, [teacher.saved.labels.index(label) for label in labels]]
        if not np.isfinite(total).all():
            raise InputError(f"{teacher.name}: the teacher's answers are not finite numbers; take another teacher")
    mean = total / len(teachers)
    return (mean if multi_label else mean - mean.mean(1, keepdims=True)).astype(np.float32)
