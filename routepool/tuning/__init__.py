"""The search for settings: what is searched, its trials, its folder, when it ends."""
