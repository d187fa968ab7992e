//! URIs of the Azure edge: any URI is parsed or rejected, and that of an entity is parsed again
//! from the form in responses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_azure::table::{
    json::entity_path,
    path::{Key, PathResource, parse},
};

fuzz_target!(|path: &str| {
    let Ok(resource) = parse(path) else {
        return;
    };
    if let PathResource::Entity(table, Key { partition_key, row_key }) = resource {
        if !table.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            // No name of a table: the service rejects it, and no answer has its address.
            return;
        }
        let again = format!("/{}", entity_path(&table, &partition_key, &row_key));
        let expected = PathResource::Entity(table, Key { partition_key, row_key });
        assert_eq!(parse(&again), Ok(expected), "{again}");
    }
});
