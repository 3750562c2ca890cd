"""The arguments of layers, checked once: each error says what came and what was wanted."""

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


def at_least(name: str, value: int, least: int) -> int:
    """The value, or an error that names it: whole numbers only, True and 2.0 are not."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r:.80}")
    return value


def between(name: str, value: int, least: int, most: int) -> int:
    """The value, or an error that names it and its bounds: whole numbers only."""
    if at_least(name, value, least) > most:
        raise InputError(f"{name} must be at most {most}, got {value!r:.80}")
    return value


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """The value, or an error that lists the choices."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value
