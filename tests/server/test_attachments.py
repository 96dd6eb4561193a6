"""A name in a header is a name: whatever it is, it ends neither the header nor its quotes, and is no path."""

from __future__ import annotations

import pytest

from server.http.attachments import attachment


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("kernel.py", "kernel.py"),
        ("my kernel (2).cu", "my kernel (2).cu"),
        ('a"b.py', "a_b.py"),
        ("a\r\nset-cookie: x.py", "a__set-cookie: x.py"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("wärp\\?.py", "w_rp__.py"),
        ("\x7f\x00", "__"),
    ],
)
def test_what_a_header_cannot_have_is_replaced(name: str, saved: str) -> None:
    assert attachment(name) == {"content-disposition": f'attachment; filename="{saved}"'}
