"""How large a model is and how much it computes."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from routepool.model import Classifier


def parameters(model: Classifier) -> int:
    """Without the word vectors, which are the data's size and not the model's."""
    return sum(weight.numel() for name, weight in model.named_parameters() if "embedding" not in name)


def flops(model: Classifier, words: int, sentences: int, depth: int) -> int:
    """Multiplications and additions for one text of so many sentences of so many words."""
    shape = (1, words) if depth == 1 else (1, sentences, words)
    ids = torch.ones(shape, dtype=torch.long)
    counted: dict[Any, Any] = {torch.ops.aten.mkldnn_rnn_layer: _recurrent}
    model.eval()
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=counted) as counter:
        model(ids, torch.ones(shape, dtype=torch.bool))
    return int(counter.get_total_flops())


def _recurrent(states: list[int], weight: list[int], recurrent: list[int], *_: Any, **__: Any) -> int:
    """A layer of one direction, from its shapes: every token is multiplied by both matrices of all its gates."""
    tokens = states[0] * states[1]
    return 2 * tokens * (weight[0] * weight[1] + recurrent[0] * recurrent[1])
