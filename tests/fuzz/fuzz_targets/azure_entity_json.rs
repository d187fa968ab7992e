//! Bodies of writes on the Azure edge: any body becomes an entity or is rejected, and a
//! key in the URI takes precedence over one in the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_azure::table::{json::entity_of, path::Key};

fuzz_target!(|body: &[u8]| {
    let key = || Key { partition_key: "p".to_owned(), row_key: "r".to_owned() };
    let addressed = entity_of(body, Some(key()));
    if let Ok(entity) = &addressed {
        assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p", "r"));
        assert!(entity.timestamp.is_none() && entity.etag.is_empty());
        for property in &entity.properties {
            assert!(!property.name.starts_with("odata."));
            assert!(!["PartitionKey", "RowKey", "Timestamp"].contains(&&*property.name));
        }
    }
    // By text, since NaN does not equal itself.
    if let (Ok(alone), Ok(addressed)) = (entity_of(body, None), addressed) {
        assert_eq!(format!("{:?}", alone.properties), format!("{:?}", addressed.properties));
    }
});
