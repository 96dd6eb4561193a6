"""The pages: parse, authorise, render.

Templates decide nothing: what they show is worked out here and in the services.

    home account assignment submission diff live leaderboard quiz queue operations components guide  routers
    rendering      templates with the filters and words that all pages use
    words formats markdown highlight pictures      what a page makes of a value
    failures       errors as pages
"""

from __future__ import annotations

from fastapi import FastAPI

from server.pages import (
    account,
    announcements,
    assignment,
    assignment_files,
    audit,
    badges,
    comments,
    components,
    diff,
    exports,
    extensions,
    gradebook,
    gradebook_tables,
    grades,
    group,
    guide,
    handout,
    history,
    home,
    join,
    leaderboard,
    live,
    login,
    machine_code,
    milestones,
    notifications,
    operations,
    password,
    preview,
    profile,
    queue,
    quiz,
    regrade_new,
    regrade_requests,
    regrades,
    review,
    roster,
    roster_import,
    roster_person,
    rubric,
    sanitizer,
    schedule,
    second_factor,
    settings,
    shared_sources,
    similarity,
    solutions,
    staff_home,
    standings,
    statistics,
    submission,
    submissions_list,
    writeups,
)
from server.pages.failures import render_error
from server.pages.rendering import StaticFolder, templates_of

__all__ = ["install"]


def install(app: FastAPI) -> None:
    """Add the pages, their static files and their errors to an application whose `state.config` is set."""
    web = app.state.config.web
    app.state.templates = templates_of(web)
    app.state.error_renderer = render_error
    app.state.public_courses = home.PublicCourses()
    for module in (home, account, assignment, submission, diff, live, leaderboard, quiz, operations, queue, components):
        app.include_router(module.router)
    for module in (schedule, roster, roster_import, roster_person, join, settings, extensions, preview, solutions):
        app.include_router(module.router)
    for module in (machine_code, milestones, profile, sanitizer):
        app.include_router(module.router)
    for module in (staff_home, assignment_files, standings, badges, shared_sources, handout):
        app.include_router(module.router)
    for module in (comments, review, rubric, similarity, statistics, submissions_list):
        app.include_router(module.router)
    for module in (history, group, writeups, exports):
        app.include_router(module.router)
    for module in (grades, gradebook, gradebook_tables, audit):
        app.include_router(module.router)
    for module in (login, guide, password, second_factor, notifications, announcements):
        app.include_router(module.router)
    for module in (regrade_new, regrades, regrade_requests):
        app.include_router(module.router)
    app.mount("/static", StaticFolder(directory=web / "static"), name="static")
