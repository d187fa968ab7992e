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

#[test]
fn a_mistake_in_the_file_has_its_line_its_key_and_the_rule_without_the_value() {
    let fields = "must be one of account, account_key, account_key_file, ca_file, cert_file, \
                  connection_string, endpoint, key_file, sas, sas_file, server_name";
    let text = "must be a text in quotes";
    let section = "must be a section, such as [contexts.dev]";
    for (file, line, expected) in [
        (
            "[contexts.a]\n\nendpont = \"SECRET\"\n",
            3,
            format!("contexts.a.endpont: unknown key, {fields}"),
        ),
        (
            "\ncurrant = \"SECRET\"\n",
            2,
            "currant: unknown key, must be one of contexts, current".to_owned(),
        ),
        ("[contexts.a]\nsas = 5\n", 2, format!("contexts.a.sas: {text}")),
        (
            "[contexts.a]\naccount_key = [\"SECRET\"]\n",
            2,
            format!("contexts.a.account_key: {text}"),
        ),
        ("current = true\n", 1, format!("current: {text}")),
        ("[contexts]\na = \"SECRET\"\n", 2, format!("contexts.a: {section}")),
        ("contexts = 5\n", 1, format!("contexts: {section}")),
        ("[contexts.a]\nsas = \"x\"\nsas = \"y\"\n", 3, "duplicate key".to_owned()),
    ] {
        assert_eq!(mistake(file), Some((line, expected)), "{file}");
    }
    assert_eq!(mistake(FULL), None);
    assert_eq!(mistake(""), None);
}

#[test]
fn the_keys_of_a_context_are_those_that_are_stored() {
    let (tls, credentials) = (
        TlsArgs {
            ca_file: Some("x".into()),
            server_name: Some("x".to_owned()),
            cert_file: Some("x".into()),
            key_file: Some("x".into()),
        },
        CredentialArgs {
            account: Some("x".to_owned()),
            account_key_file: Some("x".into()),
            account_key: "x".parse().ok(),
            sas_file: Some("x".into()),
            sas: "x".parse().ok(),
            connection_string: "x".parse().ok(),
            prefix: "",
        },
    );
    let context = ClientContext { endpoint: Some("x".to_owned()), tls, credentials };

    let stored = toml::Table::try_from(&context).unwrap();

    let keys: std::collections::BTreeSet<_> = stored.keys().map(String::as_str).collect();
    assert_eq!(keys, mistake::OF_CONTEXT.into());
}
