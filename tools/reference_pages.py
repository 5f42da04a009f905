"""Writes the pages of the site that say of each path of the agent, and of each name of the C++ library, what it does: from
docs/openapi.yaml and from the headers. They are made at each build of the site, and are no files of the repository.

MkDocs calls it (`hooks:` in mkdocs.yml)."""

import pathlib
import re

import yaml
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The library itself, then what its functions take and give.
HEADERS = [
    "api/berth",
    *"base/error request/request device/device verdict/verdict queue/standing".split(),
]


def on_files(files, config):
    pages = {"reference/http.md": http_page(), "reference/cpp.md": cpp_page()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def http_page() -> str:
    document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    text = (
        "# HTTP\n\nEvery path of the agent (`berth serve`) and of the hub. The file [openapi.yaml](../openapi.yaml) says the same to "
        f"programs; [the agent](../serve.md) says how to start it.\n\n{document['info']['description']}\n"
    )
    for path, item in document["paths"].items():
        operation = item["get"]
        text += f"\n## `GET {path}`\n\n{operation['summary']}\n"
        text += parameters(operation.get("parameters", [])) + answers(operation["responses"], document)
    return text


def parameters(told: list) -> str:
    if not told:
        return ""
    rows = "".join(
        f"| `{each['name']}` | {each['in']} | {cell(each.get('description', ''))} | {cell(values(each))} |\n"
        for each in told
    )
    return f"\n| Parameter | In | What | Values |\n|---|---|---|---|\n{rows}"


def values(parameter: dict) -> str:
    schema = parameter["schema"]
    said = [", ".join(f"`{each}`" for each in schema["enum"])] if "enum" in schema else []
    said += [f"at least {schema['minimum']}"] if "minimum" in schema else []
    said += [f"at most {schema['maximum']}"] if "maximum" in schema else []
    said += ["required"] if parameter.get("required") else []
    said += [f"`{schema['default']}` if it is not given"] if "default" in schema else []
    said += [f"for example `{parameter['example']}`"] if "example" in parameter else []
    return "; ".join(said)


def answers(responses: dict, document: dict) -> str:
    text = "\n| Status | When, and what the answer has | Form |\n|---|---|---|\n"
    for status, response in responses.items():
        if "$ref" in response:
            response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        text += f"| {status} | {cell(response['description'])} | {forms(response.get('content', {}))} |\n"
    return text


def forms(content: dict) -> str:
    said = []
    for kind, what in content.items():
        schema = what["schema"].get("$ref", "")
        said.append(f"[{schema.rsplit('/', 1)[1]}](../{schema})" if schema.endswith(".json") else kind)
    return ", ".join(said)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def cpp_page() -> str:
    text = "# C++\n\nA program finds the library with `find_package(berth)` and includes `<berth/berth.h>`.\n"
    for header in HEADERS:
        source = next((ROOT / "src").glob(f"*/{header}.h")).read_text()
        shown = "berth/berth.h" if header == "api/berth" else f"berth/{header}.h"
        text += f"\n## `<{shown}>`\n"
        about, body = split_at_namespace(source)
        text += f"\n{about}\n" if about else ""
        text += "".join(declaration(comment, code) for comment, code in declarations(body))
    return text


def split_at_namespace(source: str) -> tuple[str, str]:
    """What is said of the whole, and what is inside of the namespace."""
    # A `.` would go over the ends of lines, and try each way to cut a comment in parts.
    inside = r"((?:^///[^\n]*\n)*)^namespace berth \{\n(.*)^\}  // namespace berth"
    found = re.search(inside, source, re.M | re.S)
    return without_slashes(found[1]), found[2]


def without_slashes(comment: str) -> str:
    return re.sub(r"^\s*/// ?", "", comment, flags=re.M).strip()


def declarations(body: str):
    """Each documented declaration: what is said of it, and its code."""
    lines, comment = iter(body.splitlines()), []
    for line in lines:
        if line.startswith("///"):
            comment.append(line)
            continue
        if not comment:
            continue
        code, depth = [line], line.count("{") - line.count("}")
        while depth > 0 or not re.search(r"[;}]\s*(//.*)?$", code[-1]):
            code.append(next(lines))
            depth += code[-1].count("{") - code[-1].count("}")
        yield without_slashes("\n".join(comment)), "\n".join(code)
        comment = []


def declaration(comment: str, code: str) -> str:
    public = re.sub(r"^ private:\n(?:.*\n)*?(?=^\})", "", code, flags=re.M)
    # Of a function that is written out, what it is called with.
    if not re.match(r"(struct|class|enum)\b", public):
        public = re.sub(r" \{\n.*", ";", public, count=1, flags=re.S)
    return f"\n### {name_of(code)}\n\n{comment}\n\n```cpp\n{public.rstrip()}\n```\n"


def name_of(code: str) -> str:
    found = re.match(r"(?:template <[^\n]*\n)?(?:struct|class|enum class) (\w+)", code)
    found = found or re.search(r"(\w+|operator\S+)\(", code) or re.search(r"(\w+)\s*(?:=|\{|;)", code)
    return f"`{found[1]}`"
