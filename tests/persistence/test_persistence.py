"""What users of a model folder rely on: what was saved comes back, now and in later versions."""

import hashlib
import json
import logging
import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.model_folders import CONFIG, NEEDED, TEXTS, logits, tiny_model
from torch import Tensor

from routepool.errors import InputError
from routepool.layers import Aggregator
from routepool.model import Classifier
from routepool.persistence import SavedModel, check_free, description, folder, load_model, save_model, saving
from routepool.persistence.description import Values
from routepool.settings import AGGREGATORS, ModelConfig, change

VERSION_1 = Path(__file__).parents[1] / "fixtures" / "model-v1"


def test_everything_that_was_saved_comes_back(tmp_path: Path) -> None:
    saved = tiny_model(multi_label=True, thresholds=(0.25, 0.5))
    save_model(tmp_path / "deep" / "run", saved, card={})
    loaded = load_model(str(tmp_path / "deep" / "run"))
    for item in fields(SavedModel):
        if item.name != "classifier":
            assert getattr(loaded, item.name) == getattr(saved, item.name), item.name
    assert torch.equal(logits(loaded), logits(saved))
    assert not loaded.classifier.training
    assert all(parameter.requires_grad for parameter in loaded.classifier.parameters())


@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "cnn", "none"])
@pytest.mark.parametrize("depth", [1, 2])
def test_every_kind_of_model_is_saved(tmp_path: Path, encoder: str, depth: int) -> None:
    config = change(CONFIG, encoder=encoder, depth=depth, aggregator="structured-attention", aggregator_options={})
    saved = tiny_model(config=config, training=None, columns=None)
    save_model(tmp_path, saved, card={})
    loaded = load_model(tmp_path)
    assert (loaded.training, loaded.columns) == (None, None)
    for name, tensor in saved.classifier.state_dict().items():
        assert torch.equal(loaded.classifier.state_dict()[name], tensor), name


def test_the_folder_has_the_promised_files_readable_by_others(tmp_path: Path) -> None:
    save_model(tmp_path, tiny_model(), card={})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*NEEDED, "manifest.json", "README.md"])
    (tmp_path / "plain").touch()
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {usual}
    assert load_file(tmp_path / "model.safetensors")["head.output.bias"].shape == (2,)
    listed = json.loads((tmp_path / "manifest.json").read_bytes())
    assert [item["name"] for item in listed["files"]] == list(NEEDED)
    assert list(listed)[-1] == "sha256"


def test_loading_does_not_disturb_random_numbers_and_knows_no_default_type(tmp_path: Path) -> None:
    save_model(tmp_path, tiny_model(), card={})
    before = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        loaded = load_model(tmp_path)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(logits(loaded), logits(tiny_model()))


def test_an_aggregator_with_a_table_it_does_not_save_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubled(Aggregator):
        def __init__(self, in_features: int) -> None:
            super().__init__(in_features, out_features=in_features)
            self.table: Tensor
            self.register_buffer("table", torch.full((in_features,), 2.0), persistent=False)

        def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
            weights = mask.unsqueeze(-1).to(states.dtype)
            return (weights * states).sum(1) * self.table, weights

    monkeypatch.setitem(AGGREGATORS.entries, "doubled", Doubled)
    saved = tiny_model(config=change(CONFIG, aggregator="doubled", aggregator_options={}))
    save_model(tmp_path, saved, card={})
    before = torch.get_rng_state()
    assert torch.equal(logits(load_model(tmp_path)), logits(saved))
    assert torch.equal(torch.get_rng_state(), before)


def test_labels_of_any_script_and_values_json_lacks_are_kept_or_null(tmp_path: Path) -> None:
    labels = ("好", "\ud800 \u2028\n")
    save_model(
        tmp_path, tiny_model(labels=labels, provenance={"f1": float("nan"), "scores": (1, float("inf"))}), card={}
    )
    assert load_model(tmp_path).labels == labels
    assert load_model(tmp_path).provenance == {"f1": None, "scores": [1, None]}
    assert "好" in (tmp_path / "config.json").read_text("utf-8")


def test_a_finished_model_is_replaced_only_by_force(tmp_path: Path) -> None:
    save_model(tmp_path, tiny_model(seed=1), card={})
    with pytest.raises(InputError, match=r"holds a finished model already; choose another folder, or use --force"):
        save_model(tmp_path, tiny_model(seed=2), card={})
    assert torch.equal(logits(load_model(tmp_path)), logits(tiny_model(seed=1)))
    save_model(tmp_path, tiny_model(seed=2), card={}, force=True)
    assert torch.equal(logits(load_model(tmp_path)), logits(tiny_model(seed=2)))
    assert len(list(tmp_path.iterdir())) == 5


