"""What torch may make of a call: a graph, a batch of calls, a derivative. Each asks for code without shortcuts."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def plain_values() -> bool:
    """Whether tensors hold values that code may look at: not in a graph, and not inside `torch.func`."""
    return not torch.compiler.is_compiling() and not transformed()


def transformed(*tensors: Tensor | None) -> bool:
    """Whether a `torch.func` transform is at work, or one of the tensors is many (`is_grads_batched`)."""
    many = torch._C._functorch.is_legacy_batchedtensor
    return torch._C._are_functorch_transforms_active() or any(each is not None and many(each) for each in tensors)


def backward_suffices(*tensors: Tensor | None) -> bool:
    """Whether an `autograd.Function` of these may do with a backward pass: no transform, no forward-mode derivative."""
    return plain_values() and not any(each is not None and _has_tangent(each) for each in tensors)


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]
