"""Adam as in the paper: coupled L2, clipping by value, word vectors updated only where a batch touched them, rates."""

# V rows of the table  D features  R touched rows

import math
from collections import defaultdict

import torch
from torch import Tensor, nn

from routepool.errors import InputError
from routepool.layers.blocks import Embedding
from routepool.layers.encoders import PretrainedEncoder
from routepool.model import Classifier
from routepool.settings import TrainingConfig

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8  # as in torch.optim.Adam
TABLE = "levels.0.embedding.weight"  # the name of the word vectors among the parameters of a model


class Optimizer:
    """One step of everything that learns.

    L2 is part of the gradient, before clipping, as in a loss with lambda times the squared parameters (not AdamW).
    Word vectors have sparse gradients by default and a lazy Adam. This departs from the paper; `sparse=false` gives its
    dense Adam. The layers of a pre-trained encoder have learning rates of their own, which rise and fall with the rate
    of the other layers.
    """

    def __init__(self, model: Classifier, config: TrainingConfig) -> None:
        self.config = config
        self.embedding = embedding_of(model)
        sparse = self.embedding is not None and self.embedding.sparse
        if config.l2_on_embeddings and sparse:
            raise InputError("l2_on_embeddings moves every word vector at every step: it needs sparse=false, got true")
        dense = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        if self.embedding is not None:
            table = dense.pop(TABLE)
            dense |= {} if sparse else {TABLE: table}
        self.dense = dense
        self.penalised = [p for name, p in dense.items() if self._is_penalised(name)]
        scales = rate_scales(model, config)
        by_scale: dict[float, list[nn.Parameter]] = defaultdict(list)
        for parameter in dense.values():
            by_scale[scales.get(parameter, 1.0)].append(parameter)
        groups = [{"params": some, "scale": scale} for scale, some in by_scale.items()]
        self.adam = torch.optim.Adam(groups, lr=config.learning_rate, fused=True)
        self._lazy = LazyAdam(self.embedding.weight) if self.embedding is not None and sparse else None

    def _is_penalised(self, name: str) -> bool:
        if name == TABLE:
            return self.config.l2_on_embeddings
        return self.config.l2_on == "all" or not name.rpartition(".")[-1].startswith("bias")

    def step(self, rate: float) -> None:
        """Apply the gradients and forget them."""
        if self._lazy is not None:
            self._lazy.step(rate, clip=self.config.clip)
        learning = [parameter for parameter in self.dense.values() if parameter.grad is not None]
        if not learning:
            return
        self._add_penalty()
        nn.utils.clip_grad_value_(learning, self.config.clip)
        for group in self.adam.param_groups:
            group["lr"] = rate * group["scale"]
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def _add_penalty(self) -> None:
        learning = [parameter for parameter in self.penalised if parameter.grad is not None]
        if self.config.l2 == 0 or not learning:
            return
        gradients = [parameter.grad for parameter in learning]
        torch._foreach_add_(gradients, [p.detach() for p in learning], alpha=2 * self.config.l2)  # type: ignore[arg-type]
        if self.embedding is not None and self.embedding.frozen is not None and not self.embedding.sparse:
            gradient = self.embedding.weight.grad
            if gradient is not None:
                gradient.masked_fill_(self.embedding.frozen.unsqueeze(1), 0)

    def tensors(self) -> dict[str, Tensor]:
        """The moments, by names that a checkpoint can hold."""
        dense = {
            f"dense.{index}.{key}": value
            for index, state in self.adam.state_dict()["state"].items()
            for key, value in state.items()
        }
        lazy = {} if self._lazy is None else self._lazy.tensors()
        return {**dense, **{f"lazy.{key}": value for key, value in lazy.items()}}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` gave."""
        dense: dict[int, dict[str, Tensor]] = {}
        lazy: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            of, key = name.split(".", 1)
            if of == "lazy":
                lazy[key] = tensor
            else:
                index, key = key.split(".", 1)
                dense.setdefault(int(index), {})[key] = tensor
        self.adam.load_state_dict({**self.adam.state_dict(), "state": dense})
        if self._lazy is not None:
            self._lazy.load(lazy)


class LazyAdam:
    """Adam that moves only the rows a sparse gradient names; other rows keep their values and their moments.

    Where every row is touched, a step is that of `torch.optim.Adam`. (A step of `torch.optim.SparseAdam` is not: it
    adds epsilon before the correction of the first steps, which makes small gradients move less.)

    Args:
        table: (V, D).
    """

    def __init__(self, table: nn.Parameter) -> None:
        self.table = table
        self.steps = 0
        self.mean, self.square = (torch.zeros_like(table.detach()) for _ in range(2))

    @torch.no_grad()
    def step(self, rate: float, *, clip: float) -> None:
        """Apply the gradient, its values clipped to `clip`, and forget it."""
        if self.table.grad is None:
            return
        gradient = self.table.grad.coalesce()  # one row for a word at several places
        rows, values = gradient.indices()[0], gradient.values().clamp_(-clip, clip)
        self.table.grad = None
        self.steps += 1
        mean = self.mean.index_select(0, rows).lerp_(values, 1 - MEAN_DECAY)
        square = self.square.index_select(0, rows).mul_(SQUARE_DECAY).addcmul_(values, values, value=1 - SQUARE_DECAY)
        self.mean.index_copy_(0, rows, mean)
        self.square.index_copy_(0, rows, square)
        spread = square.sqrt_().div_(math.sqrt(1 - SQUARE_DECAY**self.steps)).add_(EPSILON)
        self.table.index_add_(0, rows, mean.div_(spread), alpha=-rate / (1 - MEAN_DECAY**self.steps))

    def tensors(self) -> dict[str, Tensor]:
        """The moments, by name."""
        return {"mean": self.mean, "square": self.square, "steps": torch.tensor(self.steps)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` gave."""
        self.steps = int(tensors["steps"])
        self.mean.copy_(tensors["mean"])
        self.square.copy_(tensors["square"])


def embedding_of(model: Classifier) -> Embedding | None:
    """The table of word vectors; None for a model on a pre-trained encoder."""
    embedding: Embedding | None = model.levels[0].embedding  # type: ignore[assignment]
    return embedding


def rate_scales(model: Classifier, config: TrainingConfig) -> dict[nn.Parameter, float]:
    """Factors of the learning rate for the parameters of a pre-trained encoder; it is 1 for every other parameter."""
    encoder = model.levels[0].encoder
    if not isinstance(encoder, PretrainedEncoder):
        return {}
    last = (config.encoder_learning_rate or config.learning_rate) / config.learning_rate
    layers = reversed(encoder.parameters_by_layer())
    return {parameter: last * config.layer_decay**below for below, layer in enumerate(layers) for parameter in layer}


def learning_rate(config: TrainingConfig, step: int, steps: int = 0) -> float:
    """The rate of a step: it decays in stairs or falls in a straight line to a floor, after a rise if `warmup` is set.

    Args:
        config: the initial rate and how it changes.
        step: from 0.
        steps: of the whole training while its batches keep their size; warm-up and straight line depend on it.

    >>> rates = [learning_rate(TrainingConfig(learning_rate=0.1, decay=0.5, decay_steps=2), step) for step in range(5)]
    >>> rates
    [0.1, 0.1, 0.05, 0.05, 0.025]
    """
    rise = config.warmup * steps
    if step < rise:
        return config.learning_rate * (step + 1) / (rise + 1)
    if config.schedule == "linear":
        factor = max(0.0, (steps - step) / max(steps - rise, 1))
    else:
        factor = config.decay ** (step // config.decay_steps)
    return max(config.learning_rate * factor, min(config.lowest_rate, config.learning_rate))
