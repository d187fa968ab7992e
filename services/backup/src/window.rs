//! Windows: the changes of a store between two instants, as they are at a target.
//!
//! ```text
//! changes/LINE/SEQ-FROM-TO-AT-PARTS          groups of changes, encrypted if the backups are
//! changes/LINE/SEQ-FROM-TO-AT-PARTS.parts    the names of the pieces of the objects that they name; if there are any
//! ```
//!
//! A line is an uninterrupted sequence of changes of one store. Its windows have consecutive numbers, and each begins
//! with the version that the one before ends with. So names alone show which instants can be restored, and what may be
//! deleted: no key is needed for either.

use bytes::Bytes;
use prost::Message;
use trestle_kv::{Entry, Span};
use trestle_kv_fjall::LoggedChange;
use trestle_model::time::Ticks;

use crate::lists::{Listed as _, ObjectRef};

/// What is below it are windows.
pub(crate) const CHANGES: &str = "changes";
/// Follows the name of a window whose objects are named there.
const PARTS_SUFFIX: &str = ".parts";
/// A window ends when its changes have this length, in bytes; one change more fits into a part.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a change has beside its key and its value, about.
const CHANGE_BYTES: usize = 16;

/// The name of a window: what it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WindowName {
    /// The id of its line.
    pub(crate) line: String,
    /// Its number in the line, from 0 on.
    pub(crate) seq: u64,
    /// The version that the changes before it end with.
    pub(crate) from: Ticks,
    /// Every whole group up to this version is in this window or in those before it.
    pub(crate) to: Ticks,
    /// Everything that was acknowledged by then is in this window and those before it.
    pub(crate) at: Ticks,
    /// How many pieces of objects it names.
    pub(crate) parts: u64,
}

impl WindowName {
    /// Its path at the target.
    pub(crate) fn path(&self) -> String {
        let Self { line, seq, from, to, at, parts } = self;
        let (from, to, at) = (from.get(), to.get(), at.get());
        format!("{CHANGES}/{line}/{seq:016x}-{from:016x}-{to:016x}-{at:016x}-{parts:08x}")
    }

    /// The path of the names of the pieces of its objects.
    pub(crate) fn parts_path(&self) -> String {
        self.path() + PARTS_SUFFIX
    }

    /// The name of the window whose names of pieces are at a path; none of another file.
    pub(crate) fn of_parts_path(path: &str) -> Option<Self> {
        Self::of_path(path.strip_suffix(PARTS_SUFFIX)?)
    }

    /// The name at a path; none of another file.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let (line, name) = path.strip_prefix(CHANGES)?.strip_prefix('/')?.split_once('/')?;
        let mut numbers = name.split('-').map(|digits| u64::from_str_radix(digits, 16).ok());
        let mut next = || numbers.next().flatten();
        let seq = next()?;
        let mut ticks = || next().and_then(Ticks::new);
        let (from, to, at) = (ticks()?, ticks()?, ticks()?);
        let parts = next()?;
        let found = Self { line: line.to_owned(), seq, from, to, at, parts };
        // Of one form alone: no sign, no other case, no further number.
        (found.path() == path && from <= to).then_some(found)
    }
}

impl ChangeWindow {
    /// Whether it is what its name promises: versions ascend within its bounds, and only its last group may go on.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn check(&self, name: &WindowName) -> Result<(), &'static str> {
        let mut last = name.from.get();
        for (index, group) in self.groups.iter().enumerate() {
            // What is discarded has the version of the change before it.
            let is_equal =
                group.version == last && group.changes.iter().all(WindowChange::is_discard);
            if group.version <= last && !is_equal {
                return Err("its versions do not ascend from where it begins");
            }
            last = group.version;
            match group.is_continued {
                true if index + 1 < self.groups.len() => {
                    return Err("a group before its last one goes on in the next window");
                }
                true if last <= name.to.get() => {
                    return Err("a group goes on in the next window, and its name has it as whole");
                }
                false if last > name.to.get() => return Err("it has versions after its name"),
                _ => {}
            }
        }
        let parts =
            self.objects.iter().map(|object| object.parts().map(|parts| parts.len() as u64));
        match parts.sum::<Option<u64>>() {
            None => Err("it has a malformed object"),
            Some(parts) if parts != name.parts => {
                Err("it has another number of pieces than its name")
            }
            Some(_) => Ok(()),
        }
    }
}

