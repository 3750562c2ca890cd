"""docs/reproduction.md: every table, figure and verdict from the results, no number by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reproduce import claims, document_tables, paper, recipe_tables, tables
from reproduce.comparing import DRAWS, LEVEL
from reproduce.data import TANG
from reproduce.families import (
    DOCUMENT_PAIRS,
    PAPER_DOCUMENT_PAIRS,
    SENTENCE_PAIRS,
    TUNED_PAIRS,
    Compared,
    family,
    rounds_family,
)
from reproduce.figures import draw_all, drawable
from reproduce.formatting import DATA, Table
from reproduce.ledger import Ledger
from reproduce.lengths import POOLINGS, by_length, length_table
from reproduce.plan import CAPSULES, DOCUMENTS, EXPERIMENTS, FIGURE_2, ITERATIONS, SENTENCES, TUNED_ON, planned
from reproduce.reading import Results
from reproduce.runs import FOLDER, LEDGER, RESULTS

PAGE = FOLDER.parent / "docs" / "reproduction.md"
EXPLAINED = FOLDER.parent / "benchmarks" / "results" / "explain"
_CONTROLLED = ("routing-1", "fixed-query")


@dataclass(frozen=True)
class Report:
    """The page of a folder of results.

    Args:
        results: what there is.
        ledger: of the looks at test.
        page: where it goes; pictures go into a folder of its name beside it.
        explained: reports on capsules.
    """

    results: Results
    ledger: Path = LEDGER
    page: Path = PAGE
    explained: Path = EXPLAINED

    def write(self, *, pictures: bool) -> None:
        """The page, and its pictures where they are asked for: they are drawn anew at a release."""
        self.page.parent.mkdir(parents=True, exist_ok=True)
        if pictures:
            draw_all(self.results, self.page.with_suffix(""))
        self.page.write_text(self.text(), encoding="utf-8")

    def is_current(self) -> bool:
        """Whether the page says what the results do; pictures are not compared."""
        return self.page.exists() and self.page.read_text(encoding="utf-8") == self.text()

    def text(self) -> str:
        """The page."""
        environment = Environment(
            loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            keep_trailing_newline=True,
        )  # fmt: skip
        return environment.get_template("report.md.jinja").render(self._context())

    def _context(self) -> dict[str, Any]:
        results = self.results
        compared = {data: family(results, data, SENTENCE_PAIRS) for data in SENTENCES}
        of_documents = family(results, DOCUMENTS, DOCUMENT_PAIRS)
        rounds = rounds_family(results)
        lengths = {data: by_length(results, data) for data in POOLINGS}
        flat = [results.values("sst2", FIGURE_2[one, CAPSULES[0]].name, "test") for one in ITERATIONS]
        means = [values.mean() for values in flat if len(values)]
        return {
            "draws": f"{DRAWS:,}",
            "level": f"{LEVEL:.0%}".replace("%", " %"),
            "titles": DATA,
            "pictures": {name: f"{self.page.stem}/{name}" for name in drawable(results)},
            "progress": progress(results),
            "looks": self.looks(),
            "data": tables.data_table(results),
            "versions": tables.made_with(results),
            "claims": self._claims(compared, of_documents, rounds, [one for few in lengths.values() for one in few]),
            "table_3": {data: tables.table_3(results, data) for data in SENTENCES},
            "comparisons": {data: tables.comparisons(compared[data]) for data in SENTENCES},
            "tuning": tables.equal_tuning(results),
            "tuned": tables.comparisons(family(results, TUNED_ON, TUNED_PAIRS)),
            "documents": document_tables.documents(results),
            "document_comparisons": tables.comparisons(of_documents),
            "speeds": document_tables.speeds(results),
            "ratings": document_tables.ratings(results),
            "full_set": document_tables.full_set(results),
            "paper_sets": document_tables.paper_sets(results),
            "paper_set_comparisons": {
                data: tables.comparisons(family(results, data, PAPER_DOCUMENT_PAIRS))
                for data in TANG
                if not results.lacking((data, name) for pair in PAPER_DOCUMENT_PAIRS for name in pair)
            },
            "lengths": {data: length_table(results, data, lengths[data]) for data in POOLINGS},
            "figure_2": tables.figure_2(results),
            "rounds": tables.comparisons(rounds),
            "noise": f"{100 * (max(means) - min(means)):.1f}" if len(means) == len(ITERATIONS) else "",
            "table_4": tables.table_4(results),
            "open_questions": tables.open_questions(results),
            "reached": recipe_tables.reached(results),
            "by_epoch": {
                name: recipe_tables.by_epoch(results, "sst1-phrases", name)
                for name in ("distilled", "distilled-by-three")
            },
            "taught_by": recipe_tables.taught_by(results),
            "trials": recipe_tables.trials(results),
            "added": recipe_tables.added(results),
            "slips": paper.slips(len(Results(RESULTS, ()).labels("sst1")["labels"])),
        }

    def _claims(
        self,
        compared: dict[str, list[Compared]],
        of_documents: list[Compared],
        rounds: list[Compared],
        lengths: list[Compared],
    ) -> list[claims.Claim]:
        results = self.results

        def pairs(first: str, others: Sequence[str], depth: str = "") -> list[Compared]:
            """These comparisons on every set that has them; documents as they are read at that depth."""
            deep = {(f"{first}-{depth}", f"{other}-{depth}") for other in others if depth}
            plain = {(first, other) for other in others}
            own = [one for data in SENTENCES for one in compared[data] if (one.one, one.other) in plain]
            return own + [one for one in of_documents if (one.one, one.other) in deep]

        return [
            claims.beats(
                results,
                "Routing beats max pooling, average pooling and self-attention.",
                pairs("routing", ("max", "mean", "attention"), "hierarchical"),
            ),
            claims.beats(
                results,
                "Routing helps: it beats what is as large and lacks its rounds.",
                pairs("routing", _CONTROLLED),
                rule="Against routing with one iteration and against five learned queries, not against pooling. "
                + claims.BEATS,
            ),
            claims.beats(results, "Max pooling beats average pooling.", pairs("max", ("mean",), "flat")),
            claims.grows_with_length(results, lengths),
            claims.beats(
                results, "Self-attention beats average pooling.", pairs("attention", ("mean",), "hierarchical")
            ),
            claims.beats(
                results,
                "Standard routing beats reverse routing.",
                pairs("routing", ("reverse-routing",), "hierarchical"),
            ),
            claims.three_rounds(rounds),
            claims.faster_hierarchy(results, of_documents),
            claims.redundancy(self.explained),
            claims.like_multi_hop(results, pairs("reverse-routing", ("multi-hop",))),
            claims.sliding_bucket(results),
        ]

    def looks(self) -> str:
        """How often test was looked at."""
        rows = Ledger(self.ledger).rows()
        variants = {row["run"].rpartition("/")[0] for row in rows}
        return f"{len(rows)} looks at a test set by {len(variants)} frozen settings"


def progress(results: Results) -> Table:
    """Runs done of each experiment."""
    rows = []
    for name in EXPERIMENTS:
        keys = {(run.data, run.variant.name) for run in planned(name)}
        done = sum(len(results.found(*key)) for key in keys)
        rows.append([name, str(done), str(sum(results.planned(*key) for key in keys))])
    return Table(["experiment", "runs done", "planned"], rows)


def full_report() -> Report:
    """That of the committed results."""
    return Report(Results(RESULTS, planned()))
