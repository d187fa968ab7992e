//! Key ranges, for calls on many entities.

use super::*;

service_scenario!(
    scans_return_the_range_only,
    page_tokens_are_confined_to_the_range,
    a_batch_with_one_operation_outside_writes_nothing_and_names_it,
    import_denies_each_entity_outside_the_range,
);

async fn scans_return_the_range_only(service: &Service) {
    let (_, held) = filled(service).await;

    assert_eq!(found(&held.query("").await.unwrap()), inside());
    let rows = held.query("RowKey eq '1' or PartitionKey eq 'a'").await.unwrap();
    assert_eq!(found(&rows), [("c", "1"), ("d", "1")]);
    for nothing in ["PartitionKey eq 'a'", "PartitionKey eq 'd' and RowKey eq '4'"] {
        assert_eq!(held.query(nothing).await.unwrap(), [], "{nothing}");
    }
    let messages = held.stream(StreamEntitiesRequest::default()).await.unwrap();
    let streamed = messages.iter().flat_map(|m| stored::decode_entities(&m.entities).unwrap());
    assert_eq!(found(&streamed.collect::<Vec<_>>()), inside());
    let scanned: u64 = messages.iter().map(|m| m.cost.as_ref().unwrap().scanned).sum();
    assert_eq!(scanned as usize, inside().len(), "what is outside is not even read");

    let backwards = over_range("ranges", "r", &keys(("d", ""), ("b", "")));
    let nothing = service.granted(backwards).existing_table("ranges");
    assert_eq!(nothing.query("").await.unwrap(), []);
    let no_reader = service.granted(over_range("ranges", "aud", &middle()));
    let rejected = no_reader.existing_table("ranges").query("").await.unwrap_err();
    assert_eq!(rejected.kind(), NO_PERMISSION);
}

async fn page_tokens_are_confined_to_the_range(service: &Service) {
    let (owner, held) = filled(service).await;
    let page = |table: Table, page_token: String| async move {
        let request = QueryEntitiesRequest { page_size: Some(1), page_token, ..Default::default() };
        let (entities, response) = table.page(request).await.unwrap();
        (entities, response.next_page_token)
    };
    let mut token = String::new();
    let mut positions = 0;
    loop {
        let request = QueryEntitiesRequest { page_token: token.clone(), ..Default::default() };
        let (entities, response) = held.page(request).await.unwrap();
        assert!(inside().ends_with(&found(&entities)), "after {positions}: {entities:?}");
        assert_eq!(response.next_page_token, "");
        let resume_token = token.clone();
        let request = StreamEntitiesRequest { resume_token, ..Default::default() };
        let messages = held.stream(request).await.unwrap();
        let streamed = messages.iter().flat_map(|m| stored::decode_entities(&m.entities).unwrap());
        assert_eq!(found(&streamed.collect::<Vec<_>>()), found(&entities));
        (_, token) = page(owner.clone(), token).await;
        positions += 1;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(positions, every_key().count());
}

async fn a_batch_with_one_operation_outside_writes_nothing_and_names_it(service: &Service) {
    let (owner, held) = filled(service).await;
    let new = |row: &str| entity("d", row, [int("n", 2)]);
    for (outside, reason) in [
        (insert_op(new("35")), "insert"),
        (update_op(new("4"), WriteMode::Replace, None), "update"),
        (upsert_op(new("4"), WriteMode::Merge), "upsert"),
        (delete_op("d", "4", None), "delete"),
    ] {
        let operations = vec![insert_op(new("25")), delete_op("d", "1", None), outside];
        let rejected = held.batch(operations).await.unwrap_err();
        assert_eq!((rejected.kind(), rejected.index), (FAILURE, Some(2)), "{reason}");
        assert_eq!(owner.rows("PartitionKey eq 'd'").await.unwrap(), ROWS, "{reason}");
    }
    let operations = vec![insert_op(new("25")), delete_op("d", "1", None)];
    held.batch(operations).await.unwrap();
    assert_eq!(owner.rows("PartitionKey eq 'd'").await.unwrap(), ["2", "25", "3", "4"]);

    let adder = service.granted(over_range("ranges", "a", &middle())).existing_table("ranges");
    let operations = vec![insert_op(new("26")), upsert_op(new("3"), WriteMode::Merge)];
    let rejected = adder.batch(operations).await.unwrap_err();
    assert_eq!((rejected.kind(), rejected.index), (NO_PERMISSION, Some(1)));
    assert_eq!(owner.get("d", "26").await.unwrap_err().kind(), ENTITY_ABSENT);
}

async fn import_denies_each_entity_outside_the_range(service: &Service) {
    let (owner, held) = filled(service).await;
    let entities: Vec<_> = every_key().map(|(p, r)| entity(p, r, [int("n", 9)])).collect();
    let chunks = entities.chunks(7).map(<[_]>::to_vec).collect();

    let failures = held.import(Some(WriteMode::Replace), chunks).await.unwrap();

    let outside = |position: &usize| {
        let key = every_key().nth(*position).unwrap();
        !is_inside(key.0, key.1)
    };
    let expected: Vec<_> =
        (0..entities.len()).filter(outside).map(|position| position as u64).collect();
    let positions: Vec<_> = failures.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, expected);
    for (_, status) in failures {
        assert_eq!(Code::from(status.code), Code::PermissionDenied);
    }
    for (partition, row) in every_key() {
        let stored = owner.get(partition, row).await.unwrap();
        let number = if is_inside(partition, row) { 9 } else { 1 };
        assert_eq!(stored.properties, [int("n", number)], "{partition} {row}");
    }
}
