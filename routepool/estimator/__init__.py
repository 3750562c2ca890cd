"""The scikit-learn estimator."""
