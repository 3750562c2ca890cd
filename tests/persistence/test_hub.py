"""Models on a hub: one folder, only its files, cards that hubs can read, and one sentence for what goes wrong.

A folder stands in for the hub, at the functions of its package that would use the network.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli_runs import refused, train_tiny
from support.model_folders import TEXTS, change_config, tiny_model

hub = pytest.importorskip("huggingface_hub", reason='needs pip install "routepool[hub]"')

from support.cards import CARD, HOSTILE  # noqa: E402

from routepool.errors import InputError  # noqa: E402
from routepool.extras import hub as extra  # noqa: E402
from routepool.persistence import save_model  # noqa: E402
from routepool.persistence.card import brief, render  # noqa: E402
from routepool.scoring.predictor import Predictor, load, of_saved  # noqa: E402
from routepool.settings import ModelConfig, TextConfig  # noqa: E402
from routepool.text import Tokenizer  # noqa: E402

NAME = "someone/soups"
FILES = ["config.json", "manifest.json", "model.safetensors", "tokenizer.json"]


class FakeHub:
    """Repositories as folders; what was asked of it is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []  # type: ignore[var-annotated]

    def snapshot_download(self, name: str, *, allow_patterns: list[str], **options: Any) -> str:
        hub.utils.validate_repo_id(name)
        self.asked.append(options)
        source = self.folder / "repositories" / name
        if not source.is_dir():
            raise http_error(hub.errors.RepositoryNotFoundError)
        target = Path(options["cache_dir"] or self.folder / "cache") / name
        target.mkdir(parents=True, exist_ok=True)
        _copy(source, target, allow_patterns)
        return str(target)

    def api(self, **options: Any) -> "FakeHub":
        self.asked.append(options)
        return self

    def create_repo(self, name: str, *, private: bool | None, exist_ok: bool) -> Any:
        hub.utils.validate_repo_id(name)
        (self.folder / "repositories" / name).mkdir(parents=True, exist_ok=exist_ok)
        self.asked.append({"private": private})
        return SimpleNamespace(repo_id=name)

    def create_branch(self, name: str, *, branch: str, exist_ok: bool) -> None:
        self.asked.append({"branch": branch})

    def upload_folder(self, *, repo_id: str, folder_path: Path, allow_patterns: list[str], **options: Any) -> Any:
        self.asked.append(options)
        _copy(Path(folder_path), self.folder / "repositories" / repo_id, allow_patterns)
        return SimpleNamespace(commit_url=f"https://hub.invalid/{repo_id}/commit/1")


def _copy(source: Path, target: Path, patterns: list[str]) -> None:
    for path in source.iterdir():
        if path.is_file() and any(fnmatch(path.name, pattern) for pattern in patterns):
            shutil.copy(path, target)


def http_error(kind: Callable[..., Exception]) -> Exception:
    response = SimpleNamespace(headers={}, request=SimpleNamespace(url="https://hub.invalid"), status_code=404)
    return kind("not there", response=response)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    standing_in = FakeHub(tmp_path / "hub")
    monkeypatch.setattr(extra, "snapshot_download", standing_in.snapshot_download)
    monkeypatch.setattr(extra, "HfApi", standing_in.api)
    return standing_in


def test_a_model_comes_back_from_a_folder_as_it_was(tmp_path: Path) -> None:
    model = of_saved(tiny_model())
    model.save_pretrained(tmp_path / "soups")
    for again in (Predictor.from_pretrained(tmp_path / "soups"), Predictor.from_pretrained(str(tmp_path / "soups"))):
        np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    with pytest.raises(InputError, match="it holds a finished model already"):
        model.save_pretrained(tmp_path / "soups")
    model.save_pretrained(tmp_path / "soups", force=True)


