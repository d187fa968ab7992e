//! The files of keyspaces: whether each is there, and as the database wrote it.
//!
//! The database finds damage where it happens to read, and names no file. But it lists every table with a checksum of
//! its whole file, so what is damaged is found without it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::archive::{self, ArchiveSection};
use super::inventory::{CURRENT, DATABASE, KEYSPACES, NAMES};
use trestle_kv::Keyspace;

/// The folder of the tables, in that of a keyspace.
pub(super) const TABLES: &str = "tables";
/// The section that lists the tables.
const LIST: &[u8] = b"tables";
/// Bytes of a file that are in memory at once.
const READ_BYTES: usize = 1024 * 1024;

/// A file of a keyspace that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file, relative to the directory.
    pub file: String,
    /// The keyspace; none for the one of the database, which names the others.
    pub keyspace: Option<&'static str>,
    /// Bytes that it has now.
    pub bytes: u64,
    /// What is wrong with it.
    pub problem: FileProblem,
    /// The folder of the keyspace.
    pub(super) number: u64,
    /// The number of the table; none for the list of tables.
    pub(super) table: Option<u64>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileProblem {
    /// It does not exist.
    Missing,
    /// Its checksum is another one.
    Changed,
    /// It cannot be read: an error of the device.
    Unreadable,
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keyspace = self.keyspace.unwrap_or("names of keyspaces");
        let problem = match self.problem {
            FileProblem::Missing => "missing",
            FileProblem::Changed => "checksum mismatch",
            FileProblem::Unreadable => "cannot be read",
        };
        let Self { file, bytes, .. } = self;
        write!(f, "file=`{file}`, keyspace=`{keyspace}`, bytes=`{bytes}`, problem=`{problem}`")
    }
}

/// A table as the database lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListedTable {
    pub(super) id: u64,
    pub(super) checksum: u128,
    pub(super) global_seqno: u64,
}

/// The tables of a keyspace, by level and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableList {
    pub(super) version: u64,
    pub(super) sections: Vec<ArchiveSection>,
    pub(super) levels: Vec<Vec<Vec<ListedTable>>>,
}

/// The folder of a keyspace, by its number.
pub(super) fn folder(database: &Path, number: u64) -> PathBuf {
    database.join(KEYSPACES).join(number.to_string())
}

/// The file of a table, relative to the directory.
pub(super) fn table_name(number: u64, table: u64) -> String {
    format!("{DATABASE}/{KEYSPACES}/{number}/{TABLES}/{table}")
}

/// How much of the files is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileCheck {
    /// The end of each, without which the database does not open it.
    Ends,
    /// Every byte.
    Whole,
}

/// The files of a database that are damaged or missing. Keyspaces are numbered in the order in which they were made:
/// that of their list, to which new ones are appended.
pub(super) fn damaged(
    database: &Path,
    keyspaces: &[Keyspace],
    check: FileCheck,
) -> io::Result<Vec<DamagedFile>> {
    let named = (1_u64..).zip(keyspaces.iter().map(|keyspace| Some(keyspace.name)));
    let mut damaged = Vec::new();
    for (number, keyspace) in std::iter::once((NAMES, None)).chain(named) {
        let folder = folder(database, number);
        if !folder.join(CURRENT).try_exists()? {
            // A keyspace that was not made yet, or is reported as missing.
            continue;
        }
        let found = |file: &Path, table, problem| DamagedFile {
            file: relative(database, file),
            keyspace,
            bytes: fs::metadata(file).map_or(0, |file| file.len()),
            problem,
            number,
            table,
        };
        match TableList::read(&folder)? {
            Err((file, problem)) => damaged.push(found(&file, None, problem)),
            Ok(list) => {
                for table in list.levels.iter().flatten().flatten() {
                    let file = folder.join(TABLES).join(table.id.to_string());
                    if let Some(problem) = problem_of(&file, table.checksum, check) {
                        damaged.push(found(&file, Some(table.id), problem));
                    }
                }
            }
        }
    }
    Ok(damaged)
}

fn relative(database: &Path, file: &Path) -> String {
    let file = file.strip_prefix(database).unwrap_or(file);
    format!("{DATABASE}/{}", file.display())
}

