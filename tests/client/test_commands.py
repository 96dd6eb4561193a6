"""The commands against the real server; nothing grades here, so submissions stay queued."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pyotp
import pytest
from click.testing import Result

from client import main
from client.account import Account, credentials_path, load_account
from client.api import Api
from client.errors import ReachError
from server.accounts import accounts, second_factor
from server.accounts.places import Place
from server.db import Database
from tests.client.conftest import PASSWORD

Ladder = Callable[..., Result]


def test_a_login_leaves_a_token_that_only_its_owner_can_read(alice: str) -> None:
    path = credentials_path()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_account() == Account(alice, json.loads(path.read_text())["token"])


def test_a_wrong_password_is_refused_and_nothing_is_kept(server: str, ladder: Ladder) -> None:
    done = ladder("login", server, "--email", "alice@example.org", "--password-stdin", text="wrong password\n")
    assert done.exit_code == 4
    assert not credentials_path().exists()


def test_staff_with_a_second_factor_send_its_code(config, server: str, ladder: Ladder) -> None:
    database = Database(config.database_url)
    with database.transaction() as session:
        ines, place = accounts.user_by_email(session, "ines@example.org"), Place("192.0.2.1")
        second_factor.begin(session, ines, config=config)
        secret = second_factor.begun(session, ines, config=config).secret.replace(" ", "")
        login, _text = accounts.start_login(session, ines, place=place, agent="", config=config)
        codes = second_factor.confirm(session, ines, pyotp.TOTP(secret).now(), login=login, place=place, config=config)
    database.dispose()
    asked = ("login", server, "--email", "ines@example.org", "--password-stdin", "--staff")
    refused = ladder(*asked, text=f"{PASSWORD}\n")
    assert (refused.exit_code, "second factor" in refused.output) == (4, True)
    done = ladder(*asked, "--code", codes[0], text=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output


def test_a_password_from_stdin_needs_an_address(ladder: Ladder) -> None:
    done = ladder("login", "http://127.0.0.1:1", "--password-stdin", text="x\n")
    assert done.exit_code == 2
    assert "--email" in done.output


def test_logging_out_revokes_the_token(alice: str, ladder: Ladder) -> None:
    account = load_account()
    assert ladder("logout").exit_code == 0
    assert not credentials_path().exists()
    with Api(account) as api, pytest.raises(ReachError):
        api.me()


def test_logging_out_forgets_even_if_the_server_is_gone(ladder: Ladder) -> None:
    credentials_path().parent.mkdir(parents=True)
    credentials_path().write_text(json.dumps({"server": "http://127.0.0.1:1", "token": "x"}))
    done = ladder("logout")
    assert (done.exit_code, credentials_path().exists()) == (0, False)


def _receive(connection: socket.socket) -> bytes:
    """One request, head and body."""
    data = b""
    while b'"source"' not in data:
        data += connection.recv(2**16)
    return data


def _served(answers: list[bytes]) -> tuple[socket.socket, threading.Thread, list[bytes]]:
    """A server that gives these answers, one per connection; an empty one hangs up."""
    listening, heard = socket.create_server(("127.0.0.1", 0)), []

    def serve() -> None:
        for answer in answers:
            connection, _ = listening.accept()
            with connection:
                heard.append(_receive(connection))
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return listening, thread, heard


def _key(request: bytes) -> bytes:
    return next(line for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency-key:"))


def test_a_submission_that_gets_no_answer_is_sent_again_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.api.AGAIN_S", 0.0)
    stored = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
    listening, thread, heard = _served([b"", stored])
    with listening, Api(Account(f"http://127.0.0.1:{listening.getsockname()[1]}", "token")) as api:
        assert api.submit("gpu-demo", "vector_add", {"source": "x"}) == {}
        thread.join()
    assert len(heard) == 2
    assert _key(heard[0]) == _key(heard[1])


def test_a_submission_that_gets_no_answer_twice_is_said_to_be_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.api.AGAIN_S", 0.0)
    said = pytest.raises(ReachError, match=r"did not answer.*check with `ladder status vector_add`")
    listening, thread, _ = _served([b"", b""])
    with listening, Api(Account(f"http://127.0.0.1:{listening.getsockname()[1]}", "token")) as api, said:
        api.submit("gpu-demo", "vector_add", {"source": "x"})
    thread.join()


@pytest.mark.parametrize("command", [["list"], ["status"], ["board", "vector_add"], ["get", "vector_add"]])
def test_without_a_login_a_command_says_how_to_log_in(ladder: Ladder, command: list[str]) -> None:
    done = ladder(*command)
    assert done.exit_code == 4
    assert "ladder login" in done.output


def test_a_server_that_is_not_there_is_not_our_fault_or_the_students(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("LADDER_SERVER", f"http://127.0.0.1:{unused.getsockname()[1]}")
        monkeypatch.setenv("LADDER_TOKEN", "x")
        done = ladder("list")
    assert done.exit_code == 4
    assert "cannot be reached" in done.output


def test_an_error_is_json_where_json_was_asked_for(ladder: Ladder) -> None:
    done = ladder("list", "--json")
    assert json.loads(done.output)["exit_code"] == done.exit_code == 4


def test_the_list_shows_the_rungs_in_order(alice: str, ladder: Ladder) -> None:
    shown = ladder("list").output
    assert shown.index("vector_add") < shown.index("matmul_tiled") < shown.index("softmax")
    rungs = [item["rung"] for item in json.loads(ladder("list", "--json").output)]
    assert rungs == sorted(rungs)


def test_get_makes_a_folder_to_work_in(alice: str, ladder: Ladder) -> None:
    done = ladder("get", "vector_add")
    assert done.exit_code == 0, done.output
    assert Path("vector_add/README.md").is_file()
    assert Path("vector_add/vector_add.py").read_text() == Path("vector_add/starters/triton.py").read_text()


def test_get_brings_nothing_of_the_staff(alice: str, ladder: Ladder) -> None:
    ladder("get", "vector_add")
    names = {path.relative_to("vector_add").parts[0] for path in Path("vector_add").rglob("*")}
    assert names <= {
        "README.md", "assignment.toml", "problem.py", "quiz.toml", "starters", "misconceptions.toml", "vector_add.py",
        ".ladder.toml",
    }  # fmt: skip


def test_milestones_that_are_closed_are_told_and_not_fetched(alice: str, ladder: Ladder) -> None:
    shown = ladder("milestones", "vector_add").output
    assert "Runs of elements" in shown
    sources = [item["source"] for item in json.loads(ladder("milestones", "vector_add", "--json").output)]
    assert sources
    assert set(sources) == {""}
    assert f"0 of {len(sources)} sources are open" in shown
    ladder("get", "vector_add")
    assert not Path("vector_add/milestones").exists()


def test_get_keeps_what_the_student_wrote_unless_forced(alice: str, ladder: Ladder) -> None:
    ladder("get", "vector_add")
    own = Path("vector_add/vector_add.py")
    own.write_text("# mine\n")
    assert "Kept" in ladder("get", "vector_add").output
    assert own.read_text() == "# mine\n"
    assert json.loads(ladder("get", "vector_add", "--force", "--json").output)["starter"] == "replaced"
    assert own.read_text() != "# mine\n"


def test_get_replaces_no_file_that_it_did_not_put_there(alice: str, ladder: Ladder) -> None:
    Path("README.md").write_text("# My own repository\n")
    done = ladder("get", "vector_add", ".")
    assert done.exit_code == 2
    assert "README.md exists already" in done.output
    assert [path.name for path in Path().iterdir()] == ["README.md"]
    ladder("get", "vector_add")
    assert "README.md exists already" in ladder("get", "softmax", "vector_add").output
    assert "# Vector" in Path("vector_add/README.md").read_text()
    assert ladder("get", "vector_add", ".", "--force").exit_code == 0


def test_an_unknown_assignment_is_said_to_be_unknown(alice: str, ladder: Ladder) -> None:
    for command in (["get", "nothing"], ["board", "nothing"], ["status", "nothing"]):
        assert ladder(*command).exit_code == 2


def test_a_submission_outside_of_a_folder_is_guessed_from_its_name(alice: str, ladder: Ladder) -> None:
    Path("vector_add.py").write_text("def vector_add(x, y, out, n): ...\n")
    with Api(load_account()) as api:
        assert api.submissions("gpu-demo") == []
        stored = api.submit(
            "gpu-demo",
            "vector_add",
            {
                "mode": "submission",
                "lane": "cpu",
                "language": "triton",
                "filename": "vector_add.py",
                "source": "pass\n",
            },
        )
    assert stored["state"] == "queued"
    history = json.loads(ladder("status", "vector_add", "--json").output)
    assert [item["public_id"] for item in history] == [stored["public_id"]]
    assert json.loads(ladder("status", stored["public_id"], "--json").output)["state"] == "queued"
    assert "queued" in ladder("status").output
    assert "queued" in ladder("status", stored["public_id"]).output
    assert ladder("cancel", stored["public_id"]).output == "Submission 1 of Vector add is cancelled.\n"
    again = ladder("cancel", stored["public_id"])
    assert again.exit_code != 0
    assert "There is nothing to cancel: this submission is cancelled." in again.output


def _names_as_its_server(server: str) -> None:
    """What this folder was made by, from now on."""
    note = Path(".ladder.toml")
    note.write_text(re.sub("server = .*", lambda _: f"server = {json.dumps(server)}", note.read_text()))


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    "command",
    [["list"], ["status"], ["board", "vector_add"], ["milestones", "vector_add"], ["standings"], ["grades"],
     ["quiz", "show", "vector_add"],
     ["get", "vector_add", "again"], ["submit", "--lane", "abacus"], ["check", "--remote", "--lane", "abacus"]],
)  # fmt: skip
def test_a_folder_of_another_server_is_said_to_be(
    alice: str, ladder: Ladder, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Whoever got the folder from somebody sees where what they hand in goes: to the server that they logged in to."""
    ladder("get", "vector_add")
    monkeypatch.chdir("vector_add")
    told = f"this folder comes from https://Other.example.org/, but {alice} is used, where you are logged in."
    assert told not in ladder(*command).output
    _names_as_its_server(alice.upper() + "/")
    assert "this folder comes from" not in ladder(*command).output
    _names_as_its_server("https://Other.example.org/")
    assert ladder(*command).stderr.count(told) == 1


