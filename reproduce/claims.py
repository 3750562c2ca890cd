"""What the paper claims, and what our runs say to it: a verdict each, by a rule that is stated beside it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import paper
from reproduce.comparing import Estimate, welch
from reproduce.families import Compared
from reproduce.formatting import DATA, named, points
from reproduce.lengths import GROWTH, POOLINGS
from reproduce.plan import DOCUMENTS
from reproduce.reading import Results
from reproduce.speeds import NOT_TIMED, ratio, speed

SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"
MARGIN = 0.01  # accuracies that differ by less are alike for these rules
BEATS = (
    "Supported if every comparison below is decided in favour of the first, not supported if one is decided against "
    "it, undecided otherwise."
)


@dataclass(frozen=True)
class Claim:
    """A claim, how it is judged, and the judgement.

    Args:
        statement: in our words.
        rule: when it counts as supported and when not.
        verdict: supported, not supported, undecided, or not yet measured.
        evidence: a line for each comparison.
    """

    statement: str
    rule: str
    verdict: str
    evidence: list[str]


def beats(results: Results, statement: str, compared: Sequence[Compared], *, rule: str = BEATS) -> Claim:
    """The first of each pair is better than the second."""
    lacking = results.lacking((one.data, name) for one in compared for name in (one.one, one.other))
    return Claim(statement, rule, lacking or _all_better(compared), [_line(one) for one in compared])


def _all_better(compared: Sequence[Compared]) -> str:
    verdicts = {one.verdict for one in compared}
    return SUPPORTED if verdicts == {"better"} else NOT_SUPPORTED if "worse" in verdicts else UNDECIDED


def _line(one: Compared) -> str:
    names = f"{named(one.one)} less {named(one.other)}" if one.other else one.one
    shown = f"{DATA[one.data]}, {names}: "
    if one.found is None:
        return shown + one.verdict
    gains = [paper.REPORTED.get(name, {}).get(one.data) for name in (one.one, one.other)]
    theirs = f"; the paper has {gains[0] - gains[1]:+.1f}" if gains[0] is not None and gains[1] is not None else ""
    return f"{shown}{points(one.found)}, {one.verdict}{theirs}"


def grows_with_length(results: Results, compared: Sequence[Compared]) -> Claim:
    """Max pooling gains more over average pooling on long texts."""
    growth = [one for one in compared if one.one == GROWTH]
    lacking = results.lacking((data, name) for data, pair in POOLINGS.items() for name in pair)
    return Claim(
        "Max pooling beats average pooling by more on long texts.",
        "The difference in the longest quarter of the test texts less that in the shortest. " + BEATS,
        lacking or _all_better(growth),
        [_line(one) for one in growth],
    )


def three_rounds(compared: Sequence[Compared]) -> Claim:
    """Figure 2."""
    _, more, three = compared
    verdict = more.lacking or (
        SUPPORTED if more.verdict == three.verdict == "better"
        else NOT_SUPPORTED if "worse" in (more.verdict, three.verdict)
        else UNDECIDED
    )  # fmt: skip
    return Claim(
        "More than one round helps, and three are best.",
        "Over 2 to 4 capsules. Supported if two to five rounds are decided better than one and three better than the "
        "other four, not supported if one of the two is decided worse, undecided otherwise.",
        verdict,
        [_line(one) for one in compared],
    )


def faster_hierarchy(results: Results, accuracies: Sequence[Compared]) -> Claim:
    """Reading sentences one by one, then their vectors, takes less time than reading the text as one sequence."""
    names = ("routing", "reverse-routing")
    pairs = [(f"{name}-hierarchical", f"{name}-flat") for name in names]
    found = [speed(results, DOCUMENTS, *pair) for pair in pairs]
    lines = [
        f"{named(name)}, seconds an epoch, hierarchical / flat: {ratio(one)}"
        for name, one in zip(names, found, strict=True)
    ]
    return Claim(
        "The hierarchy makes routing faster on documents.",
        "Supported if the 95 % interval of the ratio of the processor seconds of an epoch is below 1 for both "
        "routings, not supported if it is above 1 for one, undecided otherwise. That is on one processor core; on a "
        "graphics card, which computes much side by side, it may be otherwise. The accuracies are shown beside it.",
        results.lacking((DOCUMENTS, one) for pair in pairs for one in pair)
        or (NOT_TIMED if None in found else "")
        or _by_ends(found, supports=lambda one: one.high < 0, opposes=lambda one: one.low > 0),
        lines + [_line(one) for one in accuracies if (one.one, one.other) in pairs],
    )


def _by_ends(
    found: Sequence[Estimate | None], *, supports: Callable[[Estimate], bool], opposes: Callable[[Estimate], bool]
) -> str:
    there = [one for one in found if one is not None]
    return SUPPORTED if all(map(supports, there)) else NOT_SUPPORTED if any(map(opposes, there)) else UNDECIDED


def like_multi_hop(results: Results, compared: Sequence[Compared]) -> Claim:
    """Reverse routing is attention that is asked again with what it found."""
    verdict = results.lacking((one.data, name) for one in compared for name in (one.one, one.other)) or _by_ends(
        [one.found for one in compared],
        supports=lambda one: one.low > -MARGIN and one.high < MARGIN,
        opposes=lambda one: one.low > MARGIN or one.high < -MARGIN,
    )
    return Claim(
        "Reverse routing is like multi-hop attention.",
        f"Supported if the 95 % interval of the difference lies within {100 * MARGIN:g} point either way on both sets, "
        "not supported if it lies outside on one, undecided otherwise.",
        verdict,
        [_line(one) for one in compared],
    )


def sliding_bucket(results: Results) -> Claim:
    """Batches of texts of like length: faster, and as accurate."""
    pair = ("bucket-once", "no-bucket")
    quicker = speed(results, "sst2", *pair)
    lacking = results.lacking(("sst2", name) for name in pair)
    dev = None if lacking else welch(*(results.values("sst2", name, "dev") for name in pair))
    lines = [] if dev is None else [f"SST-2 dev, bucket less none, each example once an epoch: {points(dev)}"]
    for name in (*pair[:1], "window-500", "routing"):
        shown = ratio(speed(results, "sst2", name, "no-bucket"))
        lines.append(f"SST-2, seconds an epoch, {name} / no-bucket: {shown}")
    verdict = lacking or NOT_TIMED
    if quicker is not None and dev is not None:
        alike = dev.low > -MARGIN and dev.high < MARGIN
        against = quicker.low > 0 or dev.high < -MARGIN
        verdict = SUPPORTED if quicker.high < 0 and alike else NOT_SUPPORTED if against else UNDECIDED
    return Claim(
        "The sliding bucket is faster at equal accuracy.",
        "A window of 500 against none, each example once an epoch: supported if the interval of the ratio of seconds "
        f"is below 1 and that of the dev difference within {100 * MARGIN:g} point either way, not supported if it is "
        "slower, or worse by more than that; undecided otherwise. `routing` is the paper's: a window of 5000, drawn "
        "with replacement.",
        verdict,
        lines,
    )


def redundancy(folder: Path) -> Claim:
    """Whether capsules hold different things, from the reports of benchmarks/explain_audit.py."""
    files = sorted(folder.glob("*.json"))
    found = [one for one in (json.loads(file.read_text(encoding="utf-8")) for file in files) if "capsules" in one]
    judged = [_redundant({part["name"]: part for part in one["capsules"]["redundancy"]}) for one in found]
    verdicts = {verdict for verdict, _ in judged}
    verdict = (
        verdicts.pop() if len(verdicts) == 1 else UNDECIDED if found else "not yet measured (no model was audited)"
    )
    return Claim(
        "Capsules are not redundant.",
        "In every audited model. Supported if capsules are less alike (CKA) than those of one iteration and than "
        f"random slices of a projected mean, and a probe of the best one alone is more than {100 * MARGIN:g} point "
        "below a probe of all; not supported if they are as alike as both, or one alone does as well; undecided "
        "otherwise.",
        verdict,
        [f"{one['data']}, {one['title']}: {line}" for one, (_, line) in zip(found, judged, strict=True)],
    )


def _redundant(parts: dict[str, Any]) -> tuple[str, str]:
    own, *others = parts.values()
    lost = own["whole"] - max(own["alone"])
    less_alike = [own["cka"] < other["cka"] for other in others]
    verdict = UNDECIDED
    if lost <= MARGIN or not any(less_alike):
        verdict = NOT_SUPPORTED
    elif all(less_alike):
        verdict = SUPPORTED
    alike = ", ".join(f"{part['cka']:.2f} ({name})" for name, part in parts.items())
    probes = f"probe of all {100 * own['whole']:.1f}, of the best one {100 * max(own['alone']):.1f}"
    return verdict, f"CKA {alike}; {probes}; {verdict}"