fn problem_of(file: &Path, checksum: u128, check: FileCheck) -> Option<FileProblem> {
    let is_sound = || {
        let file = File::open(file)?;
        match check {
            FileCheck::Ends => archive::has_whole_end(&file),
            FileCheck::Whole => Ok(hash(file)? == checksum),
        }
    };
    match is_sound() {
        Ok(true) => None,
        Ok(false) => Some(FileProblem::Changed),
        Err(error) => Some(problem(&error)),
    }
}

fn problem(error: &io::Error) -> FileProblem {
    match error.kind() {
        io::ErrorKind::NotFound => FileProblem::Missing,
        _ => FileProblem::Unreadable,
    }
}

fn hash(mut file: File) -> io::Result<u128> {
    let (mut hasher, mut buffer) = (Xxh3Default::new(), vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.digest128()),
            read => hasher.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

impl TableList {
    /// The list of the tables of a keyspace, or the file of it that is damaged.
    pub(super) fn read(folder: &Path) -> io::Result<Result<Self, (PathBuf, FileProblem)>> {
        let path = folder.join(CURRENT);
        let current = fs::read(&path)?;
        let Some((version, checksum)) = parse_current(&current) else {
            return Ok(Err((path, FileProblem::Changed)));
        };
        let path = folder.join(format!("v{version}"));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err((path, problem(&error)))),
        };
        let sections = (xxh3_128(&bytes) == checksum).then(|| archive::read(&bytes)).flatten();
        let list = sections.and_then(|sections| {
            let tables = sections.iter().find(|section| section.name == LIST)?;
            let levels = parse_levels(&tables.bytes)?;
            Some(Self { version, sections, levels })
        });
        Ok(list.ok_or((path, FileProblem::Changed)))
    }

    /// Writes it as the list of a keyspace in a new folder.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut sections = self.sections.clone();
        for section in sections.iter_mut().filter(|section| section.name == LIST) {
            section.bytes = encode_levels(&self.levels);
        }
        let bytes = archive::write(&sections);
        let checksum = xxh3_128(&bytes).to_le_bytes();
        fs::write(folder.join(format!("v{}", self.version)), &bytes)?;
        let version = self.version.to_le_bytes();
        fs::write(folder.join(CURRENT), [version.as_slice(), &checksum, &[0]].concat())
    }
}

/// The version and its checksum.
fn parse_current(current: &[u8]) -> Option<(u64, u128)> {
    let (version, rest) = current.split_first_chunk()?;
    let (checksum, _) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*version), u128::from_le_bytes(*checksum)))
}

/// Levels, runs and tables, each after their number.
fn parse_levels(bytes: &[u8]) -> Option<Vec<Vec<Vec<ListedTable>>>> {
    let mut rest = bytes;
    let mut levels = Vec::new();
    for _ in 0..byte(&mut rest)? {
        let mut runs = Vec::new();
        for _ in 0..byte(&mut rest)? {
            let mut tables = Vec::new();
            for _ in 0..u32::from_le_bytes(chunk(&mut rest)?) {
                let id = u64::from_le_bytes(chunk(&mut rest)?);
                // The kind of checksum: there is one.
                if byte(&mut rest)? != 0 {
                    return None;
                }
                let checksum = u128::from_le_bytes(chunk(&mut rest)?);
                let global_seqno = u64::from_le_bytes(chunk(&mut rest)?);
                tables.push(ListedTable { id, checksum, global_seqno });
            }
            runs.push(tables);
        }
        levels.push(runs);
    }
    Some(levels)
}

fn encode_levels(levels: &[Vec<Vec<ListedTable>>]) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(levels.len()).unwrap_or(u8::MAX)];
    for runs in levels {
        bytes.push(u8::try_from(runs.len()).unwrap_or(u8::MAX));
        for tables in runs {
            bytes.extend(u32::try_from(tables.len()).unwrap_or(u32::MAX).to_le_bytes());
            for table in tables {
                bytes.extend(table.id.to_le_bytes());
                bytes.push(0);
                bytes.extend(table.checksum.to_le_bytes());
                bytes.extend(table.global_seqno.to_le_bytes());
            }
        }
    }
    bytes
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    chunk::<1>(rest).map(|[byte]| byte)
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*chunk)
}

#[cfg(test)]
mod tests;
