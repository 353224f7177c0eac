"""Runs the gate over recorded transcripts with a virtual clock: the product's own path, with no disk behind it."""
