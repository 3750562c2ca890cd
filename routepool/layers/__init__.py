"""The layers of the model: embedding, encoders, aggregation, head."""
