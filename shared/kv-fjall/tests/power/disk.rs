//! A disk below a file system, as a trace goes on: what is durable, and what a power cut may take.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rand::{SeedableRng as _, rngs::StdRng};

use crate::{pages::CachedFile, trace::FileEvent};

/// The number of a file or a directory.
pub(crate) type NodeNumber = usize;

/// A change of directories.
#[derive(Debug)]
pub(crate) enum EntryKind {
    Added { path: String, node: NodeNumber },
    Renamed { from: String, to: String },
    Removed { path: String },
}

#[derive(Debug)]
pub(crate) struct EntryChange {
    pub(crate) kind: EntryKind,
    /// What it is about.
    node: NodeNumber,
    /// Its directory was synced since. All that POSIX promises.
    pub(crate) is_synced: bool,
    /// A file system that commits its journal in order has it: something about this or a later change was synced.
    pub(crate) is_in_order: bool,
}

impl EntryChange {
    fn is_in(&self, directory: &str) -> bool {
        let parent = |path: &str| path.rsplit_once('/').map_or("", |parts| parts.0) == directory;
        match &self.kind {
            EntryKind::Added { path, .. } | EntryKind::Removed { path } => parent(path),
            EntryKind::Renamed { from, to } => parent(from) || parent(to),
        }
    }
}

/// A file, or a directory with its path.
#[derive(Debug)]
pub(crate) enum Content {
    File(CachedFile),
    Directory(String),
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) nodes: Vec<Content>,
    pub(crate) entries: Vec<EntryChange>,
    /// By the number that the file system gave it, which it gives again when a file was removed.
    inodes: HashMap<u64, NodeNumber>,
    /// The directory tree in memory.
    paths: BTreeMap<String, NodeNumber>,
    /// Of each sync that began: the node, and how many entries there were.
    syncs: Vec<(NodeNumber, usize)>,
    random: StdRng,
    /// Standard output, whole.
    pub(crate) printed: String,
}

impl Disk {
    /// A disk with what is below a directory now, all of it durable.
    pub(crate) fn of(root: &Path, seed: u64) -> io::Result<Self> {
        let mut disk = Self {
            nodes: Vec::new(),
            entries: Vec::new(),
            inodes: HashMap::new(),
            paths: BTreeMap::new(),
            syncs: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            printed: String::new(),
        };
        disk.bind(fs::metadata(root)?.ino(), Content::Directory(String::new()));
        disk.load(root, "")?;
        for entry in &mut disk.entries {
            (entry.is_synced, entry.is_in_order) = (true, true);
        }
        Ok(disk)
    }

