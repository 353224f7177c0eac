-- Fills the tables of schema.sql from `lines`, a temporary table or view of events as JSON text (column `json`); what lies past
-- `heads` or is named in `gone` is left out. Run once for each run of lines; leaves `raw`, one row per event.
--
-- `d` is a payload with the fields that are read; what is missing or of another type is NULL and becomes '' or 0.
-- culprit: the part that the failure is known to be of; main: the part a call is about where none is, the last that is not
-- trivial. lone: a call of one part, which is most of them: only of the others is `d` kept, for the work below. rest: the
-- payload of every other kind.

CREATE OR REPLACE TEMP TABLE raw AS
SELECT
    id, stream, seq, at_us, coalesce(actor.session, '') AS session, coalesce(actor.agent, '') AS agent,
    coalesce(actor.harness, '') AS harness, coalesce(actor.model, '') AS model, coalesce(actor.origin, '') AS origin,
    kind, ts, batch, erased, v,
    coalesce(d."call", '') AS "call", coalesce(d.tool, '') AS tool, coalesce(d.kind, '') AS action, coalesce(d.cwd, '') AS cwd,
    coalesce(d.key, '') AS key, coalesce(d.failed_key, '') AS failed_key, coalesce(d.text, '') AS text,
    coalesce(culprit.family, main.family, '') AS family, coalesce(d.outcome, '') AS outcome, d.exit_code,
    coalesce(d."class", '') AS "class", coalesce(d.signature, '') AS signature, coalesce(d.excerpt, '') AS excerpt,
    d.duration_ms, coalesce(d.turn, -1) AS turn, coalesce(d.source, '') AS source, coalesce(d.verifier, '') AS verifier, lone,
    CASE WHEN lone THEN CASE WHEN len(main.paths) > 1 THEN list_sort(list_distinct(main.paths)) ELSE coalesce(main.paths, []) END END AS paths,
    CASE WHEN NOT lone THEN d END AS d, CASE WHEN NOT lone THEN main END AS main, culprit,
    CASE WHEN d IS NULL AND NOT erased THEN json->'data' END AS rest
FROM (
    SELECT *, coalesce(len(d.parts) = 1 AND d.parts[1].key = d.key AND d.key <> '', false) AS lone,
        CASE WHEN NOT lone THEN list_filter(d.parts, lambda p: p.key = d.failed_key AND d.failed_key <> '')[1] END AS culprit,
        CASE WHEN lone THEN d.parts[1]
            ELSE coalesce(list_filter(d.parts, lambda p: NOT coalesce(p.trivial, false))[-1], d.parts[-1]) END AS main
    FROM (
        SELECT
            json, e.id, e.stream, e.seq, e."at" AS at_us, e.actor, e.kind, e.ts, e.batch, e.data.v,
            e.data IS NULL AS erased, CASE WHEN e.kind = 'action.finished' THEN e.data END AS d
        FROM (
            SELECT json, json_transform(json, '{
                "id": "VARCHAR", "stream": "VARCHAR", "seq": "BIGINT", "batch": "BIGINT", "ts": "BIGINT", "at": "BIGINT",
                "kind": "VARCHAR",
                "actor": {"session": "VARCHAR", "agent": "VARCHAR", "harness": "VARCHAR", "model": "VARCHAR", "origin": "VARCHAR"},
                "data": {
                    "v": "BIGINT", "call": "VARCHAR", "tool": "VARCHAR", "kind": "VARCHAR", "cwd": "VARCHAR", "key": "VARCHAR",
                    "failed_key": "VARCHAR", "text": "VARCHAR", "outcome": "VARCHAR", "exit_code": "BIGINT", "class": "VARCHAR",
                    "signature": "VARCHAR", "excerpt": "VARCHAR", "duration_ms": "BIGINT", "turn": "BIGINT",
                    "source": "VARCHAR", "verifier": "VARCHAR", "joins": ["VARCHAR"],
                    "parts": [{"key": "VARCHAR", "family": "VARCHAR", "text": "VARCHAR", "trivial": "BOOLEAN",
                        "paths": ["VARCHAR"]}]
                }
            }') AS e
            FROM lines
        )
    )
);

-- Afterwards, and not in one with the above: DuckDB would take every line apart a second time, to know what to leave out.
DELETE FROM raw WHERE EXISTS (SELECT 1 FROM heads h WHERE h.stream = raw.stream AND raw.seq > h.head);
UPDATE raw SET erased = true, lone = false, d = NULL, rest = NULL WHERE id IN (SELECT id FROM gone);

