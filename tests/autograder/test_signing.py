"""Signed documents: what is signed holds, what was changed does not, and no key is lost or overwritten."""

from __future__ import annotations

import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.signing import SIGNATURE, SignatureError, SigningKey, canonical, key_id, verify

KEY = SigningKey.generate()
OTHER = SigningKey.generate()
DOCUMENT = {"ratio": 1.0625, "student": "Zoë", "groups": [["public", True]], "late": None}

_text = st.text(st.characters(codec="utf-8"))
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)


def test_a_signed_document_names_its_key():
    assert verify(KEY.sign(DOCUMENT)) == KEY.public
    assert verify(KEY.sign(DOCUMENT), KEY.public) == KEY.public


@given(st.dictionaries(_text.filter(lambda name: name != SIGNATURE), _json, max_size=5))
def test_a_signature_holds_however_the_file_is_laid_out(document):
    signed = KEY.sign(document)
    again = json.loads(json.dumps(dict(reversed(signed.items())), indent=3))
    assert verify(again, KEY.public) == KEY.public


@pytest.mark.parametrize("change", [{"ratio": 1.0626}, {"student": "Zoe"}, {"groups": [["public", 1]]}, {"more": 1}])
def test_what_was_changed_is_refused(change):
    with pytest.raises(SignatureError, match="changed after it was signed"):
        verify({**KEY.sign(DOCUMENT), **change})


def test_another_key_than_the_one_asked_for_is_refused():
    with pytest.raises(SignatureError, match=key_id(OTHER.public)):
        verify(OTHER.sign(DOCUMENT), KEY.public)


def test_a_signature_under_somebody_elses_name_is_refused():
    signed = OTHER.sign(DOCUMENT)
    signed[SIGNATURE]["key"] = KEY.public
    with pytest.raises(SignatureError, match="changed"):
        verify(signed, KEY.public)


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "x",
        {},
        {"algorithm": "none", "key": "", "value": ""},
        {"algorithm": "Ed25519", "key": "é", "value": ""},
        {"algorithm": "Ed25519", "key": "YQ==", "value": ""},
    ],
)
def test_what_is_no_signature_is_refused(signature):
    with pytest.raises(SignatureError):
        verify({**DOCUMENT, SIGNATURE: signature})


@pytest.mark.parametrize("document", [{"ratio": float("nan")}, {"text": "\ud800"}])
def test_what_cannot_be_written_cannot_be_signed(document):
    with pytest.raises(SignatureError, match="cannot be signed"):
        KEY.sign(document)


def test_a_signature_is_no_part_of_what_is_signed():
    assert canonical(KEY.sign(DOCUMENT)) == canonical(DOCUMENT) == canonical(OTHER.sign(KEY.sign(DOCUMENT)))


def test_a_saved_key_is_the_same_its_owners_alone_and_never_overwritten(tmp_path):
    path = tmp_path / "key.pem"
    KEY.save(path)
    assert SigningKey.load(path).public == KEY.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        OTHER.save(path)
    assert SigningKey.load(path).public == KEY.public
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_key_is_refused(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text("no key")
    with pytest.raises(SignatureError, match="holds no key"):
        SigningKey.load(path)
