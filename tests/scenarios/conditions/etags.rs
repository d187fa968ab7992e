//! The forms of etags.

use super::*;

scenario!(
    rejects_a_malformed_etag_before_any_read,
    weak_etag_of_another_server_does_not_match,
    accepts_an_etag_with_any_percent_encoding_of_colons,
);

async fn rejects_a_malformed_etag_before_any_read(world: &World) {
    let table = world.table("malformed").await;
    let (_, etag) = two_versions(&table, "r").await;
    let bare_time = etag.replace("W/\"datetime'", "").replace("'\"", "");
    let attempts = [
        "",
        "**",
        "nonsense",
        "\"strong\"",
        "W/unquoted",
        "W/\"0x5B168\"C7B\"",
        &bare_time,
        &etag[..etag.len() - 1],
    ];

    for malformed in attempts {
        for row in ["r", "absent"] {
            let errors: [CallError; 3] = [
                update(&table, row, Replace, malformed).await,
                update(&table, row, Merge, malformed).await,
                table.delete("p", row, Some(malformed)).await.unwrap_err(),
            ];
            for error in errors {
                let expected = (Code::InvalidArgument, "INVALID_INPUT");
                assert_eq!(error.kind(), expected, "{malformed}");
                assert_eq!(error.fields, ["if_match"]);
            }
        }
    }
    assert_eq!(table.get("p", "r").await.unwrap().etag, etag);
}

async fn weak_etag_of_another_server_does_not_match(world: &World) {
    let table = world.table("foreign").await;
    let (_, etag) = two_versions(&table, "r").await;
    for foreign in [
        "W/\"\"",
        "W/\"datetime'yesterday'\"",
        "W/\"datetime'2020-13-40T99%3A00%3A00Z'\"",
        "w/\"0x5B168C7B6E589D2\"",
    ] {
        for (row, code) in [("r", Code::Aborted), ("absent", Code::NotFound)] {
            let errors: [CallError; 3] = [
                update(&table, row, Replace, foreign).await,
                update(&table, row, Merge, foreign).await,
                table.delete("p", row, Some(foreign)).await.unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind().0, code, "{foreign} {row}");
            }
        }
    }
    assert_eq!(table.get("p", "r").await.unwrap().etag, etag);
}

async fn update(table: &Table, row: &str, mode: WriteMode, etag: &str) -> CallError {
    table.update(change(row), mode, Some(etag)).await.unwrap_err()
}

async fn accepts_an_etag_with_any_percent_encoding_of_colons(world: &World) {
    let table = world.table("escapes").await;
    let respellings: [fn(&str) -> String; 3] = [
        |etag| etag.to_owned(),
        |etag| etag.replace("%3A", ":"),
        |etag| etag.replace("%3A", "%3a"),
    ];

    for respell in respellings {
        let (first, second) = two_versions(&table, "r").await;
        assert!(second.contains("%3A"), "{second}");
        let stale = update(&table, "r", Merge, &respell(&first)).await;
        assert_eq!(stale.kind(), STALE);
        let current = respell(&second);
        let written = table.update(change("r"), Merge, Some(&current)).await;
        assert!(written.is_ok(), "{current}: {written:?}");
    }
}
