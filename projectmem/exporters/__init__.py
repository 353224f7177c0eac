"""Writes recorded calls in the formats of other tools: OpenTelemetry spans and ATIF trajectories."""