def test_the_server_that_a_folder_names_sees_no_token(
    alice: str, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder("get", "vector_add")
    monkeypatch.chdir("vector_add")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.1)
        _names_as_its_server(f"http://127.0.0.1:{listening.getsockname()[1]}")
        for command in (["list"], ["submit", "--lane", "abacus"], ["get", "vector_add"]):
            ladder(*command)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_what_a_folder_says_of_its_server_is_one_line(
    alice: str, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be anybody's: it neither steers the terminal nor says something in our name."""
    ladder("get", "vector_add")
    monkeypatch.chdir("vector_add")
    _names_as_its_server("https://other\n\x1b[31mladder: all is well")
    (warning,) = ladder("list").stderr.splitlines()
    assert f"https://other �[31mladder: all is well, but {alice} is used" in warning


def test_an_empty_history_and_an_empty_board_say_so(alice: str, ladder: Ladder) -> None:
    assert "No submissions yet" in ladder("status").output
    assert "This leaderboard is empty" in ladder("board", "vector_add").output


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("vector_add.py", b"", "is empty"),
        ("vector_add.py", b"\xff\xfe\x00", "is not UTF-8"),
        ("vector_add.py", b"#" * (2**20 + 1), "at most 1048576"),
        ("vector_add.txt", b"pass\n", "does not show its language"),
    ],
)
def test_a_file_that_cannot_be_submitted_is_refused_here(
    alice: str, ladder: Ladder, name: str, data: bytes, told: str
) -> None:
    Path(name).write_bytes(data)
    done = ladder("submit", name)
    assert done.exit_code == 2
    assert told in done.output


