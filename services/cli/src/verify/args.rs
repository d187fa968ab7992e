//! The command line of `trestle verify`.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};
use trestle_command::values::whole_number;

/// What is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VerifiedKind {
    /// Tables, with their entities
    Table,
    /// Queues, with their messages
    Queue,
    /// Containers, with every state of their blobs
    Blob,
    /// Streams of log records, with their segments
    Log,
}

/// All of them, in the order in which they are verified.
pub(super) const KINDS: [VerifiedKind; 4] =
    [VerifiedKind::Table, VerifiedKind::Queue, VerifiedKind::Blob, VerifiedKind::Log];

impl fmt::Display for VerifiedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Queue => "queue",
            Self::Blob => "blob",
            Self::Log => "log",
        })
    }
}

/// A table, queue, container or stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VerifiedName {
    pub(super) kind: VerifiedKind,
    pub(super) name: String,
}

impl FromStr for VerifiedName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const RULE: &str = "must be table/NAME, queue/NAME, blob/CONTAINER or log/STREAM";
        let (kind, name) = text.split_once('/').ok_or(RULE)?;
        let kind = VerifiedKind::from_str(kind, false).map_err(|_| RULE)?;
        if name.is_empty() || name.contains('/') {
            return Err(RULE.to_owned());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyAccountArgs {
    /// table/NAME, queue/NAME, blob/CONTAINER or log/STREAM [default: all of the account]
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<VerifiedName>,
    /// Only these kinds, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS", conflicts_with = "names")]
    pub(super) only: Vec<VerifiedKind>,
    /// How many blobs are read at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole_number::<u8>(1..=64))]
    pub(super) parallel: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_kind_before_it() {
        let found = "blob/photos".parse::<VerifiedName>().unwrap();
        assert_eq!((found.kind, found.name.as_str()), (VerifiedKind::Blob, "photos"));
        for text in ["orders", "tables/orders", "table/", "blob/a/b", "/a", ""] {
            assert!(text.parse::<VerifiedName>().unwrap_err().starts_with("must be"), "{text}");
        }
        for kind in KINDS {
            assert_eq!(format!("{kind}/a").parse::<VerifiedName>().unwrap().kind, kind);
        }
    }
}
