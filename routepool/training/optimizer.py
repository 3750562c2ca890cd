"""Adam as in the paper: coupled L2, clipping by value, and word vectors updated only where a batch touched them."""

import torch
from torch import Tensor, nn

from routepool.config import TrainingConfig
from routepool.embedding import Embedding
from routepool.model import Classifier


class Optimizer:
    """One step of everything that learns.

    L2 is part of the gradient, before clipping, as in a loss with lambda times the squared parameters (not AdamW).
    Word vectors have sparse gradients by default and a lazy Adam: rows that no text of the batch touches keep still,
    their moments included. That is a departure from the paper; `sparse=false` gives its dense Adam.
    """

    def __init__(self, model: Classifier, config: TrainingConfig) -> None:
        self.config = config
        self.embedding: Embedding = model.get_submodule("levels.0.embedding")  # type: ignore[assignment]
        table = self.embedding.weight
        dense = {name: parameter for name, parameter in model.named_parameters() if parameter is not table}
        if not self.embedding.sparse:
            dense["levels.0.embedding.weight"] = table
        self._dense = dense
        self._penalised = [p for name, p in dense.items() if self._is_penalised(name, p)]
        self._adam = torch.optim.Adam(dense.values(), lr=config.learning_rate, fused=True)
        self._lazy = torch.optim.SparseAdam([table], lr=config.learning_rate) if self.embedding.sparse else None

    def _is_penalised(self, name: str, parameter: nn.Parameter) -> bool:
        if parameter is self.embedding.weight:
            return self.config.l2_on_embeddings
        return self.config.l2_on == "all" or not name.rpartition(".")[-1].startswith("bias")

    def step(self, rate: float) -> None:
        """Apply the gradients and forget them."""
        self._add_penalty()
        self._clip()
        for optimizer in self._optimizers():
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _add_penalty(self) -> None:
        if self.config.l2 == 0:
            return
        learning = [parameter for parameter in self._penalised if parameter.grad is not None]
        gradients = [parameter.grad for parameter in learning]
        torch._foreach_add_(gradients, [p.detach() for p in learning], alpha=2 * self.config.l2)  # type: ignore[arg-type]
        self._keep_frozen()

    def _keep_frozen(self) -> None:
        table = self.embedding.weight
        if self.embedding.frozen is not None and not self.embedding.sparse and table.grad is not None:
            table.grad.masked_fill_(self.embedding.frozen.unsqueeze(1), 0)

    def _clip(self) -> None:
        nn.utils.clip_grad_value_(self._dense.values(), self.config.clip)
        table = self.embedding.weight
        if self._lazy is not None and table.grad is not None:
            gradient = table.grad.coalesce()  # torch's clipping refuses sparse gradients
            gradient.values().clamp_(-self.config.clip, self.config.clip)
            table.grad = gradient

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        return [self._adam] if self._lazy is None else [self._adam, self._lazy]

    def tensors(self) -> dict[str, Tensor]:
        """The moments, by names that a checkpoint can hold."""
        return {
            f"{place}.{index}.{key}": torch.as_tensor(value)
            for place, optimizer in enumerate(self._optimizers())
            for index, state in optimizer.state_dict()["state"].items()
            for key, value in state.items()
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take up what `tensors` gave."""
        for place, optimizer in enumerate(self._optimizers()):
            state: dict[int, dict[str, Tensor | int]] = {}
            for name, tensor in tensors.items():
                of, index, key = name.split(".", 2)
                if int(of) == place:
                    # SparseAdam counts its steps in a plain number, Adam in a tensor.
                    counts = key == "step" and optimizer is self._lazy
                    state.setdefault(int(index), {})[key] = int(tensor) if counts else tensor
            optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