def test_a_model_comes_back_from_the_hub_as_it_was(fake: FakeHub, tmp_path: Path) -> None:
    model = of_saved(tiny_model())
    address = model.push_to_hub(NAME, private=True, token="secret", revision="trial", commit_message="First soup")
    assert address == "https://hub.invalid/someone/soups/commit/1"
    wanted = [{"token": "secret", "library_name": "routepool"}, {"private": True}, {"branch": "trial"}]
    assert fake.asked == [*wanted, {"revision": "trial", "commit_message": "First soup"}]
    repository = fake.folder / "repositories" / NAME
    assert sorted(path.name for path in repository.iterdir()) == sorted(["README.md", *FILES])
    again = Predictor.from_pretrained(NAME)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_only_the_files_of_the_model_are_downloaded(fake: FakeHub, tmp_path: Path) -> None:
    of_saved(tiny_model()).push_to_hub(NAME)
    (fake.folder / "repositories" / NAME / "weights.bin").write_bytes(b"something else")
    Predictor.from_pretrained(NAME, revision="v1", token="secret", cache_dir=tmp_path / "kept", local_files_only=True)
    assert sorted(path.name for path in (tmp_path / "kept" / NAME).iterdir()) == FILES
    options = {"revision": "v1", "token": "secret", "cache_dir": tmp_path / "kept", "local_files_only": True}
    assert fake.asked[-1] == {**options, "library_name": "routepool"}


def test_a_download_is_checked_like_any_folder(fake: FakeHub) -> None:
    of_saved(tiny_model()).push_to_hub(NAME)
    repository = fake.folder / "repositories" / NAME
    change_config(repository, labels=["one"])
    with pytest.raises(InputError, match=r"for the settings and labels of config\.json"):
        Predictor.from_pretrained(NAME)
    (repository / "config.json").write_bytes(b"{}")
    with pytest.raises(InputError, match=r"config\.json: wanted \d+ bytes, got 2"):
        Predictor.from_pretrained(NAME)


