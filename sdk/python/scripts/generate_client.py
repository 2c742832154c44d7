"""Writes src/godwit/client/generated.py from the server's OpenAPI document: the types of the native API and a thin class
with one method for each operation. With --check it writes nothing and fails if the file is not current.

    python3 scripts/generate_client.py [--check]
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT.parent.parent / "spec" / "openapi.json"
TARGET = ROOT / "src" / "godwit" / "client" / "generated.py"
WIDTH = 120

Schema = dict[str, Any]


def generate(document: Schema) -> str:
    schemas = sorted(document["components"]["schemas"].items())
    types = [text for name, schema in schemas for text in typed_dict(name, schema)]
    calls = [
        (path, method, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    listed = [
        f'    ("{snake(operation["operationId"])}", "{method.upper()}", "{path}"),' for path, method, operation in calls
    ]
    methods = [method_source(path, method, operation) for path, method, operation in calls]
    return "\n".join(
        [
            "# Made by scripts/generate_client.py from spec/openapi.json; do not edit.",
            '"""The native API of a Godwit server: its types, and a method for each operation."""',
            "",
            "from __future__ import annotations",
            "",
            "from collections.abc import Iterator",
            "from typing import Any, Literal, TypedDict, Union",
            "",
            "from .transport import Payload, Transport, path_segment",
            "",
            "",
            "\n\n\n".join(types),
            "",
            "",
            "OPERATIONS: tuple[tuple[str, str, str], ...] = (",
            *listed,
            ")",
            '"""Each method of the client, with the operation that it calls."""',
            "",
            "",
            "class GodwitClient(Transport):",
            '    """The native API: one method for each operation."""',
            "",
            "\n\n".join(methods),
            "",
        ]
    )


def docstring(text: str | None, indent: str) -> list[str]:
    if not text:
        return []
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    text = text + " " if text.endswith('"') else text
    lines = [line for p in text.strip().split("\n") for line in (textwrap.wrap(p, WIDTH - len(indent) - 6) or [""])]
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def typed_dict(name: str, schema: Schema) -> Iterator[str]:
    """Members that need not be there are in a class of their own: NotRequired came with Python 3.11 only."""
    required = set(schema.get("required", []))
    members = schema.get("properties", {})
    needed = {m: s for m, s in members.items() if m in required}
    optional = {m: s for m, s in members.items() if m not in required}
    bases = []
    # A member such as `from` cannot be written in a class.
    if needed and (optional or not plain(needed)):
        bases.append(f"_{name}Required")
        yield members_source(bases[-1], "TypedDict", needed)
        needed = {}
    if optional and not plain(optional):
        bases.append(f"_{name}Optional")
        yield members_source(bases[-1], "TypedDict, total=False", optional)
        optional = {}
    listed = ", ".join(bases or ["TypedDict"]) + (", total=False" if optional else "")
    yield class_source(name, listed, schema.get("description"), needed or optional)


def plain(members: Schema) -> bool:
    return all(m.isidentifier() and not keyword.iskeyword(m) for m in members)


def members_source(name: str, bases: str, members: Schema) -> str:
    if plain(members):
        return class_source(name, bases, None, members)
    listed = ", ".join(f'"{m}": "{type_of(s)}"' for m, s in members.items())
    total = ", total=False" if "total" in bases else ""
    return f'{name} = TypedDict("{name}", {{{listed}}}{total})'


def class_source(name: str, bases: str, description: str | None, members: Schema) -> str:
    lines = [f"class {name}({bases}):", *docstring(description, "    ")]
    if description and members:
        lines.append("")
    for member, schema in members.items():
        lines.append(f"    {member}: {type_of(schema)}")
        lines += docstring(schema.get("description"), "    ")
    return "\n".join(lines if members or description else [*lines, "    pass"])


def type_of(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return union([type_of(s) for s in schema[several]])
    if "enum" in schema:
        return f"Literal[{', '.join('None' if value is None else json.dumps(value) for value in schema['enum'])}]"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return union([plain_type(kind, schema) for kind in kinds]) if kinds else "Any"


def union(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"Union[{', '.join(types)}]"


def plain_type(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        extra = schema.get("additionalProperties")
        return f"dict[str, {type_of(extra) if isinstance(extra, dict) else 'Any'}]"
    return {"string": "str", "boolean": "bool", "null": "None", "integer": "int", "number": "float"}[kind]


def snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def option_name(parameter: Schema) -> str:
    """How a parameter is called: headers lose the server's name, `attr.NAME` is a dictionary."""
    name = str(parameter["name"])
    # Header fields name the tenant and the environment of every request; a parameter of the same name gets another.
    if parameter["in"] == "query" and name in ("tenant", "environment"):
        return f"{name}_id"
    name = name.removeprefix("Godwit-") if parameter["in"] == "header" else name.removesuffix(".NAME")
    name = snake(name)
    return f"{name}_" if keyword.iskeyword(name) else name