INSERT INTO events
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, ts, batch, kind, erased FROM raw;

INSERT INTO actions
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, "call", tool, action, cwd, key, failed_key, text, family,
    outcome, exit_code, "class", signature, excerpt, duration_ms, turn, source, verifier
FROM raw WHERE kind = 'action.finished' AND NOT erased;

INSERT INTO entries
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, key, CASE outcome WHEN 'ok' THEN 'ok' ELSE 'fail' END, 'part',
    left(text, 400), family, exit_code, CASE outcome WHEN 'ok' THEN '' ELSE "class" END,
    CASE outcome WHEN 'ok' THEN '' ELSE left(signature, 200) END, CASE outcome WHEN 'ok' THEN '' ELSE left(excerpt, 300) END,
    duration_ms, "call", turn, 0, '', '', paths
FROM raw WHERE lone AND outcome IN ('ok', 'failed');

-- Those of several parts.
CREATE OR REPLACE TEMP TABLE finished AS SELECT * FROM raw WHERE d IS NOT NULL;

-- Of the others that failed: the part to blame (where one is) and the whole call: fold._entries_failed.
INSERT INTO entries
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, hit.key, 'fail', hit.role, left(coalesce(hit.text, ''), 400),
    coalesce(hit.family, ''), exit_code, "class", left(signature, 200), left(excerpt, 300), duration_ms, "call", turn, 0, '', '',
    list_sort(list_distinct(coalesce(hit.paths, [])))
FROM (
    SELECT *, unnest(list_concat(
        CASE WHEN blamed THEN [{'key': culprit.key, 'role': 'part', 'text': culprit.text, 'family': culprit.family,
            'paths': culprit.paths}] ELSE [] END,
        CASE WHEN d.key <> '' THEN [{'key': d.key,
            'role': CASE WHEN blamed THEN 'chain' WHEN len(d.parts) > 1 THEN 'whole' ELSE 'part' END, 'text': d.text,
            'family': coalesce(culprit.family, main.family),
            'paths': flatten(list_transform(CASE WHEN len(asked) > 0 THEN asked ELSE d.parts END,
                lambda p: coalesce(p.paths, [])))}] ELSE [] END
    )) AS hit
    FROM (
        SELECT *, coalesce(culprit.key <> d.key, false) AS blamed,
            list_filter(d.parts, lambda p: NOT coalesce(p.trivial, false)) AS asked  -- the key leaves trivial parts out
        FROM finished WHERE outcome = 'failed'
    )
);

-- Of the others that succeeded: the whole call, and the parts that certainly ran (the trailing && run): fold._entries_ok.
INSERT INTO entries
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, hit.key, 'ok', hit.role, left(coalesce(hit.text, ''), 400),
    coalesce(hit.family, ''), exit_code, '', '', '', duration_ms, "call", turn, 0, '', '',
    list_sort(list_distinct(coalesce(hit.paths, [])))
FROM (
    SELECT *, unnest(list_concat(
        CASE WHEN d.key <> '' THEN [{'key': d.key, 'role': CASE WHEN n > 1 THEN 'whole' ELSE 'part' END, 'text': d.text,
            'family': main.family,
            'paths': flatten(list_transform(d.parts, lambda p: coalesce(p.paths, [])))}] ELSE [] END,
        list_transform(list_distinct(list_transform(sure, lambda p: p.key)), lambda k: {
            'key': k, 'role': 'part', 'text': list_filter(sure, lambda p: p.key = k)[1].text,
            'family': list_filter(sure, lambda p: p.key = k)[1].family,
            'paths': list_filter(sure, lambda p: p.key = k)[1].paths})
    )) AS hit
    FROM (SELECT *, list_filter(d.parts[n - run + 1 : n], lambda p: run > 0 AND NOT coalesce(p.trivial, false)
            AND coalesce(p.key, '') NOT IN ('', coalesce(d.key, ''))) AS sure FROM (
        SELECT *, CASE WHEN coalesce(stop, 0) = 0 THEN n WHEN list_reverse(d.joins)[stop] = '||' THEN stop - 1 ELSE stop END AS run
        FROM (
            SELECT *, len(d.parts) AS n, list_position(list_transform(list_reverse(d.joins), lambda j: j <> '&&'), true) AS stop
            FROM finished WHERE outcome = 'ok'
        )
    ))
);

DROP TABLE finished;

