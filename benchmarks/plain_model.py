"""The paper's model as it is usually written: packed sequences, messages built, every word vector updated."""

# B batch  S sentences  T tokens  D features

from collections.abc import Iterator
from typing import cast

import torch
from routing import plain_loop
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from routepool.batching import Batch
from routepool.layers import StandardRouting
from routepool.model import Classifier, Level
from routepool.settings import ModelConfig, TrainingConfig
from routepool.training import Examples


class PlainLevel(nn.Module):
    """The tokens of one axis into one vector, the weights copied from a level of ours."""

    def __init__(self, level: Level, config: ModelConfig) -> None:
        super().__init__()
        ours = level.encoder
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(ours.in_features, config.hidden_size, batch_first=True, bidirectional=True)
        for way, suffix in (("forwards", ""), ("backwards", "_reverse")):
            for name, parameter in ours.get_submodule(way).named_parameters():
                self.lstm.get_parameter(name + suffix).data.copy_(parameter.data)
        self.routing = cast("StandardRouting", level.aggregator)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(N, T, D), (N, T) -> (N, size)."""
        lengths = mask.sum(1).clamp(min=1)  # packing refuses rows without tokens
        packed = pack_padded_sequence(self.dropout(states), lengths, batch_first=True, enforce_sorted=False)
        encoded, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=mask.shape[1])
        return plain_loop(encoded, mask, self.routing)


class PlainModel(nn.Module):
    """The same numbers as our model, whose weights it takes."""

    def __init__(self, model: Classifier, config: ModelConfig) -> None:
        super().__init__()
        table = model.get_parameter("levels.0.embedding.weight").detach().clone()
        self.embedding = nn.Embedding(len(table), config.embedding_size, padding_idx=0, _weight=table)
        self.levels = nn.ModuleList(PlainLevel(cast("Level", level), config) for level in model.levels)
        self.head = model.head

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, T) or (B, S, T) -> logits."""
        states, tokens = self.embedding(ids), mask
        for level in self.levels:
            vectors = level(states.flatten(0, mask.ndim - 2), mask.flatten(0, -2))
            states, tokens, mask = vectors.unflatten(0, mask.shape[:-1]), mask, mask.any(-1)
        logits: Tensor = self.head(None, tokens, states)
        return logits


def train(model: PlainModel, examples: Examples, batches: Iterator[Batch], config: TrainingConfig) -> Iterator[int]:
    """Take a step for each batch and tell how many texts it had."""
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, weight_decay=2 * config.l2)
    model.train()
    for batch in batches:
        logits = model(torch.from_numpy(batch.ids), torch.from_numpy(batch.mask))
        loss = functional.cross_entropy(logits, torch.from_numpy(examples.targets[batch.rows]))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_value_(model.parameters(), config.clip)
        optimizer.step()
        yield len(batch.rows)