def test_a_folder_wins_over_a_hub_model_of_its_name(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_saved(tiny_model()).save_pretrained(NAME)
    Predictor.from_pretrained(NAME)
    assert fake.asked == []


def test_what_goes_wrong_is_one_sentence(fake: FakeHub, tmp_path: Path) -> None:
    model = of_saved(tiny_model())
    with pytest.raises(InputError, match="someone/missing: there is no such folder, and no such model on the hub"):
        Predictor.from_pretrained("someone/missing")
    for name in ("not a name", "a/b/c", str(tmp_path / "none")):
        with pytest.raises(InputError, match="wanted a folder or a name such as 'someone/some-model', got neither"):
            Predictor.from_pretrained(name)
        with pytest.raises(InputError, match="wanted a folder or a name such as"):
            model.push_to_hub(name)
    with pytest.raises(InputError, match="wanted the folder of a model, got nothing"):
        Predictor.from_pretrained(tmp_path / "none")
    (fake.folder / "repositories" / "someone" / "other").mkdir(parents=True)
    with pytest.raises(InputError, match=r"someone/other: wanted a model of routepool, got one without manifest\.json"):
        Predictor.from_pretrained("someone/other")
    with pytest.raises(InputError, match="this model is an exported one"):
        Predictor(model.tokenizer, model.backend, model.labels).save_pretrained(tmp_path / "soups")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (http_error(hub.errors.GatedRepoError), "its owner must let you in first"),
        (http_error(hub.errors.RevisionNotFoundError), "the model has no such revision"),
        (http_error(hub.errors.HfHubHTTPError), r"the hub did not do it \(not there"),
        (hub.errors.LocalEntryNotFoundError("nothing"), "no copy in the cache, and the hub was not reached"),
        (hub.errors.OfflineModeIsEnabled("off"), "unset it and try again"),
        (hub.errors.LocalTokenNotFoundError("who"), "run hf auth login, or give a token"),
        (ConnectionError("no\nroute"), r"the hub did not do it \(no route\); try again later"),
    ],
)
def test_every_error_of_the_hub_is_one_sentence(
    error: Exception, told: str, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(extra, "snapshot_download", fail)
    monkeypatch.setattr(fake, "create_repo", fail)
    for call in (lambda: Predictor.from_pretrained(NAME), lambda: of_saved(tiny_model()).push_to_hub(NAME)):
        with pytest.raises(InputError, match=rf"^someone/soups: .*{told}") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_package_itself_offline_is_one_sentence(tmp_path: Path) -> None:
    """In a process of its own: the package looks at HF_HUB_OFFLINE once."""
    code = (
        "import sys; from routepool.scoring.predictor import Predictor; from routepool.errors import InputError\n"
        "for name in ('someone/soups', 'not a name'):\n"
        "    try: Predictor.from_pretrained(name, cache_dir=sys.argv[1])\n"
        "    except InputError as error: print(error)\n"
    )
    environment = {"HF_HUB_OFFLINE": "1", "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("someone/soups: there is no such folder, no copy in the cache")
    assert second.startswith("not a name: wanted a folder or a name")


def test_a_missing_package_gives_the_pip_line() -> None:
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from routepool.persistence.hubs import HUBS; from routepool.errors import MissingPackageError\n"
        "try: HUBS['huggingface']\n"
        "except MissingPackageError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "routepool[hub]"' in done.stdout


def test_the_card_has_what_hubs_read(tmp_path: Path) -> None:
    facts = {**CARD, "license": "mit", "language": ["no", "en"], "datasets": ["someone/soups-data"]}
    data = hub.ModelCard(render(tiny_model(), facts)).data
    assert (data.library_name, data.pipeline_tag, data.license) == ("routepool", "text-classification", "mit")
    assert (data.language, data.datasets) == (["no", "en"], ["someone/soups-data"])
    assert data.tags == ["text-classification", "dynamic-routing"]
    assert data.metrics == ["accuracy", "f1"]
    assert data.model_name == "Soups"
    found = [(one.dataset_type, one.dataset_split, one.metric_type, one.metric_name) for one in data.eval_results]
    assert found == [
        ("someone/soups-data", "dev", "accuracy", "accuracy"),
        ("someone/soups-data", "dev", "f1", "macro F1"),
    ]
    assert [one.metric_value for one in data.eval_results] == [0.8422, 0.5]


def test_the_scores_are_in_the_form_that_the_package_of_the_hub_writes() -> None:
    ours = hub.ModelCard(render(tiny_model(), {**CARD, "scores": CARD["scores"][:1]})).data.to_dict()  # type: ignore[index]
    theirs = hub.metadata_eval_result(
        model_pretty_name="Soups",
        task_pretty_name="Text classification",
        task_id="text-classification",
        metrics_pretty_name="accuracy",
        metrics_id="accuracy",
        metrics_value=0.8422,
        dataset_pretty_name="not named",
        dataset_id="not-named",
        dataset_split="dev",
    )
    for metric in theirs["model-index"][0]["results"][0]["metrics"]:
        assert metric.pop("verified") is False  # their way to say nothing
    assert ours["model-index"] == theirs["model-index"]


def test_what_is_not_known_is_not_in_the_front_matter() -> None:
    config = ModelConfig(embedding_size=3, hidden_size=2, head_size=3, aggregator="mean")
    data = hub.ModelCard(render(tiny_model(config=config), {"scores": [{"set": "dev", "score": "F1", "value": None}]}))
    known = {"library_name": "routepool", "pipeline_tag": "text-classification", "tags": ["text-classification"]}
    assert data.data.to_dict() == known


def test_a_language_that_was_asked_for_is_known() -> None:
    tokenizer = Tokenizer.build(TEXTS[:2], config=TextConfig(language="no"))
    assert hub.ModelCard(render(replace(tiny_model(), tokenizer=tokenizer), {})).data.language == "no"


@given(
    HOSTILE | st.sampled_from(["a: b", "#", "1e5", "null", "'", '"', "\u2028", "%x", "@x", "0x1", "2026-01-01", "é"])
)
def test_no_text_of_a_user_can_break_the_front_matter(text: str) -> None:
    rows = [{"set": f"x{text}", "score": text, "value": 0.5}]
    card = {"title": text, "license": f"{text}x", "scores": rows, "data": {f"x{text}": {"file": text}}}
    data = hub.ModelCard(render(tiny_model(), card).encode("utf-8", "replace").decode()).data
    assert data.license == brief(f"{text}x")
    (result,) = data.eval_results
    assert (result.metric_name, result.metric_value) == (brief(text), 0.5)
    assert (result.dataset_split, result.dataset_name) == (brief(f"x{text}"), brief(text) or "not named")


def test_a_trained_model_is_shared_with_its_own_card(fake: FakeHub, tmp_path: Path) -> None:
    run = train_tiny(tmp_path)
    load(run).push_to_hub(NAME, card={"license": "cc0-1.0"})
    shared = (fake.folder / "repositories" / NAME / "README.md").read_text("utf-8")
    assert shared.replace('license: "cc0-1.0"\n', "") == (run / "README.md").read_text("utf-8")
    data = hub.ModelCard(shared).data
    assert data.license == "cc0-1.0"
    assert {one.dataset_name for one in data.eval_results} == {"reviews.csv"}


def test_the_command_line_still_wants_a_folder(tmp_path: Path) -> None:
    save_model(tmp_path / "run", tiny_model(), card={})
    assert "wanted the folder of a model" in refused("predict", tmp_path / "none", tmp_path / "texts.csv")
