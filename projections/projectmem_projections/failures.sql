-- Table `failures`, made of `entries` when a generation is built (and anew, for the keys concerned, by a reader that folds
-- newer events over it).
--
-- Every key that ever failed, with its last failure. open: no success, dispute or supersession since.
-- standing: open | cleared | disputed | superseded, by which event (standing_id) and why (reason). View failure_states adds what
-- the clock changes. last_ok_*: newest success of the key. streak: failures since. snoozed_until: 0 when not snoozed.
-- part_of_chain: the blame is on one part, which has a row of its own. actors: who failed since the last success.
-- Order is by the times on record. Where one of them lies more than five minutes ahead of the clock that asks, another clock was
-- wrong: the gate then goes by what was recorded later (as `projectmem failures` and `explain` do), and what stands here may differ
-- from it until that time has come.
WITH newest AS (
    SELECT
        key,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id}) FILTER (t = 'ok') AS ok,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id, 't': t, 'text': text, 'origin': origin, 'by': by_event}) FILTER (t IN ('dispute', 'supersede')) AS closed,
        max({'at_us': at_us, 'stream': stream, 'seq': seq, 'until': until, 'id': id, 'text': text}) FILTER (t = 'snooze') AS snoozed,
        bool_or(t = 'pin') AS pinned
    FROM entries WHERE t <> 'fail' GROUP BY key
),
fails AS (
    SELECT
        e.key, count(*) AS count,
        count(*) FILTER (n.ok IS NULL OR (e.at_us, e.stream, e.seq) > (n.ok.at_us, n.ok.stream, n.ok.seq)) AS streak,
        count(DISTINCT e.session) AS sessions, min(e.at_us) AS first_at,
        -- what was only imported or claimed does not speak over what was observed: history.fold
        max({'since': (n.ok IS NULL OR (e.at_us, e.stream, e.seq) > (n.ok.at_us, n.ok.stream, n.ok.seq)),
            'observed': (n.ok IS NULL OR (e.at_us, e.stream, e.seq) > (n.ok.at_us, n.ok.stream, n.ok.seq)) AND e.origin IN ('observed', ''),
            'at_us': e.at_us, 'stream': e.stream, 'seq': e.seq, 'id': e.id}).id AS last_id,
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
    standing = 'open' AS open,
    CASE standing WHEN 'open' THEN '' WHEN 'cleared' THEN n.ok.id
        ELSE coalesce(nullif(n.closed.by, ''), n.closed.id) END AS standing_id,
    CASE standing WHEN 'open' THEN '' WHEN 'cleared' THEN 'the same action succeeded later'
        ELSE coalesce(nullif(n.closed.text, ''), standing || ' by ' || coalesce(nullif(n.closed.origin, ''), 'observed')) END AS reason,
    coalesce(n.snoozed.id, '') AS snooze_id, coalesce(nullif(n.snoozed.text, ''), 'snoozed') AS snooze_reason
FROM entries r JOIN fails f ON f.key = r.key AND f.last_id = r.id LEFT JOIN newest n ON n.key = r.key
WHERE r.t = 'fail'
