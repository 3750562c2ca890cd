"""What an encoder, an aggregator and a head promise. Their input is checked here, once."""

# B batch  T tokens  D features  M parts of a vector  C size of a part  K classes

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from routepool.errors import InputError
from routepool.settings import AGGREGATORS, ENCODERS, HEADS
from routepool.settings.declarations import whole_number

register_aggregator, register_encoder, register_head = AGGREGATORS.register, ENCODERS.register, HEADS.register


class Layer(nn.Module):
    """What the three have in common: sizes that are checked, and how weights start.

    Args:
        in_features: size of a vector that comes in.
        out_features: size of one that goes out; None for the same.
        sizes: others, by their names: whole numbers from 1 to what `largest` says of the name.
    """

    largest: ClassVar[Mapping[str, int]] = {}

    def __init__(self, in_features: int, out_features: int | None = None, **sizes: int) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, in_features if out_features is None else out_features
        for name, size in {**sizes, "in_features": in_features, "out_features": self.out_features}.items():
            whole_number(name, size, 1, self.largest.get(name))

    def reset_parameters(self) -> None:
        """Xavier for matrices, zeros for biases."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.xavier_uniform_(parameter)


class Encoder(Layer):
    """A vector for each token that depends on its neighbours; padding is no neighbour, wherever it lies.

    A new encoder is one class: set `out_features` and write `encode`, which sees rows of real tokens followed by
    zeros.
    """

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Encode the real tokens as if the padding were not there.

        Args:
            states: (B, T, D) floats, anything at all where the mask is False.
            mask: (B, T) bool, True at real tokens; without one, every token is real.

        Returns:
            (B, T, out_features), zeros on padding.
        """
        mask = check_states(states, mask, self.in_features)
        if 0 in mask.shape:
            return states.new_zeros(*mask.shape, self.out_features)
        real = mask.unsqueeze(-1)
        states = torch.where(real, states, 0)  # one pass over the states, where masked_fill makes two
        lengths = mask.sum(1)
        # Sort only where there are gaps, or may be: it costs a pass up to 9 %.
        if not plain_values() or (mask[:, 1:] & ~mask[:, :-1]).any():
            order = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
            encoded = _reorder(self.encode(_reorder(states, order), lengths), order.argsort(1))
        else:
            encoded = self.encode(states, lengths)
        return torch.where(real, encoded, 0)

    def encode(self, states: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), (B,) -> (B, T, out_features); what is written behind a row's length is ignored."""
        raise NotImplementedError


class Parts(NamedTuple):
    """What an aggregator's vector is made of, and what its weights are shares of."""

    number: int = 1  # of equal size, one behind the other; there are as many weights of each token
    name: str = "vector"  # what one is called: capsule, row
    share_of: Literal["text", "word", "nothing"] = "nothing"
    """The axis over which weights sum to 1.

    text: each part's over the tokens. word: each token's over the parts. nothing: they do not.
    """


