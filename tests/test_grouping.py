"""Grouping of rows: nothing lost, nothing cut, and no cheaper grouping exists."""

from itertools import combinations, pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from routepool.model import group_rows

lengths_of_rows = st.lists(st.integers(0, 300), min_size=0, max_size=40)


def mask_of(lengths: list[int]) -> torch.Tensor:
    return torch.arange(300) < torch.tensor(lengths, dtype=torch.long).reshape(-1, 1)


@given(lengths=lengths_of_rows)
def test_every_row_that_has_tokens_is_in_one_group_long_enough(lengths: list[int]) -> None:
    groups = group_rows(mask_of(lengths))
    rows = [row for group in groups for row in group.rows.tolist()]
    assert sorted(rows) == [row for row, length in enumerate(lengths) if length > 0]
    for group in groups:
        assert group.longest == max(lengths[row] for row in group.rows.tolist())


@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=8), pass_cost=st.integers(0, 1000))
def test_no_other_cut_of_the_sorted_rows_is_cheaper(lengths: list[int], pass_cost: int) -> None:
    ordered = sorted(lengths, reverse=True)

    def cost(cuts: tuple[int, ...]) -> int:
        return sum(ordered[start] * (end - start) + pass_cost for start, end in pairwise((0, *cuts, len(ordered))))

    inner = range(1, len(ordered))
    cheapest = min(cost(cuts) for number in range(len(ordered)) for cuts in combinations(inner, number))
    groups = group_rows(mask_of(lengths), pass_cost)
    assert sum(group.longest * len(group.rows) + pass_cost for group in groups) == cheapest


@given(lengths=lengths_of_rows)
def test_sorted_rows_stay_in_order(lengths: list[int]) -> None:
    groups = group_rows(mask_of(sorted(lengths, reverse=True)))
    assert [row for group in groups for row in group.rows.tolist()] == list(range(sum(map(bool, lengths))))


def test_a_row_is_cut_behind_its_last_token_though_it_has_gaps() -> None:
    mask = torch.tensor([[True, False, False, True, False]])
    assert [group.longest for group in group_rows(mask)] == [4]
