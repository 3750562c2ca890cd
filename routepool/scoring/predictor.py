"""The one path from raw text to labels: the command line, the estimator, the server and exported models all use it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from routepool.batching import length_of, stream
from routepool.checks import check_calibration
from routepool.errors import InputError, NotFiniteError
from routepool.scoring.probabilities import check_finite, chosen, finite_rows, probabilities
from routepool.scoring.results import Backend, Encoding, Prediction
from routepool.text import Encoded, Reading, TextReader, Unread, reading_of

if TYPE_CHECKING:
    from routepool.explaining import Explanation
    from routepool.persistence import SavedModel

BATCH = 256

R = TypeVar("R")


class Predictor:
    """Raw texts -> labels, probabilities and vectors.

    What gives plain labels or arrays warns (`UnreadTextWarning`, once a call) of texts that are longer than the model
    reads and of texts without a word that it knows; a `Prediction`, an `Encoding` and an explanation say it themselves.

    Args:
        tokenizer: text -> ids.
        backend: ids -> logits.
        labels: names of the logits.
        multi_label: a text may have any number of labels.
        temperature: calibrates the probabilities.
        thresholds: of a multi-label model, one for each label.
        columns: the data columns it was trained on, used again unless told otherwise.
        saved: the model as a folder holds it, so that it can be saved and shared; an exported one has none.
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
        self.thresholds = thresholds or ([0.5] * len(self.labels) if multi_label else None)

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
            revision: of the hub model: a branch, a tag or a commit; else the newest.
            token: for a private model; else the one that you logged in with, if any.
            cache_dir: where downloads are kept, else where the hub's package keeps them.
            local_files_only: use what is there, download nothing.
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
            card: what README.md shall tell beside what is known from training, such as `{"license": "mit"}`;
                `routepool.persistence.card.render` lists the fields.
            force: replace the model that is there.
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
            name: such as `someone/some-model`; made if it is not there.
            card: as in `save_pretrained`.
            private: whether a new one is only for you; None leaves it to the hub.
            revision: a branch, made if it is not there; else the main one.
            token: else the one that you logged in with.
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

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(N, K) calibrated probabilities, in the order of `labels`."""
        return self._shares(self.logits(texts))

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(N, K) what the model computes before temperature and thresholds, in the order of `labels`."""
        encoded = self._encode(texts)
        logits = self._logits(encoded)
        self._warn(encoded)
        return logits

    def predictions(self, texts: Sequence[str]) -> list[Prediction]:
        """All that there is to say of each text, how much of it was read included."""
        encoded = self._encode(texts)
        return self._predictions(encoded, self._logits(encoded))

    def encode(self, texts: Sequence[str], *, capsules: bool = False) -> NDArray[np.float32]:
        """The vector that the last aggregator makes of each text.

        Args:
            texts: N of them.
            capsules: each vector as the parts it is the concatenation of: the capsules of routing, the rows of
                structured attention; any other aggregator has one.

        Returns:
            (N, size), or (N, capsules, size of one).
        """
        encoded = self._encode(texts)
        vectors = self.backend.vectors(encoded)
        check_finite(vectors)
        self._warn(encoded)
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

        if self.saved is None:
            raise InputError("an exported model cannot be explained; load the folder it was exported from")
        if isinstance(texts, str):
            raise InputError("wanted a list of texts, got one string; put it in a list")
        return explain(Subject.of(self.saved), texts, method=method, label=label, iterations=iterations)

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """One prediction for each text, in their order, in memory that does not grow with their number."""
        return self._stream(texts, self.backend.logits, self._predictions)

    def stream_encodings(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Encoding]:
        """One encoding for each text, in their order, in memory that does not grow with their number."""

        def made(encoded: Sequence[Encoded], vectors: NDArray[np.float32]) -> list[Encoding]:
            return list(map(Encoding, self._parted(vectors, capsules), self._readings(encoded)))

        return self._stream(texts, self.backend.vectors, made)

    def stream_vectors(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[NDArray[np.float32]]:
        """The rows of `encode` one by one, in memory that does not grow with their number; it warns at the end."""
        unread = Unread()
        for place, encoding in enumerate(self.stream_encodings(texts, capsules=capsules)):
            unread.add(place, encoding.reading)
            yield encoding.vector
        unread.warn()

    def _stream(
        self,
        texts: Iterable[str],
        compute: Callable[[Sequence[Encoded]], NDArray[np.float32]],
        made: Callable[[Sequence[Encoded], NDArray[np.float32]], list[R]],
    ) -> Iterator[R]:
        """Results in the order of the texts, up to the first that is not finite."""
        if isinstance(texts, str):  # its letters would be taken for texts
            raise InputError("wanted texts one by one, got one string; put it in a list")
        encoded = (self.tokenizer.encode([text], self.backend.depth)[0] for text in texts)

        def length(text: Encoded) -> tuple[int, ...]:
            return length_of(text, self.backend.depth)

        def computed(batch: list[Encoded]) -> list[tuple[bool, R]]:
            values = compute(batch)
            finite = finite_rows(values)
            values[~finite] = 0  # these rows go no further than to the error
            return list(zip(finite.tolist(), made(batch, values), strict=True))

        return _finite(stream(encoded, computed, length=length, batch_size=BATCH))

    def _parted(self, vectors: NDArray[np.float32], capsules: bool) -> NDArray[np.float32]:
        rows, size = vectors.shape
        return vectors.reshape(rows, self.backend.units, size // self.backend.units) if capsules else vectors

    def _logits(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        logits = self.backend.logits(encoded)
        check_finite(logits)
        return logits

    def _predictions(self, encoded: Sequence[Encoded], logits: NDArray[np.float32]) -> list[Prediction]:
        shares = self._shares(logits)
        labels = chosen(shares, self.labels, self.thresholds)
        return list(map(Prediction, labels, shares, self._readings(encoded)))

    def _readings(self, encoded: Sequence[Encoded]) -> list[Reading]:
        return [reading_of(self.tokenizer, text) for text in encoded]

    def _warn(self, encoded: Sequence[Encoded]) -> None:
        Unread.of(self._readings(encoded)).warn()

    def _shares(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        return probabilities(logits, temperature=self.temperature, multi_label=self.multi_label)

    def _encode(self, texts: Sequence[str]) -> list[Encoded]:
        if isinstance(texts, str):
            raise InputError("wanted a list of texts, got one string; put it in a list")
        return self.tokenizer.encode(texts, self.backend.depth)


def _finite(results: Iterable[tuple[bool, R]]) -> Iterator[R]:
    for place, (finite, result) in enumerate(results):
        if not finite:
            raise NotFiniteError(place)
        yield result


def load(folder: str | os.PathLike[str]) -> Predictor:
    """A model from its folder, ready to predict."""
    # Here and not above: `routepool --help` must not wait for torch.
    from routepool.persistence import load_model  # noqa: PLC0415

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
