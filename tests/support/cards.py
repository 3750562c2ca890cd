"""What a model card is asked to tell, and what nobody should ask of one."""

from hypothesis import strategies as st

CARD = {
    "title": "Soups",
    "data": {"train": {"file": "soups.csv", "rows": 2, "sha256": "ab" * 32}, "dev": {"rows": 1}},
    "versions": {"routepool": "0.1.0", "torch": "2.13.0"},
    "scores": [
        {"set": "dev", "score": "accuracy", "value": 0.84216, "low": 0.8, "high": 0.875},
        {"set": "dev", "score": "macro F1", "value": 0.5},
    ],
    "calibration": {"expected calibration error": 0.031, "Brier score": 0.2},
    "confusion": [[11, 12], [13, 14]],
    "limits": ["Trained on soups."],
}
HOSTILE = st.text(max_size=30) | st.sampled_from(
    [
        *[
            "a|b",
            "---",
            "# x",
            "- x",
            "1. x",
            "<script>",
            "[a](b)",
            "![a](b)",
            "`a`",
            "```\nx",
            "a\n\nb",
            "&amp;",
            "\\|",
        ],
        *[
            "*a* _b_ **c**",
            "~~a~~",
            "$a$",
            "<!-- x",
            "http://a.b",
            "> q",
            "+ x",
            "=",
            "\ud800",
            "\x00\x1b[31m",
            "\u202e",
        ],
    ]
)
