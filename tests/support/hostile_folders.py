"""Model folders that somebody made to hang, to fill the memory, to reach the network or to crash what loads them."""

import shutil
import struct
from pathlib import Path

from routepool.model import Classifier
from routepool.persistence import SavedModel, save_model
from routepool.settings import ModelConfig, TextConfig
from routepool.text import PieceTokenizer
from support import tiny_encoder
from support.model_folders import tiny_model
from support.spoiling import (
    Spoil,
    architecture,
    charsmap,
    config_key,
    content,
    encoder_option,
    header,
    in_order,
    model_of_pieces,
    model_setting,
    nested,
    nested_table,
    options,
    pieces,
    place_of_a_piece,
    promised,
    replacing,
    tensor,
    tokenizer_key,
    words_of,
)

# Of the transformers package: each can name another model, which is downloaded when it is built.
WITH_BACKBONE = (
    *(
        "conditional_detr",
        "dab-detr",
        "deformable_detr",
        "depth_anything",
        "detr",
        "dpt",
        "grounding-dino",
        "mask2former",
    ),
    *("maskformer", "omdet-turbo", "oneformer", "rt_detr", "table-transformer", "timm_backbone", "tvp", "upernet"),
    *("vitmatte", "zoedepth"),
)


def write_words(folder: Path) -> None:
    save_model(folder, tiny_model(), card={})


def write_encoder(folder: Path) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    architecture = {"model_type": "bert", "vocab_size": len(tiny_encoder.vocabulary()), **sizes}
    options = {"architecture": architecture, "before": [2], "behind": [3], "pieces": 32}
    config = ModelConfig(encoder="hf", encoder_options=options, head_size=3, aggregator="mean")
    tokenizer = PieceTokenizer(TextConfig(), tiny_encoder.tokenizer().to_str())
    model = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2)
    save_model(
        folder, SavedModel(classifier=model, tokenizer=tokenizer, model_config=config, labels=("a", "b")), card={}
    )


def write_all(place: Path) -> list[str]:
    """A folder for each of the tables below; their names."""
    names = []
    for write, table in ((write_words, OF_WORDS), (write_encoder, OF_PIECES)):
        write(place / write.__name__)
        for name, spoil in table.items():
            spoil(Path(shutil.copytree(place / write.__name__, place / name)))
            names.append(name)
    return names


