"""Which fields of a record hold the text and the cluster: given, or found in the first record and then fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from latentkt.errors import InputError

__all__ = ["Fields", "choose_fields"]

_TEXT = ("text", "content", "raw_content", "body", "document")


@dataclass(frozen=True, slots=True)
class Fields:
    """Where text and cluster are; a dot leads into nested objects (``meta.url``).

    Attributes:
        text: Field of the text.
        cluster: ``host:FIELD`` (the host of a URL), a field whose value names the cluster, ``document`` (each document
            is one), or ``none`` (no clusters: intervals are multinomial only).

    Example:
        >>> fields = Fields("text", "host:meta.url")
        >>> fields.cluster_of({"meta": {"url": "https://www.Example.org/a"}})
        'www.example.org'
    """

    text: str = "text"
    cluster: str = "document"

    def text_of(self, record: Mapping[str, Any]) -> Any:
        """The text of a record, None if it has none."""
        return _value(record, self.text)

    def cluster_of(self, record: Mapping[str, Any]) -> str | None:
        """Name of the cluster of a record; None where it stands alone."""
        if self.cluster == "none":
            return ""
        if self.cluster == "document":
            return None
        return self.named(_value(record, self.cluster_field or ""))

    def named(self, value: Any) -> str | None:
        """Name of the cluster that a value of the cluster field stands for; None where it stands for none."""
        if value is None or isinstance(value, (dict, list)) or value == "":
            return None
        return _host(str(value)) if self.cluster.startswith("host:") else str(value)

    @property
    def cluster_field(self) -> str | None:
        """The field that the cluster comes from, if any."""
        return None if self.cluster in {"document", "none"} else self.cluster.removeprefix("host:")

    def columns(self) -> list[str]:
        """Names of the top-level fields that are needed."""
        named = [self.text, *([self.cluster_field] if self.cluster_field else [])]
        return list(dict.fromkeys(name.partition(".")[0] for name in named))


def _value(record: Mapping[str, Any], field: str) -> Any:
    if field in record:
        return record[field]
    value: Any = record
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or url).lower()
    except ValueError:
        return url


def choose_fields(record: Mapping[str, Any] | None, *, text: str | None, cluster: str | None) -> Fields:
    """Fix the fields of a run from its first record.

    Args:
        record: The first record; None where the corpus holds text files only.
        text: Field of the text; None looks for text, content, raw_content, body, document, in this order.
        cluster: As in `Fields`; None takes the host of ``url``, else ``source``, else each document.

    Raises:
        InputError: A field is not there.
    """
    if record is None:
        if text or (cluster not in {None, "document", "none"}):
            raise InputError("text files have no fields", expected="--cluster document|none", found=text or cluster)
        return Fields(cluster=cluster or "document")
    if text is None:
        text = next((name for name in _TEXT if isinstance(record.get(name), str)), None)
    if text is None or _value(record, text) is None:
        raise InputError(
            "no text field in the first record",
            expected=text or f"one of {', '.join(_TEXT)}",
            found=", ".join(sorted(record)),
            fix="name it with --text-field",
        )
    if cluster is None:
        cluster = next(
            (rule for name, rule in (("url", "host:url"), ("source", "source")) if record.get(name)), "document"
        )
    fields = Fields(text, cluster)
    if fields.cluster_field and _value(record, fields.cluster_field) is None:
        raise InputError(
            f"no field {fields.cluster_field!r} in the first record",
            expected="a field that names the cluster",
            found=", ".join(sorted(record)),
        )
    return fields
