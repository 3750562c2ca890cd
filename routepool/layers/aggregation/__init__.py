"""Vectors of tokens -> one vector: pooling, attention and dynamic routing behind one contract."""
