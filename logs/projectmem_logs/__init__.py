"""The append-only event log: canonical bytes, the store, reading, verification and the kinds of event.

Nothing is imported here: the hook loads single modules and pays for no more (see ../README.md).
"""
