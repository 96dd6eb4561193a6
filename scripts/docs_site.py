"""MkDocs hooks: pages made from code, decisions in the navigation, and links to files that the site does not have.

Such a link becomes its text in the site; on a checkout, where the page is read as a file, it works. One whose file does
not exist is a warning, which `strict` makes an error, as MkDocs does for the others.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

logger = logging.getLogger("mkdocs.hooks")
_CODE_OR_LINK = re.compile(
    r"```.*?```|`[^`\n]*`|(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)#\s]+)(#[^)\s]*)?\)", re.DOTALL
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the decisions, by number."""
    folder = Path(config.docs_dir) / "decisions"
    names = ["README.md", *sorted(path.name for path in folder.glob("[0-9]*.md"))]
    contributor = next(entry["Contributor"] for entry in config.nav or [] if "Contributor" in entry)
    contributor[-1] = {"Decisions": [f"decisions/{name}" for name in names]}
    return config


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages that are made from code."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from scripts import reference  # noqa: PLC0415  # MkDocs loads this file by its path, without the repository's

    for make in (reference.manifest, reference.commands, reference.api):
        files.append(File.generated(config, f"{make.__name__}.md", content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Leave the text of links that lead out of the folder."""
    docs = Path(config.docs_dir).resolve()
    here = docs / Path(page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link["text"], link["target"]
        if target is None or "://" in target or target.startswith("mailto:"):
            return link[0]
        path = (here / target).resolve()
        if not path.exists():
            logger.warning("%s: there is no %s", page.file.src_uri, target)
        inside = path.is_relative_to(docs) and not path.is_dir() and not path.is_relative_to(docs / "data")
        return link[0] if inside else text

    return _CODE_OR_LINK.sub(replaced, markdown)
