"""The command `ladder`."""

from __future__ import annotations

import click

from client.commands import account, assignments, boards, grades, grading, local, node, quiz, receipt, staff


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernel-ladder", prog_name="ladder")
def main() -> None:
    """Climb: fetch a rung, check your kernel, submit it, see where you stand.

    Begin with `ladder login SERVER`, then `ladder list`. Every command explains itself with --help;
    --json prints what it shows for programs.
    """


for _command in (
    account.login,
    account.logout,
    assignments.list_assignments,
    assignments.get,
    grading.check,
    grading.submit,
    grading.cancel,
    assignments.status,
    boards.board,
    boards.standings,
    grades.grades,
    quiz.quiz,
    receipt.receipt,
    staff.admin,
    staff.assignments_group,
    staff.web,
    staff.dispatcher,
    staff.recorder,
    staff.worker,
    node.node,
    local.start,
    local.stop,
    local.demo,
):
    main.add_command(_command)
