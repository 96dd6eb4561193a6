"""What can be known of the deployment's files without starting anything."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compose.conftest import ROOT, run, site_environ


@pytest.fixture
def site(compose_programs: None, tmp_path: Path) -> dict[str, str]:
    environ = site_environ({"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, tmp_path / "site")
    run("sh", "deploy/make_site.sh", env=environ)
    return environ


def test_docker_compose_reads_the_files(site: dict[str, str]) -> None:
    said = run("sh", "deploy/compose.sh", "config", "--services", env=site)
    assert set(said.split()) >= {"db", "redis", "migrate", "web", "dispatcher", "recorder", "worker", "proxy"}
    whole = run("sh", "deploy/compose.sh", "config", env=site)
    # No secret is written into what anybody may read of a container.
    for name in ("database_password", "redis_password", "worker_token"):
        assert (Path(site["LADDER_SITE"]) / name).read_text().strip() not in whole


def test_a_site_is_made_once_and_is_its_owners(site: dict[str, str]) -> None:
    folder = Path(site["LADDER_SITE"])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run("sh", "deploy/make_site.sh", env={**site, "LADDER_HOST": "another.example"})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert folder.stat().st_mode & 0o077 == 0
    assert re.fullmatch(rb"kn_[0-9a-f]{64}\n", before["worker_token"])


@pytest.mark.parametrize("known", ["172.31.251.8/30", "172.31.251.0/28", "172.31.250.0/23"])
def test_the_proxys_network_is_none_of_the_machines(compose_programs: None, tmp_path: Path, known: str) -> None:
    """On a machine of its own that has a route to this network."""
    if os.geteuid() != 0:
        pytest.skip("only root makes networks")
    environ = site_environ({"PATH": os.environ["PATH"]}, tmp_path / "site")
    made = f"ip link add known type bridge && ip link set known up && ip route add {known} dev known"
    run("unshare", "--net", "sh", "-c", f"{made} && sh deploy/make_site.sh", env=environ)
    settings = (tmp_path / "site" / "settings").read_text()
    subnet = re.search(r"^LADDER_FRONT_SUBNET=(\S+)$", settings, re.MULTILINE)
    assert subnet
    assert not ipaddress.ip_network(subnet[1]).overlaps(ipaddress.ip_network(known))


def test_every_image_is_pinned_and_no_frontend_is_fetched() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    images = re.findall(r"image: \"\$\{\w+:-([^}]+)\}\"", text)
    assert len(images) == 3
    for path in ROOT.glob("deploy/Dockerfile.*"):
        images += re.findall(r"^ARG BASE=(\S+)", path.read_text(), re.MULTILINE)
    for image in images:
        assert re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?-[a-z-]+|\S+@sha256:[0-9a-f]{64}", image), image
    for path in ROOT.glob("deploy/Dockerfile.*"):
        assert "# syntax=" not in path.read_text()


@pytest.mark.parametrize("path", sorted(ROOT.glob("deploy/*.sh")), ids=lambda path: path.name)
def test_the_scripts_are_sh(path: Path) -> None:
    assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "kernel-ladder-node.service"
    text = (ROOT / "deploy" / unit.name).read_text()
    unit.write_text(text.replace("/opt/kernel-ladder/bin/ladder", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    # Units that it names and this machine lacks are no fault of its own.
    faults = [line for line in done.stderr.splitlines() if unit.name in line and "not found" not in line]
    assert faults == []
