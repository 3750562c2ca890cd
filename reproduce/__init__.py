"""The paper's experiments, rebuilt: `python -m reproduce` runs what is missing and writes docs/reproduction.md.

plan -> running (one JSON a run) -> reading -> comparing -> tables, figures, claims -> docs/reproduction.md
"""
