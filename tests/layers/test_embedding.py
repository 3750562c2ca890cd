"""Word vectors: pre-trained rows, frozen rows, padding, sparse gradients."""

import pytest
import torch

from routepool.errors import InputError
from routepool.layers import Embedding


def test_known_rows_are_loaded_and_the_others_stay_random() -> None:
    embedding = Embedding(4, 2)
    random = embedding.weight[3].clone()
    embedding.load_vectors(torch.full((4, 2), 7.0), torch.tensor([True, True, True, False]))
    assert embedding.weight[1:3].tolist() == [[7.0, 7.0]] * 2
    assert torch.equal(embedding.weight[3], random)
    assert not embedding.weight[0].any(), "padding stays zeros whatever the file says"


@pytest.mark.parametrize("sparse", [True, False])
def test_frozen_rows_and_padding_get_no_gradient(sparse: bool) -> None:
    embedding = Embedding(5, 2, sparse=sparse)
    embedding.freeze(torch.tensor([False, True, False, False, True]))
    torch.autograd.backward(embedding(torch.tensor([[0, 1, 2, 2, 4]])).sum())
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.to_dense()[:, 0].tolist() == [0, 0, 2, 0, 0]
    embedding.zero_grad(set_to_none=False)
    embedding.freeze(None)
    torch.autograd.backward(embedding(torch.tensor([[0, 1, 2, 2, 4]])).sum())
    assert embedding.weight.grad.to_dense()[:, 0].tolist() == [0, 1, 2, 0, 1]


def test_sparse_gradients_name_only_the_rows_of_the_batch() -> None:
    embedding = Embedding(1000, 2)
    torch.autograd.backward(embedding(torch.tensor([[7, 9, 7]])).sum())
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.is_sparse
    assert embedding.weight.grad.coalesce().indices().tolist() == [[7, 9]]


def test_freezing_is_no_part_of_the_model_file() -> None:
    embedding = Embedding(3, 2)
    embedding.freeze(torch.tensor([False, True, True]))
    assert set(embedding.state_dict()) == {"weight"}


def test_tables_that_do_not_fit_say_so() -> None:
    embedding = Embedding(3, 2)
    with pytest.raises(InputError, match=r"vectors must be \(3, 2\) and known \(3,\) like the table, got \(3, 5\)"):
        embedding.load_vectors(torch.zeros(3, 5), torch.ones(3, dtype=torch.bool))
    with pytest.raises(InputError, match=r"rows must be bool \(3,\), got torch.int64 \(2,\)"):
        embedding.freeze(torch.tensor([1, 2]))
    with pytest.raises(InputError, match="vocabulary_size must be a whole number of at least 2, got 1"):
        Embedding(1, 2)
