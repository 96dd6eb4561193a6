"""What the terminal shows of leaderboards, milestones and standings."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from client.api import Json
from client.errors import UsageError, clean
from client.show import duration, plain_table


def show_board(out: Console, board: Json) -> None:
    """The ranking by paired ratio, its interval and the time beside it; milestones stand among the entries."""
    practice = ", practice: no points" if board["practice"] else ""
    only = _only(board)
    out.print(Text(f"{clean(board['title'])} on {board['lane']}{only}{practice}", style="bold"))
    if board["as_of"]:
        out.print(f"Frozen: submissions up to {clean(board['as_of'])}.")
    if not board["entries"]:
        out.print("This leaderboard is empty.")
        return
    limited = board["limit_us"] is not None
    columns = ("rank", "who", "ratio (below 1 is faster than the reference)", "time", "language", "confirmed")
    table = plain_table(*columns, *(("of the limit",) if limited else ()))
    rows = [(entry["ratio"], 0, entry) for entry in board["entries"]]
    rows += [(item["ratio"], 1, item) for item in board["milestones"]]
    for _, is_milestone, row in sorted(rows, key=lambda item: item[:2]):
        table.add_row(*(_milestone(row) if is_milestone else _entry(row)), *_share(row, board["limit_us"]))
    out.print(table)


def shared_by(board: Json, name: str) -> list[str]:
    """Where the sources are that people of this name share on a board.

    Raises:
        UsageError: nobody of this name does.
    """
    found = [entry["shared"] for entry in board["entries"] if entry["name"] == name and entry.get("shared")]
    if not found:
        raise UsageError(f"{name} shares no source on this leaderboard.")
    return found


def show_shared(out: Console, entries: list[Json]) -> None:
    """Each entry's numbers and note, then its source as it was handed in."""
    for entry in entries:
        ratio = f"{entry['ratio']:.3f} of the reference's time"
        numbers = f"{ratio}, {duration(entry['time_us'])}, {clean(entry['language'])} on {clean(entry['lane'])}"
        out.print(Text(clean(entry["name"]), style="bold") + Text(f": {numbers}"))
        if entry["note"]:
            out.print(Text("\n".join(clean(line) for line in entry["note"].splitlines())))
        out.print()
        for line in entry["source"].splitlines():
            out.print(Text(clean(line)), soft_wrap=True)


def show_milestones(out: Console, slug: str, milestones: list[Json]) -> None:
    """Each with its ratio on every lane where it was timed, whether its source is open, and its sentence."""
    if not milestones:
        out.print(f"{clean(slug)} has no milestones.")
        return
    table = plain_table("milestone", "language", "ratio", "source", "what it does")
    for item in milestones:
        ratios = ", ".join(f"{clean(lane)} {ratio:.2f}" for lane, ratio in item["ratios"].items())
        state = _OPENED.get(item["opened"], "closed")
        table.add_row(Text(clean(item["name"])), item["language"], ratios, state, Text(clean(item["about"])))
    out.print(table)
    opened = sum(item["opened"] is not None for item in milestones)
    out.print(f"{opened} of {len(milestones)} sources are open; `ladder get {clean(slug)}` fetches them.")


_OPENED = {"beaten": "open: beaten", "due": "open: it was due", "staff": "open to staff"}


def show_standings(out: Console, standings: Json) -> None:
    """Who leads each board, then everybody's rank points."""
    if not standings["rungs"]:
        out.print("No assignment has a leaderboard yet.")
        return
    out.print(Text(f"Standings on {clean(standings['lane'])}{_only(standings)}", style="bold"))
    fame = plain_table("rung", "assignment", "first", "ratio", "entries")
    for rung in standings["rungs"]:
        leaders = rung["leaders"]
        names = ", ".join(clean(leader["name"]) for leader in leaders) or "nobody yet"
        best = f"{leaders[0]['ratio']:.3f}" if leaders else ""
        fame.add_row(str(rung["rung"]), Text(clean(rung["title"])), Text(names), best, str(rung["entries"]))
    out.print(fame)
    people = plain_table("rank", "who", "rank points", "first places", "boards")
    for person in standings["people"]:
        numbers = (f"{person['points']:g}", str(person["firsts"]), str(person["boards"]))
        people.add_row(str(person["rank"]), _who(person), *numbers)
    if standings["people"]:
        out.print(people)


def _only(shown: Json) -> str:
    """The language, where only results in it are ranked; older servers do not say."""
    return f", {clean(shown['language'])}" if shown.get("language") else ""


def _entry(entry: Json) -> tuple[str | Text, ...]:
    confirmed = f"× {entry['confirmations']}" if entry["confirmations"] else ""
    return (str(entry["rank"]), _who(entry), *_numbers(entry), confirmed)


def _milestone(item: Json) -> tuple[str | Text, ...]:
    return ("", Text(f"{clean(item['name'])} (milestone)", style="dim"), *_numbers(item), "")


def _numbers(row: Json) -> tuple[str | Text, ...]:
    ratio = f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"
    return Text(ratio), duration(row["time_us"]), row["language"]


def _share(row: Json, limit_us: float | None) -> tuple[str, ...]:
    if limit_us is None:
        return ()
    return (f"{100 * limit_us / row['time_us']:.0f} %" if row["time_us"] else "",)


def _who(row: Json) -> Text:
    said = [word for word, is_so in (("you", row["own"]), ("source shared", row.get("shared"))) if is_so]
    return Text(clean(row["name"]), style="bold" if row["own"] else "") + Text(f" ({', '.join(said)})" if said else "")
