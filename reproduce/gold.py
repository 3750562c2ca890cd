"""Labels and lengths of the test texts, and no text: with them the tables need no data.

python -m reproduce.gold
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reproduce import data
from reproduce.plan import planned
from reproduce.runs import RESULTS


def write_gold(results: Path, names: Iterable[str], *, at_most: int | None = None) -> None:
    """Write gold/NAME.json and lengths/NAME.json below the results, for the sets that lack them."""
    for name in dict.fromkeys(names):
        files = {kind: results / kind / f"{name}.json" for kind in ("gold", "lengths")}
        if all(file.exists() for file in files.values()):
            continue
        parts = data.load(name, at_most=at_most)
        same = {"dataset": name, "data_hash": data.fingerprint(parts)}
        examples = parts.test.examples
        _write(files["gold"], {**same, "labels": [(example.labels or ("",))[0] for example in examples]})
        _write(files["lengths"], {**same, "words": [len(example.text.split()) for example in examples]})


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    scored = (run.data for run in planned() if run.scored)
    write_gold(RESULTS, (name for name in scored if name not in data.TANG or data.present(name)))
