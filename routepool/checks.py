"""Arguments checked once: each error says what came and what was wanted."""

from collections.abc import Sequence

from routepool.errors import InputError

COLDEST, HOTTEST = 1e-3, 1e3  # of a temperature; calibration gives 1/4 to 20


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


def check_calibration(temperature: float, thresholds: Sequence[float] | None, labels: int) -> None:
    """Refuse a temperature by which finite logits become NaN or say nothing, and thresholds that are not shares."""
    if not _is_number(temperature) or not COLDEST <= temperature <= HOTTEST:
        raise InputError(f"temperature must be a number from {COLDEST:g} to {HOTTEST:g}, got {temperature!r:.80}")
    if thresholds is None:
        return
    listed = isinstance(thresholds, list | tuple) and len(thresholds) == labels
    if not listed or not all(_is_number(share) and 0 <= share <= 1 for share in thresholds):
        wanted = f"null or {labels} numbers from 0 to 1, one for each label"
        raise InputError(f"thresholds must be {wanted}, got {thresholds!r:.80}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
