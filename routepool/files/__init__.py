"""Files: written whole or not at all, read without trust, kept in a cache, unpacked within bounds."""
