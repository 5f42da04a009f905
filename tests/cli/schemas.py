"""Checks real output against docs/schema."""

import json
import pathlib

import jsonschema

FOLDER = pathlib.Path(__file__).parents[2] / "docs/schema"


def checked(answer, kind: str):
    """The JSON of an answer, which must be what the schema of `kind` says."""
    assert answer.status in (0, 1), answer.err
    return checked_document(answer.json, kind)


def checked_document(document, kind: str):
    schema = json.loads((FOLDER / f"{kind}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    return document
