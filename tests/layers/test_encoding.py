"""What every registered encoder promises: padding is no neighbour, wherever it lies."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from routepool.errors import InputError
from routepool.layers import CNN, BiGRU, BiLSTM, Encoder
from routepool.settings import ENCODERS

FEATURES, HIDDEN = 5, 3
every_encoder = pytest.mark.parametrize("name", ENCODERS.names())
texts = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def build(name: str, dtype: torch.dtype = torch.float32) -> Encoder:
    torch.manual_seed(0)
    encoder = ENCODERS[name](FEATURES, HIDDEN)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder.to(dtype)


def draw(lengths: list[int], seed: int, padding: float = 0.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), FEATURES, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return states.masked_fill(~mask.unsqueeze(-1), padding), mask


@every_encoder
@given(lengths=texts, seed=st.integers(0, 2**31), padding=st.sampled_from([0.0, 1e30, float("nan"), float("inf")]))
def test_a_text_alone_and_in_a_padded_batch_are_the_same(
    name: str, lengths: list[int], seed: int, padding: float
) -> None:
    encoder, (states, mask) = build(name), draw(lengths, seed, padding)
    together = encoder(states, mask)
    assert together.shape == (*mask.shape, encoder.out_features)
    assert not together[~mask].any()
    for row, length in enumerate(lengths):
        alone = encoder(states[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, atol=1e-6, rtol=1e-5)


@every_encoder
@given(seed=st.integers(0, 2**31), gaps=st.lists(st.booleans(), min_size=1, max_size=9))
def test_padding_in_the_middle_is_skipped(name: str, seed: int, gaps: list[bool]) -> None:
    encoder = build(name)
    mask = torch.tensor([gaps])
    states = torch.randn(1, len(gaps), FEATURES, generator=torch.Generator().manual_seed(seed))
    states[~mask] = torch.nan
    encoded = encoder(states, mask)
    alone = encoder(states[mask].unsqueeze(0))
    torch.testing.assert_close(encoded[mask].unsqueeze(0), alone, atol=1e-6, rtol=1e-5)
    assert not encoded[~mask].any()


@every_encoder
@given(lengths=texts, seed=st.integers(0, 2**31))
def test_padding_gets_no_gradient_and_gives_none(name: str, lengths: list[int], seed: int) -> None:
    encoder = build(name)
    states, mask = draw(lengths, seed, float("nan"))
    states.requires_grad_()
    torch.autograd.backward(encoder(states, mask).square().sum())
    assert states.grad is not None
    assert not states.grad[~mask].any()
    assert states.grad[mask].isfinite().all()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in encoder.parameters())


@pytest.mark.parametrize(("encoder_class", "network"), [(BiLSTM, torch.nn.LSTM), (BiGRU, torch.nn.GRU)])
def test_recurrent_encoders_are_packed_sequences_to_the_last_digits(encoder_class: Any, network: Any) -> None:
    torch.manual_seed(0)
    ours = encoder_class(FEATURES, HIDDEN).double()
    theirs = network(FEATURES, HIDDEN, batch_first=True, bidirectional=True).double()
    for name, parameter in theirs.named_parameters():
        source = ours.backwards if name.endswith("_reverse") else ours.forwards
        parameter.data.copy_(source.get_parameter(name.removesuffix("_reverse")))
    states, mask = draw([7, 2, 5, 1], seed=1)
    packed = pack_padded_sequence(states.double(), mask.sum(1), batch_first=True, enforce_sorted=False)
    wanted, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(ours(states.double(), mask), wanted, atol=1e-12, rtol=0)


def test_cnn_reads_the_n_gram_around_each_token() -> None:
    """One filter that adds up three neighbours of a row 1, 2, 3."""
    encoder = CNN(1, 1, widths=(3,))
    torch.nn.init.ones_(encoder.filters[0])
    encoded = encoder(torch.tensor([[[1.0], [2.0], [3.0]]]))
    assert encoded.flatten().tolist() == [0 + 1 + 2, 1 + 2 + 3, 2 + 3 + 0]


def test_the_forget_gate_starts_open() -> None:
    encoder = BiLSTM(FEATURES, HIDDEN)
    for direction in (encoder.forwards, encoder.backwards):
        bias = direction.get_parameter("bias_ih_l0") + direction.get_parameter("bias_hh_l0")
        assert bias.tolist() == [0] * HIDDEN + [1] * HIDDEN + [0] * 2 * HIDDEN


@every_encoder
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_no_rows_and_no_tokens_are_legal(name: str, shape: tuple[int, int]) -> None:
    encoder = build(name)
    encoded = encoder(torch.empty(*shape, FEATURES), torch.empty(shape, dtype=torch.bool))
    assert encoded.shape == (*shape, encoder.out_features)


@every_encoder
def test_a_row_of_padding_only_is_zeros(name: str) -> None:
    encoder = build(name)
    encoded = encoder(torch.full((2, 3, FEATURES), torch.nan), torch.zeros(2, 3, dtype=torch.bool))
    assert not encoded.any()


@every_encoder
def test_bad_input_says_what_came_and_what_was_wanted(name: str) -> None:
    encoder = build(name)
    with pytest.raises(InputError, match=r"states must be \(batch, tokens, 5\), got \(2, 3, 4\)"):
        encoder(torch.zeros(2, 3, 4))
    with pytest.raises(InputError, match="mask must be bool"):
        encoder(torch.zeros(2, 3, FEATURES), torch.tensor([3, 9]))
    with pytest.raises(InputError, match=r"mask must be \(batch, tokens\) = \(2, 3\)"):
        encoder(torch.zeros(2, 3, FEATURES), torch.ones(2, 9, dtype=torch.bool))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BiLSTM(4, 0), "hidden_size must be a whole number of at least 1, got 0"),
        (lambda: CNN(4, 2, widths=()), "widths must name 1 to 32 lengths of n-grams, got 0"),
        (lambda: CNN(4, 2, widths=(3, 0)), "widths must be a whole number of at least 1, got 0"),
        (
            lambda: ENCODERS["bilstn"],
            "unknown encoder 'bilstn', did you mean 'bilstm'. Known: bigru, bilstm, cnn, none",
        ),
    ],
)
def test_bad_options_say_what_came_and_what_was_wanted(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