MILLION = 1_000_000
OF_WORDS: dict[str, Spoil] = {
    "depth of 100,000": model_setting(depth=100_000),
    "depth of 9": model_setting(depth=9),
    "hidden size of 60,000": model_setting(hidden_size=60_000),
    "hidden size of 400 digits": model_setting(hidden_size=10**400),
    "embedding size of a billion": model_setting(embedding_size=10**9),
    "head size of a billion": model_setting(head_size=10**9),
    "200,000 widths": options("cnn", "encoder", widths=[3] * 200_000),
    "two million widths": options("cnn", "encoder", widths=[3] * 2 * MILLION),
    "a width of a billion": options("cnn", "encoder", widths=[10**9]),
    "a width of 200,000": options("cnn", "encoder", widths=[200_000]),
    "widths that are no numbers": options("cnn", "encoder", widths=["3"]),
    "iterations of 5,900": options("routing", iterations=5_900),
    "capsules of 200,000": options("routing", capsules=200_000),
    "capsule size of 200,000": options("reverse-routing", capsule_size=200_000),
    "hops of 200,000": options("multi-hop", hops=200_000),
    "rows of 200,000": options("structured-attention", rows=200_000),
    "attention size of 200,000": options("structured-attention", attention_size=200_000),
    "an option without a name": options("routing", "aggregator", **{"": 1}),
    "options nested 900 deep": options("routing", capsules=nested_table(900)),
    "places of 200,000 names": model_setting(dropout_places=["x"] * 200_000),
    "config.json of 49 MB": config_key("provenance", {"lists": [[]] * 16 * MILLION}),
    "config.json of 250,000 lists": config_key("model_config", [[]] * 250_000),
    "config.json nested 100,000 deep": content("config.json", b"[" * 100_000),
    "90,000 labels": config_key("labels", list(words_of(90_000))),
    "a key of 900 kB": config_key("a" * 900_000, 1),
    "a temperature of 4,000 digits": config_key("temperature", 10**4000),
    "a million empty tensors": header({f"t{place}": tensor(0) for place in range(MILLION)}),
    "40,000 empty tensors": header({f"t{place}": tensor(0) for place in range(40_000)}),
    "a header of 2^63 bytes": header({}, length=2**63),
    "a header nested deep": header(nested_table(900)),
    "a header that is a list": header([1]),
    "a tensor without a shape": header({"a": {"dtype": "F32", "data_offsets": [0, 0]}}),
    "a tensor of another type": promised(more=tensor(1, dtype="F8")),
    "a shape below 0": promised(more=tensor(-1)),
    "a shape of fractions": promised(more=tensor(1.5)),
    "a shape beyond 64 bits": promised(more=tensor(2**62, 2**62)),
    "offsets that are no numbers": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}}),
    "100 GB behind the header": header({}, size=10**11),
    "a table of a billion words": promised(levels__0__embedding__weight=tensor(10**9, 3, size=12 * 10**9)),
    "weights of 4 bytes": content("model.safetensors", b"1234"),
    "3 million words for 12": tokenizer_key("words", list(words_of(3 * MILLION))),
    "300,000 counts for 12 words": tokenizer_key("counts", [0] * 300_000),
    "80,000 words for 12": tokenizer_key("words", list(words_of(80_000))),
    "words in a table": tokenizer_key("words", {"a": 1}),
    "words that are numbers": tokenizer_key("words", list(range(12))),
    "the same word 12 times": tokenizer_key("words", ["a"] * 12),
    "a separator of numbers": tokenizer_key("settings", {"separator": [1]}),
    "settings of 100 MB": content("tokenizer.json", b" " * 100 * MILLION),
    "another version of words": tokenizer_key("format_version", 10**4000),
}
_GOOD_CHARSMAP_SIZE = struct.pack("<I", 1024)
OF_PIECES: dict[str, Spoil] = {
    **{f"backbone of {kind}": architecture(model_type=kind, backbone="evil/backbone") for kind in WITH_BACKBONE},
    "a backbone of the bert of another type": architecture(model_type=["bert"]),
    "a remote configuration": architecture(model_type="evil/model", auto_map={"AutoConfig": "evil/model--code.Config"}),
    "an encoder with a decoder": architecture(model_type="t5"),
    "a decoder": architecture(is_decoder=True),
    "hidden size in letters": architecture(hidden_size="16"),
    "hidden size of a fraction": architecture(hidden_size=16.5),
    "hidden size of a million": architecture(hidden_size=MILLION),
    "no heads": architecture(num_attention_heads=0),
    "3 heads of 16 features": architecture(num_attention_heads=3),
    "heads that are true": architecture(num_attention_heads=True),
    "no layers": architecture(num_hidden_layers=0),
    "a million layers": architecture(num_hidden_layers=MILLION),
    "100 layers": architecture(num_hidden_layers=100),
    "layers in letters": architecture(num_hidden_layers="2"),
    "a trillion pieces": architecture(vocab_size=10**12),
    "4 million pieces": architecture(vocab_size=2**22),
    "a billion positions": architecture(max_position_embeddings=10**9),
    "padding at -7": architecture(pad_token_id=-7),
    "padding beyond the pieces": architecture(pad_token_id=4000),
    "padding in letters": architecture(pad_token_id="0"),
    "a width of a norm in letters": architecture(layer_norm_eps="x"),
    "dropout of 7": architecture(hidden_dropout_prob=7),
    "a range of NaN": architecture(initializer_range=float("nan")),
    "an activation of a system": architecture(hidden_act="os.system"),
    "an activation in a list": architecture(hidden_act=["gelu"]),
    "no type of token": architecture(type_vocab_size=0),
    "relative positions": architecture(position_embedding_type="relative_key"),
    "rotation by another function": architecture(rope_parameters={"rope_type": "dynamic", "factor": 1e300}),
    "an architecture in a list": encoder_option("architecture", [1]),
    "a special piece at -1": encoder_option("before", [-1]),
    "a special piece in letters": encoder_option("behind", ["[SEP]"]),
    "special pieces that are none": encoder_option("behind", 3),
    "200,000 special pieces": encoder_option("before", [2] * 200_000),
    "a window of nothing": encoder_option("pieces", 2),
    "a window of 2^62": encoder_option("pieces", 2**62),
    "frozen in letters": encoder_option("frozen", "yes"),
    "a piece at 400,000,000": place_of_a_piece(400_000_000),
    "a piece at 2^32 - 1": place_of_a_piece(2**32 - 1),
    "a piece at 2^64": place_of_a_piece(2**64),
    "a piece at -1": place_of_a_piece(-1),
    "a piece at a fraction": place_of_a_piece(1.5),
    "a piece at 4,000,000": place_of_a_piece(4_000_000),
    "a piece behind the last row": place_of_a_piece(len(tiny_encoder.vocabulary())),
    "50,000 pieces for 110": pieces(model={"vocab": {name: place for place, name in enumerate(words_of(50_000))}}),
    "no pieces": pieces(model={"vocab": {}}),
    "pieces in a list": pieces(model={"vocab": ["a"]}),
    "an unknown piece that is none": pieces(model={"unk_token": "[NONE]"}),
    "words of a billion letters": pieces(model={"max_input_chars_per_word": 10**9}),
    "a piece added at 400,000,000": pieces(added_tokens=[{"id": 400_000_000, "content": "more", "special": True}]),
    "nothing added": pieces(added_tokens=[{"id": 1, "content": "", "special": True}]),
    "Unigram without an unknown piece": model_of_pieces(type="Unigram", unk_id=None, vocab=[["a", -1.0]]),
    "Unigram of NaN": model_of_pieces(type="Unigram", unk_id=0, vocab=[["a", float("nan")]]),
    "Unigram of nothing": model_of_pieces(type="Unigram", unk_id=0, vocab=[]),
    "Unigram with an empty piece": model_of_pieces(type="Unigram", unk_id=0, vocab=[["a", -1.0], ["", -1.0]]),
    "BPE by chance": model_of_pieces(type="BPE", dropout=0.5, vocab={"a": 0}, merges=[]),
    "BPE of pieces that are none": model_of_pieces(type="BPE", vocab={"a": 0}, merges=[["b", "c"]]),
    "a model of another type": model_of_pieces(type="WordPieces", vocab={"a": 0}),
    "a replacement that doubles, 32 times": pieces(normalizer=in_order(replacing({"String": "a"}, "aa"), 32)),
    "a replacement that grows": pieces(normalizer=replacing({"String": "a"}, "a" * MILLION)),
    "a replacement of nothing": pieces(normalizer=replacing({"String": ""}, "a")),
    "a replacement by an expression": pieces(normalizer=replacing({"Regex": "(a+)+$"}, "b")),
    "a prefix of a million letters": pieces(normalizer={"type": "Prepend", "prepend": "a" * MILLION}),
    "10,000 normalizers": pieces(normalizer=in_order({"type": "Lowercase"}, 10_000)),
    "normalizers nested 200 deep": pieces(normalizer=nested(200)),
    "a table of characters at random": charsmap(_GOOD_CHARSMAP_SIZE + bytes(range(256)) * 8 + b"a\0"),
    "a table of characters of 4 GB": charsmap(b"\xff\xff\xff\xff"),
    "a table of characters of nothing": charsmap(b""),
    "a table of characters without an end": charsmap(_GOOD_CHARSMAP_SIZE + bytes(1024) + b"a"),
    "no table of characters": pieces(normalizer={"type": "Precompiled", "precompiled_charsmap": 3}),
    "an expression that goes back": pieces(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False}
    ),
    "words of a fixed length of 0": pieces(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "an end of words of two letters": pieces(pre_tokenizer={"type": "CharDelimiterSplit", "delimiter": "ab"}),
    "a text that comes twice": pieces(
        post_processor={
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
            "pair": [],
            "special_tokens": {},
        }
    ),
    "settings that are none": tokenizer_key("settings", 3),
    "a tokenizer that is none": tokenizer_key("pieces", None),
}
