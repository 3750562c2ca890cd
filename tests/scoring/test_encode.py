"""`routepool encode` and `Predictor.encode`: the vectors of texts, in order, in three formats, in bounded memory."""

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from safetensors.numpy import load_file
from support.cli_runs import call, refused, run_process, sentences, succeed, train_tiny, write_csv
from support.model_folders import TEXTS, tiny_model

from routepool.cli import screen
from routepool.persistence import save_model
from routepool.scoring.predictor import Predictor, load, of_saved
from routepool.scoring.vector_files import VECTOR_FILES
from routepool.settings import ModelConfig

SIZE, CAPSULES, CAPSULE_SIZE = 16, 2, 8  # of the tiny model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("encode"))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", uneven(50))


def uneven(rows: int) -> list[tuple[str, str]]:
    """Long and short texts in turn, so that batches by length would show in the order."""
    return [(" ".join([text] * (1 + number % 7)), label) for number, (text, label) in enumerate(sentences(rows))]


def read_back(path: Path) -> NDArray[np.float32]:
    if path.suffix == ".npy":
        return np.asarray(np.load(path))
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        assert list(tensors) == ["vectors"]
        return tensors["vectors"]
    parquet = pytest.importorskip("pyarrow.parquet", reason='needs pip install "routepool[parquet]"')
    return np.array(parquet.read_table(path)["vector"].to_pylist(), dtype=np.float32)


def built(aggregator: str, **options: int) -> Predictor:
    config = ModelConfig(
        embedding_size=3, hidden_size=2, head_size=3, aggregator=aggregator, aggregator_options=options
    )
    return of_saved(tiny_model(config=config))


@pytest.mark.parametrize("suffix", [f".{name}" for name in VECTOR_FILES.names()])
@pytest.mark.parametrize("capsules", [False, True])
def test_a_file_holds_the_vectors_of_its_texts_in_their_order(
    run: Path, new: Path, tmp_path: Path, suffix: str, capsules: bool
) -> None:
    out = tmp_path / f"vectors{suffix}"
    succeed("encode", run, new, "--out", out, *(["--capsules"] if capsules else []))
    vectors = read_back(out)
    assert vectors.dtype == np.float32
    assert vectors.shape == (50, *((CAPSULES, CAPSULE_SIZE) if capsules else (SIZE,)))
    texts = [text for text, _ in uneven(50)]
    np.testing.assert_allclose(vectors, load(run).encode(texts, capsules=capsules), atol=1e-6)
    alone = np.concatenate([load(run).encode([text], capsules=capsules) for text in texts[:8]])
    np.testing.assert_allclose(vectors[:8], alone, atol=1e-6)


def test_capsules_are_the_parts_of_the_vector() -> None:
    routing = built("routing", capsules=3, capsule_size=5)
    parts = routing.encode(TEXTS, capsules=True)
    assert parts.shape == (len(TEXTS), 3, 5)
    np.testing.assert_array_equal(parts.reshape(len(TEXTS), 15), routing.encode(TEXTS))
    lengths = np.linalg.norm(parts, axis=-1)
    assert ((lengths > 0) & (lengths < 1)).all()  # squash makes every capsule shorter than 1


@pytest.mark.parametrize(
    ("aggregator", "options", "parts"),
    [
        ("reverse-routing", {"capsules": 2, "capsule_size": 3}, (2, 3)),
        ("structured-attention", {"rows": 3}, (3, 4)),
        ("attention", {}, (1, 4)),
        ("multi-hop", {}, (1, 4)),
        ("max", {}, (1, 4)),
        ("mean", {}, (1, 4)),
    ],
)
def test_every_aggregator_has_the_form_of_its_units(
    aggregator: str, options: dict[str, int], parts: tuple[int, int]
) -> None:
    model = built(aggregator, **options)
    assert model.encode(TEXTS, capsules=True).shape == (len(TEXTS), *parts)
    assert model.encode([], capsules=True).shape == (0, *parts)
    assert model.encode([]).shape == (0, parts[0] * parts[1])


def test_a_stream_of_vectors_is_that_of_the_list() -> None:
    model = built("routing", capsules=3, capsule_size=5)
    np.testing.assert_allclose(list(model.stream_vectors(iter(TEXTS))), model.encode(TEXTS), atol=1e-6)
    streamed = list(model.stream_vectors(iter(TEXTS), capsules=True))
    np.testing.assert_allclose(streamed, model.encode(TEXTS, capsules=True), atol=1e-6)


def test_a_document_model_encodes_the_document(tmp_path: Path) -> None:
    config = replace(tiny_model().model_config, depth=2)
    save_model(tmp_path / "run", tiny_model(config=config), card={})
    document = "The soup was warm. Nobody came. The bread was stale."
    out = tmp_path / "vectors.npy"
    succeed("encode", tmp_path / "run", "--out", out, stdin=f"{document}\n".encode())
    np.testing.assert_allclose(np.load(out), load(tmp_path / "run").encode([document]), atol=1e-6)


