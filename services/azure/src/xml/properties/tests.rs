use super::*;

const FULL: &str = "<?xml version='1.0' encoding='utf-8'?>
<StorageServiceProperties>
  <Cors><CorsRule><AllowedOrigins>http://a, http://b</AllowedOrigins>
    <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-*,x-ms-foo</AllowedHeaders>
    <ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>
  <Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>True</Write>
    <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>
  <HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>
    <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>
  <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>
    <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>
</StorageServiceProperties>";

fn full() -> ServiceProperties {
    let version = || "1.0".to_owned();
    let texts = |of: &[&str]| of.iter().map(|text| (*text).to_owned()).collect();
    ServiceProperties {
        logging: Some(Logging {
            version: version(),
            delete: true,
            read: false,
            write: true,
            retention: None,
        }),
        hour_metrics: Some(Metrics {
            version: version(),
            enabled: true,
            include_apis: true,
            retention: Some(Duration { seconds: 7 * DAY_SECONDS, nanos: 0 }),
        }),
        minute_metrics: Some(Metrics { version: version(), ..Metrics::default() }),
        cors: Some(Cors {
            rules: vec![CorsRule {
                allowed_origins: texts(&["http://a", "http://b"]),
                allowed_methods: texts(&["GET", "PUT"]),
                allowed_headers: texts(&["x-ms-meta-*", "x-ms-foo"]),
                exposed_headers: Vec::new(),
                max_age: Some(Duration { seconds: 500, nanos: 0 }),
            }],
        }),
    }
}

#[test]
fn every_setting_is_parsed_in_any_order() {
    assert_eq!(read_properties(FULL.as_bytes()), Ok(full()));
}

#[test]
fn absent_parts_are_not_changed_and_empty_ones_are_cleared() {
    let nothing = read_properties(b"<StorageServiceProperties />").expect("settings");
    let cleared = b"<StorageServiceProperties><Cors/></StorageServiceProperties>";

    assert_eq!(nothing, ServiceProperties::default());
    let cors = Some(Cors::default());
    assert_eq!(read_properties(cleared), Ok(ServiceProperties { cors, ..nothing }));
}

#[test]
fn settings_are_written_in_the_order_of_azure_and_survive_a_round_trip() {
    let text = write_properties(&full());

    assert_eq!(
        text,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging>\
         <Version>1.0</Version><Read>false</Read><Write>true</Write><Delete>true</Delete>\
         <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics>\
         <Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
         <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>\
         <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy>\
         <Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule>\
         <AllowedOrigins>http://a,http://b</AllowedOrigins><AllowedMethods>GET,PUT\
         </AllowedMethods><MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders />\
         <AllowedHeaders>x-ms-meta-*,x-ms-foo</AllowedHeaders></CorsRule></Cors>\
         </StorageServiceProperties>"
    );
    assert_eq!(read_properties(text.as_bytes()), Ok(full()));
    let none = ServiceProperties { cors: Some(Cors::default()), ..Default::default() };
    assert!(write_properties(&none).contains("<StorageServiceProperties><Cors />"));
}

#[test]
fn the_error_names_a_missing_element() {
    for element in [
        "<Version>1.0</Version>",
        "<Delete>true</Delete>",
        "<IncludeAPIs>true</IncludeAPIs>",
        "<Days>7</Days>",
        "<AllowedMethods>GET,PUT</AllowedMethods>",
        "<ExposedHeaders />",
        "<MaxAgeInSeconds>500</MaxAgeInSeconds>",
    ] {
        assert!(FULL.contains(element), "{element}");
        let text = FULL.replacen(element, "", 1);

        let fault = read_properties(text.as_bytes()).expect_err(element);

        assert_eq!(fault.reason, Reason::MissingRequiredXmlNode, "{element}");
        let name: String = element.chars().skip(1).take_while(char::is_ascii_alphabetic).collect();
        assert!(fault.message.contains(&name), "{}", fault.message);
    }
}

#[test]
fn the_error_quotes_an_invalid_value_with_its_element() {
    for (written, instead) in [
        ("<Delete>true", "<Delete>yes"),
        ("<Days>7", "<Days>-7"),
        ("<Days>7", "<Days>a week"),
        ("<MaxAgeInSeconds>500", "<MaxAgeInSeconds>5e2"),
        ("<AllowedMethods>GET,PUT", "<AllowedMethods> , "),
    ] {
        let text = FULL.replacen(written, instead, 1);

        let fault = read_properties(text.as_bytes()).expect_err(instead);

        assert_eq!(fault.reason, Reason::InvalidXmlNodeValue, "{instead}");
        let name: String = instead.chars().skip(1).take_while(char::is_ascii_alphabetic).collect();
        assert!(fault.message.starts_with(&name), "{}", fault.message);
    }
}

#[test]
fn rejects_an_unknown_element() {
    for (written, instead) in [
        ("<Cors>", "<Cors/><Cors>"),
        ("<Logging>", "<Metrics/><Logging>"),
        ("<Cors>", "<Cors><Rule/>"),
        ("<Enabled>false</Enabled>", "<Enabled>false</Enabled><Days>7</Days>"),
        ("<Read>false", "<Read><a/>"),
    ] {
        let text = FULL.replacen(written, instead, 1);
        let fault = read_properties(text.as_bytes()).expect_err(instead);
        assert_eq!(fault.reason, Reason::InvalidXmlDocument, "{instead}");
    }
    let junk = b"<StorageServiceProperties>junk</StorageServiceProperties>";
    let rules = b"<StorageServiceProperties><Cors>junk</Cors></StorageServiceProperties>";
    for body in [&b""[..], b"<Properties/>", b"{}", junk, rules] {
        let fault = read_properties(body).expect_err("no settings");
        assert_eq!(fault.reason, Reason::InvalidXmlDocument);
    }
}

#[test]
fn the_error_distinguishes_unknown_repeated_and_conditional_elements() {
    for (written, instead, text) in [
        ("<Cors>", "<Cors/><Cors>", "Cors: must be at most once in StorageServiceProperties"),
        (
            "<Enabled>true</Enabled><Days>",
            "<Enabled>true</Enabled><Days>1</Days><Days>",
            "Days: must be at most once in RetentionPolicy",
        ),
        ("<Logging>", "<Metrics/><Logging>", "Metrics: is no element of StorageServiceProperties"),
        ("<Cors>", "<Cors><Rule/><Rule/>", "Rule: is no element of Cors"),
        (
            "<Enabled>false</Enabled>",
            "<Enabled>false</Enabled><Days>7</Days>",
            "Days: must be in RetentionPolicy only when Enabled is true",
        ),
    ] {
        let text_of = FULL.replacen(written, instead, 1);
        let fault = read_properties(text_of.as_bytes()).expect_err(instead);
        assert_eq!((fault.reason, fault.message.as_str()), (Reason::InvalidXmlDocument, text));
    }
}

#[test]
fn the_error_of_a_number_that_is_too_large_has_the_bound() {
    for (written, instead, text) in [
        (
            "<MaxAgeInSeconds>500",
            "<MaxAgeInSeconds>99999999999",
            "MaxAgeInSeconds: must be a whole number of seconds, 0 to 4294967295: value=`99999999999`",
        ),
        (
            "<Days>7",
            "<Days>99999999999",
            "Days: must be a whole number of days, 1 to 365: value=`99999999999`",
        ),
    ] {
        let body = FULL.replacen(written, instead, 1);
        let fault = read_properties(body.as_bytes()).expect_err(instead);
        assert_eq!(fault.message, text);
    }
}