/// What a window has.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChangeWindow {
    /// Groups of changes, in their order.
    #[prost(message, repeated, tag = "1")]
    pub(crate) groups: Vec<WindowGroup>,
    /// The objects that rows in it name.
    #[prost(message, repeated, tag = "2")]
    pub(crate) objects: Vec<ObjectRef>,
}

/// Changes that were committed together, or a part of them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WindowGroup {
    /// The newest of their versions, in ticks.
    #[prost(uint64, tag = "1")]
    pub(crate) version: u64,
    /// The changes.
    #[prost(message, repeated, tag = "2")]
    pub(crate) changes: Vec<WindowChange>,
    /// Whether the next window goes on with the same group.
    #[prost(bool, tag = "3")]
    pub(crate) is_continued: bool,
}

/// A change of a row: with a value it is written, with an end the rows from the key up to it are removed, and without
/// either the row is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WindowChange {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", optional, tag = "2")]
    value: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    end: Option<Bytes>,
}

impl From<LoggedChange> for WindowChange {
    fn from(change: LoggedChange) -> Self {
        match change {
            LoggedChange::Put(Entry { key, value }) => Self { key, value: Some(value), end: None },
            LoggedChange::Delete(key) => Self { key, value: None, end: None },
            LoggedChange::Discard(Span { start, end, .. }) => {
                Self { key: start, value: None, end: Some(end) }
            }
        }
    }
}

impl From<WindowChange> for LoggedChange {
    fn from(WindowChange { key, value, end }: WindowChange) -> Self {
        match (value, end) {
            (Some(value), _) => Self::Put(Entry { key, value }),
            (None, Some(end)) => Self::Discard(Span::new(key, end)),
            (None, None) => Self::Delete(key),
        }
    }
}

impl WindowChange {
    /// Whether it removes the rows of a range.
    pub(crate) fn is_discard(&self) -> bool {
        self.value.is_none() && self.end.is_some()
    }

    fn bytes(&self) -> usize {
        let value = self.value.as_ref().or(self.end.as_ref()).map_or(0, Bytes::len);
        CHANGE_BYTES + self.key.len() + value
    }
}

/// Groups that become windows.
#[derive(Default)]
pub(crate) struct WindowCutter {
    groups: Vec<WindowGroup>,
    bytes: usize,
}

impl WindowCutter {
    /// Adds a group. Returns the windows that end within it, each with the groups that it has.
    pub(crate) fn push(
        &mut self,
        version: Ticks,
        changes: impl IntoIterator<Item = LoggedChange>,
    ) -> Vec<Vec<WindowGroup>> {
        let mut cut = Vec::new();
        let empty = || WindowGroup { version: version.get(), ..WindowGroup::default() };
        let mut group = empty();
        for change in changes.into_iter().map(WindowChange::from) {
            if self.bytes >= BYTES_MAX {
                group.is_continued = true;
                self.groups.push(std::mem::replace(&mut group, empty()));
                cut.push(self.cut());
            }
            self.bytes += change.bytes();
            group.changes.push(change);
        }
        self.groups.push(group);
        if self.bytes >= BYTES_MAX {
            cut.push(self.cut());
        }
        cut
    }

    /// The groups that remain, which may be none.
    pub(crate) fn cut(&mut self) -> Vec<WindowGroup> {
        self.bytes = 0;
        std::mem::take(&mut self.groups)
    }