def test_files_of_others_are_not_written_over(tmp_path: Path) -> None:
    check_free(tmp_path / "new")
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InputError, match=r"holds README\.md already"):
        check_free(tmp_path)
    with pytest.raises(InputError, match=r"README\.md: routepool did not write it, .*, it is not replaced"):
        save_model(tmp_path, tiny_model(), card={}, force=True)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(InputError, match=r"config\.json: wanted room for a file of that name, got a folder"):
        save_model(tmp_path, tiny_model(), card={}, force=True)
    with pytest.raises(InputError, match=r"wanted a folder for the model, got a file"):
        save_model(tmp_path / "README.md", tiny_model(), card={}, force=True)
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    "content", ["{}", '{"name": "an app", "icons": []}', '{"files": [], "sha256": "0"}', "[1]", "?"]
)
def test_a_manifest_of_others_makes_nothing_ours(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(InputError, match=r"manifest\.json: routepool did not write it"):
        check_free(tmp_path, force=True)
    with pytest.raises(InputError, match=r"manifest\.json: routepool did not write it"):
        save_model(tmp_path, tiny_model(), card={}, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "manifest.json"]


def test_a_model_of_a_newer_routepool_is_ours_too(tmp_path: Path) -> None:
    save_model(tmp_path, tiny_model(), card={})
    values = json.loads((tmp_path / "manifest.json").read_bytes())
    del values["sha256"]
    values["format_version"] = 99
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps({**values, "sha256": digest}))
    save_model(tmp_path, tiny_model(seed=2), card={}, force=True)
    assert torch.equal(logits(load_model(tmp_path)), logits(tiny_model(seed=2)))


def test_a_link_in_the_folder_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    save_model(run, tiny_model(seed=1), card={})
    (run / "config.json").rename(tmp_path / "elsewhere")
    (run / "config.json").symlink_to(tmp_path / "elsewhere")
    (run / ".tokenizer.json.new").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    assert torch.equal(logits(load_model(run)), logits(tiny_model(seed=1)))
    save_model(run, tiny_model(seed=2, labels=("a", "b")), card={}, force=True)
    assert (tmp_path / "elsewhere").read_bytes() == before
    assert load_model(run).labels == ("a", "b")


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    saved = tiny_model()
    other = Classifier.build(CONFIG, vocabulary_size=99, classes=2)
    for bad, message in (
        (replace(saved, classifier=other), "a row for each of the 14 words of its tokenizer, got 99"),
        (replace(saved, labels=("a", "b", "c")), r"head\.output\.weight must be \(3, 3\).* and labels of config"),
        (replace(saved, model_config=ModelConfig()), r"for the settings"),
        (replace(saved, classifier=tiny_model().classifier.double()), r"must be .*float32.*got .*float64"),
        (replace(saved, provenance={"a": {1}}), r"wanted values that JSON can hold"),
    ):
        with pytest.raises(InputError, match=message):
            save_model(tmp_path / "run", bad, card={})
    for too_large in ({"provenance": {"notes": "a" * 5_000_000}}, {"labels": ("a" * 5_000_000, "b")}):
        with pytest.raises(InputError, match=r"config\.json: wanted at most \d+ bytes for a model of this size"):
            save_model(tmp_path / "run", replace(saved, **too_large), card={})
    with torch.no_grad():
        saved.classifier.get_parameter("head.output.bias")[0] = float("nan")
    with pytest.raises(InputError, match=r"head\.output\.bias must hold finite numbers"):
        save_model(tmp_path / "run", saved, card={})
    assert not (tmp_path / "run").exists()


def test_a_folder_of_version_1_gives_the_logits_of_its_day() -> None:
    expected = json.loads((VERSION_1 / "expected.json").read_bytes())
    loaded = load_model(VERSION_1)
    assert expected["texts"] == TEXTS
    assert torch.allclose(logits(loaded), torch.tensor(expected["logits"]), atol=1e-6)
    assert (loaded.labels, loaded.temperature) == (("cold", "warm"), 1.25)
    assert loaded.training is not None
    assert loaded.training.epochs == 3


def test_an_older_version_is_migrated_and_a_newer_one_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(values: Values) -> Values:
        assert values["format_version"] == 1
        return {**values, "labels": [label.upper() for label in values["labels"]]}

    for module in (description, folder, saving):
        monkeypatch.setattr(module, "FORMAT_VERSION", 2)
    monkeypatch.setattr(description, "MIGRATIONS", {1: rename})
    assert load_model(VERSION_1).labels == ("COLD", "WARM")
    save_model(tmp_path, tiny_model(), card={})
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"made by a newer routepool \(format 2, this one reads up to 1\): upgrade"):
        load_model(tmp_path)


def test_a_save_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="routepool"):
        save_model(tmp_path, tiny_model(), card={})
    assert caplog.messages == [f"saved the model in {tmp_path}"]


def regenerate_version_1() -> None:
    """Make tests/fixtures/model-v1 again, by running this file; only while no release has written version 1."""
    saved = tiny_model(seed=1)
    save_model(VERSION_1, saved, card={"title": "Model of format version 1"}, force=True)
    expected = {"texts": TEXTS, "logits": logits(saved).tolist()}
    (VERSION_1 / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    regenerate_version_1()
