"""Load a server on one core from a client on another: is every answer right, how many a second, what in overload?

    python tests/programmes/load.py --json load.json

The model has the default size and random weights unless a folder is given; numbers are the machine's. In order:

- single texts and lists of 16, none lost, every answer equal to the offline one;
- ten times more requests than it can answer: 200 or 503, then normal again;
- SIGTERM under load, again and again: no accepted request lost;
- the dearest explanation that is taken, short ones meanwhile, and SIGTERM before it is done;
- requests made from the OpenAPI description: no 5xx, no answer that it does not name.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from support.serving import KEY, Client, Outcome, Question, Running, ask_all, questions_of, run_schemathesis, serving

from routepool.model import Classifier
from routepool.persistence import SavedModel, save_model
from routepool.scoring.predictor import load
from routepool.settings import ModelConfig
from routepool.text import Tokenizer

LIST = 16
LEAST_SHARE, LEAST_REQUESTS, MOST_RECOVERY = 0.6, 300.0, 5.0
GIVE_UP = 1800  # seconds, of the whole programme

Row = tuple[str, str, bool]  # what, how much, is it enough?


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, help="a model folder; else one of the default size with random weights")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--overload-seconds", type=float, default=20)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--cases", type=int, default=2000, help="requests made from the OpenAPI description")
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    options = parser.parse_args()
    timer = threading.Timer(GIVE_UP, os._exit, [3])
    timer.daemon = True
    timer.start()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), options)
    for what, value, enough in rows:
        tell(f"{'ok  ' if enough else 'FAIL'}  {what:<58} {value}")
    if options.json:
        table = [{"what": what, "value": value, "enough": enough} for what, value, enough in rows]
        options.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return 0 if all(enough for *_, enough in rows) else 1


def measure(folder: Path, options: argparse.Namespace) -> list[Row]:
    cores = sorted(os.sched_getaffinity(0))
    server_core, client_core = cores[0], cores[-1]
    run = options.run or random_model(folder / "run")
    texts = random_texts(max(options.requests, LIST * 200))
    os.sched_setaffinity(0, {server_core})
    torch.set_num_threads(1)
    expected, offline, busy = predict_offline(run, texts)
    os.sched_setaffinity(0, {client_core})
    rows: list[Row] = [
        ("offline, one core: texts/s", f"{offline:.0f}", True),
        ("offline: texts in a second of processor time", f"{busy:.0f}", True),
    ]
    singles = questions_of(texts, expected)
    lists = questions_of(texts, expected, LIST)
    with serving(run, core=server_core) as server:
        asyncio.run(ask_all(server.port, singles[:200], options.concurrency))  # warm
        rows += of_singles(server, singles[: options.requests], options.concurrency)
        rows += of_lists(server, list(islice(cycle(lists), options.requests // 10)), options.concurrency, offline)
        rate = float(rows[-1][1].split()[0]) / LIST
        rows += of_overload(server, lists, singles, rate, options)
        rows.append(("exit code after all that", str(server.stop()[0]), server.process.returncode == 0))
    rows += of_stops(run, singles, server_core, options)
    rows += of_explanations(run, server_core)
    rows += of_description(run, folder, options.cases)
    return rows


def predict_offline(run: Path, texts: Sequence[str]) -> tuple[list[list[float]], float, float]:
    """Probabilities, texts in a second, and in a second of processor time: the best of three."""
    model = load(run)
    list(model.stream(texts[:500]))
    wall = busy = 0.0
    expected: list[list[float]] = []
    for _ in range(3):
        begun, used = time.monotonic(), time.process_time()
        expected = [one.probabilities.tolist() for one in model.stream(texts)]
        wall = max(wall, len(texts) / (time.monotonic() - begun))
        busy = max(busy, len(texts) / (time.process_time() - used))
    return expected, wall, busy


def of_singles(server: Running, questions: Sequence[Question], concurrency: int) -> list[Row]:
    outcomes, seconds, busy = timed(server, questions, concurrency)
    rate = len(outcomes) / seconds
    return [
        *of_results(f"{len(questions)} single texts, {concurrency} at once", outcomes),
        ("single texts: requests/s", f"{rate:.0f} (wanted {LEAST_REQUESTS:.0f})", rate >= LEAST_REQUESTS),
        ("single texts: requests in a second of processor time", f"{len(outcomes) / busy:.0f}", True),
        ("single texts: p50 and p99", percentiles(outcomes), True),
    ]


def of_lists(server: Running, questions: Sequence[Question], concurrency: int, offline: float) -> list[Row]:
    outcomes, seconds, busy = timed(server, questions, concurrency)
    rate = len(outcomes) * LIST / seconds
    share = rate / offline
    return [
        *of_results(f"{len(questions)} lists of {LIST}, {concurrency} at once", outcomes),
        (f"lists of {LIST}: texts in a second of processor time", f"{len(outcomes) * LIST / busy:.0f}", True),
        (f"lists of {LIST}: p50 and p99", percentiles(outcomes), True),
        (f"lists of {LIST}: texts/s", f"{rate:.0f} ({share:.0%} of offline, wanted {LEAST_SHARE:.0%})",
         share >= LEAST_SHARE),
    ]  # fmt: skip


def of_overload(
    server: Running, lists: Sequence[Question], singles: Sequence[Question], rate: float, options: argparse.Namespace
) -> list[Row]:
    """Ten times the rate of lists that was reached, whether or not earlier ones are answered."""
    offered = 10 * rate
    number = int(offered * options.overload_seconds)
    outcomes, seconds = asyncio.run(offer(server.port, list(islice(cycle(lists), number)), offered))
    results = Counter(one.result for one in outcomes)
    recovery = recover(server, singles[:64])
    times = number / rate / seconds
    return [
        ("overload, as many times what it can do", f"{times:.1f} for {seconds:.0f} s", times > 9),
        ("answers in overload", told(results), set(results) == {"200", "503"}),
        ("seconds until it is as before", f"{recovery:.1f} (wanted {MOST_RECOVERY:.0f})", recovery <= MOST_RECOVERY),
    ]  # fmt: skip


async def offer(port: int, questions: Sequence[Question], rate: float) -> tuple[list[Outcome], float]:
    """Begin requests at a steady rate, each on a connection that is free or on a new one; and how long that took."""
    outcomes: list[Outcome] = []
    free: list[Client] = []

    async def one(question: Question) -> None:
        client = free.pop() if free else Client(port)
        begun = time.monotonic()
        try:
            answer = await client.post("/predict", question.body)
            right = answer.status != 200 or question.is_answered_by(answer)
            outcomes.append(Outcome(str(answer.status) if right else "wrong", time.monotonic() - begun))
            free.append(client)
        except (OSError, EOFError) as error:
            client.close()
            outcomes.append(Outcome(f"lost ({type(error).__name__})", time.monotonic() - begun))

    begun = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number, question in enumerate(questions):
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
            tasks.create_task(one(question))
        seconds = time.monotonic() - begun
    for client in free:
        client.close()
    return outcomes, seconds


def recover(server: Running, questions: Sequence[Question]) -> float:
    """Seconds until a round of single texts is answered, each within half a second."""
    begun = time.monotonic()
    while time.monotonic() - begun < 30:
        outcomes = asyncio.run(ask_all(server.port, questions, 16))
        if all(one.result == "200" and one.seconds < 0.5 for one in outcomes):
            break
    return time.monotonic() - begun


def of_stops(run: Path, questions: Sequence[Question], core: int, options: argparse.Namespace) -> list[Row]:
    results: Counter[str] = Counter()
    codes: Counter[int | None] = Counter()
    chance = random.Random(0)
    for _ in range(options.stops):
        with serving(run, core=core) as server:
            timer = threading.Timer(chance.uniform(0.1, 1.0), server.process.send_signal, [signal.SIGTERM])
            timer.start()
            results.update(
                one.result for one in asyncio.run(ask_all(server.port, cycle(questions), options.concurrency))
            )
            codes[server.process.wait(60)] += 1
    refused = options.stops * options.concurrency
    right = set(results) <= {"200", "503", "refused"} and results["refused"] == refused and set(codes) <= {0}
    return [(f"SIGTERM under load, {options.stops} times", f"{told(results)}; exit codes {dict(codes)}", right)]


def of_explanations(run: Path, core: int) -> list[Row]:
    """One thousand words read a thousand times; the limits of a text are the usual ones."""
    short_words = [word for word in WORDS if len(word) <= 4]
    dear = {"text": " ".join(random.Random(0).choices(short_words, k=990)), "method": "leave-one-out"}
    with serving(run, core=core) as server, ThreadPoolExecutor(1) as pool:
        long = pool.submit(server.post, "/explain", dear)
        time.sleep(1)
        seconds, statuses = [], Counter[int]()
        for text in random_texts(10):
            begun = time.monotonic()
            statuses[server.post("/explain", {"text": text}).status] += 1
            seconds.append(time.monotonic() - begun)
        meanwhile = not long.done()
        begun = time.monotonic()
        code, _, err = server.stop()
        ended = time.monotonic() - begun
    right = meanwhile and set(statuses) == {200} and long.result().status in (200, 504)
    return [
        ("10 short explanations beside the dearest one", f"{dict(statuses)}, at most {max(seconds):.1f} s", right),
        ("SIGTERM before the dearest one is done", f"exit code {code} after {ended:.1f} s", (code, err) == (0, "")),
    ]


def of_description(run: Path, folder: Path, cases: int) -> list[Row]:
    if not cases:
        return []
    (folder / "key").write_text(KEY, encoding="utf-8")
    made = 0
    failures: list[str] = []
    examples = max(cases // 6, 1)  # of each address; some have few forms
    with serving(run, "--api-key-file", folder / "key") as server:
        while made < cases and not failures:
            report = run_schemathesis(server, folder, examples, "--seed", str(made))
            made += report["test_cases"]["generated"]
            failures = [failure["title"] for failure in report["failures"] + report["errors"]]
    return [("requests made from the OpenAPI description", f"{made}, failures: {failures or 'none'}", not failures)]


def of_results(what: str, outcomes: Sequence[Outcome]) -> list[Row]:
    results = Counter(one.result for one in outcomes)
    return [(what, told(results), set(results) == {"200"})]


def timed(server: Running, questions: Sequence[Question], concurrency: int) -> tuple[list[Outcome], float, float]:
    """What became of the questions, in how many seconds, of which the server was busy so many."""
    begun, busy = time.monotonic(), processor_seconds(server)
    outcomes = asyncio.run(ask_all(server.port, questions, concurrency))
    return outcomes, time.monotonic() - begun, processor_seconds(server) - busy


def processor_seconds(server: Running) -> float:
    """Of the server so far: what its core gave it, whoever else wants that core."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentiles(outcomes: Sequence[Outcome]) -> str:
    seconds = sorted(one.seconds for one in outcomes)
    at: Callable[[float], float] = lambda share: 1000 * seconds[min(int(share * len(seconds)), len(seconds) - 1)]  # noqa: E731
    return f"{at(0.5):.0f} ms, {at(0.99):.0f} ms"


def told(results: Counter[str]) -> str:
    return ", ".join(f"{number} x {result}" for result, number in sorted(results.items()))


def random_texts(number: int) -> list[str]:
    """Sentences of 5 to 40 made-up words, as long as those of reviews."""
    chance = random.Random(0)
    return [" ".join(chance.choices(WORDS, k=chance.randint(5, 40))) for _ in range(number)]


def random_model(folder: Path) -> Path:
    tokenizer = Tokenizer.build([" ".join(WORDS)])
    config = ModelConfig()
    torch.manual_seed(0)
    classifier = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2).eval()
    saved = SavedModel(classifier=classifier, tokenizer=tokenizer, model_config=config, labels=("bad", "good"))
    save_model(folder, saved, card={})
    return folder


def _words() -> list[str]:
    chance = random.Random(1)
    syllables = ["ba", "ko", "li", "mu", "ne", "pa", "ro", "su", "ti", "va"]
    return sorted({"".join(chance.choices(syllables, k=chance.randint(1, 5))) for _ in range(5000)})


WORDS = _words()


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
