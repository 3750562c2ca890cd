"""Training runs: a request -> a model folder with its record, its scores and its card; resumable."""
