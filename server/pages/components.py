"""The design system on one page: every token and component in every state, to look at in both themes."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from autograder.contract import Mismatch, Pattern, State, Verdict
from server.http.identity import Anyone
from server.pages.highlight import listing
from server.pages.labels import STATES, VERDICTS
from server.pages.rendering import render
from server.pages.svg_geometry import damage_map, ratio_scale

router = APIRouter(include_in_schema=False)
_CODE = '''@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One program adds BLOCK elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n  # The tail has fewer elements.
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + 1.5, mask)
'''
_TILES = 16
_MISMATCH = Mismatch(
    output="out",
    shape=(512, 509),
    dtype="float32",
    wrong=14_848,
    total=260_608,
    pattern=Pattern.columns_from,
    where="columns 480–508 (the last 29 of 509: not a whole tile)",
    index=(0, 480),
    expected="1.2851562",
    got="not written",
    tolerance="1.53e-05",
    map=tuple(
        tuple(1000 if x == _TILES - 1 else 60 if (x, y) == (3, 5) else 0 for x in range(_TILES)) for y in range(_TILES)
    ),
    tile=(32, 32),
)


@router.get("/components")
def components_page(request: Request, _who: Anyone) -> Response:
    """The page; it shows nobody's data."""
    return render(
        request,
        "components.html",
        labels=[*(STATES[state] for state in State), *(VERDICTS[verdict] for verdict in Verdict)],
        listing=listing(_CODE, "python"),
        mismatch=_MISMATCH,
        map=damage_map(_MISMATCH),
        scale=ratio_scale([(0.91, 0.94, 0.98), (1.31, 1.34, 1.37), (4.1, 5.2, 6.9)]),
    )
