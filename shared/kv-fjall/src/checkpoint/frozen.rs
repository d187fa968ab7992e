//! The tables of keyspaces at one instant.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fjall::AbstractTree as _;

use super::super::directory;
use super::super::inventory::{CURRENT, NAMES};
use super::super::shared::Tree;
use super::super::table_files::TABLES;

/// How often a version is looked for that does not change between two looks: one changes with a flush or a compaction.
const LOOKS: usize = 100;

/// What a keyspace consists of at one instant. Its tables are there for as long as it is held.
pub(super) struct FrozenTree<V> {
    folder: PathBuf,
    current: Vec<u8>,
    version: (String, File),
    tables: Vec<OsString>,
    /// The version of the database, which keeps its tables; none of the keyspace that names the others, which does not
    /// change.
    _pin: Option<V>,
}

/// The keyspaces as they are, and the one that names them. Those that the engine does not use are left out.
pub(super) fn freeze(trees: &[Tree]) -> io::Result<Vec<FrozenTree<impl Sized + use<>>>> {
    let mut frozen = trees.iter().map(freeze_tree).collect::<io::Result<Vec<_>>>()?;
    let folders = trees.first().and_then(|tree| tree.handle.path().parent());
    let folders = folders.ok_or(io::ErrorKind::NotFound)?;
    frozen.push(freeze_names(folders.join(NAMES.to_string()))?);
    Ok(frozen)
}

fn freeze_tree(tree: &Tree) -> io::Result<FrozenTree<impl Sized + use<>>> {
    let folder = tree.handle.path();
    for _ in 0..LOOKS {
        let version = tree.handle.tree.current_version();
        let Some((id, current, file)) = open_version(folder)? else { continue };
        // On disk it is there a little earlier than in memory.
        if id != version.id() {
            std::thread::yield_now();
            continue;
        }
        let tables = version.iter_tables().map(|table| table.id().to_string().into()).collect();
        let version_file = (version_name(id), file);
        return Ok(FrozenTree {
            folder: folder.to_owned(),
            current,
            version: version_file,
            tables,
            _pin: Some(version),
        });
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the version of a keyspace changes all the time"))
}

fn freeze_names<V>(folder: PathBuf) -> io::Result<FrozenTree<V>> {
    let (id, current, file) = open_version(&folder)?.ok_or(io::ErrorKind::NotFound)?;
    let tables = fs::read_dir(folder.join(TABLES))?.map(|entry| Ok(entry?.file_name()));
    let tables = tables.collect::<io::Result<_>>()?;
    Ok(FrozenTree { folder, current, version: (version_name(id), file), tables, _pin: None })
}

fn version_name(id: u64) -> String {
    format!("v{id}")
}

/// The version that `current` names, with that file as it is; none, if it was replaced in between.
fn open_version(folder: &Path) -> io::Result<Option<(u64, Vec<u8>, File)>> {
    let current = fs::read(folder.join(CURRENT))?;
    let (id, _) = current.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    let id = u64::from_le_bytes(*id);
    match File::open(folder.join(version_name(id))) {
        Ok(file) => Ok(Some((id, current, file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl<V> FrozenTree<V> {
    /// Links the tables into a new folder, in the one of the keyspaces of a copy, and copies what names them.
    pub(super) fn link(&self, keyspaces: &Path) -> io::Result<()> {
        let target = keyspaces.join(self.folder.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        let (from, to) = (self.folder.join(TABLES), target.join(TABLES));
        fs::create_dir(&target)?;
        fs::create_dir(&to)?;
        for name in &self.tables {
            fs::hard_link(from.join(name), to.join(name))?;
        }
        directory::sync(&to)?;
        let (name, file) = &self.version;
        let mut version = Vec::new();
        let mut file = file;
        file.read_to_end(&mut version)?;
        write(&target.join(name), &version)?;
        write(&target.join(CURRENT), &self.current)?;
        directory::sync(&target)
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}
