"""The components of the binary from Cargo.lock and `cargo tree`: a CycloneDX document, and a list of their licences.

    deploy/sbom.py VERSION SBOM LICENCES

Only what is compiled into the binary or runs while it is compiled; the same input gives the same bytes.
"""

import json
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = "x86_64-unknown-linux-gnu"


def components():
    """Name, version, licence and repository of each package, sorted."""
    command = ["cargo", "tree", "--locked", "--package", "trestle", "--edges", "normal,build", "--target", TARGET]
    command += ["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}|{r}"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = set()
    for line in listed.splitlines():
        package, licence, repository = line.removesuffix(" (*)").split("|")
        name, version, *origin = package.split()
        # Packages of the workspace are the product itself.
        if not any(part.startswith("(/") for part in origin):
            found.add((name, version.removeprefix("v"), licence.replace("/", " OR "), repository))
    return sorted(found)


def checksums():
    """The SHA-256 of each package of the lock file."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in packages}


def document(version, found):
    """The CycloneDX document."""
    hashes = checksums()

    def component(name, number, licence, repository):
        made = {
            "type": "library",
            "bom-ref": f"pkg:cargo/{name}@{number}",
            "name": name,
            "version": number,
            "purl": f"pkg:cargo/{name}@{number}",
            "hashes": [{"alg": "SHA-256", "content": hashes[name, number]}],
            "licenses": [{"expression": licence}],
        }
        if repository:
            made["externalReferences"] = [{"type": "vcs", "url": repository}]
        return made

    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:cargo/trestle@{version}",
                "name": "trestle",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [component(*one) for one in found],
    }


def main(version, sbom, licences):
    found = components()
    without = [name for name, _, licence, _ in found if not licence]
    assert found and not without, f"no licence: {without}"
    pathlib.Path(sbom).write_text(json.dumps(document(version, found), indent=2) + "\n")
    lines = [f"{name} {number}: {licence}\n  {repository}\n" for name, number, licence, repository in found]
    pathlib.Path(licences).write_text("".join(lines))


main(*sys.argv[1:])
