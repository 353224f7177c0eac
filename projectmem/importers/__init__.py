"""Reads what other programs recorded into the log: transcripts of harnesses, later other tools' logs."""
