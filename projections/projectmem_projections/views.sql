-- What is asked of the tables, as views: of the newest row of each group, of counts, of what is in force.
-- Order of events everywhere: (at_us, stream, seq), never the order of arrival.

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
