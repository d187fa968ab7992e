//! The places of settings: a line of a file, a variable or a flag.

use std::{collections::HashMap, iter, path::Path};

use toml::de::{DeTable, DeValue};

use super::{PREFIX, SEPARATOR, check::joined};

/// The places of the keys of a layer.
pub(super) struct Places {
    of_keys: HashMap<String, String>,
    /// The place of what has no key: the file. Only a file has sections.
    whole: Option<String>,
}

impl Places {
    /// Lines of a file.
    pub(super) fn of_file(path: &Path, text: &str, table: &DeTable<'_>) -> Self {
        let starts = starts("", table).into_iter();
        let of_keys = starts.map(|(key, at)| (key, line_of(path, text, at))).collect();
        Self { of_keys, whole: Some(path.display().to_string()) }
    }

    /// The places of variables or flags.
    pub(super) fn of_keys(keys: Vec<String>, place: impl Fn(&str) -> String) -> Self {
        let of_keys = keys.into_iter().map(|key| (key.clone(), place(&key))).collect();
        Self { of_keys, whole: None }
    }

    /// The place of a key, else of the section that it is in.
    pub(super) fn of(&self, key: &str) -> String {
        let found = iter::successors(Some(key), |key| section_of(key));
        let found = found.filter_map(|key| self.of_keys.get(key)).next();
        found.or(self.whole.as_ref()).cloned().unwrap_or_default()
    }

    /// Whether the layer sets a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.of_keys.contains_key(key)
    }

    fn of_section(&self, key: &str) -> Option<&String> {
        self.whole.as_ref().and_then(|_| self.of_keys.get(key))
    }
}

/// A problem behind its place. The layers are in the order of their priority, the lowest first.
pub(super) fn located(problem: &str, layers: &[&Places]) -> String {
    match place_of(problem, layers) {
        Some(place) => format!("{place}: {problem}"),
        None => problem.to_owned(),
    }
}

/// The place of the key of a problem; where that is not set, of another key that the problem names, such as the one
/// that requires it; else of its section.
fn place_of<'a>(problem: &str, layers: &[&'a Places]) -> Option<&'a String> {
    let key = key_of(problem);
    let set = |key: &str| layers.iter().rev().find_map(|layer| layer.of_keys.get(key));
    let named = || words(problem).filter(|word| word.contains('.')).find_map(set);
    let section = || {
        let mut sections = iter::successors(section_of(key), |key| section_of(key));
        sections.find_map(|key| layers.iter().rev().find_map(|layer| layer.of_section(key)))
    };
    set(key).or_else(named).or_else(section)
}

/// Whether a problem names one of these keys.
pub(super) fn names_any(problem: &str, keys: &[String]) -> bool {
    words(problem).any(|word| keys.iter().any(|key| key == word))
}

fn words(problem: &str) -> impl Iterator<Item = &str> {
    problem.split(|c: char| c.is_whitespace() || ",:;=`".contains(c))
}

/// The flag of a key, as [`super::Sources`] has it.
pub(super) fn flag_of(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    format!("--{}", name.replace('_', "-"))
}

/// The variable of a key.
pub(super) fn variable_of(key: &str) -> String {
    let name = key.to_ascii_uppercase().replace('.', SEPARATOR);
    format!("{PREFIX}{SEPARATOR}{name}")
}

/// The key that a problem begins with.
pub(super) fn key_of(problem: &str) -> &str {
    problem.split(": ").next().unwrap_or_default()
}

/// Whether a key is in a section.
pub(super) fn within(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

fn section_of(key: &str) -> Option<&str> {
    key.rsplit_once('.').map(|(section, _)| section)
}

/// The line of a byte of a file.
pub(super) fn line_of(path: &Path, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    format!("{}:{}", path.display(), before.matches('\n').count() + 1)
}

/// The byte at which each key of a file is written.
fn starts(prefix: &str, table: &DeTable<'_>) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (name, value) in table {
        let key = joined(prefix, name.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            found.extend(starts(&key, inner));
        }
        found.push((key, name.span().start));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[tls]\ncert_file = \"a\"\n[accounts.other]\nkey1 = \"b\"\n\
                        [accounts.acme]\ndisabled = false\nkey2 = \"c\"\n[limits]\n";

    fn file() -> Places {
        let (table, errors) = DeTable::parse_recoverable(TEXT);
        assert!(errors.is_empty());
        Places::of_file(Path::new("f"), TEXT, table.get_ref())
    }

    #[test]
    fn a_problem_is_at_its_key_else_at_a_key_that_it_names_else_at_its_section() {
        let file = file();
        for (problem, line) in [
            ("accounts.acme.key2: wrong", 7),
            ("accounts.other.key1: wrong", 4),
            ("accounts.acme: wrong name", 5),
            ("accounts.acme.key1: required, or key1_file", 5),
            ("accounts.other.key2: required", 3),
            ("tls.key_file: required, since tls.cert_file is set", 2),
            ("tls.cert_file and tls.key_file: need each other", 2),
            ("limits.calls_max: required", 8),
        ] {
            assert_eq!(located(problem, &[&file]), format!("f:{line}: {problem}"));
        }
        assert_eq!(located("server.listen: required", &[&file]), "server.listen: required");
    }

    #[test]
    fn a_problem_is_in_the_highest_layer_that_sets_its_key() {
        let keys = ["accounts", "accounts.acme", "accounts.acme.key2"].map(str::to_owned);
        let variables = Places::of_keys(keys.to_vec(), str::to_ascii_uppercase);
        let file = file();
        let layers = [&file, &variables];

        assert_eq!(
            located("accounts.acme.key2: wrong", &layers),
            "ACCOUNTS.ACME.KEY2: accounts.acme.key2: wrong"
        );
        let other = "accounts.other.key1: wrong";
        assert_eq!(located(other, &layers), format!("f:4: {other}"));
        let missing = "accounts.acme.key1: required";
        assert_eq!(located(missing, &layers), format!("f:5: {missing}"));
    }
}
