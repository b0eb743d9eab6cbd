"""Generates the OpenAPI document from the table of endpoints."""

from __future__ import annotations

from typing import Any

from commtune import __version__
from commtune.service import control
from commtune.service.answer_schemas import ANSWER_SCHEMAS, CANCEL_SCHEMA
from commtune.service.api import CAMPAIGN_IN_PATH, PREFIX, QUESTIONS, Question

_WRONG = {
    "description": "An error in words",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_STATUSES = ("400", "401", "404", "409", "414", "500", "503")


def openapi_document(prefix: str = "", *, has_control: bool = False) -> dict[str, Any]:
    """Returns the OpenAPI document of a service, which may be able to end campaigns."""
    asked: dict[str, Any] = {one.path: {"get": _operation(one)} for one in QUESTIONS}
    more = {control.CANCEL: {"post": _cancel()}} if has_control else {}
    token = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "commtune",
            "version": __version__,
            "description": "What campaigns measured. Times are seconds, times of day seconds "
            "since 1970, sizes bytes, bandwidths bytes per second.",
        },
        "servers": [{"url": f"{prefix}{PREFIX}"}],
        "security": [{"token": []}],
        "paths": asked | more,
        "components": {
            "schemas": ANSWER_SCHEMAS,
            "securitySchemes": {"token": token, **({"control": token} if has_control else {})},
        },
    }


def _cancel() -> dict[str, Any]:
    """Returns the operation that ends a campaign."""
    done = {"content": {"application/json": {"schema": CANCEL_SCHEMA}}}
    return {
        "summary": "Ends a campaign's jobs, or its controller on the service's machine",
        "security": [{"control": []}],
        "parameters": [CAMPAIGN_IN_PATH.document("path")],
        "responses": {
            "200": {"description": "What was ended", **done},
            **dict.fromkeys(("403", *_STATUSES), _WRONG),
        },
    }


def _operation(question: Question) -> dict[str, Any]:
    parameters = [
        *(one.document("path") for one in question.in_path),
        *(one.document() for one in question.parameters),
    ]
    answer = {"content": {question.kind: {"schema": dict(question.schema)}}}
    free: dict[str, Any] = {"security": []} if question.path == "/health" else {}
    return {
        "summary": question.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "The answer", **answer},
            "304": {"description": "Unchanged: If-None-Match holds its ETag"},
            **dict.fromkeys(_STATUSES, _WRONG),
        },
        **free,
    }
