"""Routing, or any other aggregator, as the pooling module of a sentence-transformers model."""

# B batch  T tokens  D features  M parts of the vector

from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from routepool.errors import InputError, MissingPackageError
from routepool.model import construct
from routepool.persistence.folder import check_tensors, parse
from routepool.settings import AGGREGATORS

try:
    from sentence_transformers.base.modules import Module
except ModuleNotFoundError as error:
    raise MissingPackageError(f'this needs the package {error.name!r}: pip install "routepool[st]"') from error

WEIGHTS = "model.safetensors"


class RoutingPooling(Module):
    """Vectors of tokens -> the vector of the sentence, by an aggregator; takes the place of `Pooling`.

    It reads `token_embeddings` and `attention_mask` and adds `sentence_embedding` and, to see which token went where,
    `aggregation_weights` (B, T, M). A prompt counts as text.

    Args:
        in_features: size of a token's vector.
        aggregator: a registered name.
        options: those of the aggregator.

    >>> pooling = RoutingPooling(8, capsules=2, capsule_size=3)
    >>> tokens = {"token_embeddings": torch.randn(1, 4, 8), "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    >>> pooling(tokens)["sentence_embedding"].shape, tokens["aggregation_weights"].shape
    (torch.Size([1, 6]), torch.Size([1, 4, 2]))
    >>> RoutingPooling(8, aggregator="attention").get_embedding_dimension()
    8
    """

    def __init__(self, in_features: int, aggregator: str = "routing", **options: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.aggregator = construct(AGGREGATORS, aggregator, options, in_features)
        self._config = {"in_features": in_features, "aggregator": aggregator, **options}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add the sentence's vector to the features."""
        states, mask = _padded(features)
        vector, weights = self.aggregator(states, mask)
        features["sentence_embedding"] = vector
        features["aggregation_weights"] = weights
        return features

    def get_embedding_dimension(self) -> int:
        """The size of a sentence's vector."""
        return self.aggregator.out_features

    def get_config_dict(self) -> dict[str, Any]:
        """The arguments that build it again."""
        return dict(self._config)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write config.json and the weights, which are never a pickle."""
        self.save_config(output_path)
        self.save_torch_weights(output_path)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read what `save` wrote, from a folder or from a hub."""
        place: dict[str, Any] = {
            "subfolder": subfolder,
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        module = cls(**{**(init_defaults or {}), **cls.load_config(model_name_or_path, **place)})
        file = cls.load_file_path(model_name_or_path, WEIGHTS, **place)
        if file is None:
            raise InputError(f"{model_name_or_path}: wanted the weights of RoutingPooling in {WEIGHTS}, got none")
        tensors = {name: one.float() for name, one in parse(Path(file), Path(file).read_bytes()).items()}
        check_tensors(tensors, module.state_dict(), source="of its config.json")
        module.load_state_dict(tensors)
        return module


def _padded(features: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    states: Tensor = features["token_embeddings"]
    if "cu_seq_lens_q" in features:  # flash attention keeps all texts in one row, end to end
        lengths = features["cu_seq_lens_q"].diff()
        states = pad_sequence(states.squeeze(0).split(lengths.tolist()), batch_first=True)  # type: ignore[no-untyped-call]
        return states, torch.arange(states.shape[1], device=states.device) < lengths[:, None]
    mask = features.get("attention_mask")
    return states, None if mask is None else mask.bool()