def method_source(path: str, method: str, operation: Schema) -> str:
    parameters = operation.get("parameters", [])
    in_path = [p for p in parameters if p["in"] == "path"]
    others = [p for p in parameters if p["in"] != "path"]
    signature = ["self", *(f"{snake(p['name'])}: str" for p in in_path)]
    body = body_type(operation)
    if body is not None:
        required = operation["requestBody"].get("required", False)
        signature.append(f"body: {body}" if required else f"body: {body} | None = None")
    if others:
        signature.append("*")
    for p in others:
        kind = "dict[str, str]" if p["name"].endswith(".NAME") else type_of(p.get("schema", {}))
        signature.append(f"{option_name(p)}: {kind} | None = None")
    call = [f'"{method.upper()}"', path_source(path)]
    for place, argument in (("query", "query"), ("header", "headers")):
        given = [f'"{p["name"]}": {option_name(p)}' for p in others if p["in"] == place]
        if given:
            call.append(f"{argument}={{{', '.join(given)}}}")
    if body is not None:
        call.append("body=body")
    returns, statement = response(operation)
    return "\n".join(
        [
            f"    def {snake(operation['operationId'])}(",
            *(f"        {argument}," for argument in signature),
            f"    ) -> {returns}:",
            *docstring(method_text(operation, others), "        "),
            f"        {statement}(",
            *(f"            {argument}," for argument in call),
            "        )",
            *(["        return answer"] if statement.startswith("answer") else []),
        ]
    )


def method_text(operation: Schema, parameters: list[Schema]) -> str:
    described = [f"{option_name(p)}: {text}" for p in parameters if (text := parameter_text(p))]
    parts = [f"{operation.get('summary', '')}.", operation.get("description", ""), "\n".join(described)]
    return "\n\n".join(part for part in parts if part)


def parameter_text(parameter: Schema) -> str | None:
    if parameter["name"] == "Idempotency-Key":
        return (
            "16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key and payload gets "
            "the first answer again."
        )
    text: str | None = parameter.get("description") or parameter.get("schema", {}).get("description")
    return text


def path_source(path: str) -> str:
    if "{" not in path:
        return f'"{path}"'
    filled = re.sub(r"\{(\w+)\}", lambda m: f"{{path_segment({snake(m.group(1))})}}", path)
    return f'f"{filled}"'


def body_type(operation: Schema) -> str | None:
    content = operation.get("requestBody", {}).get("content")
    if content is None:
        return None
    types = [type_of(c["schema"]) if media == "application/json" else "Payload" for media, c in content.items()]
    return " | ".join(sorted(set(types)))


def response(operation: Schema) -> tuple[str, str]:
    """The type of the answer, and the beginning of the statement that gets it."""
    answers: list[Schema] = [r for status, r in operation["responses"].items() if status.startswith("2")]
    if len(answers) > 1:  # what is asked first, and what was done then
        kinds = [type_of(r["content"]["application/json"]["schema"]) if "content" in r else "None" for r in answers]
        return " | ".join(kinds), f"answer: {' | '.join(kinds)} = self._json"
    good: Schema = answers[0] if answers else {}
    content: list[tuple[str, Schema]] = list(good.get("content", {}).items())
    if not content:
        return "None", "self._bytes"
    media, described = content[0]
    kind = type_of(described.get("schema", {}))
    if media == "application/json":
        return kind, f"answer: {kind} = self._json"
    if media in ("application/x-ndjson", "text/event-stream"):
        return f"Iterator[{kind}]", "return self._lines" if media == "application/x-ndjson" else "return self._events"
    return "bytes", "return self._bytes"


def main() -> int:
    made = generate(json.loads(SOURCE.read_text("utf-8")))
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(made, "utf-8")
        return 0
    if TARGET.read_text("utf-8") == made:
        return 0
    print(f"{TARGET.name} is not current: run python3 scripts/generate_client.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
