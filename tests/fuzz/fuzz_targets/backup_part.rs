//! Parts of backups: any bytes are a run of rows, a list, names or a manifest, or are rejected; and what was read is
//! written as it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trestle_backup::fuzzing::read_part(bytes));
