"""Text classification by dynamic routing."""
