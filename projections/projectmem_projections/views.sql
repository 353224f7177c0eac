-- What is asked of the tables, as views: of the newest row of each group, of counts, of what is in force.
-- Order of events everywhere: (at_us, stream, seq), never the order of arrival.

-- Every key that ever failed, with its last failure. open: no success, dispute or supersession since.
-- last_ok_*: newest success of the key. streak: failures since. snoozed_until: 0 when not snoozed.
-- part_of_chain: the blame is on one part, which has a row of its own. actors: who failed since the last success.
CREATE VIEW failures AS
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY key, t ORDER BY at_us DESC, stream DESC, seq DESC) AS n FROM entries
),
newest AS (
    SELECT
        key,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id}) FILTER (t = 'ok') AS ok,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id, 't': t}) FILTER (t IN ('dispute', 'supersede')) AS closed,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'until': until, 'id': id}) FILTER (t = 'snooze') AS snoozed,
        bool_or(t = 'pin') AS pinned
    FROM ranked WHERE n = 1 AND t <> 'fail' GROUP BY key
),
fails AS (
    SELECT
        e.key, count(*) AS count,
        count(*) FILTER (n.ok IS NULL OR (e.at_us, e.stream, e.seq) > (n.ok.at_us, n.ok.stream, n.ok.seq)) AS streak,
        count(DISTINCT e.session) AS sessions, min(e.at_us) AS first_at,
        list_sort(list(DISTINCT {'harness': e.harness, 'model': e.model, 'agent': e.agent})
            FILTER (n.ok IS NULL OR (e.at_us, e.stream, e.seq) > (n.ok.at_us, n.ok.stream, n.ok.seq))) AS actors
    FROM entries e LEFT JOIN newest n USING (key) WHERE e.t = 'fail' GROUP BY e.key
)
SELECT
    r.key, r.id, r.text, r.family, r."class", r.signature, r.excerpt, r.exit_code, r.duration_ms, r.session, r.origin, r.paths,
    r.at_us AS last_at, r.stream, r.seq, f.first_at, f.count, f.streak, f.sessions, f.actors,
    r.role = 'chain' AS part_of_chain,
    coalesce(n.ok.at_us, 0) AS last_ok_at, coalesce(n.ok.id, '') AS last_ok_id,
    coalesce(n.snoozed.until, 0) AS snoozed_until, coalesce(n.pinned, false) AS pinned,
    CASE
        WHEN n.ok IS NOT NULL AND (n.ok.at_us, n.ok.stream, n.ok.seq) > (r.at_us, r.stream, r.seq) THEN 'cleared'
        WHEN n.closed IS NOT NULL AND (n.closed.at_us, n.closed.stream, n.closed.seq) > (r.at_us, r.stream, r.seq)
            THEN CASE n.closed.t WHEN 'dispute' THEN 'disputed' ELSE 'superseded' END
        ELSE 'open'
    END AS standing,
    standing = 'open' AS open
FROM ranked r JOIN fails f USING (key) LEFT JOIN newest n USING (key)
WHERE r.t = 'fail' AND r.n = 1;

-- One row per session: from its first to its last event, and what its calls came to.
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

CREATE VIEW attempts AS SELECT * FROM records WHERE kind = 'attempt';
CREATE VIEW hypotheses AS SELECT * FROM records WHERE kind = 'hypothesis';
CREATE VIEW fixes AS SELECT * FROM records WHERE kind = 'fix';
CREATE VIEW notes AS SELECT * FROM records WHERE kind = 'note';

-- Decisions; in_force: no later decision names it in `supersedes`.
CREATE VIEW decisions AS
SELECT d.*, NOT EXISTS (SELECT 1 FROM records s WHERE s.kind = 'decision' AND s.supersedes = d.id) AS in_force
FROM records d WHERE d.kind = 'decision';

-- Labels in force.
CREATE VIEW labels AS
SELECT * EXCLUDE (clears) FROM label_events l
WHERE l.clears = '' AND NOT EXISTS (SELECT 1 FROM label_events c WHERE c.clears = l.id);

-- A gate decision with what became of the call, '' where it was never finished (a refused call is not run).
CREATE VIEW gate_outcomes AS
SELECT g.*, coalesce(a.outcome, '') AS outcome, coalesce(a."class", '') AS "class"
FROM gate_decisions g
LEFT JOIN (
    SELECT session, "call", max(outcome) AS outcome, max("class") AS "class" FROM actions WHERE "call" <> '' GROUP BY session, "call"
) a ON g."call" <> '' AND a.session = g.session AND a."call" = g."call";

-- Calls that were repeated on purpose after a refusal.
CREATE VIEW overrides AS SELECT * FROM gate_outcomes WHERE rule = 'override';

-- Who did what.
CREATE VIEW actors AS
SELECT harness, model, agent, count(*) AS actions, count(*) FILTER (outcome = 'failed') AS failed,
    count(DISTINCT session) AS sessions, max(at_us) AS last_at
FROM actions GROUP BY harness, model, agent;
