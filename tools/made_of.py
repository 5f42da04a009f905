"""What a release was made of, as CycloneDX: the commit, and each compiler, library and tool with its version and, where a list
of ours pins one, its hash.

    made_of.py TAG [PYTHON]

PYTHON is the one that has packed the wheels."""

import base64
import datetime
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
PYTHON = "build/cross/tools/bin/python"
# What else than sources of Debian's goes into a file; all other packages only help to make it.
INSIDE = {"openssl-src", "libz-sys", "libsqlite3-sys", "nanobind", "mkdocs-material", "iframe-worker"}
HASHES = {"sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}


def output(*command) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def component(purl_type: str, name: str, version: str, is_inside: bool, hashes=()) -> dict:
    """`hashes`: pairs of the algorithm and the digits."""
    escaped = name.replace("@", "%40")
    made = {
        "type": "library",
        "name": name,
        "version": version,
        "scope": "required" if is_inside else "excluded",
        "purl": f"pkg:{purl_type}/{escaped}@{version.replace('+', '%2B')}",
    }
    if hashes:
        made["hashes"] = [{"alg": HASHES[kind], "content": content} for kind, content in hashes]
    return made


def of_debian() -> list[dict]:
    """The packages that tools/setup.sh installs to build and to pack."""
    lists = re.findall(
        r"^(?:build|package)_packages=\((.*?)\)", (ROOT / "tools/setup.sh").read_text(), re.S | re.M
    )
    names = " ".join(lists).split()
    # What the name of a compiler stands for has its own version.
    names += re.findall(r"^Depends: .*?\b(g\+\+-\d+)", output("dpkg-query", "-s", "g++"), re.M)
    told = output("dpkg-query", "-W", "-f", "${binary:Package} ${Version}\\n", *names)
    rows = [line.split() for line in told.splitlines()]
    made = []
    for name, version in rows:
        name = name.partition(":")[0]
        is_inside = name.endswith("-dev") and name != "dpkg-dev" or name.startswith("g++-")
        made.append(component("deb/debian", name, version, is_inside))
    return made


def of_crates() -> list[dict]:
    text = (ROOT / "packaging/cross/Cargo.lock").read_text()
    found = re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"', text)
    return [
        component("cargo", name, version, name in INSIDE, [("sha256", digits)])
        for name, version, digits in found
    ]


def of_python_headers() -> list[dict]:
    lines = (ROOT / "packaging/cross/python-headers.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [
        component("maven/org.bytedeco", "cpython", version, False, [("sha256", digits)])
        for version, digits in rows
    ]


def of_page() -> list[dict]:
    packages = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    made = []
    for path, package in packages.items():
        if not path:
            continue
        name = path.rpartition("node_modules/")[2]
        kind, _, digits = package["integrity"].partition("-")
        made.append(
            component(
                "npm",
                name,
                package["version"],
                not package.get("dev") or name in INSIDE,
                [(kind, base64.b64decode(digits).hex())],
            )
        )
    return made


def of_python(python: str) -> list[dict]:
    told = json.loads(output(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"))
    pins = (ROOT / "web/node.txt").read_text()
    rows = [(each["name"], each["version"]) for each in told] + re.findall(r"^([\w-]+)==(\S+)", pins, re.M)
    return [component("pypi", name.lower(), version, name.lower() in INSIDE) for name, version in rows]


def made_of(tag: str, python: str) -> dict:
    version = re.search(r"^project\(berth VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    seconds, commit = output("git", "log", "-1", "--format=%ct %H").split()
    when = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "name": "berth", "version": version},
            "properties": [{"name": "tag", "value": tag}, {"name": "commit", "value": commit}],
        },
        "components": [*of_debian(), *of_crates(), *of_python_headers(), *of_page(), *of_python(python)],
    }


if __name__ == "__main__":
    print(json.dumps(made_of(sys.argv[1], *(sys.argv[2:] or [PYTHON])), indent=1))