def test_standard_input_has_a_row_for_each_line_blank_ones_too(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    done = run_process("encode", run, "-", "--out", out, stdin=b"a great film\n\nan awful film\n")
    unknown = b"texts without a word that the model knows: 1 of 3, their results mean nothing (row 2)"
    told = b"standard input: " + unknown
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (0, b"", [told])
    vectors = np.load(out)
    assert vectors.shape == (3, SIZE)
    assert not vectors[1].any()
    np.testing.assert_allclose(vectors, load(run).encode(["a great film", "", "an awful film"]), atol=1e-6)


def test_the_input_options_are_those_of_predict(run: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.data"
    odd.write_bytes("text;comment\nschön;great\n".encode("latin-1"))
    out = tmp_path / "vectors.npy"
    options = ("--input-format", "csv", "--encoding", "latin-1", "--text-column", "comment")
    succeed("encode", run, odd, "--out", out, *options)
    np.testing.assert_allclose(np.load(out), load(run).encode(["great"]), atol=1e-6)


def test_parquet_has_the_row_of_each_vector_where_some_were_skipped(run: Path, new: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason='needs pip install "routepool[parquet]"')
    lines = new.read_text("utf-8").splitlines()
    new.write_text("\n".join([*lines[:3], "one,two,three", *lines[3:]]) + "\n", encoding="utf-8")
    out = tmp_path / "vectors.parquet"
    assert "new.csv, row 4: 3 fields" in refused("encode", run, new, "--out", out)
    assert not out.exists()
    done = call("encode", run, new, "--out", out, "--on-error", "skip")
    assert "row 4: 3 fields" in done.err
    assert parquet.read_table(out)["row"].to_pylist() == [2, 3, *range(5, 53)]


def test_a_failure_leaves_no_file_and_the_old_one_as_it_was(run: Path, new: Path, tmp_path: Path) -> None:
    with new.open("a", encoding="utf-8") as file:
        file.write("one,two,three\n")
    out = tmp_path / "vectors.npy"
    out.write_bytes(b"mine")
    assert "use --force" in refused("encode", run, new, "--out", out)
    assert "new.csv, row 52: 3 fields" in refused("encode", run, new, "--out", out, "--force")
    assert out.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "vectors.npy"]
    succeed("encode", run, new, "--out", out, "--force", "--on-error", "skip")
    assert np.load(out).shape == (50, SIZE)


def test_the_name_of_the_output_says_its_format(run: Path, new: Path, tmp_path: Path) -> None:
    wanted = "must end in one of .npy, .parquet, .safetensors"
    assert wanted in refused("encode", run, new, "--out", tmp_path / "vectors.csv")
    assert wanted in refused("encode", run, new, "--out", tmp_path / "vectors")
    assert "there is no folder" in refused("encode", run, new, "--out", tmp_path / "none" / "vectors.npy")
    assert call("encode", run, new).code == 2


def test_a_terminal_shows_how_far_it_is(run: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(screen, "err", terminal)
    succeed("encode", run, new, "--out", tmp_path / "vectors.npy")
    assert "50 texts" in cast(io.StringIO, terminal.file).getvalue()


def test_a_missing_package_gives_the_pip_line(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from routepool.scoring.vector_files import VECTOR_FILES\n"
        "from routepool.errors import MissingPackageError\n"
        "try: VECTOR_FILES['parquet']\n"
        "except MissingPackageError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "routepool[parquet]"' in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(run: Path, new: Path, tmp_path: Path) -> None:
    """A limit of 1,000 bytes for a file stands in for the disk: 50 vectors take 3,200."""
    code = (
        "import resource, sys; from routepool.cli import app\n"
        "run, new, *outs = sys.argv[1:]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "for out in outs:\n"
        "    try: app(['encode', run, new, '--out', out])\n"
        "    except SystemExit as end: assert end.code == 1\n"
    )
    outs = [str(tmp_path / f"vectors.{name}") for name in VECTOR_FILES.names()]
    done = subprocess.run(
        [sys.executable, "-c", code, str(run), str(new), *outs], capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert len(lines) == len(outs), done.stderr
    for line, out in zip(lines, outs, strict=True):
        assert line.startswith(f"error: {out}: cannot be written (")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in kilobytes")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """One process writes few vectors in every format and then many: its peak must hardly rise."""
    config = ModelConfig(
        embedding_size=3, encoder="none", head_size=3, aggregator_options={"capsules": 4, "capsule_size": 256}
    )
    save_model(tmp_path / "run", tiny_model(config=config, columns=None), card={})
    # Both fill the buffer of 4,096 texts; a vector takes 4 kB, so that 7,500 more would take 30 MB, if they were kept.
    files = [write_csv(tmp_path / f"{rows}.csv", sentences(rows)) for rows in (4_500, 12_000)]
    code = (
        "import resource, sys; from routepool.cli import app\n"
        "run, forms, *files = sys.argv[1:]\n"
        "for file in files:\n"
        "    for form in forms.split():\n"
        "        try: app(['encode', run, file, '--out', file + '.' + form])\n"
        "        except SystemExit as end: assert not end.code\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "run"), " ".join(VECTOR_FILES.names()), *map(str, files)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    few, many = map(int, done.stdout.split())
    assert many - few < 15_000, (few, many)
    assert len(np.load(f"{files[1]}.npy", mmap_mode="r")) == 12_000
