"""What may shape an encoder: a closed list of model types, and for each setting what it may be.

Settings can make transformers download a model, fill the memory or import classes. So only these settings are passed to
it, each checked; all others are left out, since they do not shape the encoder.
"""

from collections.abc import Callable, Mapping
from typing import Any

from routepool.errors import InputError
from routepool.settings import LARGEST

# Encoders of text alone, whose attention is torch's own; all have been tried.
TYPES = (
    *("albert", "bert", "camembert", "data2vec-text", "distilbert", "electra", "ernie", "eurobert"),
    *("jina_embeddings_v3", "mobilebert", "modernbert", "nomic_bert", "roberta", "roberta-prelayernorm"),
    *("xlm-roberta", "xlm-roberta-xl"),
)
_ROTARY = ("eurobert", "jina_embeddings_v3", "modernbert", "nomic_bert")
_MOST_LAYERS = 100  # the deepest that are published have 48

Rule = Callable[[Any], bool]


def shape_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that shape an encoder, checked; those about its training, its labels or its code are left out."""
    kind = settings.get("model_type")
    if kind not in TYPES:
        raise InputError(f"model_type must be one of {', '.join(TYPES)}, got {kind!r:.80}")
    shape = {"model_type": kind}
    for name, rule in _RULES.items():
        if name in settings:
            if not rule(settings[name]):
                raise InputError(f"{name} is none that an encoder can have here, got {settings[name]!r:.80}")
            shape[name] = settings[name]
    _check_heads(shape)
    return shape


def _check_heads(shape: Mapping[str, Any]) -> None:
    """Refuse heads that share the features unevenly, or that cannot be rotated: some types would fail at a text."""
    size, heads = shape.get("hidden_size", shape.get("dim")), shape.get("num_attention_heads", shape.get("n_heads"))
    if size is None or heads is None:
        return
    parts = heads * (2 if shape["model_type"] in _ROTARY else 1)
    if size % parts or heads % shape.get("num_key_value_heads", heads):
        raise InputError(f"hidden_size and heads of the encoder must fit each other, got {size} and {heads}")


def _number(least: float, most: float) -> Rule:
    return lambda value: type(value) in (int, float) and least <= value <= most  # NaN lies nowhere


def _whole(least: int, most: int) -> Rule:
    return lambda value: type(value) is int and least <= value <= most


def _optional(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*choices: Any) -> Rule:
    return lambda value: (value is None or isinstance(value, str | bool)) and value in choices


def _kinds_of_layers(value: Any) -> bool:
    known = ("full_attention", "sliding_attention")
    return isinstance(value, list) and len(value) <= _MOST_LAYERS and all(one in known for one in value)


def _rotation(value: Any) -> bool:
    """Rotary positions of the one kind that needs only a base, for each kind of layer or for all."""
    if not isinstance(value, dict):
        return False
    if value.keys() <= {"full_attention", "sliding_attention"} and value:
        return all(_rotation(one) and "rope_type" in one for one in value.values())
    rules: dict[str, Rule] = {"rope_type": _one_of("default"), "rope_theta": _BASE}
    return value.keys() <= rules.keys() and all(rules[key](one) for key, one in value.items())


_SIZE, _SHARE, _BASE = _whole(1, LARGEST), _number(0, 1), _number(1, 1e9)
_ACTIVATION = _one_of("gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "relu", "silu", "swish")
_RULES: dict[str, Rule] = {
    **dict.fromkeys(("hidden_size", "intermediate_size", "dim", "hidden_dim", "embedding_size"), _SIZE),
    **dict.fromkeys(("intra_bottleneck_size", "local_attention"), _SIZE),
    "head_dim": lambda value: _SIZE(value) and value % 2 == 0,
    "vocab_size": _whole(1, 2**22),
    "max_position_embeddings": _whole(1, 2**20),
    **dict.fromkeys(("num_hidden_layers", "n_layers"), _whole(1, _MOST_LAYERS)),
    **dict.fromkeys(("num_attention_heads", "n_heads", "num_key_value_heads"), _whole(1, 1000)),
    **dict.fromkeys(("num_hidden_groups", "inner_group_num", "num_feedforward_networks"), _whole(1, _MOST_LAYERS)),
    **dict.fromkeys(("type_vocab_size", "task_type_vocab_size"), _whole(1, 1000)),
    "global_attn_every_n_layers": _whole(1, _MOST_LAYERS),
    "pad_token_id": _optional(_whole(0, 2**22 - 1)),
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"), _SHARE),
    **dict.fromkeys(("embedding_dropout", "mlp_dropout", "initializer_range"), _SHARE),
    **dict.fromkeys(("layer_norm_eps", "norm_eps", "rms_norm_eps"), _SHARE),
    "initializer_cutoff_factor": _number(0, 100),
    **dict.fromkeys(("hidden_act", "activation", "hidden_activation"), _ACTIVATION),
    **dict.fromkeys(("sinusoidal_pos_embds", "use_task_id", "trigram_input", "use_bottleneck"), _flag),
    **dict.fromkeys(("use_bottleneck_attention", "key_query_shared_bottleneck"), _flag),
    **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias"), _flag),
    "normalization_type": _one_of("no_norm", "layer_norm"),
    "layer_types": _kinds_of_layers,
    "rope_parameters": _rotation,
    "rope_scaling": _one_of(None),
    **dict.fromkeys(("rope_theta", "global_rope_theta", "local_rope_theta"), _BASE),
    "position_embedding_type": _one_of("absolute"),
    **dict.fromkeys(("is_decoder", "add_cross_attention", "is_encoder_decoder"), _one_of(False)),
}
