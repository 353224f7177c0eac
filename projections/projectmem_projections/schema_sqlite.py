"""The tables of the gate snapshot [H]. All are derived from the log by fold.py, but `pending` and `cache`."""

from __future__ import annotations

from .fold import FOLD_VERSION

# PRAGMA user_version: a mark of ours ("PM"), the schema's version and the fold's.
SCHEMA_VERSION = 2
VERSION = 0x504D0000 + SCHEMA_VERSION * 256 + FOLD_VERSION

SCHEMA = (
    # What has been applied (the last event's seq and hash), and where in the log that ends.
    "CREATE TABLE cursor (stream TEXT PRIMARY KEY, seq INTEGER, hash TEXT, segment TEXT, size INTEGER) WITHOUT ROWID",
    # One row per action key: its entries (fold.pack) as JSON, its hint words, and whether they stand in `hint`.
    "CREATE TABLE history (key TEXT PRIMARY KEY, w1 TEXT, w2 TEXT, w3 TEXT, open INTEGER, data TEXT NOT NULL)",
    # Keys with an open failure by the words an input must hold; '' = no word needed.
    "CREATE TABLE hint (w1 TEXT, w2 TEXT, w3 TEXT, key TEXT, PRIMARY KEY (w1, w2, w3, key)) WITHOUT ROWID",
    # The last time something happened that may mend a failure.
    "CREATE TABLE touch (type TEXT, subject TEXT, is_read INTEGER, at INTEGER, stream TEXT, seq INTEGER, session TEXT, id TEXT,"
    " PRIMARY KEY (type, subject)) WITHOUT ROWID",
    "CREATE INDEX touch_at ON touch (is_read, at, stream, seq, type, subject)",
    # The last success of each key, by family.
    "CREATE TABLE ok (family TEXT, key TEXT, at INTEGER, stream TEXT, seq INTEGER, id TEXT, text TEXT, session TEXT,"
    " PRIMARY KEY (family, key)) WITHOUT ROWID",
    "CREATE INDEX ok_at ON ok (family, at, stream, seq)",
    "CREATE TABLE seen (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID",
    "CREATE TABLE turn (session TEXT PRIMARY KEY, turn INTEGER) WITHOUT ROWID",
    "CREATE TABLE label (id TEXT PRIMARY KEY, data TEXT) WITHOUT ROWID",
    "CREATE TABLE unlabelled (id TEXT PRIMARY KEY) WITHOUT ROWID",
    # The newest policy of each stream.
    "CREATE TABLE policy (stream TEXT PRIMARY KEY, at INTEGER, seq INTEGER, id TEXT, data TEXT) WITHOUT ROWID",
    "CREATE TABLE erased (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    # What failed fixes are derived from: rows as gate/attempts.py has them.
    "CREATE TABLE verdict (track TEXT, at INTEGER, stream TEXT, seq INTEGER, n INTEGER, id TEXT, key TEXT, red INTEGER, sig TEXT,"
    " cls TEXT, verifier TEXT, text TEXT, whole INTEGER, session TEXT, PRIMARY KEY (track, at, stream, seq, n)) WITHOUT ROWID",
    "CREATE TABLE made (at INTEGER, stream TEXT, seq INTEGER, n INTEGER, id TEXT, key TEXT, path TEXT, undoes TEXT, variant TEXT,"
    " text TEXT, session TEXT, w1 TEXT, w2 TEXT, w3 TEXT, PRIMARY KEY (at, stream, seq, n)) WITHOUT ROWID",
    "CREATE INDEX made_key ON made (key)",
    "CREATE TABLE restored (at INTEGER, stream TEXT, seq INTEGER, n INTEGER, id TEXT, path TEXT,"
    " PRIMARY KEY (at, stream, seq, n, path)) WITHOUT ROWID",
    # Each track with its newest verdict; `standing`: a failure stands in it.
    "CREATE TABLE track (track TEXT PRIMARY KEY, at INTEGER, stream TEXT, seq INTEGER, n INTEGER, standing INTEGER)"
    " WITHOUT ROWID",
    # The failed attempts of each track by the edit's key, with its hint words as they stand in `hint`.
    "CREATE TABLE suspect (key TEXT, track TEXT, w1 TEXT, w2 TEXT, w3 TEXT, PRIMARY KEY (key, track)) WITHOUT ROWID",
    "CREATE INDEX suspect_track ON suspect (track)",
    # Tries of known failures and how they went, for the log's own odds.
    "CREATE TABLE tried (id TEXT PRIMARY KEY, cls TEXT, by TEXT, state TEXT, age INTEGER, again INTEGER) WITHOUT ROWID",
    "CREATE INDEX tried_cls ON tried (cls, by, state, age, again)",
    # Not folded from the log.
    "CREATE TABLE pending (n INTEGER PRIMARY KEY, session TEXT, call TEXT, data TEXT, UNIQUE (session, call))",
    "CREATE TABLE cache (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
)
