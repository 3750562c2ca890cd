"""The tables of docs/explain.md, from the results that explain_audit.py keeps."""

import json
from pathlib import Path
from typing import Any

import measure

from routepool.explaining import DEFAULT_METHOD, METHODS

REMOVALS = ("drop", "unknown", "masked")


def interval(one: dict[str, float]) -> str:
    return f"{one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f})"


def audit_table(found: list[dict[str, Any]], key: str, data: str) -> list[str]:
    """A row for each model and order: both measures for each removal, flips when a fifth of the words is dropped."""
    header = ["model", "order"]
    for removal in REMOVALS:
        header += [f"{removal}: comprehensiveness", "sufficiency"]
    rows = []
    for one in found:
        if one["data"] != data or key not in one:
            continue
        by_place = {(row["order"], row["removal"]): row for row in one[key]["rows"]}
        for order in dict.fromkeys(row["order"] for row in one[key]["rows"]):
            cells = [one["title"], f"**{order}**" if order == one["default_method"] else order]
            for removal in REMOVALS:
                row = by_place[order, removal]
                cells += [interval(row["normal_comprehensiveness"]), interval(row["normal_sufficiency"])]
            rows.append([*cells, f"{100 * by_place[order, 'drop']['flips'][1]['value']:.0f} %"])
    return measure.table([*header, "flips, 20 % dropped"], rows)


def choice_table(found: list[dict[str, Any]]) -> list[str]:
    """By how much the default method wins on SST-2: comprehensiveness, words dropped and words unknown."""
    rows = []
    for one in found:
        for part in ("dev", "test"):
            if one["data"] != "sst2" or f"audit_{part}" not in one:
                continue
            for removal in ("drop", "unknown"):
                values = {
                    row["order"]: row["normal_comprehensiveness"]["value"]
                    for row in one[f"audit_{part}"]["rows"]
                    if row["removal"] == removal
                }
                others = {name: values[name] for name in METHODS.names() if name in values and name != DEFAULT_METHOD}
                others.pop("leave-one-out", None)
                best = max(others, key=lambda name: others[name]) if others else ""
                told = f"{others[best]:.2f} ({best})" if best else "not asked"
                bounds = [f"{values[name]:.2f}" for name in ("leave-one-out", "search", "rare words first", "random")]
                rows.append([one["title"], part, removal, f"**{values[DEFAULT_METHOD]:.2f}**", told, *bounds])
    header = [
        "model",
        "part",
        "removal",
        DEFAULT_METHOD,
        "best other",
        "leave one out",
        "search",
        "rare words",
        "random",
    ]
    return measure.table(header, rows)


def agreement_table(results: Path) -> list[str]:
    file = results / "agreement.json"
    if not file.exists():
        return ["Not yet measured."]
    found = json.loads(file.read_text())
    methods = list(next(iter(found.values())))
    rows = [[method, *(interval(found[title][method]) for title in found)] for method in methods]
    return measure.table(["method", *found], rows)


def capsule_tables(found: list[dict[str, Any]]) -> list[str]:
    reports = [(f"{one['data']}, {one['title']}", one["capsules"]) for one in found if "capsules" in one]
    if not reports:
        return ["No routing model was run yet."]
    lines: list[str] = []
    for key in ("by_iterations", "by_coupling"):
        rows = [[title, *(_changed(one) for one in report[key])] for title, report in reports]
        names = [one["name"] for one in reports[0][1][key]]
        first = "iterations" if key == "by_iterations" else "coupling"
        lines += [*measure.table([first, *names], rows), ""]
    keys = ("by_word", "by_position", "by_both", "context")
    rows = [[title, *(f"{100 * report['variance'][key]:.0f} %" for key in keys)] for title, report in reports]
    lines += [*measure.table(["variance of the coupling", "word", "position", "both", "context"], rows), ""]
    rows = [
        [f"{title}: {part['name']}", f"{part['cka']:.2f}", f"{part['cosine']:.2f}", f"{100 * part['whole']:.1f}",
         _range(part["alone"]), _range(part["without"])]
        for title, report in reports for part in report["redundancy"]
    ]  # fmt: skip
    return lines + measure.table(["parts", "CKA", "cosine", "probe of all", "of one alone", "of all but one"], rows)


def _changed(one: dict[str, Any]) -> str:
    return f"{100 * one['accuracy']:.1f} ({100 * one['changed']:.1f} changed)"


def _range(shares: list[float]) -> str:
    return f"{100 * min(shares):.1f} to {100 * max(shares):.1f}"
