"""The peers learn, are chosen on dev, and are scored on test once."""

import json
from pathlib import Path

import numpy as np
import pytest

from reproduce import peers
from reproduce.ledger import Ledger
from reproduce.peers import PEERS, make
from routepool.datasets import Parts, load_dataset


def part(folder: Path, name: str, seed: int) -> str:
    random = np.random.default_rng(seed)
    words = {"0": ["bad", "dull", "poor"], "1": ["good", "warm", "fine"]}
    rows = []
    for number in range(80):
        label = str(number % 2)
        drawn = [*random.choice(words[label], 2), *random.choice(["a", "film", "plot", "the", "of"], 6)]
        rows.append(f"{label}\t{' '.join(random.permutation(drawn))}")
    path = folder / f"{name}.tsv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_and_enters_one_look_at_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(peers, "BUCKETS", 2**12)
    columns = {"header": False, "label_column": "1", "text_column": "2"}
    parts = Parts(*(load_dataset(part(tmp_path, one, seed), **columns) for seed, one in enumerate(Parts._fields)))  # type: ignore[arg-type]
    ledger = Ledger(tmp_path / "ledger.csv")
    make(name, parts, tmp_path, ledger)
    found = json.loads((tmp_path / "peers" / f"{name}.json").read_text())
    assert found["test"] > 0.9
    assert found["dev"] == max(one["dev"] for one in found["tried"])
    best = next(one for one in found["tried"] if one["dev"] == found["dev"])
    assert found["settings"] == {key: value for key, value in best.items() if key != "dev"}
    truth = [(example.labels or ("",))[0] for example in parts.test.examples]
    right = [given == wanted for given, wanted in zip(found["test_predictions"], truth, strict=True)]
    assert np.mean(right) == pytest.approx(found["test"])
    assert [row["run"] for row in ledger.rows()] == [f"peers/{name}/0"]
