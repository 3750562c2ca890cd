"""A tiny BERT and its tokenizer in a folder, as they would be published."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ("good", "bad", "film", "a", "the", "was", "plot", "dull", "bright", "it", ".", "!", ",", "and", "very")
PIECES = ("##s", "##ly", "##ness", "un", "##good")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz0123456789")


def vocabulary() -> dict[str, int]:
    names = (*SPECIAL, *WORDS, *PIECES, *LETTERS, *(f"##{letter}" for letter in LETTERS))
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def tokenizer() -> Tokenizer:
    known = vocabulary()
    engine = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.post_processor = processors.BertProcessing(("[SEP]", known["[SEP]"]), ("[CLS]", known["[CLS]"]))
    engine.add_special_tokens(list(SPECIAL))
    engine.enable_truncation(16)  # as the published ones have it: to be undone
    engine.enable_padding(length=16)
    return engine


def write_encoder(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """An encoder with random weights that reads 30 pieces at once beside the two special ones."""
    from transformers import BertConfig, BertModel

    sizes: dict[str, Any] = {
        "vocab_size": len(vocabulary()),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 32,
        **changes,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(BertConfig(**sizes)).save_pretrained(folder)  # type: ignore[no-untyped-call]
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder
