//! What the recorder wrote: changes of files in the order of their effects, and what was printed between them.

use std::{fs, io, path::Path};

/// Length of the fixed part of a record; `struct record` in `record.c`.
const HEAD: usize = 32;

/// One record of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileEvent {
    Created {
        path: String,
        inode: u64,
    },
    DirectoryMade {
        path: String,
        inode: u64,
    },
    Written {
        inode: u64,
        at: u64,
        bytes: Vec<u8>,
    },
    Truncated {
        inode: u64,
        length: u64,
    },
    Renamed {
        from: String,
        to: String,
    },
    Removed {
        path: String,
    },
    SyncBegun {
        inode: u64,
    },
    SyncEnded {
        inode: u64,
        failed: bool,
    },
    /// What the process wrote to standard output.
    Printed(String),
    /// Another process began; not in a file.
    Restarted,
}

/// The records of a trace. One that was killed within its last record ends before it.
pub(crate) fn read(trace: &Path) -> io::Result<Vec<FileEvent>> {
    let bytes = fs::read(trace)?;
    let (mut events, mut rest) = (Vec::new(), bytes.as_slice());
    while let Some((event, behind)) = record(rest) {
        events.push(event);
        rest = behind;
    }
    Ok(events)
}

fn record(bytes: &[u8]) -> Option<(FileEvent, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let small = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap()) as usize;
    let big = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap());
    let (name, rest) = rest.split_at_checked(small(4))?;
    let (other, rest) = rest.split_at_checked(small(8))?;
    let (bytes, rest) = rest.split_at_checked(small(12))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (path, inode) = (text(name), big(16));
    let event = match head[0] {
        b'C' => FileEvent::Created { path, inode },
        b'D' => FileEvent::DirectoryMade { path, inode },
        b'W' => FileEvent::Written { inode, at: big(24), bytes: bytes.to_vec() },
        b'T' => FileEvent::Truncated { inode, length: big(24) },
        b'R' => FileEvent::Renamed { from: path, to: text(other) },
        b'U' => FileEvent::Removed { path },
        b'B' => FileEvent::SyncBegun { inode },
        b'E' => FileEvent::SyncEnded { inode, failed: head[1] != 0 },
        b'A' => FileEvent::Printed(text(bytes)),
        kind => panic!("unknown record of a trace: kind=`{kind}`"),
    };
    Some((event, rest))
}
