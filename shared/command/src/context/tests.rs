//! The file of contexts: what is stored, and what is shown of it.

use super::*;

const FULL: &str = r#"current = "b"

[contexts.a]

[contexts.b]
endpoint = "https://store:50051"
ca_file = "/ca.pem"
server_name = "store"
account = "acme"
account_key = "SECRETKEY"
"#;

fn parse(text: &str) -> ContextFile {
    toml::from_str(text).unwrap()
}

#[test]
fn a_file_of_contexts_survives_a_change_of_another_context() {
    let mut file = parse(FULL);
    file.contexts.insert("odd name.[\"é\"]".to_owned(), ClientContext::default());

    let text = toml::to_string_pretty(&file).unwrap();
    let again = parse(&text);

    let b = &again.contexts["b"];
    assert_eq!(again.current.as_deref(), Some("b"));
    assert_eq!(b.endpoint.as_deref(), Some("https://store:50051"));
    assert_eq!(b.tls.ca_file, Some(PathBuf::from("/ca.pem")));
    assert_eq!(b.tls.server_name.as_deref(), Some("store"));
    assert_eq!(b.credentials.account.as_deref(), Some("acme"));
    assert_eq!(b.credentials.account_key.as_ref().unwrap().reveal(), "SECRETKEY");
    assert!(again.contexts.contains_key("odd name.[\"é\"]"), "{text}");
    assert_eq!(toml::to_string_pretty(&again).unwrap(), text);
}

#[test]
fn an_empty_file_has_no_contexts_and_an_empty_context_no_settings() {
    let empty = parse("");
    assert!(empty.current.is_none() && empty.contexts.is_empty());

    let file = parse(FULL);
    let a = &file.contexts["a"];
    assert!(a.endpoint.is_none() && !a.tls.is_given() && !a.credentials.is_given());
}

#[test]
fn a_listing_shows_the_account_and_no_secret() {
    let mut file = parse(FULL);
    let text = "AccountName=other;SharedAccessSignature=SECRETSAS".parse().unwrap();
    let credentials = CredentialArgs { connection_string: Some(text), ..CredentialArgs::default() };
    let context = ClientContext { credentials, ..ClientContext::default() };
    file.contexts.insert("c".to_owned(), context);

    let shown: Vec<_> = file.contexts.iter().map(|it| file.record(it)).collect();

    let all = json!(shown).to_string() + &format!("{file:?}");
    assert!(!all.contains("SECRET"), "{all}");
    let of = |field: &str| shown.iter().map(|it| it[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("context"), ["a", "b", "c"]);
    assert_eq!(of("current"), [false, true, false]);
    assert_eq!(of("account"), [json!(null), json!("acme"), json!("other")]);
    assert_eq!(of("tls"), [false, true, false]);
}

#[test]
fn the_name_of_a_new_context_is_one_word() {
    for name in ["dev", "a.b-c_1", "é", "[\"x\"]"] {
        assert_eq!(context_name(name), Ok(name.to_owned()));
    }
    for name in ["", " ", "a b", "a\tb", "a\u{1b}", "-a", "a\u{a0}b"] {
        assert!(context_name(name).unwrap_err().contains("no spaces"), "{name:?}");
    }
}
