"""The pages: parse, authorise, render.

Templates decide nothing: what they show is worked out here and in the services.

    home account assignment submission diff live leaderboard quiz queue operations components  routers
    rendering      templates with the filters and words that all pages use
    words formats markdown highlight pictures      what a page makes of a value
    failures       errors as pages
"""

from __future__ import annotations

from fastapi import FastAPI

from server.pages import (
    account,
    assignment,
    components,
    diff,
    home,
    leaderboard,
    live,
    operations,
    queue,
    quiz,
    submission,
)
from server.pages.failures import render_error
from server.pages.rendering import StaticFolder, templates_of

__all__ = ["install"]


def install(app: FastAPI) -> None:
    """Add the pages, their static files and their errors to an application whose `state.config` is set."""
    web = app.state.config.web
    app.state.templates = templates_of(web)
    app.state.error_renderer = render_error
    for module in (home, account, assignment, submission, diff, live, leaderboard, quiz, operations, queue, components):
        app.include_router(module.router)
    app.mount("/static", StaticFolder(directory=web / "static"), name="static")
