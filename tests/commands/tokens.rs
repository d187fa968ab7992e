//! `trestle token`: an issuer on this machine, whose tokens a server accepts.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use tempfile::tempdir;
use trestle_tests::{RestRequest, Server, exchange};

use crate::client::{Ended, bare};

const ISSUER: &str = "https://localhost/laptop";
const KEY: &str = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";

fn keys(folder: &Path) -> Ended {
    Ended::of(bare(&["token", "keys", "--out", folder.to_str().unwrap()]))
}

/// A token by the key in a folder, with these arguments instead of the usual ones.
fn create(folder: &Path, changed: &[(&str, &str)]) -> Ended {
    let key = folder.join("private.pem");
    let key = key.to_str().unwrap();
    let usual = [
        ("--key", key),
        ("--issuer", ISSUER),
        ("--audience", "trestle"),
        ("--role", "reader"),
        ("--subject", "me"),
    ];
    let is_changed = |name: &str| changed.iter().any(|(other, _)| *other == name);
    let kept = usual.into_iter().filter(|(name, _)| !is_changed(name));
    let all = kept.chain(changed.iter().copied()).flat_map(|(name, value)| [name, value]);
    let args: Vec<_> = ["token", "create"].into_iter().chain(all).collect();
    Ended::of(bare(&args))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_is_for_its_owner_alone_and_never_replaced() {
    let folder = tempdir().unwrap();
    let folder = folder.path().join("new/issuer");
    let made = keys(&folder);
    assert_eq!((made.code, made.output.as_str()), (Some(0), ""), "{made:?}");
    assert!(made.errors.contains("wrote private.pem and jwks.json to "), "{made:?}");
    let (private, public) = (folder.join("private.pem"), folder.join("jwks.json"));
    assert_eq!(mode(&private), 0o600);
    let text = fs::read_to_string(&private).unwrap();
    let secret = text.lines().nth(1).unwrap();
    assert!(!fs::read_to_string(&public).unwrap().contains(secret));

    let again = keys(&folder);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(fs::read_to_string(&private).unwrap(), text);
    fs::remove_file(&private).unwrap();
    assert_eq!(keys(&folder).code, Some(1), "the key set of another key is not replaced either");
}

#[test]
fn what_no_server_accepts_is_rejected_by_its_flag() {
    let folder = tempdir().unwrap();
    assert_eq!(keys(folder.path()).code, Some(0));
    let public = folder.path().join("jwks.json");
    for (flag, value, rule) in [
        ("--key", public.to_str().unwrap(), "--key: must be a private key of P-256"),
        ("--key", "/absent", "cannot read"),
        ("--role", "admin", "must be one of delegator, reader, contributor, owner"),
        ("--subject", "a b", "must be 1 to 256 characters of visible ASCII"),
        ("--issuer", "", "must be 1 to 1024 characters"),
        ("--expires-in", "8d", "must be 1s to 7d"),
        ("--expires-in", "0", "must be 1s to 7d"),
        ("--endpoint", "http://127.0.0.1:1", "`trestle token` takes no --endpoint"),
    ] {
        let failed = create(folder.path(), &[(flag, value)]);
        assert_eq!((failed.code, failed.output.as_str()), (Some(2), ""), "{flag}: {failed:?}");
        assert!(failed.errors.contains(rule), "{flag}: {failed:?}");
    }
    assert_eq!(Ended::of(bare(&["token", "create"])).code, Some(2));
    for args in [&["token", "--help"][..], &["token", "create", "--help"]] {
        let help = Ended::of(bare(args));
        assert!(help.output.contains("Exit codes:\n    0  done\n    1  failed: "), "{help:?}");
        assert!(!help.output.contains("--endpoint"), "{help:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_accepts_the_tokens_of_its_issuer_by_their_role_until_they_expire() {
    let (own, other) = (tempdir().unwrap(), tempdir().unwrap());
    for folder in [&own, &other] {
        assert_eq!(keys(folder.path()).code, Some(0));
    }
    let jwks = own.path().join("jwks.json");
    let settings = [
        ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY),
        ("TRESTLE__GATEWAY__ISSUERS__LAPTOP__ISSUER", ISSUER),
        ("TRESTLE__GATEWAY__ISSUERS__LAPTOP__AUDIENCE", "trestle"),
        ("TRESTLE__GATEWAY__ISSUERS__LAPTOP__ACCOUNTS", "acme"),
        ("TRESTLE__GATEWAY__ISSUERS__LAPTOP__CLOCK_SKEW_SECONDS", "0"),
        ("TRESTLE__GATEWAY__ISSUERS__LAPTOP__JWKS_FILE", jwks.to_str().unwrap()),
    ];
    let server = Server::start(&["--ephemeral"], &settings);
    let blobs = server.address("azure_blob");
    let token = |folder: &Path, changed: &[(&str, &str)]| {
        let created = create(folder, changed);
        assert_eq!((created.code, created.errors.as_str()), (Some(0), ""), "{created:?}");
        format!("Bearer {}", created.output.trim_end())
    };
    let put = async |token: &str| {
        let request = RestRequest::blob("PUT", "").at("/acme/files?restype=container");
        exchange(&blobs, request.scheme(None).with("authorization", token)).await
    };
    let brief = token(own.path(), &[("--role", "owner"), ("--expires-in", "1s")]);
    let reader = put(&token(own.path(), &[])).await;
    assert_eq!(reader.failure(), (403, "AuthorizationPermissionMismatch"));
    for rejected in [
        token(other.path(), &[("--role", "owner")]),
        token(own.path(), &[("--role", "owner"), ("--issuer", "https://localhost/other")]),
        token(own.path(), &[("--role", "owner"), ("--audience", "other")]),
    ] {
        assert_eq!(put(&rejected).await.failure(), (401, "InvalidAuthenticationInfo"));
    }
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(put(&brief).await.failure(), (401, "InvalidAuthenticationInfo"));
    assert_eq!(put(&token(own.path(), &[("--role", "contributor")])).await.status, 201);
}