    fn load(&mut self, directory: &Path, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let inode = entry.metadata()?.ino();
            if entry.file_type()?.is_dir() {
                self.add(path.clone(), inode, Content::Directory(path.clone()));
                self.load(&entry.path(), &path)?;
            } else {
                let file = CachedFile::existing(&fs::read(entry.path())?);
                self.add(path, inode, Content::File(file));
            }
        }
        Ok(())
    }

    fn bind(&mut self, inode: u64, content: Content) -> NodeNumber {
        self.nodes.push(content);
        self.inodes.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn add(&mut self, path: String, inode: u64, content: Content) {
        let node = self.bind(inode, content);
        self.paths.insert(path.clone(), node);
        self.enter(EntryKind::Added { path, node }, node);
    }

    fn enter(&mut self, kind: EntryKind, node: NodeNumber) {
        self.entries.push(EntryChange { kind, node, is_synced: false, is_in_order: false });
    }

    fn file(&mut self, inode: u64) -> &mut CachedFile {
        let node = self.inodes[&inode];
        match &mut self.nodes[node] {
            Content::File(file) => file,
            Content::Directory(path) => panic!("a directory is written as a file: {path}"),
        }
    }

    /// Goes on by one record.
    pub(crate) fn apply(&mut self, event: &FileEvent) {
        match event {
            FileEvent::Created { path, inode } => {
                self.add(path.clone(), *inode, Content::File(CachedFile::default()));
            }
            FileEvent::DirectoryMade { path, inode } => {
                self.add(path.clone(), *inode, Content::Directory(path.clone()));
            }
            FileEvent::Written { inode, at, bytes } => self.file(*inode).write(*at, bytes),
            FileEvent::Truncated { inode, length } => self.file(*inode).truncate(*length),
            FileEvent::Renamed { from, to } => {
                let node = self.paths.remove(from).expect("what is renamed exists");
                assert!(matches!(self.nodes[node], Content::File(_)), "a directory moved: {from}");
                self.paths.insert(to.clone(), node);
                self.enter(EntryKind::Renamed { from: from.clone(), to: to.clone() }, node);
            }
            FileEvent::Removed { path } => {
                let node = self.paths.remove(path).expect("what is removed exists");
                self.enter(EntryKind::Removed { path: path.clone() }, node);
            }
            FileEvent::SyncBegun { inode } => self.begin_sync(*inode),
            FileEvent::SyncEnded { inode, failed } => self.end_sync(*inode, *failed),
            FileEvent::Printed(text) => self.printed.push_str(text),
            FileEvent::Restarted => {
                self.syncs.clear();
                for content in &mut self.nodes {
                    if let Content::File(file) = content {
                        file.forget_syncs();
                    }
                }
            }
        }
    }

    fn begin_sync(&mut self, inode: u64) {
        let node = self.inodes[&inode];
        self.syncs.push((node, self.entries.len()));
        if let Content::File(file) = &mut self.nodes[node] {
            file.begin_sync();
        }
    }

    fn end_sync(&mut self, inode: u64, failed: bool) {
        let node = self.inodes[&inode];
        let begun = self.syncs.iter().position(|(of, _)| *of == node);
        let (_, until) = self.syncs.remove(begun.expect("a sync that ends has begun"));
        let (before, _) = self.entries.split_at_mut(until);
        match &mut self.nodes[node] {
            Content::File(file) => file.end_sync(failed.then_some(&mut self.random)),
            Content::Directory(path) if !failed => {
                let inside = before.iter_mut().filter(|change| change.is_in(path));
                inside.for_each(|change| change.is_synced = true);
            }
            Content::Directory(_) => {}
        }
        if failed {
            return;
        }
        let is_about = |change: &EntryChange| match &self.nodes[node] {
            Content::File(_) => change.node == node,
            Content::Directory(path) => change.node == node || change.is_in(path),
        };
        let last = before.iter().rposition(is_about).map_or(0, |last| last + 1);
        before[..last].iter_mut().for_each(|change| change.is_in_order = true);
    }

    /// The path of each inode.
    pub(crate) fn paths_by_inode(&self) -> HashMap<u64, String> {
        let path_of = |node: &NodeNumber| {
            let found = self.paths.iter().find(|(_, of)| *of == node);
            found.map_or_else(String::new, |(path, _)| path.clone())
        };
        self.inodes.iter().map(|(inode, node)| (*inode, path_of(node))).collect()
    }

    /// Whether a directory holds what the trace has: nothing was missed.
    pub(crate) fn compare(&self, root: &Path) -> Result<(), String> {
        let now = Self::of(root, 0).map_err(|error| error.to_string())?;
        let paths = |disk: &Self| disk.paths.keys().cloned().collect::<Vec<_>>();
        if paths(&now) != paths(self) {
            return Err(format!("recorded {:?}, found {:?}", paths(self), paths(&now)));
        }
        for (path, node) in &self.paths {
            let (recorded, found) = (&self.nodes[*node], &now.nodes[now.paths[path]]);
            if let (Content::File(recorded), Content::File(found)) = (recorded, found)
                && !recorded.cached().equals(found.cached())
            {
                return Err(format!("the content of a file was not recorded: {path}"));
            }
        }
        Ok(())
    }
}
