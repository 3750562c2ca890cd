"""Where and in what precision a model is computed: the part of training that accelerate does."""

import os
from typing import Any

import torch

from routepool.errors import InputError

PRECISIONS = {"full": "no", "bf16": "bf16"}  # our names and accelerate's
_DEVICE = "ACCELERATE_TORCH_DEVICE"


def check_device(name: str) -> None:
    """Refuse a device that torch cannot use here."""
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise InputError(f"device {name} cannot be used here ({error!s:.100}); use cpu") from error


def seed_device(device: torch.device, number: int) -> None:
    """Start the random numbers of the processor, and of another device that computes, from there.

    `torch.manual_seed` gives the same numbers, but writes down a stack trace for every kind of device that is absent.

    >>> seed_device(torch.device("cpu"), 7)
    >>> here = torch.rand(3)
    >>> bool((here == torch.rand(3, generator=torch.Generator().manual_seed(7))).all())
    True
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)


def engine(*, device: str = "cpu", precision: str = "full") -> Any:
    """An `accelerate.Accelerator`: its `device`, `autocast` and `backward` are what the loop uses.

    Args:
        device: of torch, such as cpu, cuda or cuda:1.
        precision: full, or bf16 for the products inside the model; weights, loss and optimiser stay full.

    >>> engine().device
    device(type='cpu')
    """
    # Here and not above: the import takes more than a second, which only a training should pay.
    from accelerate import Accelerator  # type: ignore[import-untyped] # noqa: PLC0415
    from accelerate.state import AcceleratorState  # type: ignore[import-untyped] # noqa: PLC0415

    mixed = PRECISIONS[precision]
    # accelerate keeps the choices of its first use for the life of the process; each training makes its own.
    AcceleratorState._reset_state(reset_partial_state=True)
    before = os.environ.get(_DEVICE)
    os.environ[_DEVICE] = device  # the only way to name one of several
    try:
        return Accelerator(cpu=device == "cpu", mixed_precision=mixed)
    finally:
        if before is None:
            del os.environ[_DEVICE]
        else:
            os.environ[_DEVICE] = before
