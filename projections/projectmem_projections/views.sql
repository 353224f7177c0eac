-- What is asked of the tables, as views: of the newest row of each group, of counts, of what is in force.
-- Order of events everywhere: (at_us, stream, seq), never the order of arrival. Views that need the time ask view `clock`.

-- The time, in microseconds: now, or what `SET VARIABLE now_us = ...` said.
CREATE VIEW clock AS SELECT coalesce(TRY_CAST(getvariable('now_us') AS BIGINT), epoch_us(now())) AS now_us;

-- How long a failure of each class may speak, in microseconds: by the policy last accepted into the log, else as shipped.
CREATE VIEW ttl AS
SELECT s."class", coalesce(TRY_CAST(p.policy->'ttl_warn'->>s."class" AS BIGINT), s.warn_us) AS warn_us
FROM shipped_ttl s LEFT JOIN (SELECT policy FROM policies ORDER BY at_us DESC, stream DESC, seq DESC LIMIT 1) p ON true;

-- Every action that ever failed with its state now: open | snoozed | expired | cleared | disputed | superseded, the reason in one
-- phrase, and the event that did it (state_id). expires_at: when an open one lapses on its own, 0 = never (pinned).
CREATE VIEW failure_states AS
SELECT
    f.* EXCLUDE (standing, open, standing_id, reason, snooze_id, snooze_reason), f.expires_at,
    CASE
        WHEN standing <> 'open' THEN standing
        WHEN f.expires_at > 0 AND f.expires_at <= c.now_us THEN 'expired'
        WHEN snoozed_until > c.now_us THEN 'snoozed'
        ELSE 'open'
    END AS state,
    CASE state WHEN 'open' THEN '' WHEN 'expired' THEN 'too old to object' WHEN 'snoozed' THEN snooze_reason ELSE f.reason END AS reason,
    CASE state WHEN 'open' THEN '' WHEN 'expired' THEN '' WHEN 'snoozed' THEN snooze_id ELSE standing_id END AS state_id
FROM (
    SELECT f.*, CASE WHEN pinned THEN 0 ELSE last_at + coalesce(t.warn_us, (SELECT warn_us FROM ttl WHERE "class" = 'unknown')) END AS expires_at
    FROM failures f LEFT JOIN ttl t USING ("class")
) f CROSS JOIN clock c;

-- What worked instead of a failure: the first later success of the same family under another key. failure: the failed event.
CREATE VIEW remedies AS
WITH f AS (SELECT id, key, family, last_at FROM failures WHERE family <> '' AND standing <> 'cleared'),
oks AS (SELECT * FROM entries WHERE t = 'ok' AND family IN (SELECT family FROM f)),
first AS (SELECT f.*, o.at_us FROM f ASOF JOIN oks o ON f.family = o.family AND f.last_at < o.at_us)
SELECT failure, key, family, ok.text AS remedy, ok.id AS remedy_id, at_us FROM (
    SELECT first.id AS failure, first.key, first.family, first.at_us,
        min({'stream': o.stream, 'seq': o.seq, 'text': o.text, 'id': o.id}) AS ok
    FROM first JOIN oks o ON o.family = first.family AND o.at_us = first.at_us AND o.key <> first.key
    GROUP BY first.id, first.key, first.family, first.at_us
);

