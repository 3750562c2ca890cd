"""Every setting, declared once: its default, its bounds and its help; and the checks of other numbers.

A declaration gives the default of the library, the help of the command line and the field of `config.json`. Names of
encoders, aggregators and their options are checked against the registries and the classes when the model is built, so
a newly registered class needs no entry here.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, TypeVar

from routepool.errors import InputError, unknown
from routepool.printable import plural

PLACES = ("embedding", "encoder", "aggregator", "tanh", "hidden")
LARGEST = 2**16  # of a size: a larger layer has more weights than a machine without an accelerator could train
SEPARATOR = "|"  # between the labels of a text
PHRASES = "-phrases"  # ends the name of a known set that comes with the labelled phrases of its sentences
COLDEST, HOTTEST = 1e-3, 1e3  # of a temperature; calibration gives 1/4 to 20
S = TypeVar("S", bound="Settings")


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """Declare a field of `Settings`: its default, its help, and what values it takes."""
    metadata = {"help": help, "least": least, "most": most, "above": above, "choices": choices}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """The value, or an error that names it and its bounds; True and 2.0 are no whole numbers."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r:.80}")
    if most is not None and value > most:
        raise InputError(f"{name} must be at most {most}, got {value!r:.80}")
    return value


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """The value, or an error that lists the choices."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r:.80}")
    return value


def check_calibration(temperature: float, thresholds: Sequence[float] | None, labels: int) -> None:
    """Raise `InputError` on a temperature by which logits would overflow or say nothing, and on wrong thresholds."""
    if not _is_number(temperature) or not COLDEST <= temperature <= HOTTEST:
        raise InputError(f"temperature must be a number from {COLDEST:g} to {HOTTEST:g}, got {temperature!r:.80}")
    if thresholds is None:
        return
    listed = isinstance(thresholds, list | tuple) and len(thresholds) == labels
    if not listed or not all(_is_number(one) and 0 <= one <= 1 for one in thresholds):
        wanted = f"null or {plural(labels, 'number')} from 0 to 1, one for each label"
        raise InputError(f"thresholds must be {wanted}, got {thresholds!r:.80}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(name: str, value: Any, default: Any, rule: Mapping[str, Any]) -> None:
    _check_type(name, value, default)
    for chosen in value if isinstance(value, tuple) else (value,):
        if rule["choices"]:
            one_of(name, chosen, rule["choices"])
    # Written as `not inside` so that NaN, which lies nowhere, is refused too.
    if rule["least"] is not None and not value >= rule["least"]:
        raise InputError(f"{name} must be at least {rule['least']}, got {value!r:.80}")
    if rule["most"] is not None and not value <= rule["most"]:
        raise InputError(f"{name} must be at most {rule['most']}, got {value!r:.80}")
    if rule["above"] is not None and not value > rule["above"]:
        raise InputError(f"{name} must be above {rule['above']}, got {value!r:.80}")
    if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
        raise InputError(f"{name} must be a finite number, got {value!r:.80}")


def _check_type(name: str, value: Any, default: Any) -> None:
    wanted = Mapping if not isinstance(default, bool | int | float | str | tuple) else type(default)
    numbers = int | float if wanted is float else wanted
    if not isinstance(value, numbers) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"{name} must be {_WORDS[wanted]}, got {value!r:.80}")


_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a name",
    tuple: "a list of names",
    Mapping: "a table of options",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A group of checked settings that can be written to JSON and read back.

    >>> ModelConfig(hidden_size=0)
    Traceback (most recent call last):
    routepool.errors.InputError: hidden_size must be at least 1, got 0
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            _check(item.name, getattr(self, item.name), item.default, item.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; an unknown key is an error that suggests the right one."""
        known = [item.name for item in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown("setting", key, known)
        lists_as_tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**lists_as_tuples)


@dataclass(frozen=True, kw_only=True)
class TextConfig(Settings):
    """How text becomes words: all that is needed, with the vocabulary, to read a text the same way again.

    >>> TextConfig(split="letters")
    Traceback (most recent call last):
    routepool.errors.InputError: split must be one of words, spaces, got 'letters'
    """

    lowercase: bool = setting(True, "lower-case the text")
    split: str = setting("words", "words, or spaces for text that is already tokenised", choices=("words", "spaces"))
    separator: str = setting("", "string between the sentences of a document, such as <sssss>; empty: detect them")
    language: str = setting("en", "language code for finding sentences; an unknown one is read as English")
    max_words: int = setting(1000, "words to read of a sentence, or of a text without sentences; 0: all", least=0)
    max_sentences: int = setting(1000, "sentences to read of a document; 0: all", least=0)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Settings):
    """The shape of a model: what lies between token ids and logits. The defaults are the paper's."""

    depth: int = setting(1, "levels of aggregation: 1 words, 2 words and sentences, 3 and paragraphs", least=1, most=8)
    embedding_size: int = setting(300, "size of a word vector", least=1, most=LARGEST)
    encoder: str = setting(
        "bilstm", "puts words in context: bilstm, bigru, cnn, none, or hf:FOLDER for a pre-trained one"
    )
    encoder_options: Mapping[str, Any] = setting({}, "options of the encoder's class")
    upper_encoder: str = setting("", "encoder of sentences; empty: that of the words, bilstm above a pre-trained one")
    hidden_size: int = setting(
        200, "hidden units of the encoder in each direction, or filters of each width", least=1, most=LARGEST
    )
    aggregator: str = setting("routing", "turns the words' vectors into one")
    aggregator_options: Mapping[str, Any] = setting({}, "options of the aggregator's class")
    head_size: int = setting(300, "hidden units of the classifier on top", least=1, most=LARGEST)
    dropout: float = setting(0.2, "share of values dropped in training", least=0.0, most=0.99)
    dropout_kind: str = setting(
        "each",
        "dropout before the encoder: each value by itself, or locked, the same features at every word of a text",
        choices=("each", "locked"),
    )
    dropout_places: tuple[str, ...] = setting(("encoder", "hidden"), "where: " + ", ".join(PLACES), choices=PLACES)

    @property
    def is_pretrained(self) -> bool:
        """Its encoder comes from a folder or a hub, with weights and a tokenizer."""
        return bool(split_source(self.encoder)[1])


