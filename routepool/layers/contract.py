"""What every layer that reads states is given, checked once."""

import torch
from torch import Tensor

from routepool.errors import InputError


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
