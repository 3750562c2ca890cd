"""What the paper reports: Gong, Qiu, Wang, Huang, "Information Aggregation via Dynamic Routing for Sequence Encoding".

COLING 2018, https://aclanthology.org/C18-1232.
"""

from reproduce.plan import WHOLESOME

TITLES = {"yelp2013": "Yelp-2013", "yelp2014": "Yelp-2014", "imdb": "IMDB", "sst1": "SST-1", "sst2": "SST-2"}
_COLUMNS = ("yelp2013", "yelp2014", "imdb", "sst1", "sst2")


def _rows(lines: dict[str, tuple[float | None, ...]]) -> dict[str, dict[str, float]]:
    return {
        name: {data: value for data, value in zip(_COLUMNS, values, strict=True) if value is not None}
        for name, values in lines.items()
    }


# Table 3, first block: test accuracies of others, as the paper cites them.
CITED = _rows(
    {
        "RNTN + Recurrent (Socher et al. 2013)": (57.4, 58.2, 40.0, None, None),
        "CNN-non-static (Kim 2014)": (None, None, None, 48.0, 87.2),
        "Paragraph-Vec (Le and Mikolov 2014)": (None, None, None, 48.7, 87.8),
        "MT-LSTM (F2S) (Liu et al. 2015)": (None, None, None, 49.1, 87.2),
        "UPNN (no UP) (Tang et al. 2015)": (57.7, 58.5, 40.5, None, None),
        "UPNN (full) (Tang et al. 2015)": (59.6, 60.8, 43.5, None, None),
        "Cached LSTM (Xu et al. 2016)": (59.4, 59.2, 42.1, None, None),
    }
)
# Table 3, the other blocks: variant of ours -> its own test accuracies.
REPORTED = _rows(
    {
        "max": (61.1, 61.2, 41.1, 48.0, 87.0),
        "mean": (60.7, 60.6, 39.1, 46.2, 85.2),
        "attention": (61.0, 61.5, 43.3, 48.2, 86.4),
        "routing": (62.1, 63.0, 45.1, 50.5, 87.6),
        "reverse-routing": (61.6, 62.5, 44.5, 49.3, 87.2),
    }
)
# Table 4: the blue of each word, in per cent, a row for each capsule.
COLOURS = (
    (17.11, 39.94, 21.96, 28.90, 26.95, 28.46, 27.17, 13.36, 20.76, 10.81, 11.06),
    (51.46, 11.71, 14.31, 33.77, 49.26, 54.32, 73.28, 94.33, 81.99, 98.31, 98.42),
    (51.43, 80.35, 83.73, 57.32, 43.79, 37.22, 19.55, 12.31, 17.25, 10.88, 10.52),
)
WORDS = tuple(WHOLESOME.split())
COUPLINGS = tuple(tuple((colour - 10) / 90 for colour in row) for row in COLOURS)

# What its text says, in percentage points: over the best of others on documents, and over max pooling on SST-2.
GAIN_ON_YELP_2014, GAIN_OVER_MAX_ON_SST_2, SST_1_TEST_TEXTS = 3.0, 0.4, 2201


def slips(sst1_test_texts: int) -> list[str]:
    """Where its text and its tables disagree, computed from the tables."""
    over_others = REPORTED["routing"]["yelp2014"] - max(row.get("yelp2014", 0.0) for row in CITED.values())
    over_max = REPORTED["routing"]["sst2"] - REPORTED["max"]["sst2"]
    vectors, ours = CITED["Paragraph-Vec (Le and Mikolov 2014)"]["sst2"], REPORTED["routing"]["sst2"]
    word = WORDS.index("relentlessly")
    usual, there = sum(row[0] for row in COLOURS), sum(row[word] for row in COLOURS)
    return [
        f"The text has a gain of {GAIN_ON_YELP_2014} points over earlier work on Yelp-2014; table 3 has "
        f"{over_others:.1f}.",
        f"The text has {GAIN_OVER_MAX_ON_SST_2} points over max pooling on SST-2; table 3 has {over_max:.1f}.",
        f"The text calls routing the best on all sets; Paragraph-Vec has {vectors} on SST-2, routing {ours}.",
        f"Table 1 gives SST-1 {SST_1_TEST_TEXTS} test texts; the set has {sst1_test_texts}.",
        "Figure 2 shows test accuracies, so the number of iterations was chosen on the test set.",
        f"In table 4 the colour is 10 + 90 x the coupling, so the three rows of a word sum to {usual:.0f}; those of "
        f'"relentlessly" sum to {there:.0f}: in row 1 it should read {COLOURS[0][word] + 120 - there:.2f}.',
    ]