def test_a_lane_that_grades_nothing_is_refused(alice: str, ladder: Ladder) -> None:
    Path("vector_add.py").write_text("pass\n")
    done = ladder("submit", "vector_add.py", "--lane", "abacus")
    assert done.exit_code == 2
    assert "abacus" in done.output


@pytest.mark.parametrize("command", ["profile", "sanitize"])
def test_a_tool_of_a_gpu_is_refused_where_no_lane_has_one(alice: str, ladder: Ladder, command: str) -> None:
    ladder("get", "vector_add")
    result = ladder(command, "vector_add/vector_add.py", "--lane", "cpu")
    assert result.exit_code == 2
    assert f"there is nothing to {command}" in result.stderr
    local = ladder(command, "vector_add/vector_add.py", "--local")
    assert (local.exit_code, "say --lane with --local" in local.stderr) == (2, True)


def test_somebody_elses_submission_is_not_there(alice: str, ladder: Ladder) -> None:
    done = ladder("status", "0" * 26)
    assert done.exit_code == 2


def test_the_local_judge_takes_the_lane_cpu_only(ladder: Ladder) -> None:
    Path("vector_add.py").write_text("pass\n")
    done = ladder("check", "vector_add.py", "--lane", "h200")
    assert done.exit_code == 2
    assert "--remote" in done.output


def test_staff_commands_are_there_where_the_server_is_installed(ladder: Ladder) -> None:
    shown = ladder("admin", "--help").output
    assert "create-user" in shown
    assert "grade-file" in shown


def test_the_list_of_commands_says_what_each_says_of_itself_and_loads_none() -> None:
    context = click.Context(main.main)
    for name in main.main.list_commands(context):
        command = main.main.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(500) == main.COMMANDS[name][1], name
    script = "import sys; from client.main import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not {"httpx", "rich", "autograder", "client.commands"} & set(loaded)


def test_a_command_with_a_slip_is_answered_with_what_may_be_meant(ladder: Ladder) -> None:
    done = ladder("statsu")
    assert (done.exit_code, "'status'" in done.output) == (2, True)


def test_a_guessed_assignment_is_said_and_how_to_name_another(alice: str, ladder: Ladder) -> None:
    source = "import triton\n\n\ndef vector_add(x, y, out, n): ...\n"
    Path("my_kernel.py").write_text(source)
    done = ladder("submit", "my_kernel.py")
    assert done.exit_code == 2
    for said in ("no assignment 'my_kernel'", "my_kernel.py", "--slug SLUG", "ladder list"):
        assert said in done.output
    Path("vector_add.py").write_text(source)
    refused = ladder("submit", "vector_add.py", "--lane", "abacus")
    assert "for vector_add, guessed from the file's name; --slug names another." in refused.stderr
    named = ladder("submit", "my_kernel.py", "--slug", "vector_add", "--lane", "abacus")
    assert "guessed" not in named.output


def test_the_list_has_ones_own_points(alice: str, ladder: Ladder) -> None:
    line = next(line for line in ladder("list").output.splitlines() if "vector_add" in line)
    assert "0 of 100" in line
