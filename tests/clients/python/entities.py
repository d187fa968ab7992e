"""Entities of generated messages from plain values, and back."""

from google.protobuf.timestamp_pb2 import Timestamp


def entity(api, partition_key, row_key, **values):
    """An entity; a value is a pair of a field of `Value` and its content, or a str or an int32."""
    made = api.entity.Entity(partition_key=partition_key, row_key=row_key)
    for name, value in values.items():
        if isinstance(value, str):
            value = ("string_value", value)
        elif isinstance(value, int) and not isinstance(value, bool):
            value = ("int32_value", value)
        kind, content = value
        made.properties[name].CopyFrom(api.entity.Value(**{kind: content}))
    return made


def values(stored):
    """The properties of an entity: name to the pair of field and value."""
    pairs = {}
    for name, value in stored.properties.items():
        kind = value.WhichOneof("kind")
        pairs[name] = (kind, getattr(value, kind))
    return pairs


def keys(stored):
    """The keys of entities, in their order."""
    return [(one.partition_key, one.row_key) for one in stored]


def timestamp(text):
    """A protobuf timestamp from RFC 3339 text."""
    made = Timestamp()
    made.FromJsonString(text)
    return made