class Aggregator(Layer):
    """Many vectors in, one vector out, and the weight each had in it.

    A new aggregator is one class: write `aggregate`, and set `out_features` if it is not `in_features`. Register it by
    name, and the model, the settings and the contract tests know it:

    >>> from routepool.layers import Aggregator, register_aggregator
    >>> from routepool.settings import AGGREGATORS
    >>> @register_aggregator("sum")
    ... class SumPooling(Aggregator):
    ...     def aggregate(self, states, mask):
    ...         weights = mask.unsqueeze(-1).to(states.dtype)
    ...         return (weights * states).sum(1), weights
    >>> AGGREGATORS["sum"](8).out_features
    8
    """

    pass_cost = 64  # of a call, in tokens: what a level weighs against padding when it groups rows by length
    parts = Parts()
    iterations = 1  # rounds in which the weights are computed; `rounds` gives those of each

    def forward(self, states: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Aggregate the real tokens; padding changes nothing, whatever it holds, and an empty row gives zeros.

        Args:
            states: (B, T, D) floats.
            mask: (B, T) bool, True at real tokens; without one, every token is real.

        Returns:
            The vector (B, out_features) and the weights (B, T, M), 0 on padding.
        """
        mask = check_states(states, mask, self.in_features)
        tokens = states.shape[1]
        if tokens == 0:  # a maximum over nothing is an error in torch; over one padding token it is an empty row
            states, mask = functional.pad(states, (0, 0, 0, 1)), functional.pad(mask, (0, 1))
        vector, weights = self.aggregate(finite_padding(states, mask), mask)
        return vector, weights[:, :tokens]

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The arithmetic of `forward`: padding is finite here, but not zero; give it a weight of 0."""
        raise NotImplementedError

    def rounds(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """The weights (B, T, M) of each round, the last ones being those of `forward`."""
        return [self(states, mask)[1]]

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """What each token adds to each part (B, T, M, C), 0 on padding: the terms of a sum over the tokens.

        By default its weight times its state. Override it if the vector is another sum: explanations rest on it.

        Args:
            states: (B, T, D); what padding holds is ignored.
            mask: (B, T).
            weights: (B, T, M), those of `forward` or others.
        """
        return weights.unsqueeze(-1) * states.masked_fill(~mask.unsqueeze(-1), 0).unsqueeze(2)

    def vector_of(self, sums: Tensor) -> Tensor:
        """What `forward` makes of the sums of these terms: (B, M, C) -> (B, out_features)."""
        return sums.flatten(1)


class Head(Layer):
    """What the last aggregator made of a text -> one logit for each class.

    A new head is one class: write `forward`.
    """

    explained_by: Literal["vector", "states"] = "vector"
    """What its logits follow from: the vector, or also the states that the aggregator read.

    Only a head of the second kind is given the states.
    """

    def __init__(self, in_features: int, classes: int, **sizes: int) -> None:
        super().__init__(in_features, classes=classes, **sizes)
        self.out_features = classes

    def forward(self, states: Tensor | None, mask: Tensor, vector: Tensor) -> Tensor:
        """Logits (B, K).

        Args:
            states: (B, T, D), what the last aggregator read: of a document's sentences, or of a sentence's words.
                Zeros on padding. None unless the head is explained by them.
            mask: (B, T) bool, True at real tokens.
            vector: (B, D), what the aggregator made of them.
        """
        raise NotImplementedError


def check_states(states: Tensor, mask: Tensor | None, features: int) -> Tensor:
    """The mask of states (B, T, features), or an error that says what came and what was wanted."""
    if states.ndim != 3 or states.shape[-1] != features:
        raise InputError(f"states must be (batch, tokens, {features}), got {tuple(states.shape)}")
    if not states.is_floating_point():
        raise InputError(f"states must hold floating point numbers, got {states.dtype}")
    if mask is None:
        return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    if mask.dtype != torch.bool:
        raise InputError(
            f"mask must be bool, True at real tokens, got {mask.dtype}; lengths become one by "
            "torch.arange(tokens) < lengths[:, None]"
        )
    if mask.shape != states.shape[:2]:
        raise InputError(
            f"mask must be (batch, tokens) = {tuple(states.shape[:2])} like the states, got {tuple(mask.shape)}"
        )
    return mask


def finite_padding(states: Tensor, mask: Tensor) -> Tensor:
    """States whose padding is finite, so that a weight of 0 silences it: 0 x NaN is NaN, 0 x 1e30 is 0.

    Finite states come back uncopied, since a copy costs routing 10 to 40 %. The sum of the padding shows it.

    Args:
        states: (B, T, D), anything at all where the mask is False.
        mask: (B, T), True at real tokens.
    """
    if may_branch(states) and states.detach()[~mask].sum().isfinite():
        return states
    return states.masked_fill(~mask.unsqueeze(-1), 0)


def masked_softmax(logits: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where mask is True; all zeros, with a zero gradient, where there are none.

    Args:
        logits: any shape; half precisions are normalised in float32.
        mask: bool, broadcastable to logits.
        dim: the axis along which the result sums to 1.
    """
    # The softmax of a row of -inf is NaN and so, even behind a `where`, is its gradient: empty rows become zeros first.
    padding = ~mask
    if mask.shape[dim] == 1:  # all of a row or nothing
        shut = logits.masked_fill(padding, 0)
    else:
        shut = logits.masked_fill(padding, -torch.inf).masked_fill(padding.all(dim, keepdim=True), 0)
    wide = torch.promote_types(logits.dtype, torch.float32)
    return shut.softmax(dim, dtype=wide).to(logits.dtype).masked_fill(padding, 0)


def plain_values() -> bool:
    """Whether tensors hold values that code may look at: not in a graph, and not inside `torch.func`."""
    return not torch.compiler.is_compiling() and not transformed()


def may_branch(on: Tensor) -> bool:
    """Whether to look at these values at all: on an accelerator that would cost a synchronisation."""
    return on.device.type == "cpu" and plain_values()


def transformed(*tensors: Tensor | None) -> bool:
    """Whether a `torch.func` transform is at work, or one of the tensors is many (`is_grads_batched`)."""
    many = torch._C._functorch.is_legacy_batchedtensor  # noqa: SLF001
    return torch._C._are_functorch_transforms_active() or any(each is not None and many(each) for each in tensors)  # noqa: SLF001


def backward_suffices(*tensors: Tensor | None) -> bool:
    """Whether an `autograd.Function` of these may do with a backward pass: no transform, no forward-mode derivative."""
    return plain_values() and not any(each is not None and _has_tangent(each) for each in tensors)


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def _reorder(states: Tensor, order: Tensor) -> Tensor:
    """(B, T, D), (B, T) -> (B, T, D): the tokens of each row in another order."""
    rows = torch.arange(order.shape[0], device=order.device).unsqueeze(1) * order.shape[1]
    return states.flatten(0, 1).index_select(0, (rows + order).flatten()).reshape(states.shape)
