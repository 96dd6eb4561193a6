"""The help page: verdicts, lanes, points, held results and late days in one screen, for everybody."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from autograder.contract import Verdict
from server.http.identity import Anyone
from server.pages.labels import VERDICTS
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
MEANINGS: Mapping[Verdict, str] = {
    Verdict.passed: "Every case passed.",
    Verdict.wrong_answer: "An output differs from the reference by more than the tolerance.",
    Verdict.compile_error: "Your file does not load or compile.",
    Verdict.runtime_error: "Your code raised an error.",
    Verdict.illegal_access: "A kernel read or wrote outside a tensor.",
    Verdict.time_limit: "A call or the whole submission took too long.",
    Verdict.out_of_memory: "It used more memory than allowed.",
    Verdict.output_limit: "It printed or returned too much.",
    Verdict.nondeterministic: "The same input gave two results.",
    Verdict.rule_violation: "It did what the assignment forbids.",
    Verdict.grader_error: "Our fault: it costs you nothing.",
}


@router.get("/help")
def help_page(request: Request, _who: Anyone) -> Response:
    """The page; it shows nobody's data."""
    return render(request, "help.html", verdicts=[(VERDICTS[verdict], MEANINGS[verdict]) for verdict in Verdict])
