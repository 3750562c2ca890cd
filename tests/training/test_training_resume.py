"""What a stopped training relies on: the same weights, to the last bit, as if nothing had happened."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import planted
from support.crashing import fast, killed_at, posix  # noqa: F401 - fast is used by being here
from support.planted import Failing, resumed

from routepool.batching import Prefetched
from routepool.persistence import latest_checkpoint
from routepool.training import Fitted, Hook, InterruptedTrainingError, StepReport, loop

STEPS = 8  # of an epoch: 60 texts in batches of at most 8


@pytest.fixture(scope="module")
def uninterrupted() -> Fitted:
    return planted.train()


def test_the_same_seed_gives_the_same_weights_whatever_was_drawn_before(uninterrupted: Fitted) -> None:
    torch.rand(5)
    again = planted.train()
    assert planted.identical(again, uninterrupted)
    assert again.progress == uninterrupted.progress
    assert not planted.identical(planted.train(planted.tiny(seed=1)), uninterrupted)


@pytest.mark.parametrize("depth", [0, 1, 7])
def test_how_far_batches_are_prepared_ahead_changes_nothing(
    depth: int, uninterrupted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "Prefetched", lambda batches: Prefetched(batches, depth))
    assert planted.identical(planted.train(), uninterrupted)


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize(
    "failing",
    [{"step": 0}, {"step": STEPS - 1}, {"epoch": 0}, {"step": 13}, {"epoch": 2}],
    ids=str,
)
def test_a_failing_hook_costs_nothing_that_a_checkpoint_holds(
    failing: dict[str, int], every: int, uninterrupted: Fitted, tmp_path: Path
) -> None:
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(checkpoint_steps=every), run=tmp_path, hooks=[Failing(**failing)])
    again = resumed(tmp_path, checkpoint_steps=every)
    assert planted.identical(again, uninterrupted)
    assert again.progress == uninterrupted.progress


def test_checkpoints_come_after_each_epoch_and_where_steps_are_asked_for(tmp_path: Path) -> None:
    planted.train(planted.tiny(epochs=1), run=tmp_path / "epochs")
    planted.train(planted.tiny(epochs=1, checkpoint_steps=3), run=tmp_path / "steps")
    assert planted.folders(tmp_path / "epochs") == [f"000001-step-{STEPS}"]
    assert planted.folders(tmp_path / "steps") == ["000002-step-6", f"000003-step-{STEPS}"]  # two are kept


@pytest.mark.parametrize(
    "settings", [{"sparse": False}, {"replacement": True}, {"l2": 0.0}, {"precision": "bf16"}], ids=str
)
def test_every_kind_of_training_is_taken_up_exactly(settings: dict[str, float | str], tmp_path: Path) -> None:
    whole = planted.train(planted.tiny(**settings))
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(**settings, checkpoint_steps=2), run=tmp_path, hooks=[Failing(step=13)])
    assert planted.identical(resumed(tmp_path, **settings), whole)


def test_a_resumed_run_knows_the_best_model_it_had(tmp_path: Path) -> None:
    """With a learning rate that spoils the model after its first epochs, the best is not the last."""
    spoiling = {"learning_rate": 0.3, "epochs": 6, "patience": 4}
    whole = planted.train(planted.tiny(**spoiling))
    assert whole.progress.best_epoch < whole.progress.epoch - 1
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(**spoiling), run=tmp_path, hooks=[Failing(epoch=whole.progress.epoch - 1)])
    again = resumed(tmp_path, **spoiling)
    assert planted.identical(again, whole)


@posix
def test_a_run_killed_at_any_moment_of_a_checkpoint_ends_with_the_same_weights(
    uninterrupted: Fitted, tmp_path: Path
) -> None:
    moment, killed = 0, True
    while killed:
        run = tmp_path / str(moment)
        killed = killed_at(moment, lambda run=run: planted.train(run=run))  # type: ignore[misc]
        assert planted.identical(resumed(run), uninterrupted), moment
        moment += 5
    assert moment > 20


_SLOWLY = """
import sys, time
from pathlib import Path
from support import planted
from routepool.persistence import latest_checkpoint
from routepool.training import Hook, InterruptedTrainingError

class Slow(Hook):
    def on_step(self, report):
        print(report.step, flush=True)
        time.sleep(0.05)

run = Path(sys.argv[1])
try:
    planted.train(hooks=[Slow()], run=run)
except InterruptedTrainingError as error:
    sys.exit(str(error))
"""


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_stops_after_the_step_and_the_run_goes_on_from_there(
    name: str, uninterrupted: Fitted, tmp_path: Path
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _SLOWLY, str(tmp_path)],
        cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    while int(child.stdout.readline()) < 10:
        pass
    child.send_signal(getattr(signal, name))
    _, complaint = child.communicate(timeout=60)
    assert child.returncode == 1
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None
    assert checkpoint.state["step"] in (11, 12, 13)
    assert f"stopped after {checkpoint.state['step']} steps" in complaint
    assert f"--resume {tmp_path}" in complaint
    assert planted.identical(resumed(tmp_path), uninterrupted)


@posix
def test_a_second_signal_ends_at_once_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)

    class Impatient(Hook):
        def on_step(self, report: StepReport) -> None:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        planted.train(hooks=[Impatient()])
    assert signal.getsignal(signal.SIGINT) is before


@posix
def test_without_a_run_a_signal_still_stops() -> None:
    class Stopping(Hook):
        def on_step(self, report: StepReport) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(InterruptedTrainingError, match=r"after 1 step$"):
        planted.train(hooks=[Stopping()])
