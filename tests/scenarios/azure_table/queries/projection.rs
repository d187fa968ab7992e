//! Which properties a query returns.

use super::*;

#[tokio::test]
async fn select_of_control_data_returns_no_properties() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..1, "").await;
    for (names, members) in [
        ("odata.etag,PartitionKey", r#""PartitionKey":"p""#),
        ("n,n@odata.type", r#""n":0"#),
        ("odata.type,odata.id,n", r#""n":0"#),
        ("odata.etag", ""),
    ] {
        let target = format!("/tab(PartitionKey='p',RowKey='00')?$select={names}");
        let response = rest.send(RestRequest::table("GET", &target)).await;
        assert_eq!(response.text(), format!("{{{members}}}"), "{names}");
        let full = RestRequest::table("GET", &target)
            .with("accept", "application/json;odata=fullmetadata");
        let response = rest.send(full).await;
        let (text, named) = (response.text(), format!("@Element&$select={names}\""));
        assert!(text.contains(&named), "{names}: {text}");
        for member in ["odata.etag", "odata.type", "odata.id"] {
            assert_eq!(text.matches(&format!("\"{member}\":")).count(), 1, "{names}: {text}");
        }
        assert!(!text.contains("null"), "{names}: {text}");
    }
}

#[tokio::test]
async fn select_star_selects_all_and_too_many_names_are_rejected() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..1, "").await;

    let whole = rest.send(RestRequest::table("GET", "/tab")).await;
    assert!(whole.text().contains("\"n\":0"), "{whole:?}");
    for select in ["", "*", "n,*"] {
        let response =
            rest.send(RestRequest::table("GET", &format!("/tab?$select={select}"))).await;
        assert_eq!(response.text(), whole.text(), "{select}");
    }
    let names = |count: usize| (0..count).map(|at| format!("a{at}")).collect::<Vec<_>>().join(",");
    let response =
        rest.send(RestRequest::table("GET", &format!("/tab?$select={}", names(255)))).await;
    assert_eq!(response.text().matches("null").count(), 255, "{response:?}");
    let response =
        rest.send(RestRequest::table("GET", &format!("/tab?$select={}", names(256)))).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
}
