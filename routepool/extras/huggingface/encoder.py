"""An encoder of the transformers package as the first level of a model."""

# B batch  T tokens  N windows  L pieces of a window  P pieces in all  D features

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from routepool.errors import InputError
from routepool.extras.huggingface.source import (
    build,
    files_of,
    find_folder,
    read_architecture,
    read_tokenizer,
    read_weights,
)
from routepool.extras.huggingface.states import StatesCache, folder_of
from routepool.layers.encoders import Pretrained, PretrainedEncoder
from routepool.model import group_rows
from routepool.settings import PRETRAINED, TextConfig
from routepool.settings.declarations import whole_number

PIECES = 4096  # computed at once without gradients, padding included: 25 MB for the widest layer of a small encoder
_LAYER = re.compile(r"\b(?:layers?|h|blocks?)\.(\d+)\.")


@PRETRAINED.register("hf")
class HuggingFaceEncoder(PretrainedEncoder):
    """Pieces -> their states in context, one for each, however long the text.

    A row is read in as few windows as hold it, of near-equal length. The special pieces around each window are added
    here and their states dropped, so that each piece has one state.

    Args:
        vocabulary_size: ids are below it.
        hidden_size: not used here.
        architecture: the encoder's config.json.
        before: special ids in front of a window.
        behind: special ids after it.
        pieces: of a window at most, special ones included; fewer if the encoder has fewer positions.
        frozen: the encoder does not learn; in training its states are computed once and kept on disk.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_size: int | None = None,
        *,
        architecture: Mapping[str, Any] | None = None,
        before: Sequence[int] = (),
        behind: Sequence[int] = (),
        pieces: int = 512,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(architecture, Mapping):
            raise InputError("a Hugging Face encoder needs its folder or name: encoder hf:FOLDER")
        if not isinstance(frozen, bool):
            raise InputError(f"frozen must be true or false, got {frozen!r:.80}")
        self.model = build(architecture)
        self.out_features = whole_number("hidden_size", getattr(self.model.config, "hidden_size", 0))
        self.rows = len(self.model.get_input_embeddings().weight)  # type: ignore[arg-type]
        if vocabulary_size > self.rows:
            raise InputError(f"the encoder knows ids below {self.rows}, but its tokenizer has {vocabulary_size}")
        self.before, self.behind = (
            [whole_number("an id", each, 0, self.rows - 1) for each in ids] for ids in (before, behind)
        )
        self.window = min(whole_number("pieces", pieces, 1, 2**20), _positions(self.model)) - len(before) - len(behind)
        whole_number("pieces of a window beside the special ones", self.window)
        self.padding = getattr(self.model.config, "pad_token_id", None) or 0
        self.frozen = frozen
        self.cache: StatesCache | None = None
        self.model.requires_grad_(not self.frozen)

    @classmethod
    def read(cls, source: str, config: TextConfig) -> Pretrained:
        folder = find_folder(source)
        tokenizer, architecture = read_tokenizer(folder, config), read_architecture(folder)
        before, behind = tokenizer.around()
        options = {"architecture": architecture, "before": before, "behind": behind}
        weights = {f"model.{name}": tensor for name, tensor in read_weights(folder, architecture).items()}
        return Pretrained(tokenizer, options, weights)

    @classmethod
    def files(cls, source: str) -> list[Path]:
        return files_of(find_folder(source))

    def train(self, mode: bool = True) -> Self:
        """As for every module, but a frozen encoder has no dropout."""
        super().train(mode)
        if self.frozen:
            self.model.train(False)
        return self

    @contextmanager
    def keeping_states(self) -> Iterator[None]:
        if not self.frozen:
            yield
            return
        settings = {"before": self.before, "behind": self.behind, "architecture": self.model.config.to_dict()}
        self.cache = StatesCache(folder_of(self.model.state_dict(), settings), size=self.out_features)
        try:
            yield
        finally:
            self.cache = None

    def parameters_by_layer(self) -> list[list[nn.Parameter]]:
        """Embeddings first, then the layers; what follows them belongs to the last."""
        layers: list[list[nn.Parameter]] = [[]]
        for name, parameter in self.model.named_parameters():
            number = int(found[1]) + 1 if (found := _LAYER.search(name)) else len(layers) - 1
            layers.extend([] for _ in range(number + 1 - len(layers)))
            layers[number].append(parameter)
        return layers

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        result = torch.zeros(*mask.shape, self.out_features, device=ids.device)
        lengths = _windows(mask.sum(1).tolist(), self.window)
        if not lengths:
            return result
        windows = torch.split(ids[mask], lengths)
        # A cached window is encoded alone, so that its states do not depend, to the last bit, on the others.
        cache = self.cache
        encoded = self._encode(windows) if cache is None else [cache.get(one, self._encode_alone) for one in windows]
        return result.masked_scatter(mask.unsqueeze(-1), torch.cat(encoded).to(result.dtype))

    def _encode_alone(self, window: Tensor) -> Tensor:
        with torch.autocast(window.device.type, enabled=False):  # what is kept has one precision
            return self.one_pass([window])[0]

    def _encode(self, windows: Sequence[Tensor]) -> list[Tensor]:
        """The states of each window, windows of near-equal length computed together."""
        lengths = torch.tensor([len(window) for window in windows], device=windows[0].device)
        mask = torch.arange(int(lengths.max()), device=lengths.device) < lengths.unsqueeze(1)
        found: list[Tensor] = [lengths] * len(windows)
        for rows, longest in group_rows(mask):
            for some in torch.split(rows, max(1, PIECES // longest)):
                for row, states in zip(some.tolist(), self.one_pass([windows[row] for row in some]), strict=True):
                    found[row] = states
        return found

    def one_pass(self, windows: Sequence[Tensor]) -> list[Tensor]:
        """States of the pieces of some windows, read together."""
        before, behind = (windows[0].new_tensor(some) for some in (self.before, self.behind))
        rows = [torch.cat([before, window, behind]) for window in windows]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.padding)
        lengths = torch.tensor([len(row) for row in rows], device=ids.device)
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths.unsqueeze(1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        start = len(before)
        return [row[start : start + len(window)] for row, window in zip(states, windows, strict=True)]


def _positions(model: nn.Module) -> int:
    """Pieces that the encoder has positions for; in the roberta family these begin after the one of padding."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    first = 0 if getattr(table, "padding_idx", None) is None else table.padding_idx + 1  # type: ignore[union-attr]
    most = getattr(model.config, "max_position_embeddings", 0)
    return most - first if isinstance(most, int) and most > first else 512


def _windows(lengths: Sequence[int], most: int) -> list[int]:
    """Lengths of the windows that rows of these lengths are cut into, as equal as can be, none above `most`.

    >>> _windows([5, 0, 3], 4)
    [3, 2, 3]
    """
    numbers = [-(-length // most) for length in lengths]
    return [
        length // number + (place < length % number)
        for length, number in zip(lengths, numbers, strict=True)
        for place in range(number)
    ]
