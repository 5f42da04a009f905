"""Checks real output against docs/schema."""

import json
import pathlib

import jsonschema
import referencing
import yaml

FOLDER = pathlib.Path(__file__).parents[2] / "docs/schema"
OPENAPI = yaml.safe_load((FOLDER.parent / "openapi.yaml").read_text())
# As the document names them.
SCHEMAS = referencing.Registry().with_resources(
    (f"schema/{path.name}", referencing.Resource.from_contents(json.loads(path.read_text())))
    for path in FOLDER.glob("*.json")
)


def checked(answer, kind: str):
    """The JSON of an answer, which must be what the schema of `kind` says."""
    assert answer.status in (0, 1), answer.err
    return checked_document(answer.json, kind)


def checked_document(document, kind: str):
    schema = json.loads((FOLDER / f"{kind}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    return document


def described_answer(path: str, status: int) -> dict | None:
    """What docs/openapi.yaml says of it; None: that it does not occur."""
    described = OPENAPI["paths"][path]["get"]["responses"].get(str(status))
    if described and "$ref" in described:
        described = OPENAPI["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
    return described


def check_described(described: dict, document) -> None:
    """The JSON of an answer must be what is described."""
    schema = described["content"]["application/json"]["schema"] | {"components": OPENAPI["components"]}
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator, registry=SCHEMAS)