OF_LEARNING = ("dropout", "dropout_kind", "dropout_places")  # settings of a model that change nothing in what it holds


def split_source(encoder: str) -> tuple[str, str]:
    """The kind and the source of a pre-trained encoder's name; the source of any other is empty.

    >>> split_source("hf:models/minilm"), split_source("bilstm")
    (('hf', 'models/minilm'), ('bilstm', ''))
    """
    kind, _, source = encoder.partition(":")
    return kind, source


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Settings):
    """How a model is trained. The defaults are the paper's for SST-2; its silences are filled from its code."""

    epochs: int = setting(50, "most passes over the training set", least=1)
    patience: int = setting(7, "stop after this many epochs without a better dev score", least=1)
    kept_epoch: str = setting(
        "best",
        "epoch whose weights are kept: best (on dev), or last, which suits a rate that falls to 0",
        choices=("best", "last"),
    )
    batch_size: int = setting(64, "examples in a step", least=1)
    smallest_batch: int = setting(16, "smallest size to which the batch is halved", least=1)
    window: int = setting(
        5000, "examples, sorted by length, that a batch is drawn from; doubled when the batch is halved", least=1
    )
    replacement: bool = setting(True, "draw batches with replacement (the released code), or each example once")
    learning_rate: float = setting(3e-4, "initial rate of Adam", above=0, most=1)
    encoder_learning_rate: float = setting(
        0.0, "initial rate of a pre-trained encoder's last layer; 0: that of the rest", least=0, most=1
    )
    layer_decay: float = setting(
        1.0, "factor of the rate from a pre-trained encoder's layer to the one below", above=0, most=1
    )
    warmup: float = setting(0.0, "share of all steps in which the learning rate rises to its start", least=0, most=0.9)
    schedule: str = setting(
        "stairs",
        "how the rate falls: stairs (decay, decay_steps), or linear down to lowest_rate",
        choices=("stairs", "linear"),
    )
    decay: float = setting(0.95, "factor of the learning rate at each stair", above=0, most=1)
    decay_steps: int = setting(500, "steps between two stairs", least=1)
    lowest_rate: float = setting(1e-5, "floor of the learning rate", least=0)
    l2: float = setting(1e-5, "weight of the sum of squared parameters in the loss", least=0)
    l2_on: str = setting("all", "parameters under l2: all, or weights (no biases)", choices=("all", "weights"))
    l2_on_embeddings: bool = setting(False, "word vectors under l2 too; needs sparse=false")
    clip: float = setting(2.0, "largest value of a gradient", above=0)
    frozen_epochs: int = setting(2, "epochs before the frozen word vectors learn too", least=0)
    frozen_rows: str = setting(
        "known",
        "frozen word vectors: known (words with a pre-trained vector), or unknown (as the released code does)",
        choices=("known", "unknown"),
    )
    sparse: bool = setting(True, "update only the word vectors a batch touches")
    class_weight: str = setting(
        "none", "weight of a class in the loss: none, or balanced (more for rare classes)", choices=("none", "balanced")
    )
    label_weight: float = setting(
        0.0, "weight of the labels in a student's loss; the teachers have the rest", least=0, most=1
    )
    average_weights: float = setting(
        0.0,
        "decay of a moving average of the weights, such as 0.999; dev scores it and it is kept; 0: none",
        least=0,
        most=0.99999,
    )
    phrase_weight: float = setting(
        1.0, "weight in the loss of a labelled phrase, in a set that has phrases; a sentence has 1", above=0
    )
    calibration: float = setting(
        0.0,
        "share of the dev set to calibrate probabilities on; the rest decides when to stop. 1: all of it does both; "
        "0: no calibration",
        least=0,
        most=1,
    )
    min_frequency: int = setting(1, "leave words seen less often out of the vocabulary", least=1)
    extra_words: int = setting(40_000, "words known by their vector only, not seen in training", least=0)
    checkpoint_steps: int = setting(0, "steps between two checkpoints; 0: one after each epoch", least=0)
    word_dropout: float = setting(0.0, "share of words replaced by the unknown word in training", least=0, most=0.9)
    precision: str = setting(
        "full",
        "precision of products in training: full, or bf16, faster on processors that have it; weights stay full",
        choices=("full", "bf16"),
    )
    seed: int = setting(0, "seed of initial weights, batches and dropout", least=0, most=2**63 - 1)


@dataclass(frozen=True)
class Preset:
    """Settings that belong together under one name."""

    model: ModelConfig
    training: TrainingConfig
    text: TextConfig = field(default_factory=TextConfig)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**{name: group.from_dict(values[name]) for name, group in GROUPS.items()})  # type: ignore[arg-type]


GROUPS: dict[str, type[Settings]] = {"model": ModelConfig, "training": TrainingConfig, "text": TextConfig}


def change(settings: S, **values: Any) -> S:
    """A copy with some settings changed, checked again.

    >>> change(ModelConfig(), dropout=0.5).dropout
    0.5
    """
    return settings.from_dict({**settings.to_dict(), **values})
