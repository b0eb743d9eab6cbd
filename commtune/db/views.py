"""Creates the SQL views for users, with units in column names and times as UTC text.

SQLite and PostgreSQL have the same views and columns; docs/database.md lists them.
"""

from __future__ import annotations

import re

import sqlalchemy as sa

from commtune.db.verified import VERDICT

_LOST = "('interrupted', 'node-failure', 'preempted', 'cancelled', 'never-started')"

#: SQL that differs between the two databases, by its name in the queries below: the moment of a
#: column (seconds since 1970) as text, a number and a text of a run's workload by key, and a JSON
#: column as text, because PostgreSQL can't group by JSON.
_WORDS = {
    "sqlite": {
        "moment": "strftime('%Y-%m-%dT%H:%M:%fZ', {0}, 'unixepoch')",
        "number": "json_extract(r.workload, '$.{0}')",
        "text": "json_extract(r.workload, '$.{0}')",
        "json": "{0}",
    },
    "postgresql": {
        "moment": "to_char(to_timestamp({0}) AT TIME ZONE 'UTC',"
        ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\')',
        "number": "(r.workload ->> '{0}')::integer",
        "text": "(r.workload ->> '{0}')",
        "json": "{0}::text",
    },
}

_RESULTS = """
SELECT c.name AS campaign, c.simulated AS simulated, c.site AS site,
       s.name AS system, k.text AS stack,
       r.run_id AS run, r.id AS run_number, {moment r.started_at} AS started,
       r.phase AS phase, r.block AS block, r.position AS position,
       t.number AS trial, t.origin AS origin,
       r.outcome AS outcome, r.detail AS detail, r.exit_code AS exit_code, r.wall_s AS wall_s,
       r.oversubscribed AS oversubscribed, r.other_load AS other_load,
       r.nodes AS node_names, r.distance AS distance,
       {text backend} AS backend, {number ranks} AS ranks, {number nodes} AS nodes,
       {text dtype} AS dtype, coalesce(m.operation, r.operation) AS operation, m.bytes AS bytes,
       m.median_s AS median_s, m.min_s AS min_s, m.mean_s AS mean_s, m.p95_s AS p95_s,
       m.max_s AS max_s, m.first_call_s AS first_call_s,
       m.algbw AS algbw_bytes_per_s, m.busbw AS busbw_bytes_per_s,
       m.n_samples AS samples, m.batch AS batch, m.wrong AS wrong_elements,
       m.canary_s AS canary_s, m.canary_after_s AS canary_after_s,
       {json g.environment} AS configuration
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
JOIN trials t ON t.id = r.trial_id
JOIN configurations g ON g.id = r.configuration_id
LEFT JOIN measurements m ON m.run_id = r.id
WHERE r.state = 'stored'
"""

_CAMPAIGNS = """
SELECT c.name AS campaign, c.simulated AS simulated, c.site AS site,
       s.name AS system, k.text AS stack,
       {moment c.created} AS created, {moment c.finished} AS finished,
       {moment r.last_run} AS last_run, l.host AS controller_host,
       {moment l.heartbeat} AS controller_heartbeat,
       (SELECT count(*) FROM trials t WHERE t.campaign_id = c.id) AS trials,
       coalesce(r.runs, 0) AS runs, coalesce(r.ok, 0) AS runs_ok,
       coalesce(r.runs - r.ok - r.lost, 0) AS runs_failed, coalesce(r.lost, 0) AS runs_lost,
       coalesce(r.measured_s, 0) AS measured_s,
       (SELECT coalesce(sum(j.node_hours), 0) FROM jobs j WHERE j.campaign_id = c.id)
         AS node_hours,
       (SELECT count(*) FROM profiles p WHERE p.campaign_id = c.id) AS profiles
FROM campaigns c
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
LEFT JOIN locks l ON l.campaign_id = c.id
LEFT JOIN (
  SELECT campaign_id, max(started_at) AS last_run, sum(wall_s) AS measured_s,
         sum(CASE WHEN state = 'stored' THEN 1 ELSE 0 END) AS runs,
         sum(CASE WHEN state = 'stored' AND outcome = 'ok' THEN 1 ELSE 0 END) AS ok,
         sum(CASE WHEN state = 'stored' AND outcome IN {lost} THEN 1 ELSE 0 END) AS lost
  FROM runs GROUP BY campaign_id
) r ON r.campaign_id = c.id
"""

_PROFILES = """
SELECT p.id AS number, c.name || '/' || p.name AS profile, p.simulated AS simulated,
       c.site AS site, s.name AS system, k.text AS stack, {moment p.created} AS created,
       p.operation AS operation, p.backend AS backend, p.ranks AS ranks, p.nodes AS nodes,
       p.bytes_low AS bytes_low, p.bytes_high AS bytes_high, {verdict} AS verdict,
       {json g.environment} AS configuration, p.level AS level, p.minimum_gain AS minimum_gain,
       p.note AS note
FROM profiles p
JOIN campaigns c ON c.id = p.campaign_id
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
JOIN configurations g ON g.id = p.configuration_id
"""

_EVIDENCE = """
SELECT p.id AS number, c.name || '/' || p.name AS profile, p.simulated AS simulated,
       x.is_guard AS is_guard,
       (NOT x.is_guard AND x.bytes BETWEEN p.bytes_low AND p.bytes_high) AS in_range,
       x.operation AS operation, x.bytes AS bytes, x.speed AS machine_state,
       x.default_s AS default_s, x.tuned_s AS tuned_s,
       x.ratio AS speedup, x.low AS low, x.high AS high, x.pairs AS pairs,
       x.verdict AS verdict, x.share AS share
FROM profile_points x
JOIN profiles p ON p.id = x.profile_id
JOIN campaigns c ON c.id = p.campaign_id
"""

_VIEWS = {
    "results": _RESULTS,
    "campaigns_overview": _CAMPAIGNS,
    "profiles_overview": _PROFILES,
    "profile_evidence": _EVIDENCE,
}


def make_views(connection: sa.Connection) -> None:
    """Creates the views in a database that has none."""
    words = _WORDS[connection.dialect.name]
    for name, query in _VIEWS.items():
        filled = re.sub(r"\{(\w+) (\S+)\}", lambda found: words[found[1]].format(found[2]), query)
        filled = filled.format(lost=_LOST, verdict=VERDICT)
        # Without text(), which would take the colons of the time format for parameters.
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {filled}")


def drop_views(connection: sa.Connection) -> None:
    """Drops the views, which hold no data, before a migration of the tables that they read."""
    for name in _VIEWS:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
