"""Makes an archive of an image again: its layers and its configuration, without what names the machine of the build.

    deploy/image.py ARCHIVE OUT TIME LEVEL

Docker's format records the name and the id of the container of each build, so that no two builds are the same. The
format of OCI does not, and has no health check.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile

# What a build records of itself.
OF_THE_BUILD = ("container", "container_config", "id", "parent", "docker_version")


def configuration(text):
    """The configuration of an image, as bytes that depend on its content alone."""
    made = json.loads(text)
    for key in OF_THE_BUILD:
        made.pop(key, None)
    made["config"]["Hostname"] = ""
    made["config"]["Labels"].pop("io.buildah.version", None)
    for step in made["history"]:
        step.pop("comment", None)
    return json.dumps(made, sort_keys=True).encode()


def main(archive, out, time, level):
    with tarfile.open(archive) as built:
        (image,) = json.load(built.extractfile("manifest.json"))
        layers = {name: built.extractfile(name).read() for name in image["Layers"]}
        config = configuration(built.extractfile(image["Config"]).read())
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": image["RepoTags"], "Layers": list(layers)}]
    files = {**layers, name: config, "manifest.json": json.dumps(manifest).encode()}
    with (
        open(out, "wb") as raw,
        gzip.GzipFile("", "wb", int(level), raw, int(time)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as made,
    ):
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), int(time), 0o644
            made.addfile(entry, io.BytesIO(content))


main(*sys.argv[1:])
