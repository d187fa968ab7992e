//! Tests of the module.

use proptest::prelude::*;

use super::*;

const KEY: &str = DEVELOPMENT_KEY;

/// The addresses of tables, queues and blobs.
fn bases(text: &str) -> [Option<String>; 3] {
    let AzureConnection { tables, queues, blobs, .. } = AzureConnection::parse(text).unwrap();
    [tables, queues, blobs]
}

#[test]
fn addresses_are_explicit_or_derived_from_the_account() {
    let some = |text: &str| Some(text.to_owned());
    let local = "http://127.0.0.1";
    for (text, tables, queues, blobs) in [
        (
            format!("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={KEY}"),
            some("https://acme.table.core.windows.net"),
            some("https://acme.queue.core.windows.net"),
            some("https://acme.blob.core.windows.net"),
        ),
        (
            format!("accountname=acme; ACCOUNTKEY={KEY};EndpointSuffix=core.chinacloudapi.cn;"),
            some("https://acme.table.core.chinacloudapi.cn"),
            some("https://acme.queue.core.chinacloudapi.cn"),
            some("https://acme.blob.core.chinacloudapi.cn"),
        ),
        (
            "UseDevelopmentStorage=true".to_owned(),
            some("http://127.0.0.1:10002/devstoreaccount1"),
            some("http://127.0.0.1:10001/devstoreaccount1"),
            some("http://127.0.0.1:10000/devstoreaccount1"),
        ),
        (
            "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite".to_owned(),
            some("http://azurite:10002/devstoreaccount1"),
            some("http://azurite:10001/devstoreaccount1"),
            some("http://azurite:10000/devstoreaccount1"),
        ),
        (
            format!(
                "AccountName=a;AccountKey={KEY};TableEndpoint={local}:1/a/;BlobEndpoint={local}:2/a"
            ),
            some("http://127.0.0.1:1/a"),
            None,
            some("http://127.0.0.1:2/a"),
        ),
        (
            format!("SharedAccessSignature=?sv=1&sig=2%3D;QueueEndpoint={local}:1/a"),
            None,
            some("http://127.0.0.1:1/a"),
            None,
        ),
        (
            format!("AccountName=a;AccountKey={KEY};BlobEndpoint={local}:1/a"),
            None,
            None,
            some("http://127.0.0.1:1/a"),
        ),
    ] {
        assert_eq!(bases(&text), [tables, queues, blobs], "{text}");
    }
}

#[test]
fn errors_of_invalid_strings_name_the_rule_and_no_secret() {
    let signed = "SharedAccessSignature=sv=1&sig=hunter2";
    for (text, rule) in [
        (String::new(), "needs `AccountKey`"),
        ("hunter2".to_owned(), "part 1 is not NAME=VALUE"),
        (format!("AccountName=a;hunter2={KEY}"), "part 2 is unknown"),
        ("AccountName=a".to_owned(), "needs `AccountKey`"),
        (format!("AccountKey={KEY}"), "`AccountName` is required"),
        ("AccountName=a;AccountKey=hunter2".to_owned(), "`AccountKey` must be base64"),
        (format!("AccountName=a;AccountKey={KEY};{signed}"), "has both"),
        (signed.to_owned(), "needs `AccountName`"),
        ("AccountName=a;SharedAccessSignature=hunter2".to_owned(), "must be a query"),
        (format!("AccountName=a;AccountName=b;AccountKey={KEY}"), "occurs twice"),
        ("UseDevelopmentStorage=false".to_owned(), "must be true"),
        (format!("UseDevelopmentStorage=true;AccountKey={KEY}"), "does not go with"),
        (format!("AccountName=a b;AccountKey={KEY}"), "must make an address"),
        (format!("{signed};TableEndpoint=http://a/?sig=hunter2"), "must make an address"),
        (format!("{signed};BlobEndpoint=hunter2"), "must make an address"),
        (format!("{signed};TableEndpoint=http://hunter2@a/"), "must make an address"),
        (format!("{signed};TableEndpoint=ftp://a/"), "must make an address"),
        (
            format!("DefaultEndpointsProtocol=ftp;AccountName=a;AccountKey={KEY}"),
            "must be http or https",
        ),
    ] {
        let error = AzureConnection::parse(&text).unwrap_err();
        assert!(error.contains(rule), "{text}: {error}");
        assert!(!error.contains("hunter2") && !error.contains(KEY), "{error}");
    }
    let parsed = AzureConnection::parse(&format!("AccountName=a;{signed}")).unwrap();
    assert!(!format!("{parsed:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "(?s).{0,200}") {
        let _ = AzureConnection::parse(&text);
    }

    #[test]
    fn any_fields_are_parsed_or_rejected(
        fields in proptest::collection::vec((0..17_usize, "[ -~]{0,40}"), 0..8)
    ) {
        let name = |at| NAMES.split(' ').nth(at).unwrap();
        let field = |(at, value): &(usize, String)| format!("{}={value}", name(*at));
        let text = fields.iter().map(field).collect::<Vec<_>>().join(";");
        let _ = AzureConnection::parse(&text);
    }
}
