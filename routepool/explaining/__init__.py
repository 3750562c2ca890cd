"""Why a model says what it says: which word went where, how much each mattered, and whether that can be believed.

- `explain` gives an `Explanation` of each text, which becomes a page, a picture, JSON or lines of a terminal.
- `audit` takes the words away that a method names, and looks what the model says then.
- `report_capsules` asks what the capsules hold, whether routing is dynamic, and whether capsules differ.
"""

from routepool.explaining.auditing import Audit, audit
from routepool.explaining.building import explain
from routepool.explaining.capsules import CapsuleReport, report_capsules
from routepool.explaining.costs import costs_of
from routepool.explaining.explanation import Explanation, Unit, UnitLevel
from routepool.explaining.methods import DEFAULT_METHOD, METHODS
from routepool.explaining.page import render_page
from routepool.explaining.subject import Subject

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "Audit",
    "CapsuleReport",
    "Explanation",
    "Subject",
    "Unit",
    "UnitLevel",
    "audit",
    "costs_of",
    "explain",
    "render_page",
    "report_capsules",
]