CREATE OR REPLACE TEMP TABLE proposed AS
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, json_transform(rest, '{
    "call": "VARCHAR", "tool": "VARCHAR", "key": "VARCHAR", "text": "VARCHAR", "policy": "VARCHAR", "session": {"turn": "BIGINT"},
    "decision": {"verdict": "VARCHAR", "rule": "VARCHAR", "record": "VARCHAR", "reason": "VARCHAR", "remedy": "VARCHAR",
        "remedy_id": "VARCHAR", "expires_at": "BIGINT", "odds": "BIGINT", "by": "VARCHAR", "engine": "VARCHAR"}
}') AS d
FROM raw WHERE kind = 'action.proposed' AND rest IS NOT NULL;

INSERT INTO gate_decisions
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, coalesce(d."call", ''), coalesce(d.tool, ''),
    coalesce(d.key, ''), coalesce(d.text, ''), coalesce(d.decision.verdict, ''), coalesce(d.decision.rule, ''),
    coalesce(d.decision.record, ''), coalesce(d.decision.reason, ''), coalesce(d.decision.remedy, ''),
    coalesce(d.decision.remedy_id, ''), coalesce(d.decision.expires_at, 0), coalesce(d.decision.odds, -1),
    coalesce(d.decision."by", ''), coalesce(d.decision.engine, ''), coalesce(d.policy, '')
FROM proposed;

INSERT INTO entries
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, d.key, CASE d.decision.rule WHEN 'override' THEN 'pass' ELSE 'ask' END,
    '', left(coalesce(d.text, ''), 400), '', NULL, '', '', '', NULL, coalesce(d."call", ''), coalesce(d.session.turn, -1), 0,
    coalesce(d.decision.record, ''), '', []
FROM proposed WHERE d.key <> '' AND (d.decision.rule = 'override' OR d.decision.verdict IN ('ask', 'deny'));

DROP TABLE proposed;

-- Everything below is rare: one table of payloads serves all.
CREATE OR REPLACE TEMP TABLE rest AS
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, kind, json_transform(rest, '{
    "source": "VARCHAR", "cwd": "VARCHAR", "reason": "VARCHAR", "issue": "VARCHAR", "title": "VARCHAR", "text": "VARCHAR",
    "outcome": "VARCHAR", "resolution": "VARCHAR", "verifier": "VARCHAR", "supersedes": "VARCHAR", "tags": ["VARCHAR"],
    "paths": ["VARCHAR"], "label": "VARCHAR", "target": "VARCHAR", "pattern": "VARCHAR", "effect": "VARCHAR",
    "review_at": "BIGINT", "label_event": "VARCHAR", "record": "VARCHAR", "key": "VARCHAR", "until": "BIGINT",
    "by_event": "VARCHAR", "useful": "BOOLEAN", "note": "VARCHAR", "hash": "VARCHAR", "policy": "JSON", "where": "VARCHAR",
    "what": "VARCHAR", "detail": "VARCHAR", "segment": "VARCHAR", "why": "VARCHAR", "engine": "VARCHAR", "surface": "VARCHAR",
    "query": "VARCHAR", "abstained": "BOOLEAN", "documents": "BIGINT", "tokens": "BIGINT", "size": "BIGINT", "root": "VARCHAR",
    "items": "JSON", "below_floor": "JSON", "instead": "VARCHAR", "decision": "VARCHAR", "ids": ["VARCHAR"],
    "held_for": "VARCHAR", "same_as": "VARCHAR"
}') AS d
FROM raw WHERE rest IS NOT NULL AND kind <> 'action.proposed';

INSERT INTO erasures SELECT id, stream, seq, at_us, unnest(d.ids) FROM rest WHERE kind = 'erasure.requested';

INSERT INTO entries
SELECT
    id, stream, seq, at_us, session, agent, harness, model, origin, d.key,
    CASE kind WHEN 'record.pinned' THEN 'pin' WHEN 'record.snoozed' THEN 'snooze' WHEN 'record.disputed' THEN 'dispute'
        WHEN 'record.superseded' THEN 'supersede' ELSE 'review' END,
    '', left(coalesce(d.reason, ''), 400), '', NULL, '', '', '', NULL, '', -1, coalesce(d.until, 0), coalesce(d.record, ''),
    coalesce(d.by_event, ''), []
FROM rest WHERE d.key <> ''
    AND (kind IN ('record.snoozed', 'record.disputed', 'record.superseded')
        OR (kind IN ('record.pinned', 'record.reviewed') AND origin = 'human')); -- a person's to do: fold._control

