'use strict';
// Entities of messages from plain values, and back.

/** An entity; a value is `[field of Value, content]`. */
function entity(partitionKey, rowKey, values = {}) {
  const properties = Object.entries(values).map(([name, [kind, content]]) => [
    name,
    { [kind]: content },
  ]);
  const keys = { partition_key: partitionKey, row_key: rowKey };
  return { ...keys, properties: Object.fromEntries(properties) };
}

/** The properties of an entity in the form `entity` takes. */
function values(stored) {
  const pairs = Object.entries(stored.properties);
  return Object.fromEntries(pairs.map(([name, value]) => [name, [value.kind, value[value.kind]]]));
}

/** The keys of entities, in their order, each as `partition/row`. */
function keys(entities) {
  return entities.map((one) => `${one.partition_key}/${one.row_key}`);
}

module.exports = { entity, keys, values };
