//! How a server hands its committed changes to `backup follow`: by files in the data directory.
//!
//! ```text
//! changes/N.jnl     links to the journals of the store, by the server
//! changes/END       how far everything is committed, by the server
//! changes/LINE      how far the changes are at the target, by the command
//! changes/SEEN      the time of END when that was all, by the command
//! changes/LOCK      the command locks it
//! changes/BASED     the line that the newest backup is in, by the server
//! ```
//!
//! The server keeps the journals that LINE does not have. Where they grow too large it begins a new epoch, which the
//! command answers with a new line: what is between the two cannot be restored.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use trestle_command::errors::CliError;
use trestle_kv::replace_file;
use trestle_kv_fjall::LogPosition;
use trestle_model::time::Ticks;

/// The directory in a data directory.
pub const CHANGES: &str = "changes";
const END: &str = "END";
const LINE: &str = "LINE";
const SEEN: &str = "SEEN";
const LOCK: &str = "LOCK";
const BASED: &str = "BASED";
/// Earlier lines that are remembered.
const LINES_MAX: usize = 16;
/// More than any of the files has.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// How far everything is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesEnd {
    /// Everything that was committed is before this position, in its text form.
    pub position: String,
    /// The newest version in it, in ticks.
    pub newest: u64,
    /// The service time then: everything that was acknowledged by then is in it.
    pub now: u64,
    /// Another number: journals were given up since.
    pub epoch: u64,
}

/// How far the changes are at a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShippedChanges {
    /// The id of the line.
    pub line: String,
    /// The lines of this data directory before it, the last ones.
    #[serde(default)]
    pub earlier: Vec<String>,
    /// The number of the command that writes it.
    #[serde(default)]
    pub run: u64,
    /// By which name a command was about to take the next number: whether it has it is shown by the target.
    #[serde(default)]
    pub claim: Option<String>,
    /// The epoch of [`ChangesEnd`] that it is of.
    pub epoch: u64,
    /// Where the next window begins.
    pub next: NextWindow,
    /// The window that is written, as it is written: whether it was is shown by the target.
    pub writing: Option<WritingWindow>,
}

/// Where a window begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextWindow {
    /// Its number.
    pub seq: u64,
    /// The position of its first group, in its text form.
    pub position: String,
    /// How many changes of that group an earlier window has.
    pub skip: u64,
    /// The version of the newest whole group before it, in ticks.
    pub newest: u64,
    /// Everything that was acknowledged by then is in earlier windows, in ticks.
    pub at: u64,
}

impl NextWindow {
    /// The position; none of a malformed one.
    #[must_use]
    pub fn position(&self) -> Option<LogPosition> {
        self.position.parse().ok()
    }
}

/// A window that may be at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritingWindow {
    /// Its path.
    pub path: String,
    /// Where the one after it begins.
    pub next: NextWindow,
}

/// The line of the newest backup of a data directory; none where there is no such backup.
#[must_use]
pub fn based_line(data_dir: &Path) -> Option<String> {
    read(data_dir, BASED)
}

/// Notes the line of a backup that was made.
///
/// # Errors
/// A directory that cannot be written.
pub fn note_based_line(data_dir: &Path, line: &str) -> io::Result<()> {
    replace_file(&data_dir.join(CHANGES), BASED, &serde_json::to_vec(line)?)
}

impl ChangesEnd {
    /// What the server of a data directory wrote last; none where it wrote nothing that can be read.
    #[must_use]
    pub fn read(data_dir: &Path) -> Option<Self> {
        read(data_dir, END)
    }

    /// Replaces what a reader sees, as a whole. It is not durable: after a crash it is written anew.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        replace_unsynced(&data_dir.join(CHANGES), END, &serde_json::to_vec(self)?)
    }

    /// Its position; none of a malformed one.
    pub(crate) fn position(&self) -> Option<LogPosition> {
        self.position.parse().ok()
    }
}

impl ShippedChanges {
    /// The lines before the one that follows it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let first = (self.earlier.len() + 1).saturating_sub(LINES_MAX);
        self.earlier.iter().skip(first).chain([&self.line]).cloned().collect()
    }

    /// What a command wrote last; none where there is nothing that can be read.
    #[must_use]
    pub fn read(data_dir: &Path) -> Option<Self> {
        read(data_dir, LINE)
    }

    /// Everything that was acknowledged by then is at the target, in ticks: also where nothing was written since the
    /// last window.
    #[must_use]
    pub fn at(&self, data_dir: &Path) -> u64 {
        let seen: Option<Seen> = read(data_dir, SEEN);
        let seen = seen.filter(|seen| seen.line == self.line && seen.seq == self.next.seq);
        self.next.at.max(seen.map_or(0, |seen| seen.now))
    }
}

/// That nothing was committed after a line until a time.
#[derive(Serialize, Deserialize)]
struct Seen {
    line: String,
    seq: u64,
    now: u64,
}

