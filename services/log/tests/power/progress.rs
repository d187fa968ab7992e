//! What a process printed of its progress before a cut.

/// The progress of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogProgress {
    /// What it began last.
    pub(crate) step: String,
    /// Whether the stream was created.
    pub(crate) is_created: bool,
    /// The sequence before which records were acknowledged.
    pub(crate) acknowledged: u64,
    /// The sequence before which records may be past the retention.
    pub(crate) expired: u64,
}

impl LogProgress {
    /// Prints a line. One that is not whole was not printed.
    pub(crate) fn print(what: &str, value: impl std::fmt::Display) {
        println!("\n{what} {value}");
    }

    pub(crate) fn of(printed: &str) -> Self {
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        let mut progress = Self::default();
        for (what, value) in whole.lines().filter_map(|line| line.split_once(' ')) {
            match what {
                "step" => progress.step = value.to_owned(),
                "created" => progress.is_created = true,
                "acknowledged" => progress.acknowledged = value.parse().unwrap(),
                "expired" => progress.expired = value.parse().unwrap(),
                _ => {}
            }
        }
        progress
    }
}

#[test]
fn a_line_that_is_not_whole_was_not_printed() {
    let printed = "running 1 test\n\ncreated 1\n\nstep merge\n\nacknowledged 6\n\nacknowledged 9";
    let progress = LogProgress::of(printed);
    assert_eq!((progress.acknowledged, progress.is_created), (6, true));
    assert_eq!(progress.step, "merge");
}
