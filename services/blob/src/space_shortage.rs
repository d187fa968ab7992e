//! A disk without space for the content of a blob, in numbers.

use std::fmt;

use trestle_kv::{DiskStatus, EngineStatus};

/// What a write needs, and what there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SpaceShortage {
    /// What the write needs, as far as it arrived.
    needed_bytes: Option<u64>,
    /// Free bytes on the disk of the data directory, when they were last measured.
    free_bytes: Option<u64>,
    /// The reserve of them.
    reserve_bytes: Option<u64>,
}

impl SpaceShortage {
    /// That of a write of so many bytes.
    pub(crate) fn of(needed_bytes: u64, status: &EngineStatus) -> Self {
        let of = |bytes: fn(&DiskStatus) -> u64| status.disk.as_ref().map(bytes);
        Self {
            needed_bytes: Some(needed_bytes),
            free_bytes: of(|disk| disk.free_bytes),
            reserve_bytes: of(|disk| disk.reserve_bytes),
        }
    }
}

impl fmt::Display for SpaceShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = [
            ("needed_bytes", self.needed_bytes),
            ("free_bytes", self.free_bytes),
            ("storage.min_free_bytes", self.reserve_bytes),
        ];
        f.write_str("no space is left for the content of blobs")?;
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        for (index, (name, number)) in numbers.enumerate() {
            let separator = if index == 0 { ": " } else { ", " };
            write!(f, "{separator}{name}=`{number}`")?;
        }
        f.write_str("; delete blobs, or free space on the disk of storage.data_dir")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_has_its_numbers_and_the_name_of_the_setting() {
        let shortage = SpaceShortage {
            needed_bytes: Some(4_194_304),
            free_bytes: Some(500_000_000),
            reserve_bytes: Some(536_870_912),
        };
        let numbers = "needed_bytes=`4194304`, free_bytes=`500000000`, \
                       storage.min_free_bytes=`536870912`";
        let text = "no space is left for the content of blobs";
        let advice = "delete blobs, or free space on the disk of storage.data_dir";
        assert_eq!(shortage.to_string(), format!("{text}: {numbers}; {advice}"));
        assert_eq!(SpaceShortage::default().to_string(), format!("{text}; {advice}"));
    }
}