-- One row per session: from its first to its last event, and what its calls came to. stopped: asked or denied by the gate.
CREATE VIEW sessions AS
WITH who AS (
    SELECT session, min(at_us) AS started_at, max(at_us) AS last_at, max(harness) AS harness, max(model) AS model,
        max(origin) AS origin, count(*) AS events
    FROM events WHERE session <> '' AND NOT erased GROUP BY session
),
done AS (
    SELECT session, count(*) AS actions, count(*) FILTER (outcome = 'failed') AS failed, count(*) FILTER (outcome = 'ok') AS ok
    FROM actions GROUP BY session
),
told AS (SELECT session, count(*) FILTER (verdict IN ('ask', 'deny')) AS stopped FROM gate_decisions GROUP BY session),
said AS (
    SELECT session, max(at_us) FILTER (what = 'ended') AS ended_at, min_by(cwd, {'at_us': at_us, 'stream': stream, 'seq': seq}) FILTER (what = 'started') AS cwd
    FROM session_events GROUP BY session
)
SELECT
    w.session, w.harness, w.model, w.origin, coalesce(s.cwd, '') AS cwd, w.started_at, w.last_at,
    coalesce(s.ended_at, 0) AS ended_at, w.events, coalesce(d.actions, 0) AS actions, coalesce(d.failed, 0) AS failed,
    coalesce(d.ok, 0) AS ok, coalesce(t.stopped, 0) AS stopped
FROM who w LEFT JOIN done d USING (session) LEFT JOIN told t USING (session) LEFT JOIN said s USING (session);

-- Issues with what was written down about them. An issue is closed when its newest open/close event closes it.
CREATE VIEW issues AS
WITH moves AS (
    SELECT *, row_number() OVER (PARTITION BY issue ORDER BY at_us DESC, stream DESC, seq DESC) AS n
    FROM records WHERE kind IN ('issue', 'closed') AND issue <> ''
),
opened AS (
    SELECT *, row_number() OVER (PARTITION BY issue ORDER BY at_us, stream, seq) AS n FROM records WHERE kind = 'issue' AND issue <> ''
),
about AS (
    SELECT issue, count(*) FILTER (kind = 'hypothesis') AS hypotheses, count(*) FILTER (kind = 'attempt') AS attempts,
        count(*) FILTER (kind = 'attempt' AND outcome = 'failed') AS failed_attempts, count(*) FILTER (kind = 'fix') AS fixes
    FROM records WHERE issue <> '' GROUP BY issue
)
SELECT
    o.issue, o.id, o.title, o.paths, o.at_us AS opened_at, o.session, o.origin, m.kind = 'issue' AS open,
    CASE m.kind WHEN 'closed' THEN m.at_us ELSE 0 END AS closed_at, CASE m.kind WHEN 'closed' THEN m.outcome ELSE '' END AS resolution,
    a.hypotheses, a.attempts, a.failed_attempts, a.fixes
FROM opened o JOIN moves m ON m.issue = o.issue AND m.n = 1 JOIN about a ON a.issue = o.issue WHERE o.n = 1;

-- What people and agents wrote down, with what became of it. waits: held for a person to look at (`projectmem review`): it is shown
-- to nobody meanwhile. superseded_by: the first event that replaced or disputed it. in_force: neither.
CREATE VIEW record_states AS
WITH ended AS (
    SELECT target, min_by(by_id, {'at_us': at_us, 'stream': stream, 'seq': seq}) AS by_id FROM (
        SELECT supersedes AS target, id AS by_id, at_us, stream, seq FROM records WHERE supersedes <> ''
        UNION ALL
        SELECT record, coalesce(nullif(by_event, ''), id), at_us, stream, seq FROM curations WHERE what IN ('superseded', 'disputed')
    ) GROUP BY target
)
SELECT * REPLACE (waits AND superseded_by = '' AS waits), superseded_by = '' AND NOT waits AS in_force FROM (
    SELECT r.*, coalesce(e.by_id, '') AS superseded_by, r.held_for <> '' AND o.by_id IS NULL AND g.id IS NULL AND c.id IS NULL AS waits
    FROM records r LEFT JOIN ended e ON e.target = r.id
    LEFT JOIN ended o ON o.target = r.held_for
    LEFT JOIN (SELECT DISTINCT erased AS id FROM erasures) g ON g.id = r.held_for
    LEFT JOIN (SELECT DISTINCT record AS id FROM curations WHERE what = 'reviewed') c ON c.id = r.id
);

