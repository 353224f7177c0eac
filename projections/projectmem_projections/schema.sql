-- Tables of a DuckDB generation: the log, taken apart by kind. Each row is one event (or one item of an event), and
-- nothing here depends on when or in which order it was built: a rebuild gives equal rows.
--
-- Common columns: id (event id), stream and seq (its place in the log), at_us (when it happened, microseconds since the
-- epoch, UTC), and of the actor: session, agent, harness, model, origin (observed | agent | human | import).
-- Events that were erased keep their row in `events` and have none anywhere else.

-- What this generation holds: one row per stream. hash and (segment, size) say where the log went on.
CREATE TABLE cursors (stream VARCHAR, seq BIGINT, hash VARCHAR, segment VARCHAR, size BIGINT);

-- One row: version of these tables (see SCHEMA.md), number of events, how they were read (bulk | careful).
CREATE TABLE generation (version INTEGER, events BIGINT, read_as VARCHAR);

-- What was found wrong with the log while it was read; empty when it is whole. See `projectmem verify`.
CREATE TABLE integrity (stream VARCHAR, segment VARCHAR, at_byte BIGINT, kind VARCHAR, detail VARCHAR);

-- Index of every event. ts: when it was recorded.
CREATE TABLE events (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, ts BIGINT, batch BIGINT, kind VARCHAR, erased BOOLEAN
);

-- Finished tool calls (action.finished). outcome: ok | failed | rejected | interrupted | cancelled | unknown.
-- family: of the part the call is about. "class", signature, excerpt: of the failure. duration_ms may be NULL. verifier: what judged
-- the outcome (pytest, tsc, ...), '' or none where nothing did.
CREATE TABLE actions (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, "call" VARCHAR, tool VARCHAR, kind VARCHAR, cwd VARCHAR, key VARCHAR, failed_key VARCHAR, text VARCHAR,
    family VARCHAR, outcome VARCHAR, exit_code BIGINT, "class" VARCHAR, signature VARCHAR, excerpt VARCHAR, duration_ms BIGINT,
    turn BIGINT, source VARCHAR, verifier VARCHAR
);

-- The history of action keys, one row per event and key: the same entries that the gate reads (fold.py), unbounded.
-- t: fail | ok | ask | pass | snooze | dispute | supersede | pin | review.
-- role: part (one part of a call, or all of a call of one part), whole (a call of several parts), chain (a call of
-- several parts where the failure is known to be one part's: that part has a row of its own). text: of the action, or the
-- reason given for a snooze, dispute, supersession, pin or review; by_event: the event that stands in a superseded one's place.
CREATE TABLE entries (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, key VARCHAR, t VARCHAR, role VARCHAR, text VARCHAR, family VARCHAR, exit_code BIGINT, "class" VARCHAR,
    signature VARCHAR, excerpt VARCHAR, duration_ms BIGINT, "call" VARCHAR, turn BIGINT, until BIGINT, record VARCHAR,
    by_event VARCHAR, paths VARCHAR[]
);

-- What the gate answered where there was something to answer (action.proposed). record: the failure that decided.
CREATE TABLE gate_decisions (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, "call" VARCHAR, tool VARCHAR, key VARCHAR, text VARCHAR, verdict VARCHAR, rule VARCHAR, record VARCHAR,
    reason VARCHAR, remedy VARCHAR, remedy_id VARCHAR, expires_at BIGINT, odds BIGINT, "by" VARCHAR, engine VARCHAR,
    policy VARCHAR
);

-- session.started and session.ended. detail: source or reason.
CREATE TABLE session_events (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, what VARCHAR, detail VARCHAR, cwd VARCHAR
);

-- What people and agents wrote down. kind: issue | closed | hypothesis | attempt | fix | decision | note.
-- issue: the issue's own id. outcome: of an attempt, or the resolution. verifier: what proved it, or none. held_for: what it was
-- found to contradict when it was written ('itself': it reads like an instruction), '' for most; whether it still waits for a person
-- is in view record_states. same_as: what it only repeats.
CREATE TABLE records (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, kind VARCHAR, issue VARCHAR, title VARCHAR, text VARCHAR, outcome VARCHAR, verifier VARCHAR,
    supersedes VARCHAR, tags VARCHAR[], paths VARCHAR[], held_for VARCHAR, same_as VARCHAR
);

-- label.set and label.cleared (`clears` names the label's event, "" when it sets one). label: fragile | protected | rule; a rule is
-- the clause of a decision that can be checked: `decision` names it, `instead` is what it asks for.
CREATE TABLE label_events (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, clears VARCHAR, label VARCHAR, target VARCHAR, pattern VARCHAR, effect VARCHAR, reason VARCHAR,
    review_at BIGINT, instead VARCHAR, decision VARCHAR
);

-- What was said of recorded failures. what: pinned | snoozed | disputed | superseded | reviewed. record: the failure's event,
-- key: the action key it is remembered under; until: when a snooze or review falls due; by_event: what stands in its place.
CREATE TABLE curations (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, what VARCHAR, record VARCHAR, key VARCHAR, until BIGINT, reason VARCHAR, by_event VARCHAR
);

-- Recalls (recall.decided). abstained: nothing was shown, why in one phrase. documents: how many were searched. surface: where
-- it was asked, '' for a question of its own. tokens: of what was shown.
CREATE TABLE recalls (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, engine VARCHAR, surface VARCHAR, query VARCHAR, abstained BOOLEAN, why VARCHAR, documents BIGINT, tokens BIGINT
);

-- What each recall looked at: one row per item, shown or (below the floor) not. item: the event recalled, key: of a failure, its
-- action; rank from 1. Scores in ten-thousandths, as they were then; cosine is NULL where words alone were compared.
CREATE TABLE recall_items (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, item VARCHAR, type VARCHAR, key VARCHAR, shown BOOLEAN, rank BIGINT, cosine BIGINT,
    lexical BIGINT, similarity BIGINT, evidence BIGINT, confidence BIGINT, score BIGINT
);

-- checkpoint.sealed: the log had so many events (size), whose tree has this root.
CREATE TABLE checkpoints (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, size BIGINT, root VARCHAR
);

-- feedback.given: target names the event that was useful, or was not.
CREATE TABLE feedback (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, target VARCHAR, useful BOOLEAN, note VARCHAR
);

-- Policies in the order they were accepted; policy: the compiled policy as JSON where the event holds it.
CREATE TABLE policies (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, hash VARCHAR, text VARCHAR, policy JSON
);

-- What the tool itself had to say: gate.degraded (kind degraded) and log.recovered (kind recovered).
CREATE TABLE incidents (
    id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, session VARCHAR, agent VARCHAR, harness VARCHAR, model VARCHAR,
    origin VARCHAR, kind VARCHAR, place VARCHAR, what VARCHAR, detail VARCHAR
);

-- What experience taught about each memory (utility.py, after MemRL): memory is the action key of a failure, else the event.
-- utility: Q in ten-thousandths, -10000 (does harm) to 10000 (is followed by success), from so many rewards of that variance;
-- refreshed_at: when it last did good, 0 never; contradicted: disputes and useless marks. Made of recalls, the outcomes that followed
-- them in their session, feedback and disputes, when a generation is built or read.
CREATE TABLE utilities (memory VARCHAR, utility BIGINT, rewards BIGINT, variance BIGINT, refreshed_at BIGINT, contradicted BIGINT);

-- Ids named by erasure.requested.
CREATE TABLE erasures (id VARCHAR, stream VARCHAR, seq BIGINT, at_us BIGINT, erased VARCHAR);
