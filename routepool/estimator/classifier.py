"""The scikit-learn estimator: texts and labels in memory -> the model that the command line would train."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from routepool.arrays import Floats32
from routepool.errors import InputError
from routepool.estimator.arguments import plain, preset_of, seed_of, task_of
from routepool.estimator.inputs import Form, Labels, read_labels, read_texts, read_training
from routepool.persistence import SavedModel
from routepool.scoring.predictor import Predictor, of_saved
from routepool.scoring.predictor import load as load_predictor
from routepool.settings import Preset
from routepool.settings.declarations import whole_number
from routepool.text import warn
from routepool.training import Fitted, ProgressBar, Task, check_device, fit
from routepool.training.process import caller_unchanged

_TYPES = {"b": "bool", "i": "int", "u": "int", "f": "float"}
_READ_BACK: dict[str, Callable[[str], Any]] = {
    "bool": lambda name: name == "True",
    "int": int,
    "float": float,
    "str": str,
}


class TextClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns the labels of texts; keeps scikit-learn's rules, so it works in pipelines and searches.

    It trains as `routepool train` does. A setting left at None is the preset's. `fit` checks all of them.

    Args:
        preset: settings that belong together: default, paper, released, another name that `routepool presets` lists, or
            a TOML file such as `routepool tune` writes.
        aggregator: max, mean, attention, structured-attention, multi-hop, routing, reverse-routing.
        encoder: bilstm, bigru, cnn, none.
        vectors: files and names of word vectors, joined by commas; "none" for random ones; None for those of the
            package wordllama if it is installed.
        depth: 1 reads a text as one sequence of words, 2 as sentences; None decides by the length of the texts.
        embedding_size: of a word vector, if `vectors` gives none.
        hidden_size: units of the encoder in each direction.
        capsules: of a routing aggregator.
        capsule_size: of each of them.
        iterations: of routing.
        dropout: share of values dropped in training.
        epochs: passes over the texts at most.
        batch_size: texts in a step.
        learning_rate: initial rate.
        class_weight: "balanced", or label -> weight in the loss, 1 for a label that is not named.
        validation_fraction: share of the texts that decides when to stop and calibrates probabilities, chosen by label;
            None trains on every text, stops by the score on these and calibrates nothing.
        settings: any other setting of `routepool.settings`, or option of the encoder's or aggregator's class.
        threads: of the processor; None leaves torch's number.
        device: cpu, cuda, cuda:1, mps.
        verbose: show a progress bar.
        random_state: a number gives the same model every time.

    Attributes:
        classes_: (K,) labels, sorted; for a `y` of zeros and ones the numbers of its columns.
        predictor_: the trained model, with all that `routepool.load` gives.
        n_iter_: epochs that were trained; after `fit` only.
        validation_score_: accuracy, or micro F1 for several labels, of the best epoch; after `fit` only.

    >>> texts = ["a merry day", "a gloomy day", "merry tea", "gloomy tea"] * 5
    >>> labels = ["glad", "sad"] * 10
    >>> model = TextClassifier(aggregator="mean", vectors="none", hidden_size=8, validation_fraction=None,
    ...                        epochs=10, learning_rate=0.02, random_state=0)
    >>> model.fit(texts, labels).predict(["merry bread", "gloomy bread"])
    array(['glad', 'sad'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        aggregator: str | None = None,
        encoder: str | None = None,
        vectors: str | None = None,
        depth: int | None = None,
        embedding_size: int | None = None,
        hidden_size: int | None = None,
        capsules: int | None = None,
        capsule_size: int | None = None,
        iterations: int | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        validation_fraction: float | None = 0.1,
        settings: Mapping[str, Any] | None = None,
        threads: int | None = None,
        device: str = "cpu",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.preset = preset
        self.aggregator = aggregator
        self.encoder = encoder
        self.vectors = vectors
        self.depth = depth
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.capsules = capsules
        self.capsule_size = capsule_size
        self.iterations = iterations
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.threads = threads
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, dev: tuple[Any, Any] | None = None) -> Self:
        """Train on labelled texts.

        Args:
            X: strings: a list, an array, a series of any package, a generator.
            y: a label for each text; for several labels a text, zeros and ones (N, K) or a list of lists of labels.
            sample_weight: how much each text counts in the loss; only the ratios matter, and 0 leaves a text out.
            dev: texts and labels that decide when to stop and calibrate, in place of a part of X.
        """
        material = read_training(X, y, sample_weight)
        labels = material.labels
        given = self.get_params(deep=False)
        preset = preset_of(given, material.texts, seed_of(self.random_state))
        task = task_of(given, material, preset, dev)
        fitted = self._train(task, preset)
        if fitted.truncation.words:
            warn(fitted.truncation.line())
        self._adopt(of_saved(_recorded(fitted, task, labels)), labels.classes, labels.form)
        self.n_iter_ = fitted.progress.epoch
        self.validation_score_ = fitted.progress.best_score
        return self

    def predict(self, X: Any) -> Any:
        """The labels of texts, in the type and form of `y`: (N,), zeros and ones (N, K), or a list of tuples."""
        predicted = self._predictor().predict(read_texts(X))
        places = {name: place for place, name in enumerate(self._names)}
        if self._form == "one":
            return self.classes_[np.array([places[str(name)] for name in predicted], dtype=np.intp)]
        if self._form == "sets":
            classes = self.classes_.tolist()
            return [tuple(classes[place] for place in sorted(places[name] for name in names)) for names in predicted]
        table = np.zeros((len(predicted), len(places)), dtype=np.int64)
        for row, names in enumerate(predicted):
            table[row, [places[name] for name in names]] = 1
        return table

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(N, K) calibrated probabilities in the order of `classes_`; several labels of a text need not add up to 1."""
        return self._predictor().predict_proba(read_texts(X))[:, self._columns]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """(N, K) the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    def decision_function(self, X: Any) -> Floats32:
        """Logits (N, K); for two classes (N,), above 0 for the second.

        For several labels a text each label's threshold is subtracted: labels from 0 upwards are predicted.
        """
        model = self._predictor()
        logits = model.logits(read_texts(X))
        if model.thresholds is not None:
            least = np.clip(np.asarray(model.thresholds), 1e-9, 1 - 1e-9)
            logits = logits - (model.temperature * np.log(least / (1 - least))).astype(np.float32)
        logits = logits[:, self._columns]
        binary = self._form == "one" and logits.shape[1] == 2
        return logits[:, 1] - logits[:, 0] if binary else logits

    def transform(self, X: Any) -> Floats32:
        """(N, size): the vector that the model makes of each text."""
        return self._predictor().encode(read_texts(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; for several labels a text, the share of texts all of whose labels are right."""
        check_is_fitted(self)
        if self._form != "sets":
            return float(super().score(X, y, sample_weight=sample_weight))
        right = [set(map(str, labels)) for labels in self.predict(X)]
        wanted = [set(labels) for labels in read_labels(y).of_texts]
        if len(right) != len(wanted):
            raise InputError(f"wanted labels for each of the {len(right)} texts, got {len(wanted)}")
        hits = [one == other for one, other in zip(right, wanted, strict=True)]
        return float(accuracy_score([True] * len(hits), hits, sample_weight=sample_weight))

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model folder that the command line and `load` read; `force` replaces the model that is there."""
        self._predictor().save_pretrained(folder, force=force)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """A fitted estimator from a model folder, also one of the command line.

        The labels of a folder are strings; if `save` wrote it, they become whole numbers, floats and booleans again.
        The settings of its training are in `settings`, so that a clone trains alike; only `vectors` must be given
        again.
        """
        predictor = load_predictor(folder)
        saved = predictor.saved
        assert saved is not None  # a folder always has one
        kept = {**saved.model_config.to_dict(), **saved.tokenizer.config.to_dict()}
        kept |= saved.training.to_dict() if saved.training else {}
        loaded = cls(random_state=kept.pop("seed", None), settings=kept)
        wrote = saved.provenance.get("estimator")
        wrote = wrote if isinstance(wrote, Mapping) else {}
        classes = list(map(_READ_BACK.get(wrote.get("labels", "str"), str), saved.labels))
        several: Form = "indicator" if wrote.get("form") == "indicator" else "sets"
        loaded._adopt(predictor, np.asarray(classes), several if saved.multi_label else "one")
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _predictor(self) -> Predictor:
        check_is_fitted(self)
        predictor: Predictor = self.predictor_
        return predictor

    def _adopt(self, predictor: Predictor, classes: NDArray[Any], form: Form) -> None:
        """Become fitted with a trained model; `classes` are in the order of its logits."""
        self._columns = np.argsort(classes, kind="stable")  # a folder's labels come in any order
        self._names = [predictor.labels[place] for place in self._columns]
        self._form = form
        self._n_features_out = predictor.encode([]).shape[1]
        self.classes_ = classes[self._columns]
        self.predictor_ = predictor

    def _train(self, task: Task, preset: Preset) -> Fitted:
        threads = None if self.threads is None else whole_number("threads", plain(self.threads))
        check_device(self.device)
        with caller_unchanged(threads), ExitStack() as stack:
            hooks = [stack.enter_context(ProgressBar(preset.training.epochs))] if self.verbose else []
            return fit(task, preset, hooks=hooks, device=self.device)


def _recorded(fitted: Fitted, task: Task, labels: Labels) -> SavedModel:
    """The model with what its folder is to hold of the fit."""
    on_train = task.dev is task.train
    score = {"set": "train" if on_train else "dev", "score": "micro F1" if task.multi_label else "accuracy"}
    data = {"train": {"examples": len(task.train)}} | ({} if on_train else {"dev": {"examples": len(task.dev)}})
    facts = {
        "estimator": {"labels": _TYPES.get(labels.classes.dtype.kind, "str"), "form": labels.form},
        "vectors": task.vectors,
        "class_weights": task.class_weights,
        "card": {"data": data, "scores": [{**score, "value": fitted.progress.best_score}]},
    }
    return replace(fitted.saved, provenance=facts)
