'use strict';
// Entities of messages from plain values, and back.

/** An entity; a value is `[field of Value, content]`. */
function entity(partitionKey, rowKey, values = {}) {
  const properties = Object.entries(values).map(([name, [kind, content]]) => ({
    name,
    value: { [kind]: content },
  }));
  return { partition_key: partitionKey, row_key: rowKey, properties };
}

/** The properties of an entity in the form `entity` takes. */
function values(stored) {
  const pairs = stored.properties.map(({ name, value }) => [name, [value.kind, value[value.kind]]]);
  return Object.fromEntries(pairs);
}

/** The keys of entities, in their order, each as `partition/row`. */
function keys(entities) {
  return entities.map((one) => `${one.partition_key}/${one.row_key}`);
}

module.exports = { entity, keys, values };
