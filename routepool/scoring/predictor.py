"""The one path from raw text to labels: the command line, the estimator and the server use it, with any backend."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from routepool.arrays import Floats32, Floats64
from routepool.batching import BATCH, buffers
from routepool.errors import InputError, NotFiniteError
from routepool.files.disk import read_json
from routepool.scoring.backends import BACKENDS, TORCH, Backend, Encoding, Prediction
from routepool.scoring.probabilities import check_finite, chosen, usual_thresholds
from routepool.scoring.probabilities import probabilities as probabilities_of
from routepool.settings.declarations import check_calibration
from routepool.text import Encoded, TextReader, Unread

if TYPE_CHECKING:
    from routepool.explaining import Explanation
    from routepool.persistence import SavedModel

_CONFIG = 2**24  # bytes in which a backend is looked for
R = TypeVar("R")


class Predictor:
    """Raw texts -> labels, probabilities and vectors.

    Methods that return plain labels or arrays warn (`UnreadTextWarning`, once a call) of texts that are longer than the
    model reads and of texts without a known word; a `Prediction`, an `Encoding` and an explanation say it themselves.

    Args:
        tokenizer: text -> ids.
        backend: ids -> logits.
        labels: names of the logits.
        multi_label: a text may have any number of labels.
        temperature: calibrates the probabilities.
        thresholds: of a multi-label model, one for each label.
        columns: the data columns it was trained on, used again unless others are named.
        saved: the model as a folder holds it, to be saved and shared; an exported model has none.
    """

    def __init__(
        self,
        tokenizer: TextReader,
        backend: Backend,
        labels: Sequence[str],
        *,
        multi_label: bool = False,
        temperature: float = 1.0,
        thresholds: Sequence[float] | None = None,
        columns: Mapping[str, Any] | None = None,
        saved: "SavedModel | None" = None,
    ) -> None:
        self.tokenizer, self.backend, self.labels = tokenizer, backend, tuple(labels)
        self.multi_label, self.columns, self.saved = multi_label, columns, saved
        check_calibration(temperature, thresholds, len(self.labels))
        self.temperature = temperature
        self.thresholds = thresholds or usual_thresholds(self.labels, multi_label=multi_label)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        token: bool | str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
    ) -> "Predictor":
        """A model from its folder or from a hub, every file checked.

        Args:
            name: a folder, or the name of a hub model such as `someone/some-model`; a folder of that name wins.
            revision: a branch, a tag or a commit of the hub model; None for the newest.
            token: for a private model; None for the one you logged in with, if any.
            cache_dir: where downloads are kept; None for the hub package's own place.
            local_files_only: download nothing.
        """
        if not isinstance(name, str) or os.path.lexists(name):
            return load(name)
        from routepool.persistence.hubs import HUBS  # noqa: PLC0415

        return load(
            HUBS["huggingface"].download(
                name, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
            )
        )

    def save_pretrained(
        self, folder: str | os.PathLike[str], *, card: Mapping[str, Any] | None = None, force: bool = False
    ) -> None:
        """Write the model folder, from which `load` and `from_pretrained` read it.

        Args:
            folder: made if missing.
            card: fields of README.md beside those known from training, such as `{"license": "mit"}`;
                `routepool.persistence.card.render` lists them.
            force: replace an existing model.
        """
        from routepool.persistence import save_model  # noqa: PLC0415
        from routepool.persistence.card import remembered  # noqa: PLC0415

        if self.saved is None:
            raise InputError("this model is an exported one; save or share the folder it was exported from")
        save_model(folder, self.saved, card={**remembered(self.saved), **(card or {})}, force=force)

    def push_to_hub(
        self,
        name: str,
        *,
        card: Mapping[str, Any] | None = None,
        private: bool | None = None,
        revision: str | None = None,
        token: bool | str | None = None,
        commit_message: str | None = None,
    ) -> str:
        """Share the model folder on a hub, and return the address of what was uploaded.

        Args:
            name: such as `someone/some-model`; made if missing.
            card: as in `save_pretrained`.
            private: whether a new repository is private; None leaves it to the hub.
            revision: a branch, made if missing; None for the main one.
            token: None for the one you logged in with.
            commit_message: what the hub's history says.
        """
        from routepool.persistence.hubs import HUBS  # noqa: PLC0415

        hub = HUBS["huggingface"]
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder, card=card)
            return hub.upload(
                Path(folder), name, revision=revision, token=token, private=private, commit_message=commit_message
            )

    def predict(self, texts: Sequence[str]) -> list[str] | list[tuple[str, ...]]:
        """A label for each text, or the labels of each for a multi-label model."""
        labels = chosen(self.predict_proba(texts), self.labels, self.thresholds)
        return labels if self.multi_label else [label for (label,) in labels]

    def predict_proba(self, texts: Sequence[str]) -> Floats64:
        """(N, K) calibrated probabilities, in the order of `labels`."""
        return self._probabilities(self.logits(texts))

    def logits(self, texts: Sequence[str]) -> Floats32:
        """(N, K) what the model computes before temperature and thresholds, in the order of `labels`."""
        encoded, logits = self._logits(texts)
        Unread.of(map(self.tokenizer.reading, encoded)).warn()
        return logits

    def predictions(self, texts: Sequence[str]) -> list[Prediction]:
        """Labels and probabilities of each text, and how much of it was read."""
        return self._predictions(*self._logits(texts))

    def encode(self, texts: Sequence[str], *, capsules: bool = False) -> Floats32:
        """The vector that the last aggregator makes of each text.

        Args:
            texts: N of them.
            capsules: split each vector into its parts: the capsules of routing, the rows of structured attention;
                any other aggregator has one part.

        Returns:
            (N, size), or (N, capsules, size of one).
        """
        encoded = self.tokenizer.encode(texts, self.backend.depth)
        vectors = self.backend.vectors(encoded)
        check_finite(vectors)
        Unread.of(map(self.tokenizer.reading, encoded)).warn()
        return self._parted(vectors, capsules)

    def explain(
        self, texts: Sequence[str], *, method: str | None = None, label: str | None = None, iterations: bool = False
    ) -> "list[Explanation]":
        """Which word went where, and how much each mattered.

        Args:
            texts: raw.
            method: how importance is measured, a name of `routepool.explaining.METHODS`; None for the usual one.
            label: what the words speak for; None for the likeliest label of each text.
            iterations: keep the couplings of every round of routing.
        """
        from routepool.explaining import Subject, explain  # noqa: PLC0415

        if isinstance(texts, str):
            raise InputError("wanted a list of texts, got one string; put it in a list")
        return explain(Subject.of(self.saved), texts, method=method, label=label, iterations=iterations)

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """One prediction for each text, in their order, in memory that does not grow with their number."""
        return self._streamed(texts, self.backend.logits, self._predictions)

    def stream_encodings(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Encoding]:
        """One encoding for each text, in their order, in memory that does not grow with their number."""

        def encodings(encoded: Sequence[Encoded], vectors: Floats32) -> Iterable[Encoding]:
            return map(Encoding, self._parted(vectors, capsules), map(self.tokenizer.reading, encoded))

        return self._streamed(texts, self.backend.vectors, encodings)

    def stream_vectors(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Floats32]:
        """The rows of `encode` one by one, in memory that does not grow with their number; it warns at the end."""
        unread = Unread()
        for place, encoding in enumerate(self.stream_encodings(texts, capsules=capsules)):
            unread.add(place, encoding.reading)
            yield encoding.vector
        unread.warn()

    def _streamed(
        self,
        texts: Iterable[str],
        compute: Callable[[Sequence[Encoded]], Floats32],
        results: Callable[[Sequence[Encoded], Floats32], Iterable[R]],
    ) -> Iterator[R]:
        """The results of texts, a buffer computed at a time, up to the first whose numbers are not finite."""
        if isinstance(texts, str):  # its letters would be taken for texts
            raise InputError("wanted texts one by one, got one string; put it in a list")

        def stream() -> Iterator[R]:
            first = 0
            for held in buffers(self.tokenizer.stream(texts, self.backend.depth)):
                values = compute(held)
                broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
                end = int(broken[0]) if len(broken) else len(held)
                for start in range(0, end, BATCH):  # results weigh more than the numbers they are made of
                    some = slice(start, min(start + BATCH, end))
                    yield from results(held[some], values[some])
                if end < len(held):
                    raise NotFiniteError(first + end)
                first += end

        return stream()

    def _logits(self, texts: Sequence[str]) -> tuple[list[Encoded], Floats32]:
        encoded = self.tokenizer.encode(texts, self.backend.depth)
        logits = self.backend.logits(encoded)
        check_finite(logits)
        return encoded, logits

    def _predictions(self, encoded: Sequence[Encoded], logits: Floats32) -> list[Prediction]:
        probabilities = self._probabilities(logits)
        labels = chosen(probabilities, self.labels, self.thresholds)
        return list(map(Prediction, labels, probabilities, map(self.tokenizer.reading, encoded)))

    def _probabilities(self, logits: Floats32) -> Floats64:
        return probabilities_of(logits, temperature=self.temperature, multi_label=self.multi_label)

    def _parted(self, vectors: Floats32, capsules: bool) -> Floats32:
        rows, size = vectors.shape
        return vectors.reshape(rows, self.backend.parts, size // self.backend.parts) if capsules else vectors


def load(folder: str | os.PathLike[str]) -> Predictor:
    """A model from its folder, ready to predict, by the backend that its config.json names: torch if it names none."""
    try:
        backend = read_json(Path(folder) / "config.json", at_most=_CONFIG).get("backend", TORCH)
    except InputError:
        backend = TORCH  # which says what is wrong with the folder
    return BACKENDS[str(backend)](folder)


@BACKENDS.register(TORCH)
def _load(folder: str | os.PathLike[str]) -> Predictor:
    from routepool.persistence import load_model  # noqa: PLC0415  `routepool --help` must not wait for torch

    return of_saved(load_model(folder))


def of_saved(saved: "SavedModel") -> Predictor:
    """The predictor of a model in memory."""
    from routepool.scoring.torch_backend import TorchBackend  # noqa: PLC0415

    return Predictor(
        saved.tokenizer,
        TorchBackend(saved.classifier),
        saved.labels,
        multi_label=saved.multi_label,
        temperature=saved.temperature,
        thresholds=saved.thresholds,
        columns=saved.columns,
        saved=saved,
    )
