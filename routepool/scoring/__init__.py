"""A model on texts: logits, probabilities, labels, and how good they are."""
