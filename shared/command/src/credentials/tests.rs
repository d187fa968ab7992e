//! Tests of the module.

use std::fs;

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

/// The arguments of a connection string.
fn connection(text: &str) -> CredentialArgs {
    CredentialArgs { connection_string: secret(text), ..CredentialArgs::default() }
}

#[test]
fn fields_of_a_connection_string_have_any_case_order_and_blanks() {
    let key = STANDARD.encode([7; 64]);
    let expected = sent(&CredentialArgs { account_key: secret(&key), ..acme() }).unwrap();

    for text in [
        format!("AccountKey={key};AccountName=acme"),
        format!(" accountname = acme ; ACCOUNTKEY = {key} ;"),
        format!(";;AccountName=acme;Unknown=x=y;AccountKey={key};AccountName=other"),
    ] {
        assert_eq!(sent(&connection(&text)).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn arguments_precede_fields_of_a_connection_string() {
    let text = "AccountName=other;SharedAccessSignature=sig=2";
    let args = CredentialArgs { sas: secret("sig=1"), ..connection(text) };
    let (authorization, account) = sent(&args).unwrap();
    assert_eq!(authorization, "SharedAccessSignature sig=1");
    assert_eq!(account, "other");

    let args = CredentialArgs { account: Some("acme".to_owned()), ..connection(text) };
    assert_eq!(sent(&args).unwrap().1, "acme");
    assert_eq!(args.account_name().as_deref(), Some("acme"));
    assert_eq!(connection(text).account_name().as_deref(), Some("other"));
}

#[test]
fn the_development_storage_is_its_account_unless_it_is_switched_off() {
    for text in ["UseDevelopmentStorage=true", "usedevelopmentstorage=TRUE;"] {
        let (authorization, account) = sent(&connection(text)).unwrap();
        assert_eq!(account, "devstoreaccount1");
        assert!(authorization.starts_with("Basic "), "{text}");
    }
    let off = sent(&connection("UseDevelopmentStorage=false"));
    assert_eq!(off, Ok((String::new(), String::new())));
    let signature = "AccountName=devstoreaccount1;SharedAccessSignature=sig=1";
    let (authorization, _) = sent(&connection(signature)).unwrap();
    assert_eq!(authorization, "SharedAccessSignature sig=1", "not the well-known key");
}

#[test]
fn rejects_a_malformed_connection_string() {
    let key = STANDARD.encode([7; 64]);
    for text in [
        "",
        "SECRET",
        "AccountName=acme;AccountKey=SECRET",
        "AccountName=acme;AccountKey=",
        &format!("AccountKey={key}"),
        &format!("AccountName=acme;AccountKey={key};SharedAccessSignature=sig"),
        "AccountName=acme",
        "AccountName=;SharedAccessSignature=sig",
    ] {
        let error = sent(&connection(text)).unwrap_err();
        assert!(!error.contains("SECRET") && !error.contains(&key), "{text}: {error}");
    }
}

#[test]
fn endpoints_of_rest_are_rejected_by_their_name_only() {
    for name in [
        "BlobEndpoint",
        "queueendpoint",
        " TableSecondaryEndpoint ",
        "EndpointSuffix",
        "DevelopmentStorageProxyUri",
    ] {
        let args = connection(&format!("AccountName=acme;{name}=https://SECRET"));
        let error = args.reject_endpoints().unwrap_err().to_string();
        assert!(error.contains(name.trim()) && error.contains("--endpoint"), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }
    let encrypted = connection("DefaultEndpointsProtocol=https;AccountName=acme");
    assert!(encrypted.reject_endpoints().is_err(), "calls would go in plain text");
    for text in ["DefaultEndpointsProtocol=http;AccountName=acme", "AccountName=endpoint", ""] {
        assert!(connection(text).reject_endpoints().is_ok(), "{text}");
    }
    assert!(CredentialArgs::default().reject_endpoints().is_ok());
}

#[test]
fn a_secret_is_text_or_in_a_file_and_not_both() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sas");
    fs::write(&file, "\n sig=1 \n").unwrap();
    let args = CredentialArgs { sas_file: Some(file), ..CredentialArgs::default() };

    assert_eq!(sent(&args).unwrap().0, "SharedAccessSignature sig=1");
    let error = sent(&CredentialArgs { sas: secret("sig=2"), ..args }).unwrap_err();
    assert!(error.contains("in one place") && !error.contains("sig="), "{error}");
}

#[test]
fn a_call_names_its_resource_with_a_signature_only() {
    let key = STANDARD.encode([7; 64]);
    let with_key = CredentialArgs { account_key: secret(&key), ..acme() };
    let with_sas = CredentialArgs { sas: secret("sig=1"), ..acme() };
    let header = |mut credentials: CallCredentials, name: &str| {
        let request = credentials.call(Request::new(())).unwrap();
        request.metadata().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let of = |args: &CredentialArgs| args.credentials().unwrap();

    let orders = Some("orders".to_owned());
    assert_eq!(header(of(&with_sas).on_queue(Some("orders")), QUEUE_HEADER), orders);
    assert_eq!(header(of(&with_sas).on_blob(Some("orders")), BLOB_HEADER), orders);
    assert_eq!(header(of(&with_sas).on_blob(Some("orders")), QUEUE_HEADER), None);
    assert_eq!(header(of(&with_sas).on_queue(None), QUEUE_HEADER), None);
    assert_eq!(header(of(&with_sas).on_queue(Some("a\nb")), QUEUE_HEADER), None, "no header");
    assert_eq!(header(of(&with_key).on_queue(Some("orders")), QUEUE_HEADER), None);
}

#[test]
fn secrets_are_redacted_in_debug_texts_of_calls_too() {
    let credentials = CredentialArgs { sas: secret("sig=SECRET"), ..acme() }.credentials().unwrap();

    assert!(!format!("{credentials:?}").contains("SECRET"), "{credentials:?}");
}

#[test]
fn an_identity_is_named_without_its_secret() {
    let development = CredentialArgs {
        connection_string: secret("UseDevelopmentStorage=true"),
        ..CredentialArgs::default()
    };
    let signed = CredentialArgs { sas: secret("sv=1&sig=SECRET"), ..CredentialArgs::default() };
    for (given, expected) in [
        (CredentialArgs::default(), "without credentials"),
        (acme(), "account=`acme`"),
        (development, "account=`devstoreaccount1`"),
        (
            CredentialArgs { sas: secret("sig=SECRET"), ..acme() },
            "account=`acme`, with a signature",
        ),
        (signed, "with a signature"),
    ] {
        assert_eq!(given.identity(), expected);
    }
}

#[test]
fn credentials_that_no_call_could_carry_are_not_stored() {
    let given = |sas: &str| CredentialArgs { sas: secret(sas), ..CredentialArgs::default() };
    for sas in ["sv=1", "sv=1&sig=", "text"] {
        let error = given(sas).check().unwrap_err().to_string();
        assert!(error.contains("--sas: must be a signature"), "{error}");
    }
    let key = |key: &str| CredentialArgs { account_key: secret(key), ..acme() };
    assert!(key("short").check().is_err());
    for valid in [given("sv=1&sig=a"), given("?sig=a"), key(&STANDARD.encode([7; 64])), acme()] {
        assert!(valid.check().is_ok(), "{valid:?}");
    }
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    let (key, sas) = (folder.path().join("key"), folder.path().join("sas"));
    let text = STANDARD.encode([7; 64]);
    fs::write(&key, format!("\u{feff}{text}\r\n")).unwrap();
    fs::write(&sas, "\u{feff}sv=1&sig=2\n").unwrap();

    let keyed = sent(&CredentialArgs { account_key_file: Some(key), ..acme() });
    let signed = sent(&CredentialArgs { sas_file: Some(sas), ..acme() });

    assert_eq!(keyed, sent(&CredentialArgs { account_key: secret(&text), ..acme() }));
    assert_eq!(signed, sent(&CredentialArgs { sas: secret("sv=1&sig=2"), ..acme() }));
}

#[test]
fn an_invalid_account_is_reported_with_its_argument() {
    let key = STANDARD.encode([7; 64]);
    let named = connection(&format!("AccountName=No;AccountKey={key}"));
    let unnamed = connection(&format!("AccountKey={key}"));
    let keyless = connection("AccountName=acme");
    for (args, from) in [
        (named.clone(), "--connection-string: AccountName: must be 3"),
        (unnamed, "--connection-string: AccountName: required with a key"),
        (keyless, "--connection-string: AccountName: needs a key"),
        (CredentialArgs { account: Some("No".to_owned()), ..named }, "--account: must be 3"),
    ] {
        let error = sent(&args).unwrap_err();
        assert!(error.starts_with(from), "{error}");
    }
}

#[test]
fn a_file_that_is_no_secret_is_named_with_its_argument_and_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let utf16: Vec<u8> = "sv=1&sig=2".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let key = STANDARD.encode([7; 64]).into_bytes();
    for (content, of_key, of_sas) in [
        (&b"\xff\xfes\0"[..], "must be text in UTF-8", "must be text in UTF-8"),
        (b" \r\n", "the file is empty", "the file is empty"),
        (b"sv=1&\nsig=2", "must be base64 of 32 to 512 bytes", "in visible ASCII on one line"),
        (&utf16, "must be base64 of 32 to 512 bytes", "in visible ASCII on one line"),
        (
            b"foo",
            "must be base64 of 32 to 512 bytes",
            "must be a signature with the fields sv and sig",
        ),
        (&key, "", "must be a signature with the fields sv and sig"),
    ] {
        let file = folder.path().join("secret");
        fs::write(&file, content).unwrap();
        let of_files = [
            (
                of_key,
                "--account-key-file",
                CredentialArgs { account_key_file: Some(file.clone()), ..acme() },
            ),
            (of_sas, "--sas-file", CredentialArgs { sas_file: Some(file.clone()), ..acme() }),
        ];
        for (rule, flag, args) in of_files {
            if rule.is_empty() {
                assert!(sent(&args).is_ok());
                continue;
            }
            let error = sent(&args).unwrap_err();

            assert!(error.starts_with(&format!("{flag}: file=`{}`: ", file.display())), "{error}");
            assert!(error.ends_with(rule), "{error}");
        }
    }
}

#[test]
fn a_text_that_is_no_signature_is_a_mistake_of_the_command_line() {
    for text in ["foo", "sv=1", "sig=", "", "sv=1&sig=2\n3"] {
        let args = CredentialArgs { sas: secret(text), ..CredentialArgs::default() };

        let error = args.credentials().unwrap_err();

        assert!(
            matches!(&error, CliError::Usage(text) if text.starts_with("--sas: must be a signature"))
        );
    }
}

#[test]
fn errors_name_flags_with_their_prefix() {
    let of_source = |args: CredentialArgs| CredentialArgs { prefix: "source-", ..args };
    let sas_file = Some("/nowhere".into());
    let both =
        CredentialArgs { account_key: secret("a"), account_key_file: sas_file.clone(), ..acme() };
    let named = CredentialArgs { account: Some("No Name".to_owned()), ..acme() };
    let short = CredentialArgs { account_key: secret("AAAA"), ..acme() };
    for (args, beginning) in [
        (CredentialArgs { sas_file, ..acme() }, "--source-sas-file: file=`/nowhere`: cannot"),
        (both, "give the secret in one place: --source-account-key or --source-account-key-file"),
        (named, "--source-account: must be 3 to 24"),
        (short, "--source-account-key: key of the account: "),
        (acme(), "--source-account: needs a key or a signature too: --source-account-key-file"),
        (
            CredentialArgs { account_key: secret("AAAA"), ..CredentialArgs::default() },
            "--source-account: required",
        ),
    ] {
        let error = sent(&of_source(args)).unwrap_err();
        assert!(error.starts_with(beginning), "{beginning}: {error}");
    }
}

#[test]
fn calls_without_a_name_are_from_the_development_account_unless_they_are_signed() {
    let account = |args: CredentialArgs| args.called_account();
    assert_eq!(account(CredentialArgs::default()).as_deref(), Some("devstoreaccount1"));
    assert_eq!(account(acme()).as_deref(), Some("acme"));
    assert_eq!(account(connection("AccountName=other;AccountKey=x")).as_deref(), Some("other"));
    for signed in [
        CredentialArgs { sas: secret("sig=1"), ..CredentialArgs::default() },
        CredentialArgs { sas_file: Some("/nowhere".into()), ..CredentialArgs::default() },
        connection("SharedAccessSignature=sig=1"),
    ] {
        assert_eq!(account(signed), None);
    }
    let named = CredentialArgs { sas: secret("sig=1"), ..acme() };
    assert_eq!(account(named).as_deref(), Some("acme"));
}
