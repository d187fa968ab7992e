//! Encrypted parts of backups: no bytes are opened by a key that they were not made for.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trestle_backup::fuzzing::open_sealed(bytes));
