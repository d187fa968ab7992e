//! Backups that only who has a key can read.

use super::*;

/// Makes a key; the public one is in `public`, the file that a server would have.
pub(super) fn keys(backups: &Backups, name: &str) -> [String; 2] {
    let (secret, public) = (backups.text(&format!("{name}.key")), backups.text(name));
    let made = Ended::of(bare(&["backup", "keygen", &secret]));
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.output.starts_with("age1"), "{made:?}");
    fs::write(&public, made.output).unwrap();
    [secret, public]
}

/// Backs `data` up, for the keys in a file.
pub(super) fn create(backups: &Backups, public: &str) -> Ended {
    let data = backups.text("data");
    backups.backup("create", &["--data-dir", &data, "--encrypt", public, "-o", "json"])
}

#[test]
fn only_who_has_the_key_reads_it_and_pruning_needs_none() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    let ([secret, public], [other, _]) = (keys(&backups, "vault"), keys(&backups, "other"));
    let created = create(&backups, &public);
    assert_eq!(created.code, Some(0), "{created:?}");
    for part in backups.parts() {
        let bytes = fs::read(&part).unwrap();
        let texts: [&[u8]; 3] = [b"orders", b"pictures", b"resize"];
        for text in texts {
            assert!(!bytes.windows(text.len()).any(|it| it == text), "{}", part.display());
        }
    }

    for args in [&[][..], &["--decrypt", &other]] {
        for ended in [backups.backup("verify", args), backups.restore("restored", args)] {
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.errors.contains("is encrypted"), "{ended:?}");
        }
        assert!(!backups.path("restored").exists());
    }
    // What the server has is not sent again, nor needed to delete what no backup has.
    succeeds(&server, &["entity", "insert", "orders", "-p", "p", "-r", "4", "--set", "v=new"]);
    let again = create(&backups, &public);
    let again: Value = serde_json::from_str(&again.output).unwrap();
    assert!(again["sent_bytes"].as_u64().unwrap() < 64 * 1024, "{again}");
    assert_eq!(backups.backup("list", &[]).output.matches("complete").count(), 2);
    assert_eq!(backups.backup("prune", &["--keep-last", "1"]).code, Some(0));

    let key = ["--decrypt", &secret];
    assert_eq!(backups.backup("verify", &[&key[..], &["--all"]].concat()).code, Some(0));
    let restored = backups.restore("restored", &key);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let copy = backups.serve("restored");
    succeeds(&copy, &["entity", "delete", "orders", "-p", "p", "-r", "4"]);
    assert_eq!(shown(&copy, backups.folder.path()), before);
}

#[test]
fn a_target_has_backups_for_the_same_keys() {
    let backups = Backups::new();
    let server = backups.serve("data");
    succeeds(&server, &["table", "create", "orders"]);
    let ([secret, public], [_, other]) = (keys(&backups, "vault"), keys(&backups, "other"));
    assert_eq!(create(&backups, &secret).code, Some(0), "its public key counts");
    assert_eq!(create(&backups, &public).code, Some(0));
    let refused = create(&backups, &other);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("encrypted for other keys"), "{refused:?}");
    let data = backups.text("data");
    let refused = backups.backup("create", &["--data-dir", &data]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("name their keys by --encrypt"), "{refused:?}");

    let plain = backups.text("plain");
    let plainly = ["backup", "create", &plain, "--data-dir", &data];
    assert_eq!(Ended::of(bare(&plainly)).code, Some(0));
    let refused = Ended::of(bare(&[&plainly[..], &["--encrypt", &public]].concat()));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("backups that are not encrypted"), "{refused:?}");
    let again = Ended::of(bare(&["backup", "keygen", &secret]));
    assert!(again.code != Some(0) && again.errors.contains("cannot write"), "{again:?}");
}

#[test]
fn damage_of_an_encrypted_backup_is_found() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let [secret, public] = keys(&backups, "vault");
    assert_eq!(create(&backups, &public).code, Some(0));
    for part in backups.parts() {
        let mut bytes = fs::read(&part).unwrap();
        let whole = bytes.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&part, bytes).unwrap();
        let verified = backups.backup("verify", &["--decrypt", &secret]);
        assert_eq!(verified.code, Some(1), "{}: {verified:?}", part.display());
        fs::write(&part, whole).unwrap();
    }
}