    /// Whether nothing remains.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn ticks(number: u64) -> Ticks {
        Ticks::new(number).unwrap()
    }

    pub(crate) fn name(line: &str, seq: u64, [from, to, at]: [u64; 3]) -> WindowName {
        let [from, to, at] = [from, to, at].map(ticks);
        WindowName { line: line.to_owned(), seq, from, to, at, parts: 0 }
    }

    #[test]
    fn a_name_is_read_from_its_path_and_from_no_other() {
        let name = WindowName { parts: 3, ..name("a", 255, [7, 8, 9]) };
        let path = "changes/a/00000000000000ff-0000000000000007-0000000000000008-0000000000000009-00000003";
        assert_eq!(name.path(), path);
        assert_eq!(WindowName::of_path(path), Some(name.clone()));
        assert_eq!(name.parts_path(), format!("{path}.parts"));
        assert_eq!(WindowName::of_parts_path(&name.parts_path()), Some(name.clone()));
        assert_eq!(WindowName::of_parts_path(path), None);
        let sign = path.replace("/0000", "/+000");
        let (upper, longer, back) =
            (path.replace("ff", "FF"), format!("{path}-0"), path.replace("07-", "0b-"));
        for other in [&sign, &upper, &longer, &back, "changes/a/7", "parts/a/7", &name.parts_path()]
        {
            assert_eq!(WindowName::of_path(other), None, "{other}");
        }
    }

    fn put(key: &str, bytes: usize) -> LoggedChange {
        LoggedChange::Put(Entry { key: key.to_owned().into(), value: vec![7; bytes].into() })
    }

    #[test]
    fn changes_are_read_as_they_were_written() {
        let changes = [
            put("a", 0),
            LoggedChange::Delete("b".into()),
            LoggedChange::Discard(Span::new("c", "d")),
        ];
        let mut cutter = WindowCutter::default();
        assert!(cutter.push(ticks(7), changes.clone()).is_empty() && !cutter.is_empty());
        let window = ChangeWindow { groups: cutter.cut(), objects: Vec::new() };
        let read = ChangeWindow::decode(&*window.encode_to_vec()).unwrap();
        assert_eq!(read, window);
        let found: Vec<_> =
            read.groups[0].changes.iter().cloned().map(LoggedChange::from).collect();
        assert_eq!(found, changes);
        assert!(cutter.is_empty() && cutter.cut().is_empty());
    }

    #[test]
    fn a_group_that_is_larger_than_a_window_goes_on_in_the_next() {
        let mut cutter = WindowCutter::default();
        let mut windows = cutter.push(ticks(7), [put("a", 1)]);
        let large: Vec<_> =
            (0..7).map(|index| put(&format!("b{index}"), 2 * 1024 * 1024)).collect();
        windows.extend(cutter.push(ticks(8), large));
        windows.push(cutter.cut());
        let shown = |groups: &Vec<WindowGroup>| {
            let shown = groups.iter().map(|it| (it.version, it.changes.len(), it.is_continued));
            shown.collect::<Vec<_>>()
        };
        let found: Vec<_> = windows.iter().map(shown).collect();
        assert_eq!(
            found,
            [
                vec![(7, 1, false), (8, 2, true)],
                vec![(8, 2, true)],
                vec![(8, 2, true)],
                vec![(8, 1, false)]
            ]
        );
        let max = crate::packed::PLAIN_BYTES_MAX;
        let bytes = |groups| ChangeWindow { groups, objects: Vec::new() }.encoded_len();
        assert!(windows.into_iter().map(bytes).all(|bytes| bytes < max));
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_read_from_its_path(
            seq in proptest::num::u64::ANY,
            from in 1_u64..1_000_000,
            more in 0_u64..1_000_000,
            parts in 0_u64..1_000_000,
        ) {
            let name = WindowName { parts, ..name("a", seq, [from, from + more, from + more]) };
            proptest::prop_assert_eq!(WindowName::of_path(&name.path()), Some(name.clone()));
            proptest::prop_assert_eq!(WindowName::of_parts_path(&name.parts_path()), Some(name));
        }

        #[test]
        fn a_path_with_another_character_is_no_name_or_has_another(
            index in 10_usize..86,
            other in "[0-9a-fA-F+-]",
        ) {
            let mut path = name("a", 7, [0x1234, 0x5678, 0x9abc]).path();
            path.replace_range(index..=index, &other);
            if let Some(name) = WindowName::of_path(&path) {
                proptest::prop_assert_eq!(name.path(), path);
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

        #[test]
        fn every_change_is_in_one_window_and_in_order(
            groups in proptest::collection::vec(
                proptest::collection::vec(0_usize..3_000_000, 1..4),
                1..5,
            ),
        ) {
            let mut cutter = WindowCutter::default();
            let (mut windows, mut expected) = (Vec::new(), Vec::new());
            for (version, sizes) in std::iter::zip(1_u64.., groups) {
                let changes: Vec<_> = std::iter::zip(0_usize.., sizes)
                    .map(|(index, bytes)| put(&format!("{version}-{index}"), bytes))
                    .collect();
                let versions = changes.iter().cloned().map(|change| (version, change));
                expected.extend(versions);
                windows.extend(cutter.push(ticks(version), changes));
            }
            windows.push(cutter.cut());
            let max = crate::packed::PLAIN_BYTES_MAX;
            let mut found = Vec::new();
            for groups in windows {
                let window = ChangeWindow { groups, objects: Vec::new() };
                proptest::prop_assert!(window.encoded_len() < max);
                for group in window.groups {
                    let version = group.version;
                    let changes = group.changes.into_iter().map(LoggedChange::from);
                    found.extend(changes.map(|change| (version, change)));
                }
            }
            proptest::prop_assert!(found == expected);
        }
    }
}
