//! Tests of the module.

use super::*;

fn secret(text: &str) -> Option<SecretText> {
    Some(SecretText(text.to_owned()))
}

fn acme() -> CredentialArgs {
    CredentialArgs { account: Some("acme".to_owned()), ..CredentialArgs::default() }
}

fn sent(args: &CredentialArgs) -> Result<(String, String), String> {
    let mut credentials = args.credentials().map_err(|error| error.to_string())?;
    let request = credentials.call(Request::new(())).unwrap();
    let header = |name: &str| {
        let value = request.metadata().get(name);
        value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    Ok((header("authorization"), header("trestle-account")))
}

#[test]
fn a_key_is_sent_with_its_account_and_a_signature_unchanged() {
    let key = STANDARD.encode([7; 64]);
    let basic = format!("Basic {}", STANDARD.encode(format!("acme:{key}")));
    let acme_sends = |authorization: &str| (authorization.to_owned(), "acme".to_owned());

    let args = CredentialArgs { account_key: secret(&key), ..acme() };
    assert_eq!(sent(&args), Ok(acme_sends(&basic)));
    let args = CredentialArgs { sas: secret("sv=1&sig=2"), ..acme() };
    assert_eq!(sent(&args), Ok(acme_sends("SharedAccessSignature sv=1&sig=2")));
    let text = format!("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={key}");
    let args = CredentialArgs { connection_string: secret(&text), ..CredentialArgs::default() };
    assert_eq!(sent(&args), Ok(acme_sends(&basic)));
    assert_eq!(sent(&CredentialArgs::default()), Ok((String::new(), String::new())));
    let account = Some("devstoreaccount1".to_owned());
    let (authorization, _) = sent(&CredentialArgs { account, ..acme() }).unwrap();
    assert!(authorization.starts_with("Basic "), "the well-known key");
}

#[test]
fn rejects_invalid_credentials_as_usage_errors_without_the_secret() {
    let key = STANDARD.encode([7; 64]);
    let both = CredentialArgs { account_key: secret(&key), sas: secret("sig=2"), ..acme() };
    let alone = CredentialArgs { account_key: secret(&key), ..CredentialArgs::default() };
    let short = CredentialArgs { account_key: secret("AAAA"), ..acme() };
    let lines = CredentialArgs { sas: secret("hun\nter2"), ..acme() };
    let named = CredentialArgs { account: Some("No Name".to_owned()), ..acme() };
    for args in [both, alone, short, lines, named, acme()] {
        let error = sent(&args).unwrap_err();
        assert!(!error.contains(&key) && !error.contains("AAAA"), "{error}");
        assert!(!error.contains("ter2") && !format!("{args:?}").contains(&key), "{error}");
    }
    let missing = CredentialArgs { sas_file: Some("/nowhere".into()), ..acme() };
    assert!(sent(&missing).unwrap_err().contains("/nowhere"));
}
