"""Every table's parent, and a time that is always in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Enum, Integer, LargeBinary, MetaData, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase

BIG = BigInteger().with_variant(Integer, "sqlite")
"""A key that may outgrow 32 bits; SQLite numbers rows only by `INTEGER`."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time that is always aware and in UTC; SQLite stores it without its zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Refuse naive times."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a time has to know its zone")
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Give SQLite's times back their zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Every table's parent: constraint names that migrations can rely on."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        str: Text(),
        bytes: LargeBinary(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
        StrEnum: Enum(
            StrEnum, native_enum=False, length=24, values_callable=lambda words: [word.value for word in words]
        ),
    }