INSERT INTO curations
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, split_part(kind, '.', 2), coalesce(d.record, ''),
    coalesce(d.key, ''), coalesce(d.until, 0), coalesce(d.reason, ''), coalesce(d.by_event, '')
FROM rest WHERE kind IN ('record.pinned', 'record.snoozed', 'record.disputed', 'record.superseded', 'record.reviewed');

INSERT INTO session_events
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, CASE kind WHEN 'session.started' THEN 'started' ELSE 'ended' END,
    coalesce(CASE kind WHEN 'session.started' THEN d.source ELSE d.reason END, ''), coalesce(d.cwd, '')
FROM rest WHERE kind IN ('session.started', 'session.ended');

INSERT INTO records
SELECT id, stream, seq, at_us, session, agent, harness, model, origin,
    CASE kind WHEN 'issue.opened' THEN 'issue' WHEN 'issue.closed' THEN 'closed' ELSE split_part(kind, '.', 1) END,
    coalesce(d.issue, ''), coalesce(d.title, ''), coalesce(d.text, ''), coalesce(d.outcome, d.resolution, ''),
    coalesce(d.verifier, ''), coalesce(d.supersedes, ''), coalesce(d.tags, []), coalesce(d.paths, []), coalesce(d.held_for, ''),
    coalesce(d.same_as, '')
FROM rest WHERE kind IN ('issue.opened', 'issue.closed', 'hypothesis.noted', 'attempt.recorded', 'fix.recorded',
    'decision.recorded', 'note.recorded');

INSERT INTO label_events
SELECT id, stream, seq, at_us, session, agent, harness, model, origin,
    CASE kind WHEN 'label.cleared' THEN coalesce(d.label_event, '') ELSE '' END,
    CASE kind WHEN 'label.set' THEN coalesce(d.label, '') ELSE '' END,
    coalesce(d.target, ''), coalesce(d.pattern, ''), coalesce(d.effect, ''), coalesce(d.reason, ''), coalesce(d.review_at, 0),
    coalesce(d.instead, ''), coalesce(d.decision, '')
FROM rest WHERE kind IN ('label.set', 'label.cleared');

INSERT INTO feedback
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, coalesce(d.target, ''), d.useful, coalesce(d.note, '')
FROM rest WHERE kind = 'feedback.given';

INSERT INTO policies
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, coalesce(d.hash, ''), coalesce(d.text, ''), d.policy
FROM rest WHERE kind = 'policy.changed';

INSERT INTO incidents
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, split_part(kind, '.', 2),
    coalesce(d."where", d.segment, ''), coalesce(d.what, d.why, ''), coalesce(d.detail, '')
FROM rest WHERE kind IN ('gate.degraded', 'log.recovered');

INSERT INTO recalls
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, coalesce(d.engine, ''), coalesce(d.surface, ''),
    coalesce(d.query, ''), coalesce(d.abstained, false), coalesce(d.why, ''), coalesce(d.documents, 0), coalesce(d.tokens, 0)
FROM rest WHERE kind = 'recall.decided';

INSERT INTO recall_items
SELECT id, stream, seq, at_us, coalesce(i.id, ''), coalesce(i.type, ''), coalesce(i.key, ''), shown, rank, i.cosine, coalesce(i.lexical, 0),
    coalesce(i.similarity, 0), coalesce(i.evidence, 0), coalesce(i.confidence, 0), coalesce(i.score, 0)
FROM (
    SELECT id, stream, seq, at_us, shown, unnest(items) AS i, generate_subscripts(items, 1) AS rank
    FROM (
        SELECT id, stream, seq, at_us, side.shown, json_transform(side.items, '[{"id": "VARCHAR", "type": "VARCHAR", "key": "VARCHAR",
            "cosine": "BIGINT", "lexical": "BIGINT", "similarity": "BIGINT", "evidence": "BIGINT", "confidence": "BIGINT",
            "score": "BIGINT"}]') AS items
        FROM (
            SELECT id, stream, seq, at_us,
                unnest([{'shown': true, 'items': d.items}, {'shown': false, 'items': d.below_floor}]) AS side
            FROM rest WHERE kind = 'recall.decided'
        )
    )
);

INSERT INTO checkpoints
SELECT id, stream, seq, at_us, session, agent, harness, model, origin, coalesce(d.size, 0), coalesce(d.root, '')
FROM rest WHERE kind = 'checkpoint.sealed';

DROP TABLE rest;
