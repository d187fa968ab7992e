//! Types of properties at each level of metadata, through the crate that programs have for tables.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trestle_azure_clients::{name, tables::Level, target};

/// What is inserted. The crate has no types of its own: the program sets the annotations.
fn every_type() -> Value {
    json!({
        "PartitionKey": "p",
        "RowKey": "r",
        "text": "a\r\nb \u{1F600} ä",
        "empty": "",
        "small": -7,
        "ratio": 0.5,
        "whole": 3.0,
        "yes": true,
        "nan@odata.type": "Edm.Double",
        "nan": "NaN",
        "bytes@odata.type": "Edm.Binary",
        "bytes": "AAH+/w==",
        "large@odata.type": "Edm.Int64",
        "large": "9223372036854775807",
        "when@odata.type": "Edm.DateTime",
        "when": "1601-01-01T00:00:00.0000001Z",
        "id@odata.type": "Edm.Guid",
        "id": "c9da6455-213d-42c9-9a79-3e9149a57833",
    })
}

/// The members of an entity by whether they are annotations.
fn members(entity: &Value, are_annotations: bool) -> Vec<(&str, &Value)> {
    let all = entity.as_object().expect("an entity").iter();
    let is_annotation = |name: &str| name.contains("odata.");
    all.filter(|(name, _)| is_annotation(name) == are_annotations)
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}

/// The responses at `level`: an entity alone, and one of a page.
async fn answers(level: &str) -> [Value; 2] {
    let part = Level::of(level);
    let table = part.created(&target().table, name()).await;
    table.insert::<_, Value>(&every_type()).unwrap().await.unwrap();
    let read = table.partition_key_client("p").entity_client("r").get::<Value>().await;
    let alone: Value = serde_json::from_str(&part.body()).unwrap();
    // Without metadata the crate does not understand an answer; with it, it gives what was sent.
    assert_eq!(read.is_ok(), level != "nometadata", "{read:?}");
    if let Ok(read) = read {
        for (name, value) in every_type().as_object().unwrap() {
            assert_eq!(&read.entity[name], value, "{name}");
        }
    }
    let mut pages = table.query().into_stream::<Value>();
    let page = futures::StreamExt::next(&mut pages).await.unwrap();
    assert_eq!(page.is_ok(), level != "nometadata");
    let page: Value = serde_json::from_str(&part.body()).unwrap();
    [alone, page["value"][0].clone()]
}

#[tokio::test]
async fn every_type_survives_a_round_trip_at_each_metadata_level() {
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        for mut entity in answers(level).await {
            let time = entity.as_object_mut().unwrap().remove("Timestamp").unwrap();
            assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
            assert_eq!(members(&entity, false), members(&every_type(), false), "{level}");
        }
    }
}

#[tokio::test]
async fn the_annotations_are_those_of_the_level() {
    let sent = every_type();
    let types: BTreeSet<_> = members(&sent, true).into_iter().map(|(name, _)| name).collect();
    let of_an_entity = ["odata.type", "odata.id", "odata.editLink", "Timestamp@odata.type"];
    for (level, expected) in [
        ("nometadata", BTreeSet::new()),
        ("minimalmetadata", types.iter().copied().chain(["odata.etag"]).collect()),
        ("fullmetadata", types.iter().copied().chain(["odata.etag"]).chain(of_an_entity).collect()),
    ] {
        let [alone, one_of_a_page] = answers(level).await;
        let of = |entity| -> BTreeSet<&str> {
            members(entity, true).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(of(&one_of_a_page), expected, "{level}");
        let mut expected = expected;
        if level != "nometadata" {
            expected.insert("odata.metadata");
        }
        assert_eq!(of(&alone), expected, "{level}");
    }
}
