//! Files of Azurite that an import reads: any bytes are a database or are rejected, and reading
//! on after the first documents returns the others unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_import::azurite_documents;

fuzz_target!(|database: &[u8]| {
    let Ok(all) = azurite_documents(database, 0) else {
        return;
    };
    let rest = azurite_documents(database, 2).expect("what was read once is read again");
    let later: Vec<_> = all.iter().filter(|(_, number, _)| *number > 2).collect();
    // By text, since NaN does not equal itself.
    assert_eq!(format!("{rest:?}"), format!("{later:?}"));
});
