//! Settings that leave others without effect.

use config::{Map, Value, ValueKind};

/// A setting that leaves another one without effect. A layer that sets only one of them decides which is meant, over
/// both of the layers below it.
#[derive(Debug, Clone, Copy)]
pub struct Exclusion<'a> {
    /// The key of the one: a boolean.
    pub switch: &'a str,
    /// The key of the other, which has no effect where the switch is true.
    pub unused: &'a str,
}

/// The mistakes by `rules` of the layers, the lowest first. A layer above that sets one of their keys resolves them.
pub(super) fn contradictions(rules: &[Exclusion<'_>], layers: &[&Value]) -> Vec<String> {
    let problem = |Exclusion { switch, unused }: &Exclusion<'_>| {
        let is_set = |layer: &&&Value| {
            value_of(layer, switch).is_some() || value_of(layer, unused).is_some()
        };
        let highest = layers.iter().rev().find(is_set)?;
        let is_true = value_of(highest, switch)
            .is_some_and(|value| value.clone().into_bool().is_ok_and(|is_true| is_true));
        let has_both = is_true && value_of(highest, unused).is_some();
        has_both
            .then(|| format!("{unused}: has no effect with {switch} = true: remove one of them"))
    };
    rules.iter().filter_map(problem).collect()
}

/// Turns the switch of a rule off in a layer that sets only the other key: it is meant, whatever a layer below sets.
pub(super) fn resolve_layers(rules: &[Exclusion<'_>], layer: &mut Value) {
    for Exclusion { switch, unused } in rules {
        if value_of(layer, unused).is_some() && value_of(layer, switch).is_none() {
            set(layer, switch, Value::from(false));
        }
    }
}

fn value_of<'a>(values: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(values, |values, name| match &values.kind {
        ValueKind::Table(values) => values.get(name),
        _ => None,
    })
}

/// Sets a key. A value in place of a section is a mistake of its own and is kept.
fn set(values: &mut Value, key: &str, value: Value) {
    let ValueKind::Table(values) = &mut values.kind else { return };
    match key.split_once('.') {
        Some((section, rest)) => {
            let empty = || Value::new(None, ValueKind::Table(Map::new()));
            set(values.entry(section.to_owned()).or_insert_with(empty), rest, value);
        }
        None => {
            values.insert(key.to_owned(), value);
        }
    }
}
