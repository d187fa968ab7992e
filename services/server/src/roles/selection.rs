//! Which roles a process has.

use std::{convert::Infallible, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use trestle_runtime::config::shown;

use super::{ROLES, RoleSpec};

/// Every role, or those that are named.
const ALL: &str = "all";

/// The setting `server.roles`, written as `all`, or as names separated by commas. Which names exist
/// is checked against a list of roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Roles {
    /// Every role.
    All,
    /// The roles with these names, in the order in which they are written.
    Named(Vec<String>),
}

impl Roles {
    /// Whether the process has the role of this name.
    #[must_use]
    pub fn has(&self, role: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == role),
        }
    }

    /// The problem of the setting, given the list of roles.
    pub(crate) fn problem(&self, roles: &[RoleSpec]) -> Option<String> {
        let Self::Named(names) = self else { return None };
        let exists = |name: &String| roles.iter().any(|role| role.name == name);
        if names.iter().all(exists) {
            return None;
        }
        let value = shown("server.roles", &self.to_string());
        Some(format!("must be {}{value}", rule(roles)))
    }
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer);
        let expected = || format!("must be a text such as \"table,queue\": {}", rule(ROLES));
        text.map(Self::from).map_err(|_| D::Error::custom(expected()))
    }
}

fn rule(roles: &[RoleSpec]) -> String {
    format!("`all`, or of {}, separated by commas", listed(roles))
}

/// The names of roles in a sentence.
fn listed(roles: &[RoleSpec]) -> String {
    let names: Vec<_> = roles.iter().map(|role| format!("`{}`", role.name)).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl From<String> for Roles {
    fn from(text: String) -> Self {
        if text == ALL {
            return Self::All;
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Self::Named(names)
    }
}

impl FromStr for Roles {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.to_owned().into())
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL),
            Self::Named(names) => f.write_str(&names.join(",")),
        }
    }
}

impl From<Roles> for String {
    fn from(roles: Roles) -> Self {
        roles.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_roles_as_they_are_parsed() {
        for (text, printed) in [
            ("all", "all"),
            ("table", "table"),
            ("queue", "queue"),
            ("blob", "blob"),
            ("log", "log"),
            ("gateway", "gateway"),
            ("table, gateway", "table,gateway"),
            ("table,blob,table", "table,blob"),
        ] {
            let roles = Roles::from(text.to_owned());
            assert_eq!(roles.to_string(), printed);
            assert_eq!(roles.problem(ROLES), None);
        }
    }

    #[test]
    fn rejects_names_of_no_role_and_lists_those_that_exist() {
        for text in ["", "tables", "all,table", "gateway,", "Table", "logs"] {
            let problem = Roles::from(text.to_owned()).problem(ROLES).expect(text);
            assert!(
                problem.contains("`gateway`, `table`, `queue`, `blob` and `log`, separated"),
                "{problem}"
            );
        }
        let written = Roles::from("table,tabel,blob".to_owned()).problem(ROLES).expect("tabel");
        assert!(written.ends_with(": value=`table,tabel,blob`"), "{written}");
    }
}
