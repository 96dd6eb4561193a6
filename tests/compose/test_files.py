"""What can be known of the deployment's files without starting anything."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.identity import Identity, NodeKey
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
    for name in ("database_password", "app_database_password", "redis_password", "worker_key"):
        assert (Path(site["LADDER_SITE"]) / name).read_text().strip() not in whole


def test_a_site_is_made_once_and_is_its_owners(site: dict[str, str]) -> None:
    folder = Path(site["LADDER_SITE"])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run("sh", "deploy/make_site.sh", env={**site, "LADDER_HOST": "another.example"})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert folder.stat().st_mode & 0o077 == 0


def test_the_embedded_workers_key_is_roots_alone_and_the_server_gets_its_public_half(site: dict[str, str]) -> None:
    folder = Path(site["LADDER_SITE"])
    assert (folder / "worker_key").stat().st_mode & 0o777 == 0o400
    key = NodeKey.load(folder / "worker_key")
    # What the shell worked out is what the worker will use.
    assert Identity(**json.loads((folder / "worker_identity").read_text())) == key.identity
    compose = (ROOT / "docker-compose.yml").read_text()
    assert [line.strip() for line in compose.splitlines() if "worker_key" in line] == [
        "LADDER_NODE_KEY_FILE: /run/secrets/worker_key",
        "secrets: [worker_key]",
        'worker_key: {file: "${LADDER_SITE:-./deploy/site}/worker_key"}',
    ]


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


@pytest.fixture
def stubbed(tmp_path: Path) -> dict[str, str]:
    """A copy of the deployment's files, where `docker` and `python` only write down how they were called."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy", ignore=shutil.ignore_patterns("build", "site"))
    for folder in ("bin", "web/templates", "web/static"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("docker", "python"):
        stub = tmp_path / "bin" / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n')
        stub.chmod(0o755)
    return {
        "PATH": f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHON": str(tmp_path / "bin" / "python"),
        "LADDER_SITE": str(tmp_path / "deploy" / "site"),
        "LADDER_HOST": "ladder.example",
    }


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to the containers' user")


def _called(tmp_path: Path, environ: dict[str, str], script: str, *arguments: str) -> list[str]:
    """The compose commands that a script gave, in order."""
    (tmp_path / "calls").write_text("")
    run("sh", str(tmp_path / "deploy" / script), *arguments, env=environ)
    calls = (tmp_path / "calls").read_text().splitlines()
    return [call for call in calls if call.startswith("docker compose ") and not call.endswith(" version")]


def _place(calls: list[str], words: str) -> int:
    found = [place for place, call in enumerate(calls) if words in call]
    assert found, f"nothing calls {words}: {calls}"
    return found[0]


def test_an_upgrade_stops_the_old_version_before_the_tables_change(stubbed: dict[str, str], tmp_path: Path) -> None:
    """An old dispatcher or web tier on new tables writes what the new one does not expect."""
    calls = _called(tmp_path, {**stubbed, "LADDER_BUILD": "always"}, "up.sh")
    assert _place(calls, "stop dispatcher recorder web") < _place(calls, "up --detach")


def test_an_upgrade_whose_build_failed_half_way_stops_it_at_the_next_start(
    stubbed: dict[str, str], tmp_path: Path
) -> None:
    stub = tmp_path / "bin" / "docker"
    kept = stub.read_text()
    stub.write_text(f'{kept}case "$*" in *Dockerfile.worker*) exit 1 ;; esac\n')
    done = subprocess.run(
        ["sh", str(tmp_path / "deploy" / "up.sh")], env={**stubbed, "LADDER_BUILD": "always"}, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    stub.write_text(kept)
    calls = _called(tmp_path, stubbed, "up.sh")
    assert _place(calls, "stop dispatcher recorder web") < _place(calls, "up --detach")


def test_a_start_without_a_new_version_stops_nothing(stubbed: dict[str, str], tmp_path: Path) -> None:
    assert not any(" stop " in call for call in _called(tmp_path, stubbed, "up.sh"))


@as_root
def test_a_backup_outlives_the_container_that_makes_it(stubbed: dict[str, str], tmp_path: Path) -> None:
    run("sh", str(tmp_path / "deploy" / "make_site.sh"), env=stubbed)
    folder = tmp_path / "kept"
    mine = subprocess.run(
        ["sh", str(tmp_path / "deploy" / "backup.sh"), str(tmp_path)], env=stubbed, capture_output=True, check=False
    )
    assert mine.returncode != 0
    assert b"somebody else" in mine.stderr
    (call,) = _called(tmp_path, stubbed, "backup.sh", str(folder), "7")
    assert f"--volume {folder}:/backups" in call
    assert re.search(r"migrate ladder admin backup /backups/ladder-\d{4}-\d\d-\d\d-\d{6}\.ladder --keep 7$", call)
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.stat().st_uid == int(re.findall(r"user: \"(\d+):", _compose())[0])


@as_root
def test_a_restore_goes_into_a_new_database_and_only_then_is_that_one_used(
    stubbed: dict[str, str], tmp_path: Path
) -> None:
    run("sh", str(tmp_path / "deploy" / "make_site.sh"), env=stubbed)
    url, file = tmp_path / "deploy" / "site" / "database_url", tmp_path / "one.ladder"
    before = url.read_text().strip()
    file.write_text("a backup")
    calls = _called(tmp_path, stubbed, "restore.sh", str(file))
    assert _place(calls, "stop dispatcher recorder web") < _place(calls, "createdb")
    assert _place(calls, "createdb") < _place(calls, "ladder admin restore /backups/one.ladder")
    renamed = [call for call in calls if "RENAME" in call]
    assert calls[-1:] == renamed
    assert re.search(r'"ladder" RENAME TO "ladder_before_\d{14}" .*"ladder_new_\d{14}" RENAME TO "ladder"$', renamed[0])
    # On an empty volume, after this, the database that the site names is the one that is made.
    assert url.read_text().strip() == before
    assert not list(tmp_path.glob(".restore-*"))


@as_root
def test_a_restore_that_fails_leaves_the_database_that_is_used(stubbed: dict[str, str], tmp_path: Path) -> None:
    run("sh", str(tmp_path / "deploy" / "make_site.sh"), env=stubbed)
    url, file = tmp_path / "deploy" / "site" / "database_url", tmp_path / "one.ladder"
    before = url.read_text()
    file.write_text("no backup")
    stub = tmp_path / "bin" / "docker"
    refusing = 'case "$*" in *"admin restore"*) exit 1 ;; esac'
    stub.write_text(f'#!/bin/sh\n{refusing}\necho "docker $*" >>"{tmp_path}/calls"\n')
    done = subprocess.run(
        ["sh", str(tmp_path / "deploy" / "restore.sh"), str(file)], env=stubbed, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert b"`make compose-up` starts what was there" in done.stderr
    assert url.read_text() == before
    calls = (tmp_path / "calls").read_text()
    assert "dropdb --if-exists" in calls.splitlines()[-1]
    assert "RENAME" not in calls


def test_the_servers_home_outlives_its_containers() -> None:
    """The key that signs receipts is in it, and mail while no mail server is named."""
    text = _compose()
    home = re.findall(r"LADDER_HOME: (\S+)", text)[0]
    assert f'volumes: ["home:{home}"]' in text.split("x-settings:")[0]
    migrate = text.split("  migrate:")[1].split("\n\n")[0]
    assert f'- "home:{home}"' in migrate
    dockerfile = (ROOT / "deploy" / "Dockerfile.server").read_text()
    # A volume that is made takes its owner from the image.
    assert f"install -d -o 10001 -g 10001 -m 0700 {home}" in dockerfile
    # The database's own program, which a backup runs.
    assert "pg_dump" in dockerfile


def test_every_setting_of_the_server_can_be_given() -> None:
    """What has no line of its own stands in a file of the site; secrets stand in files that it does not name."""
    text = _compose()
    assert 'env_file: ["${LADDER_SITE:-./deploy/site}/server.env"]' in text.split("x-settings:")[0]
    for name in ("metrics_token", "mail_password"):
        assert f"LADDER_{name.upper()}_FILE: /run/secrets/{name}" in text
        assert f'{name}: {{file: "${{LADDER_SITE:-./deploy/site}}/{name}"}}' in text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ladder.example", ""),
        ("https://ladder.example:443/", ""),
        ("https://ladder.example:8443", ":8443"),
        ("https://ladder.example:8443/a:b", ":8443"),
        ("https://[::1]", ""),
        ("https://[::1]:8443", ":8443"),
    ],
)
def test_plain_http_is_sent_to_the_port_that_https_has(tmp_path: Path, url: str, shown: str) -> None:
    """nginx is a stub: what it would read is read here."""
    plain = (ROOT / "deploy" / "nginx.conf").read_text().split("listen 8080;")[1].split("server {")[0]
    # Of what a client sends, the host without its port and the path, and no more.
    assert re.findall(r"return 308 (\S+);", plain) == ["https://$host$https_port$request_uri"]
    assert plain.index('set $https_port "";') < plain.index("include /tmp/https_port*.conf;")
    stub = tmp_path / "nginx"
    stub.write_text(f'#!/bin/sh\necho "$*" >"{tmp_path}/called"\n')
    stub.chmod(0o755)
    script = tmp_path / "proxy.sh"
    script.write_text((ROOT / "deploy" / "proxy.sh").read_text().replace("/tmp/", f"{tmp_path}/"))
    run("sh", str(script), env={"PATH": f"{tmp_path}:/usr/bin:/bin", "LADDER_PUBLIC_URL": url})
    assert (tmp_path / "https_port.conf").read_text() == f'set $https_port "{shown}";\n'
    assert (tmp_path / "called").read_text() == "-c /etc/ladder/nginx.conf -g daemon off;\n"


def test_whom_the_proxy_refuses_is_told_when_to_come_again() -> None:
    conf = (ROOT / "deploy" / "nginx.conf").read_text()
    assert "limit_req_status 429;" in conf
    assert "limit_conn_status 429;" in conf
    answer = conf.split("location /slow-down/ {")[1].split("location / {")[0]
    assert "error_page 429 $slow_down;" in conf
    assert "add_header Retry-After 10 always;" in answer
    # An `add_header` of its own would take the others from one of the two.
    assert answer.count("internal;") == answer.count("return 429") + 1 == 3
    assert "add_header" not in answer.split("location = ", 1)[1]


def test_the_proxy_knows_the_address_that_is_published() -> None:
    proxy = _compose().split("\n  proxy:")[1].split("\n\n")[0]
    assert 'environment: {LADDER_PUBLIC_URL: "${LADDER_PUBLIC_URL:?' in proxy
    assert '- "${LADDER_HTTPS_PORT:-443}:8443"' in proxy
    assert "entrypoint: [sh, /etc/ladder/proxy.sh]" in proxy
    assert '- "./deploy/proxy.sh:/etc/ladder/proxy.sh:ro"' in proxy


def test_a_site_has_every_file_that_compose_names(stubbed: dict[str, str], tmp_path: Path) -> None:
    run("sh", str(tmp_path / "deploy" / "make_site.sh"), env=stubbed)
    named = set(re.findall(r"\$\{LADDER_SITE:-\./deploy/site\}/(\w+(?:\.env)?)\"", _compose()))
    assert named <= {path.name for path in (tmp_path / "deploy" / "site").iterdir()}
    assert {"server.env", "metrics_token", "mail_password", "database_url"} <= named


def _compose() -> str:
    return (ROOT / "docker-compose.yml").read_text()
