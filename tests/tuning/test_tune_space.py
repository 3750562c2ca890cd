"""What can be searched: values, ranges, the paper's grid, and what is no space."""

from typing import Any

import pytest

from routepool.errors import InputError, UnknownNameError
from routepool.tuning.space import Choice, Range, Space, number_of_points, paper_space, read_domain
from routepool.tuning.trials import SEARCHES, Plan

GRID: Space = {"learning_rate": Choice((0.1, 0.2, 0.3)), "places": Choice((("a",), ("a", "b"))), "size": Range(1, 5, 2)}
MIXED: Space = {"rate": Range(1e-5, 1e-1, log=True), "size": Range(1, 500), "kind": Choice(("x", "y"))}


def test_the_papers_grid_is_what_its_table_has() -> None:
    space = paper_space()
    assert space["learning_rate"] == Choice((1e-4, 2e-4, 3e-4))
    assert space["dropout"] == Choice((0.2, 0.5))
    assert space["l2"] == Choice((1e-6, 1e-5))
    assert number_of_points(space) == 3 * 2 * 2


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([], "at least one value"),
        ([1, 1.0], "different values"),
        (3, r"wanted a list of values, \[1, 2\], or a range"),
        ({"low": 1}, "wants low and high, got low"),
        ({"low": 1, "hihg": 2}, "did you mean 'high'"),
        ({"low": 2, "high": 1}, "low must be below high"),
        ({"low": "a", "high": 1}, "low must be a number"),
        ({"low": True, "high": 2}, "low must be a number"),
        ({"low": 0, "high": float("nan")}, "high must be a number"),
        ({"low": 0, "high": 1, "log": True}, "starts above 0"),
        ({"low": 1, "high": 2, "log": True, "step": 1}, "has no step"),
        ({"low": 1, "high": 2, "log": 1}, "log must be true or false"),
        ({"low": 1, "high": 2, "step": 0}, "step must be above 0"),
        ({"low": 1, "high": 2, "step": 3}, "fit between low and high"),
    ],
)
def test_a_wrong_domain_says_what_was_wanted(plain: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_domain(plain)


@pytest.mark.parametrize("domain", [*GRID.values(), *MIXED.values()])
def test_a_domain_is_written_and_read_back(domain: Choice | Range) -> None:
    assert read_domain(domain.to_plain()) == domain


def test_a_range_ends_at_its_last_step() -> None:
    assert Range(1, 6, 2).values == (1, 3, 5)
    assert Range(0.1, 0.7, 0.1).values == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def test_a_grid_needs_values() -> None:
    with pytest.raises(InputError, match="dropout: a grid needs a list of values, or a range with a step"):
        Plan({"dropout": Range(0.1, 0.5)})
    assert Plan({"dropout": Range(0.1, 0.5)}, sampler="tpe").sampler == "tpe"
    with pytest.raises(InputError, match="nothing to search"):
        Plan({})
    with pytest.raises(UnknownNameError, match="did you mean 'median'"):
        Plan(GRID, prune="medain")


def test_an_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Known: grid, random, tpe"):
        SEARCHES["annealing"]