-- Attempts at an issue, hypotheses about it, fixes of it, and notes: the rows of `record_states` of that kind.
CREATE VIEW attempts AS SELECT * FROM record_states WHERE kind = 'attempt';
CREATE VIEW hypotheses AS SELECT * FROM record_states WHERE kind = 'hypothesis';
CREATE VIEW fixes AS SELECT * FROM record_states WHERE kind = 'fix';
CREATE VIEW notes AS SELECT * FROM record_states WHERE kind = 'note';
-- Decisions: in_force until another decision or note names it in `supersedes`, somebody supersedes or disputes it, and not while it waits.
CREATE VIEW decisions AS SELECT * FROM record_states WHERE kind = 'decision';

-- Labels in force: fragile and protected paths, commands and tools, and rules. A label ends when it is cleared, and with the
-- decision it is of; what a person set, only a person ends.
CREATE VIEW labels AS
WITH ended AS (
    SELECT clears AS id, origin = 'human' AS person FROM label_events WHERE clears <> ''
    UNION ALL
    SELECT supersedes, origin = 'human' FROM records WHERE kind = 'decision' AND supersedes <> ''
)
SELECT * EXCLUDE (clears) FROM label_events l
WHERE l.label <> ''
    AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.id IN (l.id, nullif(l.decision, '')) AND (e.person OR l.origin <> 'human'));