fn read<T: DeserializeOwned>(data_dir: &Path, name: &str) -> Option<T> {
    let mut text = Vec::new();
    let file = File::open(data_dir.join(CHANGES).join(name)).ok()?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn replace_unsynced(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = directory.join(format!("{name}.new"));
    fs::write(&draft, content)?;
    fs::rename(&draft, directory.join(name))
}

/// The directory, for the one command that follows it.
pub(crate) struct ChangesFolder {
    data_dir: PathBuf,
    _lock: File,
}

impl ChangesFolder {
    /// Locks it.
    ///
    /// # Errors
    /// Another command follows it, or it cannot be written.
    pub(crate) fn lock(data_dir: &Path) -> Result<Self, CliError> {
        let path = data_dir.join(CHANGES);
        let locked = || {
            fs::create_dir_all(&path)?;
            let lock = File::create(path.join(LOCK))?;
            lock.try_lock().map_err(io::Error::from)?;
            Ok::<_, io::Error>(lock)
        };
        let shown = path.display();
        match locked() {
            Ok(lock) => Ok(Self { data_dir: data_dir.to_owned(), _lock: lock }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(CliError::Source {
                text: format!("another command follows the changes: path=`{shown}`"),
                busy: true,
            }),
            Err(error) => Err(CliError::file(format!("cannot write `{shown}`"))(error)),
        }
    }

    /// Where the links are.
    pub(crate) fn links(&self) -> PathBuf {
        self.data_dir.join(CHANGES)
    }

    /// How far everything is committed, once a server has written that.
    pub(crate) fn end(&self) -> Option<ChangesEnd> {
        ChangesEnd::read(&self.data_dir)
    }

    /// How far an earlier command came.
    pub(crate) fn shipped(&self) -> Option<ShippedChanges> {
        ShippedChanges::read(&self.data_dir)
    }

    /// Notes how far the changes are at the target, for good.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(crate) fn note(&self, shipped: &ShippedChanges) -> Result<(), CliError> {
        let note = || replace_file(&self.links(), LINE, &serde_json::to_vec(shipped)?);
        note().map_err(self.failed())
    }

    /// Notes that nothing was committed after what was shipped, by then.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(crate) fn note_seen(&self, shipped: &ShippedChanges, now: Ticks) -> Result<(), CliError> {
        let seen = Seen { line: shipped.line.clone(), seq: shipped.next.seq, now: now.get() };
        let note = || replace_unsynced(&self.links(), SEEN, &serde_json::to_vec(&seen)?);
        note().map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> CliError + use<> {
        CliError::file(format!("cannot write `{}`", self.links().display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(seq: u64) -> ShippedChanges {
        let next = NextWindow { seq, position: "3:4:05".to_owned(), skip: 0, newest: 7, at: 8 };
        let (line, earlier) = ("a".to_owned(), Vec::new());
        ShippedChanges { line, earlier, run: 0, claim: None, epoch: 0, next, writing: None }
    }

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let data_dir = tempfile::tempdir().unwrap();
        let path = data_dir.path();
        assert_eq!((ChangesEnd::read(path), ShippedChanges::read(path)), (None, None));
        let folder = ChangesFolder::lock(path).unwrap();
        let end = ChangesEnd { position: "1:2:03".to_owned(), newest: 7, now: 9, epoch: 1 };
        end.write(path).unwrap();
        assert_eq!(folder.end(), Some(end));

        folder.note(&shipped(1)).unwrap();
        let read = folder.shipped().unwrap();
        assert_eq!((read.clone(), read.at(path)), (shipped(1), 8));
        folder.note_seen(&read, Ticks::new(20).unwrap()).unwrap();
        assert_eq!(read.at(path), 20);
        assert_eq!(shipped(2).at(path), 8, "what was seen is of another window");

        assert_eq!(based_line(path), None);
        note_based_line(path, "a").unwrap();
        assert_eq!(based_line(path).as_deref(), Some("a"));
    }

    #[test]
    fn the_last_lines_are_remembered() {
        let mut shipped = shipped(1);
        for number in 0..40 {
            (shipped.earlier, shipped.line) = (shipped.lines(), number.to_string());
        }
        let expected: Vec<_> = (24..40).map(|number| number.to_string()).collect();
        assert_eq!(shipped.lines(), expected);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_none() {
        let data_dir = tempfile::tempdir().unwrap();
        let _folder = ChangesFolder::lock(data_dir.path()).unwrap();
        for text in ["", "{", "[]", "{\"line\":7}"] {
            fs::write(data_dir.path().join(CHANGES).join(LINE), text).unwrap();
            assert_eq!(ShippedChanges::read(data_dir.path()), None, "{text}");
        }
    }

    #[test]
    fn one_command_follows() {
        let data_dir = tempfile::tempdir().unwrap();
        let folder = ChangesFolder::lock(data_dir.path()).unwrap();
        let error = ChangesFolder::lock(data_dir.path()).err().unwrap().to_string();
        assert!(error.starts_with("another command follows"), "{error}");
        drop(folder);
        assert!(ChangesFolder::lock(data_dir.path()).is_ok());
    }
}
