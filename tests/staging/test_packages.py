"""A release: made twice with the same bytes, installed as in docs/install.md, with a unit that systemd accepts."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from stack import DEPLOY, ENGINE, run

ROOT = DEPLOY.parent
# The exposure that `systemd-analyze security` may find, in tenths.
EXPOSURE_MAX = 30
# Files and folders of the package that only the server reads.
PRIVATE = {
    "/etc/trestle": "750 root:trestle",
    "/etc/trestle/trestle.toml": "640 root:trestle",
    "/etc/trestle/trestle.key": "640 root:trestle",
}

# Runs a script on a copy of this machine's root, which is removed afterwards.
ON_A_COPY = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
cp "$2" "$1/root/trestle.deb"
chroot "$1/root" sh -e -c "$3"
"""

INSTALL = f"""
dpkg --install /trestle.deb
for file in {" ".join(PRIVATE)}; do stat --format='private %a %U:%G %n' $file; done
id trestle
setpriv --reuid=trestle --regid=trestle --clear-groups trestle config check --config /etc/trestle/trestle.toml
setpriv --reuid=trestle --regid=trestle --clear-groups trestle config print --config /etc/trestle/trestle.toml
mkdir /var/lib/trestle
echo '# changed' >>/etc/trestle/trestle.toml
cp /etc/trestle/trestle.key /first.key
dpkg --install /trestle.deb
grep -x '# changed' /etc/trestle/trestle.toml
cmp /first.key /etc/trestle/trestle.key && test "$(wc -c </first.key)" = 88
dpkg --purge trestle
test ! -e /etc/trestle/trestle.key
test -d /var/lib/trestle && echo 'the data is there'
"""

VERIFY = f"""
dpkg --install /trestle.deb
systemd-analyze verify --man=no /lib/systemd/system/trestle.service
systemd-analyze security --offline=true --threshold={EXPOSURE_MAX} /lib/systemd/system/trestle.service
"""


def needs(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    return pytest.mark.skipif(bool(missing), reason=f"not on this machine: {missing}")


@pytest.fixture(scope="module")
def release():
    """The folder of a release of the binary of the suite, which was made twice."""
    # Less compressed than a release: the binary of the suite has no optimisation.
    printed = run([DEPLOY / "release.sh", "--twice"], env={**os.environ, "COMPRESSION": "1"})
    assert "made twice, with the same bytes" in printed
    (folder,) = (pathlib.Path(line) for line in re.findall(r"^release: (.+)$", printed, re.M))
    return ROOT / folder


def ending(release, text):
    (found,) = (file for file in release.iterdir() if file.name.endswith(text))
    return found


def documented(heading):
    """The commands of the first block under a heading of docs/install.md."""
    page = (ROOT / "docs" / "install.md").read_text().split(f"## {heading}\n")[1]
    return page.split("```sh\n")[1].split("```")[0]


def on_a_copy(place, release, script):
    """Runs a script on a copy of this machine that has the package as a file; what it printed."""
    package = ending(release, ".deb")
    return run(["unshare", "--mount", "sh", "-e", "-c", ON_A_COPY, "sh", place, package, script])


@needs("dpkg-deb", "git")
def test_the_documented_commands_check_and_run_a_release(release, tmp_path):
    copied = tmp_path / "release"
    shutil.copytree(release, copied)

    printed = run(["sh", "-e", "-c", documented("From a release")], cwd=copied)

    assert "trestle_0.1.0_amd64.deb: OK" in printed
    assert printed.splitlines()[-1].startswith("trestle ")


@needs("dpkg-deb", "git")
def test_components_have_licences(release):
    found = json.loads(ending(release, ".cdx.json").read_text())["components"]
    assert len(found) > 100 and all(one["licenses"] and one["hashes"] for one in found)
    licences = ending(release, "THIRD-PARTY.txt").read_text()
    assert all(f"{one['name']} {one['version']}: " in licences for one in found)


@needs("dpkg-deb", "git", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install packages")
def test_the_package_installs_upgrades_and_leaves_the_data(release, tmp_path):
    printed = on_a_copy(tmp_path, release, INSTALL)

    for path, owner in PRIVATE.items():
        assert f"private {owner} {path}" in printed
    assert "the configuration is valid: /etc/trestle/trestle.toml" in printed
    assert 'development_account = "off"' in printed and "[accounts.trestle]" in printed
    assert printed.splitlines()[-1] == "the data is there"


@needs("dpkg-deb", "git", "unshare", "systemd-analyze")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install packages")
def test_systemd_accepts_the_unit(release, tmp_path):
    on_a_copy(tmp_path, release, VERIFY)


@needs("dpkg-deb", "git")
@pytest.mark.skipif(ENGINE != "podman", reason="images of a release are made by podman")
def test_the_image_holds_one_file_and_no_privileges(release, tmp_path):
    with tarfile.open(ending(release, "-image.tar.gz")) as image:
        (manifest,) = json.load(image.extractfile("manifest.json"))
        config = json.load(image.extractfile(manifest["Config"]))
        names = []
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as content:
                names += [(one.name, one.isfile(), one.uid) for one in content.getmembers()]
    assert [name for name, is_file, _ in names if is_file] == ["trestle"]
    assert ("data", False, 65532) in [(name.strip("/"), is_file, uid) for name, is_file, uid in names]
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Healthcheck"]["Test"] == ["CMD", "/trestle", "healthcheck"]
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.revision"] == run(["git", "rev-parse", "HEAD"], cwd=ROOT).strip()
