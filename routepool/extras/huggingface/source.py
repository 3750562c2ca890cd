"""A folder or a hub name -> the architecture, the tokenizer and the weights of an encoder."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel

from routepool.errors import InputError
from routepool.extras.huggingface.architecture import shape_of
from routepool.settings import TextConfig
from routepool.text import PieceTokenizer

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
_FAILURES = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError, SafetensorError)


def find_folder(source: str) -> Path:
    """The folder of that name, or that of a hub model, downloaded where it is not in the hub's cache."""
    folder = Path(source).expanduser()
    if folder.exists() or source.startswith((".", "/", "~")):
        return _checked(folder)
    try:
        return Path(snapshot_download(source, allow_patterns=[CONFIG, TOKENIZER, "*.safetensors*"]))
    except (OSError, ValueError, HFValidationError) as error:
        raise InputError(
            f"encoder hf:{source}: there is no such folder, and the hub gave no such model ({_short(error)}); "
            "correct the name, or download it"
        ) from error


def _checked(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(f"encoder hf:{folder}: wanted a folder with {CONFIG}, got nothing of that name; correct it")
    for name in (CONFIG, TOKENIZER):
        if not (folder / name).is_file():
            hint = "; save the model's fast tokenizer there" if name == TOKENIZER else "; it is no encoder's folder"
            raise InputError(f"encoder hf:{folder}: wanted {name} in it, got none{hint}")
    return folder


def files_of(folder: Path) -> list[Path]:
    """The files of an encoder that are read."""
    return [folder / CONFIG, folder / TOKENIZER, *sorted(folder.glob("*.safetensors"))]


def read_tokenizer(folder: Path, config: TextConfig) -> PieceTokenizer:
    """The tokenizer the encoder was published with."""
    try:
        return PieceTokenizer(config, (folder / TOKENIZER).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise InputError(f"{folder / TOKENIZER}: it cannot be read ({_short(error)}); download it again") from error


def read_architecture(folder: Path) -> dict[str, Any]:
    """What shapes the encoder: its config.json without the rest."""
    try:
        values = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{folder / CONFIG}: wanted JSON ({_short(error)}); download it again") from error
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise InputError(f"{folder / CONFIG}: wanted the settings of an encoder with their model_type, got none")
    try:
        return shape_of(values)
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: {error}; use another encoder") from error


def build(architecture: Mapping[str, Any]) -> PreTrainedModel:
    """A new encoder of this architecture, from the package's own classes alone, without the pooling we replace."""
    shape = shape_of(architecture)
    options: dict[str, Any] = {"attn_implementation": "sdpa", "dtype": torch.float32, "trust_remote_code": False}
    try:
        with _quiet():
            config: PretrainedConfig = AutoConfig.for_model(**shape)
            return _bare(AutoModel.from_config(config, **options))  # type: ignore[no-untyped-call]
    except Exception as error:  # what fits no type may fail in any of its classes
        kind = shape["model_type"]
        raise InputError(f"no encoder of model_type {kind!r} can be built so ({_short(error)})") from error


def read_weights(folder: Path, architecture: Mapping[str, Any]) -> dict[str, Tensor]:
    """The published weights by the names of `build`; safetensors only, and none may be missing."""
    try:
        config = AutoConfig.for_model(**shape_of(architecture))
        with _quiet():
            model, found = AutoModel.from_pretrained(
                folder,
                config=config,
                dtype="float32",
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except _FAILURES as error:
        raise InputError(f"encoder hf:{folder}: its weights cannot be read ({_short(error)})") from error
    weights = _bare(model).state_dict()
    missing = sorted({*found["missing_keys"], *map(_name, found["mismatched_keys"])} & weights.keys())
    if missing:
        raise InputError(f"encoder hf:{folder}: wanted all weights of {CONFIG}, but it lacks {', '.join(missing):.200}")
    return dict(weights)


def _name(mismatch: Any) -> str:
    return str(mismatch if isinstance(mismatch, str) else mismatch[0])


def _bare(model: PreTrainedModel) -> PreTrainedModel:
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment]
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """No bar and no table of unused weights: those of a head are left out on purpose."""
    logging = transformers.utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