-- Everything the gate is made to look at: labels in force (id: the label's event), and the rules of the policy in force
-- (id: the policy's event, name: the rule's).
CREATE VIEW rules AS
SELECT 'label' AS source, id, label AS name, target, pattern, effect, reason, at_us FROM labels
UNION ALL
SELECT 'policy', id, coalesce(r.name, ''), coalesce(r.target, ''), coalesce(r.pattern, ''), coalesce(r.effect, ''),
    coalesce(r.reason, ''), at_us
FROM (
    SELECT id, at_us, unnest(json_transform(policy->'rules', '[{"name": "VARCHAR", "target": "VARCHAR", "pattern": "VARCHAR",
        "effect": "VARCHAR", "reason": "VARCHAR"}]')) AS r
    FROM (SELECT * FROM policies ORDER BY at_us DESC, stream DESC, seq DESC LIMIT 1)
);

-- A gate decision with what became of the call, '' where it was never finished (a refused call is not run); and next_*: of the
-- same action the next time the same session ran it. followed: after an ask or a deny heeded (that session never ran it) |
-- repeated; after anything else ran | not run.
CREATE VIEW gate_outcomes AS
SELECT g.*, coalesce(a.outcome, '') AS outcome, coalesce(a."class", '') AS "class",
    coalesce(l.next.id, '') AS next_id, coalesce(l.next.at_us, 0) AS next_at, coalesce(l.next.outcome, '') AS next_outcome,
    CASE
        WHEN g.verdict IN ('ask', 'deny') THEN CASE WHEN a.outcome IS NULL AND l.next IS NULL THEN 'heeded' ELSE 'repeated' END
        ELSE CASE WHEN a.outcome IS NULL THEN 'not run' ELSE 'ran' END
    END AS followed
FROM gate_decisions g
LEFT JOIN (
    SELECT session, "call", max(outcome) AS outcome, max("class") AS "class" FROM actions WHERE "call" <> '' GROUP BY session, "call"
) a ON g."call" <> '' AND a.session = g.session AND a."call" = g."call"
LEFT JOIN (
    SELECT d.id, min({'at_us': x.at_us, 'stream': x.stream, 'seq': x.seq, 'id': x.id, 'outcome': x.outcome}) AS next
    FROM gate_decisions d JOIN actions x ON x.session = d.session AND x.key = d.key AND x.at_us >= d.at_us
    WHERE d.key <> '' AND d.session <> '' GROUP BY d.id
) l ON l.id = g.id;

-- Calls that were repeated on purpose after a refusal.
CREATE VIEW overrides AS SELECT * FROM gate_outcomes WHERE rule = 'override';

-- Everything that recall can or could bring up: what was written down, failures, labels. target: the event; memory: what it is
-- remembered by (a failure by its action key); text: as recorded ('' where it was erased). How often it was shown and fell below the
-- floor, what was said of it, and what experience taught (see utilities; utility NULL: nothing yet).
CREATE VIEW memory AS
WITH seen AS (
    SELECT item AS target, max(type) AS type, max(key) FILTER (type = 'failure') AS key, count(*) FILTER (shown) AS shown,
        count(*) FILTER (NOT shown) AS below, coalesce(max(at_us) FILTER (shown), 0) AS last_shown_at
    FROM recall_items WHERE item <> '' GROUP BY item
),
said AS (
    SELECT target, count(*) FILTER (what = 'useful') AS useful, count(*) FILTER (what = 'not useful') AS not_useful,
        count(*) FILTER (what = 'disputed') AS disputed
    FROM (
        SELECT target, CASE WHEN useful THEN 'useful' ELSE 'not useful' END AS what FROM feedback WHERE target <> ''
        UNION ALL SELECT record, 'disputed' FROM curations WHERE what = 'disputed' AND record <> ''
    ) GROUP BY target
),
texts AS (
    SELECT id, kind AS type, NULL AS key, coalesce(nullif(text, ''), title) AS text FROM records WHERE kind <> 'closed'
    UNION ALL SELECT id, 'label', NULL, pattern FROM label_events WHERE label <> ''
    UNION ALL SELECT id, CASE outcome WHEN 'failed' THEN 'failure' ELSE '' END, nullif(coalesce(nullif(failed_key, ''), key), ''), text FROM actions
        WHERE id IN (SELECT id FROM failures UNION ALL SELECT target FROM seen UNION ALL SELECT target FROM said)
)
SELECT target, coalesce(k.memory, o.memory, t.key, target) AS memory, coalesce(s.type, t.type, '') AS type, coalesce(t.text, '') AS text,
    coalesce(s.shown, 0) AS shown, coalesce(s.below, 0) AS below, coalesce(s.last_shown_at, 0) AS last_shown_at,
    coalesce(f.useful, 0) AS useful, coalesce(f.not_useful, 0) AS not_useful, coalesce(f.disputed, 0) AS disputed,
    coalesce(k.utility, o.utility) AS utility, coalesce(k.rewards, o.rewards, 0) AS rewards, coalesce(k.variance, o.variance) AS variance,
    coalesce(k.refreshed_at, o.refreshed_at, 0) AS refreshed_at, coalesce(k.contradicted, o.contradicted, 0) AS contradicted
FROM (SELECT id AS target FROM texts UNION SELECT target FROM seen UNION SELECT target FROM said)
LEFT JOIN seen s USING (target) LEFT JOIN said f USING (target) LEFT JOIN texts t ON t.id = target
LEFT JOIN utilities k ON k.memory = coalesce(nullif(s.key, ''), t.key) LEFT JOIN utilities o ON o.memory = target;

-- Who did what.
CREATE VIEW actors AS
SELECT harness, model, agent, count(*) AS actions, count(*) FILTER (outcome = 'failed') AS failed,
    count(DISTINCT session) AS sessions, max(at_us) AS last_at
FROM actions GROUP BY harness, model, agent;

-- The same by model alone, with what the gate answered to its calls.
CREATE VIEW models AS
SELECT harness, model, a.actions, a.failed, a.sessions, a.last_at, coalesce(g.warned, 0) AS warned, coalesce(g.stopped, 0) AS stopped
FROM (
    SELECT harness, model, count(*) AS actions, count(*) FILTER (outcome = 'failed') AS failed,
        count(DISTINCT session) AS sessions, max(at_us) AS last_at
    FROM actions GROUP BY harness, model
) a LEFT JOIN (
    SELECT harness, model, count(*) FILTER (verdict = 'warn') AS warned, count(*) FILTER (verdict IN ('ask', 'deny')) AS stopped
    FROM gate_decisions GROUP BY harness, model
) g USING (harness, model);
