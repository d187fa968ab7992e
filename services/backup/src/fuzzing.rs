//! Readers of parts, for the fuzz targets: the bytes at a target are those of any program that can write there.

use bytes::Bytes;
use prost::Message as _;
use trestle_kv_fjall::LoggedChange;
use trestle_model::time::Ticks;

use crate::{
    lists::{self, ChunkRef, Damage, Listed, Lister, ObjectRef},
    manifest::BackupManifest,
    names::PartName,
    packed,
    rows::{self, RowChunker},
    sealed::Identities,
    window::{ChangeWindow, WindowChange, WindowName},
};

/// Reads the same bytes as each kind of part. What is read of them is written again, and reads the same.
pub fn read_part(bytes: &[u8]) {
    if let Ok(plain) = packed::unpack("part", bytes) {
        let packed = packed::pack("part", &plain, 3);
        assert_eq!(packed::unpack("part", &packed).as_ref(), Ok(&plain), "packed again");
    }
    read_rows(bytes);
    read_list::<ChunkRef>(bytes);
    read_list::<ObjectRef>(bytes);
    read_list::<Damage>(bytes);
    if let Some(names) = lists::part_names(bytes) {
        assert!(names.iter().all(|name| PartName::of_path(&name.path()) == Some(*name)), "paths");
    }
    read_window(bytes);
    if let Ok(manifest) = BackupManifest::parse(bytes) {
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        assert_eq!(BackupManifest::parse(&text), Ok(manifest), "written again");
    }
}

/// Opens bytes as an encrypted part, with a key that they are not for.
pub fn open_sealed(bytes: &[u8]) {
    let opened = Identities::generate().open(bytes);
    assert!(opened.is_err(), "no key is known before");
}

/// Reads bytes as a window, and as its path.
fn read_window(bytes: &[u8]) {
    let name = str::from_utf8(bytes).ok().and_then(WindowName::of_path);
    if let Some(name) = &name {
        assert_eq!(WindowName::of_path(&name.path()).as_ref(), Some(name), "a name of its path");
    }
    let Ok(window) = ChangeWindow::decode(bytes) else { return };
    let again = ChangeWindow::decode(&*window.encode_to_vec());
    assert_eq!(again.as_ref(), Ok(&window), "a window written again");
    let [from, to] = [Ticks::MIN, Ticks::MAX];
    let any = WindowName { line: String::new(), seq: 0, from, to, at: to, parts: 0 };
    let _ = window.check(&any);
    for change in window.groups.into_iter().flat_map(|group| group.changes) {
        let logged = LoggedChange::from(change);
        let again = LoggedChange::from(WindowChange::from(logged.clone()));
        assert_eq!(again, logged, "a change written again");
    }
}

fn read_rows(bytes: &[u8]) {
    let Ok(read) = rows::decode(bytes).collect::<Result<Vec<(Bytes, Bytes)>, _>>() else { return };
    let mut chunker = RowChunker::new();
    let mut runs: Vec<_> =
        read.iter().filter_map(|(key, value)| chunker.push(key, value)).collect();
    runs.extend(chunker.finish());
    let again = runs.iter().flat_map(|run| rows::decode(&run.bytes)).collect::<Result<Vec<_>, _>>();
    assert_eq!(again, Ok(read), "rows in runs");
}

fn read_list<E: Listed + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Some(read) = lists::entries::<E>(bytes) else { return };
    let mut lister = Lister::new();
    let mut cut: Vec<_> = read.iter().cloned().filter_map(|entry| lister.push(entry)).collect();
    cut.extend(lister.finish());
    let again: Vec<E> =
        cut.iter().flat_map(|cut| lists::entries(&cut.list).unwrap_or_default()).collect();
    assert_eq!(again, read, "entries in lists");
    let names = cut.iter().flat_map(|cut| lists::part_names(&cut.parts).unwrap_or_default());
    let expected = read.iter().flat_map(|entry| entry.parts().unwrap_or_default());
    assert!(expected.eq(names), "names beside lists");
}
