"""`ladder quiz show` and `ladder quiz answer`: the questions of an assignment, in the terminal."""

from __future__ import annotations

import difflib
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from autograder.quiz import AnswerError, QuestionKind, read_number
from client import options, show
from client.api import Json
from client.errors import UsageError, clean

STANDINGS = {"open": "open", "right": "right", "used_up": "no tries left", "closed": "closed"}
_STYLES = {"right": "green", "used_up": "red"}


class _ShowUnlessSaid(click.Group):
    """`ladder quiz vector_add` is `ladder quiz show vector_add`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What is no command, nor nearly one, is the assignment that `show` takes."""
        is_slug = not difflib.get_close_matches(args[0], self.commands)
        return super().resolve_command(ctx, ["show", *args] if is_slug else args)


@click.group(cls=_ShowUnlessSaid)
def quiz() -> None:
    """Answer the checkpoint questions of an assignment.

    `ladder quiz SLUG` shows them.
    """


@quiz.command("show")
@click.argument("slug")
@options.course
@options.as_json
def show_quiz(slug: str, course_slug: str | None, as_json: bool) -> None:
    """Show the questions of SLUG, your answers, and the explanations that are out."""
    with options.connect() as api:
        found = api.quiz(options.choose_course(api, course_slug, options.course_here(api)), slug)
    if as_json:
        options.print_json(found)
        return
    out = show.console()
    if not found["questions"]:
        click.echo(f"{found['title']} has no quiz.")
        return
    late = " An answer now counts as late." if found["is_late"] and not found["is_closed"] else ""
    head = f"{found['title']}: {found['points']:g} of {found['maximum']:g} points.{late}"
    out.print(Text(clean(head), style="bold"))
    for question in found["questions"]:
        _show_question(out, question)


@quiz.command()
@click.argument("slug")
@click.argument("question")
@click.argument("given", metavar="ANSWER...", nargs=-1, required=True)
@options.course
@options.as_json
def answer(*, slug: str, question: str, given: tuple[str, ...], course_slug: str | None, as_json: bool) -> None:
    """Answer QUESTION of SLUG: with a number, or with the names of one or more options.

    Exit status: 0 right, 1 wrong, 2 not a valid answer, or no tries left.
    """
    with options.connect() as api:
        course = options.choose_course(api, course_slug, options.course_here(api))
        asked = next((one for one in api.quiz(course, slug)["questions"] if one["name"] == question), None)
        if asked is None:
            raise UsageError(f"{slug} has no question {question!r}; `ladder quiz show {slug}` lists them.")
        marked = api.answer(course, slug, question, _response(asked, given))
    if as_json:
        options.print_json(marked)
    else:
        _show_question(show.console(), marked)
    raise SystemExit(0 if marked["standing"] == "right" else 1)


def _response(asked: Json, given: tuple[str, ...]) -> dict[str, Any]:
    if asked["kind"] != QuestionKind.numeric.value:
        return {"options": list(given)}
    try:
        return {"value": read_number(" ".join(given))}
    except AnswerError as error:
        raise UsageError(str(error)) from None


def _show_question(out: Console, question: Json) -> None:
    standing = STANDINGS.get(question["standing"], question["standing"])
    out.print()
    head = Text(f"{question['number']}. {clean(question['name'])}", style="bold")
    head.append(f"  {standing}", style=_STYLES.get(question["standing"], "dim"))
    head.append(f"  {question['points']:g} of {question['maximum']:g} points", style="dim")
    out.print(head)
    out.print(Text(clean(question["text"]).strip()))
    if question["code"]:
        out.print(Text("\n".join(f"    {line}" for line in clean(question["code"]).strip("\n").splitlines())))
    for name, text in question["options"].items():
        out.print(Text(f"  {clean(name)}: {clean(text)}"))
    for row in question["answers"]:
        mark = Text(f"  try {row['number']}: {_said(question, row)}: ")
        out.print(mark.append("right", style="green") if row["right"] else mark.append("wrong", style="red"))
    if question["standing"] == "open":
        left = question["tries_left"]
        out.print(Text(f"  {left} {'try' if left == 1 else 'tries'} left", style="dim"))
    if question["key"]:
        out.print(Text(f"  Right: {_said(question, question['key'])}"))
        out.print(Text(clean(question["key"]["explanation"]).strip()))


def _said(question: Json, response: Json) -> str:
    if question["kind"] == QuestionKind.numeric.value:
        return f"{response['value']:,.12g} {clean(question['unit'])}".strip()
    return clean(", ".join(response["options"]))
