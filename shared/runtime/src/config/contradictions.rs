//! Settings of a file that leave others of it without effect.

use config::{Value, ValueKind};

/// A setting that leaves another one without effect.
#[derive(Debug, Clone, Copy)]
pub struct Exclusion<'a> {
    /// The key of the one: a boolean.
    pub switch: &'a str,
    /// The key of the other, where the switch is true.
    pub unused: &'a str,
    /// The default of the other, which a file may repeat: printed settings have it.
    pub default: &'a str,
}

/// The mistakes of a file by `rules`. A higher layer that sets one of their keys decides which is meant.
pub(super) fn contradictions(
    rules: &[Exclusion<'_>],
    file: &Value,
    is_set_above: impl Fn(&str) -> bool,
) -> Vec<String> {
    let contradicts = |Exclusion { switch, unused, default }: &&Exclusion<'_>| {
        let is_true = value_of(file, switch).and_then(|value| value.into_bool().ok());
        let other = value_of(file, unused).filter(|value| value.to_string() != *default);
        is_true == Some(true) && other.is_some() && !is_set_above(switch) && !is_set_above(unused)
    };
    let problem = |Exclusion { switch, unused, .. }: &Exclusion<'_>| {
        format!("{unused}: has no effect with {switch} = true: remove one of them")
    };
    rules.iter().filter(contradicts).map(problem).collect()
}

fn value_of(values: &Value, key: &str) -> Option<Value> {
    let found = key.split('.').try_fold(values, |values, name| match &values.kind {
        ValueKind::Table(values) => values.get(name),
        _ => None,
    });
    found.cloned()
}
