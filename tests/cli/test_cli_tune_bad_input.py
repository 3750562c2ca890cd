"""`routepool tune`: a wrong space or request is one line, and nothing is written."""

from pathlib import Path

import pytest
from support.cli_runs import call, refused, run_process, sentences, write_csv, write_space

from routepool.settings import default_preset
from routepool.tuning.space import fit_to, number_of_points, read_space

DATA_OPTIONS = ["--vectors", "none", "--threads", "1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "reviews.csv", sentences(60))


@pytest.mark.parametrize("name", ["best.toml", "base.json"])
def test_a_search_replaces_nothing_that_routepool_did_not_write(name: str, tmp_path: Path, data: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / name).write_text("mine", encoding="utf-8")
    space = write_space(tmp_path, "epochs = [1]\n")
    told = refused("tune", data, "--space", space, "--out", tmp_path / "study", *DATA_OPTIONS)
    assert told.startswith(f"{tmp_path / 'study' / name}: routepool did not write it")
    assert (tmp_path / "study" / name).read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("learning_rat = [1]", "learning_rat: unknown setting 'learning_rat', did you mean 'learning_rate'?"),
        ('epochs = ["many"]', "epochs: epochs must be a whole number, got 'many'"),
        ("epochs = [0]", "epochs: epochs must be at least 1"),
        ("dropout = { low = 0.5, high = 1.5 }", "dropout: dropout must be at most 0.99"),
        ('capsules = ["x"]', "capsules: capsules must be a whole number"),
        ("hidden_size = { low = 0.5, high = 1.5, step = 0.5 }", "hidden_size: hidden_size must be a whole number"),
        ("encoder = { low = 1, high = 2 }", "encoder: "),
        ('aggregator = ["routing", "max"]\ncapsules = [2]', "aggregator: unknown setting 'capsules'"),
        ("learning_rate = []", "learning_rate: wanted a list of at least one value"),
        ("learning_rate = 0.1", "learning_rate: wanted a list of values"),
        ("learning_rate", "not a TOML file"),
        ("epochs = " + "[" * 50_000, "not a TOML file"),
        ("epochs = [" + "1" * 5000 + "]", "not a TOML file"),
        (".".join(["a"] * 45_000) + " = 1", "not a file of settings"),
        ("# and no end\n" * 10_000, "not a file of settings"),
        (f"epochs = {list(range(1, 15_000))}", "epochs: wanted a list of at most 1,000 values"),
        ("dropout = { low = 0.1, high = 0.5, step = 1e-12 }", "dropout: step must be at least a 100,000th"),
        ("base = 3\nepochs = [1]", "base must be the name of a preset"),
        ("", "there is nothing to search"),
        ("dropout = { low = 0.1, high = 0.5 }", "dropout: a grid needs a list of values, or a range with a step"),
    ],
)
def test_a_wrong_space_is_named_with_its_error(content: str, message: str, tmp_path: Path, data: Path) -> None:
    space = write_space(tmp_path, content)
    error = refused("tune", data, "--space", space, "--out", tmp_path / "study", *DATA_OPTIONS)
    assert error.startswith(f"{space}: {message}")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("epochs = [1]", ["--set", "epochs=2"], "epochs is searched and set on the command line too"),
        ("seed = [1]", ["--seed", "2"], "seed is searched and set on the command line too"),
        ('base = "papper"\nepochs = [1]', [], "did you mean 'paper'?"),
        ("epochs = [1]", ["--sampler", "tpee"], "unknown sampler 'tpee', did you mean 'tpe'?"),
        ("epochs = [1]", ["--prune", "sometimes"], "unknown pruner 'sometimes'"),
        ("epochs = [1]", ["--space", "none.toml"], "none.toml: cannot be read"),
    ],
)
def test_a_wrong_request_is_one_line(
    content: str, options: list[str], message: str, tmp_path: Path, data: Path
) -> None:
    space = write_space(tmp_path, content)
    assert message in refused("tune", data, "--space", space, "--out", tmp_path / "study", *DATA_OPTIONS, *options)


def test_the_documented_space_is_good(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tune.md").read_text("utf-8")
    space = write_space(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    assert number_of_points(fit_to(read_space(space), default_preset())) == 3 * 3 * 2


def test_a_folder_that_is_no_search_cannot_be_resumed(tmp_path: Path) -> None:
    assert "no search to resume" in refused("tune", "--resume", tmp_path)
    for content in ("", "[]", "{}", '{"format_version": 1}', '{"format_version": 9}'):
        (tmp_path / "study.json").write_text(content)
        assert ".json" in refused("tune", "--resume", tmp_path)
    assert call("tune").code == 2
    assert call("tune", "a.csv", "--resume", tmp_path).code == 2


def test_a_missing_package_gives_the_pip_line(tmp_path: Path, data: Path) -> None:
    (tmp_path / "optuna.py").write_text("raise ModuleNotFoundError('no optuna', name='optuna')", encoding="utf-8")
    done = run_process("tune", data, cwd=tmp_path)
    assert done.stderr.decode().splitlines() == [
        "error: this sampler needs the package 'optuna': pip install \"routepool[tune]\""
    ]
