//! The parts that a process plays. A part that it does not play is reached over the network.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Takes calls from outside and passes them on.
    Gateway,
    /// Owns the tables.
    Table,
    /// Owns the queues.
    Queue,
}

impl Role {
    const ALL: [Self; 3] = [Self::Gateway, Self::Table, Self::Queue];

    fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Table => "table",
            Self::Queue => "queue",
        }
    }
}

/// One part or more; written as `all`, or as names separated by commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Roles(BTreeSet<Role>);

impl Roles {
    /// Every part.
    #[must_use]
    pub fn all() -> Self {
        Self(Role::ALL.into())
    }

    /// Whether the process owns data.
    #[must_use]
    pub fn own_data(&self) -> bool {
        self.has(Role::Table) || self.has(Role::Queue)
    }

    /// Whether the process plays `role`.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }
}

impl FromStr for Roles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::all());
        }
        let role = |name: &str| {
            let known = Role::ALL.into_iter().find(|role| role.name() == name.trim());
            let rule = "must be `all`, or of `gateway`, `table` and `queue`, separated by commas";
            known.ok_or_else(|| format!("{rule}: value=`{text}`"))
        };
        text.split(',').map(role).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::all() {
            return f.write_str("all");
        }
        let names: Vec<_> = self.0.iter().map(|role| role.name()).collect();
        f.write_str(&names.join(","))
    }
}

impl TryFrom<String> for Roles {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
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
    fn roles_read_back_as_they_are_written() {
        for (text, written) in [
            ("all", "all"),
            ("table", "table"),
            ("queue", "queue"),
            ("gateway", "gateway"),
            ("table, gateway", "gateway,table"),
            ("queue,table, gateway", "all"),
        ] {
            let roles: Roles = text.parse().expect("roles");
            assert_eq!(roles.to_string(), written);
        }
        for text in ["", "tables", "all,table", "gateway,", "Table"] {
            assert!(text.parse::<Roles>().is_err(), "{text}");
        }
    }
}
