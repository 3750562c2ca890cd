"""What users of the encoders in the closed list rely on: settings are heeded, padding changes nothing, no code runs."""

from pathlib import Path

import pytest
import torch
from support import tiny_encoder
from transformers import CONFIG_MAPPING, PretrainedConfig

from routepool.extras.huggingface import HuggingFaceEncoder
from routepool.extras.huggingface.architecture import TYPES, shape_of
from routepool.settings import PRETRAINED, TextConfig


def test_every_setting_of_every_type_is_checked_or_shapes_no_encoder() -> None:
    shapeless = {
        *("bos_token_id", "classifier_activation", "classifier_bias", "classifier_dropout", "classifier_dropout_prob"),
        *("classifier_pooling", "cls_token_id", "decoder_bias", "deterministic_flash_attn", "eos_token_id"),
        *("mask_token_id", "pretraining_tp", "qa_dropout", "sep_token_id", "seq_classif_dropout"),
        *("sparse_pred_ignore_index", "sparse_prediction", "summary_activation", "summary_last_dropout"),
        *("summary_type", "summary_use_proj", "tie_word_embeddings", "true_hidden_size", "use_cache"),
        *PretrainedConfig().to_dict(),
    }
    for kind in TYPES:
        usual = CONFIG_MAPPING[kind]().to_dict()
        assert usual.keys() - shape_of(usual).keys() - {"model_type"} <= shapeless, kind


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_reads_texts_whatever_the_padding(kind: str) -> None:
    sizes = {
        **dict.fromkeys(("hidden_size", "intermediate_size", "embedding_size", "dim", "hidden_dim"), 16),
        **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "n_heads", "n_layers"), 2),
        "vocab_size": 60,
        "max_position_embeddings": 40,
        "pad_token_id": 0,
        "head_dim": 8,
        "intra_bottleneck_size": 16,
        "use_bottleneck": False,
    }
    known = CONFIG_MAPPING[kind]().to_dict()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        architecture = {"model_type": kind, **{name: size for name, size in sizes.items() if name in known}}
        model = HuggingFaceEncoder(60, architecture=architecture, before=[1], behind=[2]).eval()
    ids = torch.randint(3, 60, (2, 50), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([7, 45])  # within one window, and more
    with torch.inference_mode():
        together = model(ids, torch.arange(50) < lengths.unsqueeze(1))
        for row, length in enumerate(lengths.tolist()):
            alone = model(ids[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
            assert torch.allclose(together[row, :length], alone[0], atol=1e-5)


def test_an_architecture_names_no_code_to_run(tmp_path: Path) -> None:
    folder = tiny_encoder.write_encoder(tmp_path / "encoder")
    found = PRETRAINED["hf"].read(str(folder), TextConfig())
    foreign = {
        "return_dict": False,
        "backbone": "evil/backbone",
        "auto_map": {"AutoModel": "someone--model.Code"},
        "_attn_implementation": "someone/kernel",
    }
    made = PRETRAINED["hf"](20, **{**found.options, "architecture": {**found.options["architecture"], **foreign}})
    assert isinstance(made, HuggingFaceEncoder)
    assert type(made.model).__module__ == "transformers.models.bert.modeling_bert"
    assert made.model.config._attn_implementation == "sdpa"  # noqa: SLF001
