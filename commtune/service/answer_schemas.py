"""The OpenAPI schemas of answers: which configuration is best, what is wrong, what was ended.

The first describe what ``answers.answer_question`` and ``answers.size_table_data`` return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.app.profiles.explained import Answer, Support
from commtune.model import Verdict
from commtune.service.replies import ERROR_CODES

_Schema = dict[str, Any]


def _typed(kind: str | list[str], meaning: str = "", **more: Any) -> _Schema:
    return {"type": kind, **({"description": meaning} if meaning else {}), **more}


def _record(fields: Mapping[str, _Schema], meaning: str = "") -> _Schema:
    """Returns the schema of an object that has all of these fields, and perhaps others."""
    return _typed("object", meaning, required=list(fields), properties=dict(fields))


def _list_of(name: str, meaning: str) -> _Schema:
    return _typed("array", meaning, items=_named(name))


def _settings(meaning: str) -> _Schema:
    return _typed("object", meaning, additionalProperties={"type": "string"})


def _named(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_NUMBER = ["number", "null"]  # infinities and NaN are null
_VERDICTS = list(Verdict)

_SPEEDUP = _record(
    {
        "ratio": _typed(_NUMBER, "default's time / tuned time: above 1, the tuned one is faster"),
        "low": _typed(_NUMBER, "lower end of the interval"),
        "high": _typed(_NUMBER, "upper end"),
        "pairs": _typed("integer", "pairs that it rests on"),
    },
    "speedup with its confidence interval",
)
_POINT = {
    "operation": _typed("string"),
    "bytes": _typed("integer"),
    "speed": _typed("string", "machine state; `all`: over all states"),
    "default_s": _typed(_NUMBER, "time of the default"),
    "tuned_s": _typed(_NUMBER, "time of the configuration"),
    "gain": _SPEEDUP,
    "verdict": _typed("string", enum=_VERDICTS),
    "share": _typed("number", "of the size's pairs that were in this machine state"),
}
_TAIL = {
    "bytes": _typed("integer"),
    "pairs": _typed("integer", "pairs of runs, in any machine state"),
    "slow_runs": _typed("integer", "of the configuration: over 1.5 times its median"),
    "default_slow_runs": _typed("integer", "the same of the default"),
    "mean_ratio": _typed("number", "mean time of the default / mean time of the configuration"),
    "mean_low": _typed("number", "lower end of its 95 % interval, which is by itself"),
    "mean_high": _typed("number", "upper end"),
    "p95_ratio": _typed("number", "the same of 95th percentiles, without an interval"),
}
_ROW = {
    "id": _typed("integer", "number of the profile"),
    "name": _typed("string", "of the profile: CAMPAIGN/NAME finds it"),
    "campaign": _typed("string"),
    "operation": _typed("string"),
    "backend": _typed("string"),
    "ranks": _typed("integer"),
    "nodes": _typed("integer"),
    "bytes_low": _typed("integer", "smallest size of the profile's range"),
    "bytes_high": _typed("integer", "largest size of the range"),
    "configuration": _settings("tuned variables; none if the default stays"),
    "pinned": _settings("variables that every run had, the default's too"),
    "verdict": _typed("string", "on the profile's range", enum=_VERDICTS),
    "finding": _typed("string", "verdict at the one size", enum=_VERDICTS),
    "nearest_bytes": _typed(["integer", "null"], "measured size nearest to the one asked for"),
    "points": _list_of("Point", "evidence at that size, one for each machine state"),
    "level": _typed("number", "confidence level of each interval by itself"),
    "simultaneous_level": _typed(_NUMBER, "level at which all of the campaign hold together"),
    "minimum_gain": _typed("number", "smallest speedup that is recommended: 0.02 is 2 %"),
    "note": _typed("string"),
    "system": _typed("string", "machine that it holds for"),
    "system_fingerprint": _typed("string"),
    "stack": _typed("string", "communication software that it holds for"),
    "stack_fingerprint": _typed("string"),
    "conditions": _typed("object", "what was unusual: an aggressor, emulated nodes, the timing"),
    "workload": _typed("object", "of the campaign"),
    "timing": _typed("object", "of the campaign"),
    "space": _typed("string", "name of the search space"),
    "simulated": _typed("boolean", "whether it is from a simulation or a replayed recording"),
    "created": _typed("number", "when the profile was stored"),
    "site": _typed("string", "site that measured it; empty for this one"),
}
_ENVIRONMENT = _settings("what to set; empty unless recommended for a real machine")
_WHY = _typed("string", "why the default stays, in words; empty if it doesn't")
_BEST = _ROW | {
    "answer": _typed("string", enum=list(Answer)),
    "reason": _typed(
        "string", "why the default stays", enum=["", "ruled-out", "withdrawn", "inconclusive"]
    ),
    "why": _WHY,
    "environment": _ENVIRONMENT,
    "tail": {"oneOf": [_named("Tail"), {"type": "null"}]},
    "strength": _typed("object", "what the profile rests on"),
    "likely": _typed(["object", "null"], "profile with a likely, unproven speedup"),
    "of_nominal": _typed(["object", "null"], "`share` of the nominal bandwidth, if it is known"),
    "support": _typed("string", "whether the size was measured", enum=list(Support)),
    "neighbours": _list_of(
        "Neighbour", "answers at the measured sizes below and above one that wasn't"
    ),
}
_SIZE = {"bytes": _typed("integer", "size that it is about")}
_ANSWER = {
    "answer": _typed("string", enum=list(Answer)),
    "message": _typed("string"),
    "hint": _typed("string"),
    "environment": _ENVIRONMENT,
    "best": {"oneOf": [_named("Best"), {"type": "null"}]},
    "others": _list_of("Row", "further answers; with `others=explained` like `best`"),
}
_PROBLEM = {
    "code": _typed("string", enum=ERROR_CODES),
    "message": _typed("string", "what is wrong"),
    "hint": _typed("string", "what to do"),
}

#: Components of the OpenAPI document, by name.
ANSWER_SCHEMAS: Mapping[str, _Schema] = {
    "Error": _record({"error": _record(_PROBLEM)}),
    "Answer": _record(_ANSWER),
    "Best": _record(_BEST),
    "Row": _record(_ROW),
    "Neighbour": _record(_ROW | _SIZE | {"why": _WHY}),
    "Point": _record(_POINT),
    "Tail": _record(_TAIL, "what stands beside the speedup at `nearest_bytes`"),
    "BestOfSize": _record(_BEST | _SIZE),
}
#: The schema of an answer about one size, or about every size.
BEST_SCHEMA: _Schema = {
    # Where nothing is known about any size, it is both.
    "anyOf": [_named("Answer"), _record({"sizes": _list_of("BestOfSize", "one for each size")})]
}
#: The schema of the answer of a POST that ends a campaign.
CANCEL_SCHEMA = _record(
    {"campaign": _typed("string"), "message": _typed("string", "what was ended")}
)
