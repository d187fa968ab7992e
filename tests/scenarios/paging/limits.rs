//! Where a page ends.

use super::*;

scenario!(
    page_ends_at_the_requested_size,
    a_page_holds_at_most_a_thousand_entities,
    page_ends_at_its_size_limit,
);

async fn page_ends_at_the_requested_size(world: &World) {
    let table = world.table("sized").await;
    fill(&table, 10).await;

    let (first, token) = page(&table, "", 4, "").await;
    assert_eq!(first, ["00000", "00001", "00002", "00003"]);
    let (second, token) = page(&table, "", 4, &token).await;
    assert_eq!(second, ["00004", "00005", "00006", "00007"]);
    let (third, token) = page(&table, "", 4, &token).await;
    assert_eq!((third.len(), token.as_str()), (2, ""));

    let (whole, token) = page(&table, "", 10, "").await;
    assert_eq!((whole.len(), token.as_str()), (10, ""), "nothing is left");
    let odd = "n ge 5 and n lt 8";
    let (first, token) = page(&table, odd, 2, "").await;
    assert_eq!(first, ["00005", "00006"]);
    let (second, token) = page(&table, odd, 2, &token).await;
    assert_eq!((second, token.as_str()), (vec!["00007".to_owned()], ""));
    // The token is not bound to the page size.
    let (_, token) = page(&table, "", 1, "").await;
    assert_eq!(page(&table, "", 1000, &token).await.0.len(), 9);
}

async fn a_page_holds_at_most_a_thousand_entities(world: &World) {
    let table = world.table("thousand").await;
    fill(&table, 1001).await;

    for size in [None, Some(1000), Some(1001), Some(i32::MAX)] {
        let request = QueryEntitiesRequest { page_size: size, ..Default::default() };
        let (entities, response) = table.page(request).await.unwrap();
        assert_eq!(entities.len(), 1000, "{size:?}");
        let (rest, end) = page(&table, "", 1000, &response.next_page_token).await;
        assert_eq!((rest, end.as_str()), (vec!["01000".to_owned()], ""));
    }
    let negative = table.page(request("", -1, "")).await.unwrap_err();
    assert_eq!(negative.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(negative.fields, ["page_size"]);
}

async fn page_ends_at_its_size_limit(world: &World) {
    let table = world.table("large").await;
    let part = |n: usize| {
        let bytes = vec![0; 65_536].into();
        prop(&format!("b{n}"), Kind::BinaryValue(bytes))
    };
    for row in 0..8 {
        let large = entity_of("p", &row.to_string(), (0..15).map(part).collect());
        table.insert(large).await.unwrap();
    }

    for filter in ["", "RowKey ge '0' and not (b0 eq X'00')"] {
        let (mut token, mut rows, mut pages) = (String::new(), Vec::new(), 0);
        loop {
            let (entities, response) = table.page(request(filter, 1000, &token)).await.unwrap();
            let bytes: usize = entities.iter().map(prost::Message::encoded_len).sum();
            assert!(bytes <= 3_670_016, "page of {bytes} bytes");
            rows.extend(entities.into_iter().map(|entity| entity.row_key));
            pages += 1;
            token = response.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(rows.concat(), "01234567");
        assert_eq!(pages, 3, "three entities fit into a page");
    }
}
