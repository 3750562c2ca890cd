"""What several tests share: made-up data, small models, programs to start."""
