//! What is copied from a server, and under which names.

use std::{collections::HashSet, fmt, str::FromStr};

use clap::Args;

use crate::errors::CliError;

/// What is copied from a server: everything, or the named tables, queues and containers only.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Copy this table, under the new name if there is one; may be repeated
    #[arg(long = "table", value_name = "NAME[=NEW]")]
    pub tables: Vec<Renamed>,
    /// Copy this queue; may be repeated
    #[arg(long = "queue", value_name = "NAME[=NEW]")]
    pub queues: Vec<Renamed>,
    /// Copy this container with its blobs; may be repeated
    #[arg(long = "container", value_name = "NAME[=NEW]")]
    pub containers: Vec<Renamed>,
}

/// A name in the source, and the name in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The name in the source.
    pub from: String,
    /// The name in the target.
    pub to: String,
}

impl Renamed {
    /// A name that is kept.
    pub fn kept(name: String) -> Self {
        Self { to: name.clone(), from: name }
    }

    /// The same where the source spells the name so: a name that is kept is that of the source.
    pub fn spelled(&self, name: String) -> Self {
        let to = if self.to == self.from { name.clone() } else { self.to.clone() };
        Self { from: name, to }
    }
}

impl FromStr for Renamed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('=').unwrap_or((text, text));
        match from.is_empty() || to.is_empty() || to.contains('=') {
            true => Err("must be NAME, or NAME=NEW for another name in the target".to_owned()),
            false => Ok(Self { from: from.to_owned(), to: to.to_owned() }),
        }
    }
}

impl fmt::Display for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from == self.to {
            true => f.write_str(&self.from),
            false => write!(f, "{}={}", self.from, self.to),
        }
    }
}

/// The names of one flag.
struct NamesOfFlag<'a> {
    flag: &'static str,
    names: &'a [Renamed],
    /// The form in which two names are compared.
    form: fn(&str) -> String,
}

impl Selection {
    /// Whether everything is copied.
    pub fn is_everything(&self) -> bool {
        self.flags().iter().all(|flag| flag.names.is_empty())
    }

    /// Rejects a name that is given twice, and two names of one target.
    ///
    /// # Errors
    /// The flag, the rule and the value.
    pub fn check(&self) -> Result<(), CliError> {
        for flag in self.flags() {
            let (mut from, mut to) = (HashSet::new(), HashSet::new());
            for name in flag.names {
                if !from.insert((flag.form)(&name.from)) {
                    return Err(flag.rejected(name, "each name may be given once"));
                }
                if !to.insert((flag.form)(&name.to)) {
                    return Err(flag.rejected(name, "another one has that name in the target"));
                }
            }
        }
        Ok(())
    }

    /// Rejects names of the target that are also copied, where source and target are one account of one server.
    ///
    /// # Errors
    /// The flag, the rule and the value.
    pub fn check_on_one_server(&self) -> Result<(), CliError> {
        if self.is_everything() {
            let rule = "source and target are one account of one server: name what to copy, with a new name, such as \
                        --table orders=copied";
            return Err(CliError::Usage(rule.to_owned()));
        }
        for flag in self.flags() {
            let from: HashSet<_> = flag.names.iter().map(|name| (flag.form)(&name.from)).collect();
            if let Some(name) = flag.names.iter().find(|it| from.contains(&(flag.form)(&it.to))) {
                let rule = "source and target are one account of one server: NAME=NEW is required, and NEW must not \
                            be copied itself";
                return Err(flag.rejected(name, rule));
            }
        }
        Ok(())
    }

    fn flags(&self) -> [NamesOfFlag<'_>; 3] {
        let as_given = |name: &str| name.to_owned();
        [
            NamesOfFlag { flag: "--table", names: &self.tables, form: str::to_ascii_lowercase },
            NamesOfFlag { flag: "--queue", names: &self.queues, form: as_given },
            NamesOfFlag { flag: "--container", names: &self.containers, form: as_given },
        ]
    }
}

impl NamesOfFlag<'_> {
    fn rejected(&self, name: &Renamed, rule: &str) -> CliError {
        CliError::Usage(format!("{}: {rule}: value=`{name}`", self.flag))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(texts: &[&str]) -> Vec<Renamed> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn tables(texts: &[&str]) -> Selection {
        Selection { tables: names(texts), ..Selection::default() }
    }

    #[test]
    fn a_name_is_kept_unless_there_is_a_new_one() {
        let kept: Renamed = "orders".parse().unwrap();
        let renamed: Renamed = "orders=before".parse().unwrap();

        assert_eq!(kept.spelled("Orders".to_owned()), Renamed::kept("Orders".to_owned()));
        let spelled = renamed.spelled("Orders".to_owned());
        assert_eq!((spelled.from.as_str(), spelled.to.as_str()), ("Orders", "before"));
        assert_eq!(
            (kept.to_string(), renamed.to_string()),
            ("orders".into(), "orders=before".into())
        );
        for text in ["", "=", "a=", "=b", "a=b=c"] {
            let rule = text.parse::<Renamed>().unwrap_err();
            assert!(rule.starts_with("must be NAME, or NAME=NEW"), "{text}");
        }
    }

    #[test]
    fn a_name_and_a_target_are_given_once() {
        let rejected = |selection: &Selection| selection.check().unwrap_err().to_string();
        assert_eq!(
            rejected(&tables(&["orders", "Orders=b"])),
            "--table: each name may be given once: value=`Orders=b`"
        );
        assert_eq!(
            rejected(&tables(&["a=B", "b"])),
            "--table: another one has that name in the target: value=`b`"
        );
        let queues = names(&["a", "A", "b=a"]);
        assert_eq!(
            rejected(&Selection { queues, ..Selection::default() }),
            "--queue: another one has that name in the target: value=`b=a`"
        );
        let containers = names(&["c", "c"]);
        let twice = rejected(&Selection { containers, ..Selection::default() });
        assert!(twice.starts_with("--container: each name"), "{twice}");
        let all = Selection {
            queues: names(&["a"]),
            containers: names(&["a"]),
            ..tables(&["a", "b=c", "c=b"])
        };
        assert!(all.check().is_ok());
    }

    #[test]
    fn one_server_needs_new_names() {
        let rejected =
            |selection: &Selection| selection.check_on_one_server().unwrap_err().to_string();
        assert!(rejected(&Selection::default()).contains("name what to copy"));
        for texts in [&["orders"][..], &["orders=Orders"], &["a=b", "b=c"], &["a=b", "b=a"]] {
            let error = rejected(&tables(texts));
            assert!(error.starts_with("--table: source and target are one account"), "{error}");
        }
        let one = Selection { queues: names(&["a=b"]), ..tables(&["b=c", "c2=d"]) };
        assert!(one.check_on_one_server().is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_name_is_written_as_it_is_read(from in "[a-zA-Z$-]{1,6}", to in "[a-zA-Z$-]{1,6}") {
            let renamed = Renamed { from: from.clone(), to };

            prop_assert_eq!(renamed.to_string().parse::<Renamed>(), Ok(renamed));
            let kept = Renamed::kept(from.clone());
            prop_assert_eq!(kept.to_string(), from);
        }
    }
}
