//! The account: settings of the service, stats, the secondary name, pages of other origins.

use trestle_tests::{QueueRest, RestRequest};

const PROPERTIES: &str = "/?restype=service&comp=properties";

#[tokio::test]
async fn service_properties_are_updated_in_part() {
    let rest = QueueRest::start().await;
    let set = |inside: &str| {
        let body = format!(
            "<?xml version='1.0'?><StorageServiceProperties>{inside}</StorageServiceProperties>"
        );
        rest.send(RestRequest::xml("PUT", PROPERTIES, body))
    };

    let read = rest.call("GET", PROPERTIES).await;
    assert_eq!((read.status, read.header("content-type")), (200, "application/xml"));
    assert!(
        read.text().contains("</MinuteMetrics><Cors /></StorageServiceProperties>"),
        "{read:?}"
    );

    let response = set(
        "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
         <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>\
         <Cors><CorsRule><AllowedOrigins>http://a,http://b</AllowedOrigins>\
         <AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>500</MaxAgeInSeconds>\
         <ExposedHeaders>x-ms-meta-*</ExposedHeaders><AllowedHeaders /></CorsRule></Cors>",
    )
    .await;
    assert_eq!((response.status, response.text()), (202, ""));
    assert_eq!(set("<Cors />").await.status, 202);
    let read = rest.call("GET", PROPERTIES).await;
    let logging = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>\
        <Delete>false</Delete><RetentionPolicy>";
    assert!(read.text().contains(logging), "in the order of Azure: {read:?}");
    assert!(read.text().contains("<IncludeAPIs>true</IncludeAPIs>"), "{read:?}");
    assert!(read.text().contains("<Days>7</Days>") && read.text().contains("<Cors />"), "{read:?}");

    for (inside, code) in [
        ("<Cors><CorsRule></CorsRule></Cors>", "MissingRequiredXmlNode"),
        ("<Logging><Version>1.0</Version></Logging>", "MissingRequiredXmlNode"),
        (
            "<MinuteMetrics><Version>1.0</Version><Enabled>perhaps</Enabled></MinuteMetrics>",
            "InvalidXmlNodeValue",
        ),
        ("<Cors/><Cors/>", "InvalidXmlDocument"),
        ("<Cors>", "InvalidXmlDocument"),
    ] {
        assert_eq!(set(inside).await.failure(), (400, code), "{inside}");
    }
}

#[tokio::test]
async fn stats_are_served_by_the_secondary_only() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let secondary = |method: &str, target: &str| {
        RestRequest::queue(method, "").at(&format!("/devstoreaccount1-secondary{target}"))
    };

    let stats = rest.send(secondary("GET", "/?restype=service&comp=stats")).await;
    assert_eq!((stats.status, stats.only("Status")), (200, "live".into()));
    assert!(stats.only("LastSyncTime").ends_with(" GMT"), "{stats:?}");
    let primary = rest.call("GET", "/?restype=service&comp=stats").await;
    assert_eq!(primary.failure(), (400, "InvalidQueryParameterValue"));

    for target in ["/?comp=list", "/orders?comp=metadata", "/orders/messages?peekonly=true"] {
        assert_eq!(rest.send(secondary("GET", target)).await.status, 200, "{target}");
    }
    for (method, target) in [
        ("PUT", "/other"),
        ("DELETE", "/orders"),
        ("POST", "/orders/messages"),
        ("GET", "/orders/messages"),
        ("DELETE", "/orders/messages"),
        ("PUT", "/orders?comp=metadata"),
    ] {
        let response = rest.send(secondary(method, target)).await;
        assert_eq!(
            response.failure(),
            (403, "InsufficientAccountPermissions"),
            "{method} {target}"
        );
    }
}
