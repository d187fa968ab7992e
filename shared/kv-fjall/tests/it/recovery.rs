//! After an unclean end: a torn end is dropped, damage before a whole group is rejected, and what is
//! recovered is durable by our own writing. Images of the data directory are what power loss leaves.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use trestle_kv::Engine;
use trestle_kv_fjall::{FjallEngine, FjallOptions, OpenError, RepairPlan, SyncPolicy};

use crate::faults;
use crate::fixture_files::data_length;
use crate::world::{commit, everything, get, key, open, options, put, rules};

const PAGE: usize = 4096;

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(bytes)
    .collect()
}

/// The directory of a store, as a killed process leaves it, and where its groups end in the journal.
struct Image {
    directory: tempfile::TempDir,
    journal: PathBuf,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Image {
    /// A group with one row for each value; the row is named by its number.
    async fn of(values: &[Vec<u8>], durability: SyncPolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("db/0.jnl");
        let defaults = options(directory.path());
        // No heartbeat joins a group, however long the rows take: the groups are compared byte by byte.
        let tick = std::time::Duration::from_secs(3_600);
        let engine = FjallEngine::open(FjallOptions { durability, tick, ..defaults }).unwrap();
        let mut ends = Vec::new();
        for (row, value) in values.iter().enumerate() {
            commit(&engine, vec![put(key(format!("row {row}")), value.clone())]).await.unwrap();
            ends.push(data_length(&fs::read(&journal).unwrap()));
        }
        // The database writes one more group when it is closed.
        let bytes = fs::read(&journal).unwrap()[..ends[ends.len() - 1]].to_vec();
        drop(engine);
        fs::remove_file(directory.path().join("CLOSED")).unwrap();
        let image = Self { directory, journal, bytes, ends };
        image.write(&image.bytes);
        image
    }

    /// Writes the journal, with the zeros that the database puts behind it.
    fn write(&self, bytes: &[u8]) {
        fs::write(&self.journal, bytes).unwrap();
        fs::File::options()
            .write(true)
            .open(&self.journal)
            .unwrap()
            .set_len(64 * 1024 * 1024)
            .unwrap();
    }

    fn changed(&self, change: impl FnOnce(&mut [u8])) {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        self.write(&bytes);
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Opens it, and checks that it has this many rows, from the first on, before and after more are written.
    async fn opens_with(&self, rows: usize) {
        let engine = open(self.path());
        assert_eq!(everything(&*engine).await.len(), rows);
        commit(&*engine, vec![put(key("later"), "value")]).await.unwrap();
        drop(engine);
        fs::remove_file(self.path().join("CLOSED")).unwrap();
        let engine = open(self.path());
        for row in 0..rows {
            assert!(get(&*engine, &key(format!("row {row}"))).await.is_some(), "{row}");
        }
        assert_eq!(get(&*engine, &key("later")).await, Some("value".into()));
        assert_eq!(everything(&*engine).await.len(), rows + 1);
        drop(engine);
        fs::remove_file(self.path().join("CLOSED")).unwrap();
    }

    /// What is in the journal, without the zeros behind it.
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        let file = fs::File::open(&self.journal).unwrap();
        file.take(self.bytes.len() as u64).read_to_end(&mut head).unwrap();
        head
    }

    fn rejected(&self) -> String {
        let before = self.head();
        let reason = match FjallEngine::open(options(self.path())) {
            Err(error @ OpenError::Damaged { .. }) => error.to_string(),
            Err(other) => panic!("rejected for another reason: {other}"),
            Ok(_) => panic!("opened"),
        };
        assert!(self.head() == before, "a rejected journal was changed");
        reason
    }
}

fn values(last: usize) -> Vec<Vec<u8>> {
    vec![noise(100), noise(900), noise(5_000), noise(last)]
}

#[tokio::test]
async fn a_lost_page_of_the_last_group_is_a_torn_end() {
    let image = Image::of(&values(40_000), SyncPolicy::Always).await;
    let (from, to) = (image.ends[2], image.ends[3]);

    for page in from / PAGE..=(to - 1) / PAGE {
        let lost = (page * PAGE).max(from)..((page + 1) * PAGE).min(to);
        image.changed(|bytes| bytes[lost].fill(0));
        image.opens_with(3).await;
    }
    for last in [from + 1, from + 12, from + 13, from + 40, to - 13, to - 1] {
        image.changed(|bytes| bytes[last..].fill(0));
        image.opens_with(3).await;
    }
}

#[tokio::test]
async fn a_flipped_bit_of_the_last_group_is_a_torn_end() {
    let image = Image::of(&values(600), SyncPolicy::Always).await;

    // No hash covers the sequence number, and a greater one changes nothing behind the last group.
    let seqno = image.ends[2] + 5..image.ends[2] + 13;
    for position in
        (image.ends[2]..image.ends[3]).step_by(61).filter(|position| !seqno.contains(position))
    {
        image.changed(|bytes| bytes[position] ^= 1 << (position % 8));
        image.opens_with(3).await;
    }
}

#[tokio::test]
async fn damage_before_a_whole_group_is_rejected() {
    let image = Image::of(&values(2_000), SyncPolicy::Always).await;
    let header = image.ends[0]..image.ends[0] + 70;
    let rest = (0..image.ends[2]).step_by(41);

    for position in header.chain(rest) {
        image.changed(|bytes| bytes[position] ^= 1 << (position % 8));

        let reason = image.rejected();

        let group = image.ends.iter().rposition(|end| *end <= position);
        let offset = group.map_or(0, |group| image.ends[group]);
        assert!(reason.contains("rows_after=`first="), "{reason}");
        if (5..13).contains(&(position - offset)) {
            // A sequence number: it or the one before is wrong.
            continue;
        }
        for part in ["file=`db/0.jnl`", &format!("offset=`{offset}`"), "trestle repair"] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        let before = format!("groups_before=`{}`", group.map_or(0, |group| group + 1));
        assert!(reason.contains(&before), "{before}: {reason}");
    }
}

#[tokio::test]
async fn a_wrong_sequence_number_before_a_whole_group_is_rejected() {
    let image = Image::of(&values(10), SyncPolicy::Always).await;
    for group in 0..3 {
        let start = if group == 0 { 0 } else { image.ends[group - 1] };
        for bit in 0..64 {
            let is_lower = image.bytes[start + 5 + bit / 8] & 1 << (bit % 8) != 0;
            if group == 0 && is_lower {
                // No group before it bounds it from below.
                continue;
            }
            image.changed(|bytes| bytes[start + 5 + bit / 8] ^= 1 << (bit % 8));
            image.rejected();
        }
    }
    // The same across journals.
    let mut bytes = image.bytes.clone();
    bytes[image.ends[1] + 6] ^= 1;
    rotate(&image, image.ends[2], &bytes);
    image.rejected();
}

#[tokio::test]
async fn a_lost_page_before_a_whole_group_is_rejected() {
    let image = Image::of(&values(100), SyncPolicy::Always).await;
    image.changed(|bytes| bytes[..PAGE].fill(0));
    let reason = image.rejected();
    assert!(reason.contains("groups_before=`0`, groups_after=`1`"), "{reason}");
}

/// Moves what follows a group into the next journal, as a rotation does.
fn rotate(image: &Image, at: usize, bytes: &[u8]) {
    image.write(&bytes[..at]);
    fs::write(image.path().join("db/1.jnl"), &bytes[at..]).unwrap();
}

#[tokio::test]
async fn damage_in_a_sealed_journal_is_rejected() {
    let image = Image::of(&values(100), SyncPolicy::Always).await;
    let mut bytes = image.bytes.clone();
    bytes[image.ends[2] - 20] ^= 4;
    rotate(&image, image.ends[2], &bytes);

    let reason = image.rejected();

    assert!(reason.contains("file=`db/0.jnl`"), "{reason}");
    assert!(reason.contains("groups_after=`1`"), "{reason}");
}

#[tokio::test]
async fn an_empty_sealed_journal_is_rejected_and_a_repair_keeps_the_others() {
    let image = Image::of(&values(100), SyncPolicy::Always).await;
    rotate(&image, image.ends[1], &image.bytes);
    let database = image.path().join("db");
    fs::rename(database.join("1.jnl"), database.join("2.jnl")).unwrap();
    fs::write(database.join("1.jnl"), [0; 4096]).unwrap();

    let reason = image.rejected();
    for part in ["a sealed journal is empty", "file=`db/1.jnl`", "trestle repair"] {
        assert!(reason.contains(part), "{reason}");
    }
    let plan = RepairPlan::examine(image.path(), &options(image.path()).keyspaces).unwrap();
    assert!(plan.is_needed() && plan.reason().unwrap().contains("db/1.jnl"));
    let originals = plan.accept_loss(&rules()).unwrap().originals;

    assert!(originals.join("1.jnl").exists());
    assert!(!database.join("0.jnl").exists(), "its number is the next one");
    image.opens_with(4).await;
}

#[tokio::test]
async fn a_repair_counts_the_groups_of_every_damaged_place() {
    let values: Vec<_> = (0..6).map(|_| noise(3_000)).collect();
    let image = Image::of(&values, SyncPolicy::Always).await;
    let lost = |damaged: &[usize], lose_end: bool| {
        image.changed(|bytes| {
            damaged.iter().for_each(|group| bytes[image.ends[*group] - 100] ^= 1);
            let end = bytes.len();
            bytes[if lose_end { image.ends[4] + 1_000 } else { end }..].fill(0);
        });
        let plan = RepairPlan::examine(image.path(), &options(image.path()).keyspaces).unwrap();
        plan.losses()[0].groups_lost_max
    };

    assert_eq!(lost(&[1, 3], false), Some(2));
    assert_eq!(lost(&[1, 2, 4], false), Some(3));
    assert_eq!(lost(&[0, 2], false), None, "there may be others before the first");
    assert_eq!(lost(&[1], true), None, "there may be others behind the last");
}

#[tokio::test]
async fn a_torn_end_before_an_empty_journal_is_dropped() {
    // A failed sync, then a rotation that was already due.
    let image = Image::of(&values(9_000), SyncPolicy::Always).await;
    let mut bytes = image.bytes.clone();
    bytes[image.ends[2] + 5_000..].fill(0);
    rotate(&image, bytes.len(), &bytes);

    image.opens_with(3).await;
}

#[tokio::test]
async fn values_that_look_like_groups_do_not_make_a_torn_end_damage() {
    // The journal of another store, and that of this one, as values of rows.
    let other = Image::of(&values(700), SyncPolicy::Always).await;
    let copy = [noise(PAGE), other.bytes.clone(), noise(100)].concat();
    let image = Image::of(&[vec![1; 10], vec![2; 10], copy], SyncPolicy::Always).await;

    // The end of the group, then a page in front of the copy: its framing.
    for lost in [image.ends[2] - 2..image.ends[2], image.ends[1]..image.ends[1] + PAGE] {
        image.changed(|bytes| bytes[lost].fill(0));
        image.opens_with(2).await;
    }
}

#[tokio::test]
async fn groups_that_no_sync_ordered_may_be_torn_in_the_middle() {
    let interval = SyncPolicy::Interval(std::time::Duration::from_secs(60));
    for durability in [SyncPolicy::Os, interval] {
        let image = Image::of(&values(500), durability).await;
        image.changed(|bytes| bytes[image.ends[1] + 30] ^= 1);
        image.opens_with(2).await;

        // From then on every group is synced before the next.
        let mut bytes = image.bytes.clone();
        bytes[image.ends[1] + 30] ^= 1;
        image.write(&bytes);
        image.rejected();
    }
}

#[tokio::test]
async fn what_is_recovered_after_a_failed_sync_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_) = faults::run("meet-a-failing-sync", directory.path()) else {
        return;
    };
    let data = directory.path().join("data");
    let journal = data.join("db/0.jnl");
    // What failed to be synced is in memory alone: the last 20 acknowledged rows are before it.
    let bytes = fs::read(&journal).unwrap();
    let end = data_length(&bytes);
    let name = bytes.windows(6).rposition(|window| window == b"failed").unwrap();
    let not_on_disk = fs::metadata(&journal).unwrap().ino();

    let engine = open(&data);
    let recovered = everything(&*engine).await.len();
    for row in 0..50 {
        commit(&*engine, vec![put(key(format!("later {row}")), "value")]).await.unwrap();
    }
    drop(engine);

    // The power fails: the pages of that file that were never written again are lost.
    fs::remove_file(data.join("CLOSED")).unwrap();
    if fs::metadata(&journal).unwrap().ino() == not_on_disk {
        let mut file = fs::File::options().write(true).open(&journal).unwrap();
        file.seek(SeekFrom::Start(name as u64)).unwrap();
        file.write_all(&vec![0; end - name]).unwrap();
    }

    let engine = open(&data);
    assert_eq!(everything(&*engine).await.len(), recovered + 50);
    assert_eq!(engine.status().stopped, None);
}
