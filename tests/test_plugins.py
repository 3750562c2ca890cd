"""A class that a user registers is used by every command; a model folder still cannot make a module be imported."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.cli_runs import run_process, sentences, write_csv
from support.model_folders import reseal
from support.serving import serving

LAYERS = """
from routepool.layers import Aggregator, Parts, register_aggregator

@register_aggregator("token-sum")
class TokenSum(Aggregator):
    parts = Parts(1, "total")

    def __init__(self, in_features):
        super().__init__(in_features, out_features=in_features)

    def aggregate(self, states, mask):
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (weights * states).sum(1), weights
"""
SMALL = ["--vectors", "none", "--threads", "1", "--set", "hidden_size=8", "--set", "embedding_size=8"]
METADATA = "Metadata-Version: 2.1\nName: own-layers\nVersion: 1.2\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def installed(folder: Path, *, entry_point: bool) -> Path:
    """A folder in which pip has installed a package with an aggregator."""
    wheel = folder / "own_layers-1.2-py3-none-any.whl"
    info = "own_layers-1.2.dist-info"
    points = "[routepool.plugins]\ntoken-sum = own_layers\n" if entry_point else ""
    files = {"own_layers.py": LAYERS, f"{info}/METADATA": METADATA, f"{info}/WHEEL": WHEEL}
    files |= {f"{info}/entry_points.txt": points, f"{info}/top_level.txt": "own_layers\n"}
    with ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    site = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return site


def trained(folder: Path, *options: object) -> Path:
    data = write_csv(folder / "reviews.csv", sentences(120))
    done = run_process("train", data, "--out", folder / "run", "--aggregator", "token-sum", *SMALL, *options)
    assert done.returncode == 0, done.stderr.decode()
    return data


def test_an_installed_class_is_used_by_every_command_and_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed(tmp_path, entry_point=True)))
    data, run = trained(tmp_path, "--set", "epochs=2"), tmp_path / "run"
    for command in ("evaluate", "predict", "explain"):
        done = run_process(command, run, data)
        assert done.returncode == 0, done.stderr.decode()
    done = run_process("encode", run, data, "--out", tmp_path / "vectors.npy")
    assert done.returncode == 0, done.stderr.decode()
    with serving(run) as server:
        assert server.post("/predict", {"text": "a great film"}).status == 200
        assert server.post("/explain", {"text": "a great film"}).json["results"][0]["aggregator"] == "token-sum"


def test_without_an_entry_point_the_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed(tmp_path, entry_point=False)))
    data, run = trained(tmp_path, "--set", "epochs=1", "--plugin", "own_layers"), tmp_path / "run"
    assert json.loads((run / "config.json").read_text())["provenance"]["plugins"] == {
        "aggregator": "own_layers.TokenSum of own-layers 1.2"
    }
    refused = run_process("predict", run, data)
    assert refused.returncode == 1
    message = refused.stderr.decode()
    assert "unknown aggregator 'token-sum'" in message
    assert "own_layers.TokenSum of own-layers 1.2" in message
    assert "--plugin MODULE" in message
    assert run_process("predict", run, data, "--plugin", "own_layers").returncode == 0


def test_a_module_of_the_folder_one_is_in_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LAYERS)
    data = write_csv(tmp_path / "reviews.csv", sentences(120))
    wanted = ("train", str(data), "--out", "run", "--aggregator", "token-sum", *SMALL, "--plugin", "mine")
    # As the installed command does it, Python does not look for modules in this folder by itself.
    own = [sys.executable, "-P", "-m", "routepool", *wanted]
    done = subprocess.run(own, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_folder_cannot_make_a_module_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    data = write_csv(tmp_path / "reviews.csv", sentences(120))
    done = run_process("train", data, "--out", "run", *SMALL, "--set", "epochs=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["model_config"]["aggregator"] = "evil"
    config["provenance"]["plugins"] = {"aggregator": "evil"}
    reseal(tmp_path / "run", "config.json", json.dumps(config).encode())
    done = run_process("predict", "run", data, cwd=tmp_path)
    assert done.returncode == 1
    assert "unknown aggregator 'evil'" in done.stderr.decode()
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("module", "reason"),
    [("no_such_module", "there is no module of that name"), ("broken_module", r"ZeroDivisionError: division by zero")],
)
def test_a_plugin_that_cannot_be_imported_is_one_line(tmp_path: Path, module: str, reason: str) -> None:
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    done = run_process("presets", "--plugin", module, cwd=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"error: plugin {module}: ")
    assert reason in line
