//! Damage of a target is found, by its name, and never restored.

use super::*;

/// Damages each part of a backup in turn, by a change of its bytes.
fn each_part(backups: &Backups, damage: impl Fn(&Path)) {
    let (mut whole_without, mut partly) = (0, 0);
    for part in backups.parts() {
        if part.to_str().unwrap().contains("/running/") {
            continue;
        }
        let whole = fs::read(&part).unwrap();
        damage(&part);
        let verified = backups.backup("verify", &["-o", "jsonl"]);
        assert_ne!(verified.code, Some(0), "{}: {verified:?}", part.display());
        let name = part.file_name().unwrap().to_str().unwrap();
        let reported = format!("{}{}", verified.output, verified.errors);
        let is_manifest = name.ends_with(".manifest");
        assert!(reported.contains(name) || is_manifest, "{}: {verified:?}", part.display());

        let restored = backups.restore("restored", &[]);
        if restored.code == Some(0) {
            // It was whole without the mark of the place, or the names that only `prune` reads.
            whole_without += 1;
            shown(&backups.serve("restored"), backups.folder.path());
            fs::remove_dir_all(backups.path("restored")).unwrap();
        }
        if restored.errors.contains("not restored: ") {
            // A part of the content of an object: everything else is there.
            assert_eq!(restored.code, Some(1), "{restored:?}");
            assert!(restored.errors.contains(name), "{restored:?}");
            let copy = backups.serve("restored");
            succeeds(&copy, &["table", "export", "orders", "-"]);
            drop(copy);
            fs::remove_dir_all(backups.path("restored")).unwrap();
            partly += 1;
        }
        if let Ok(entries) = fs::read_dir(backups.path("restored")) {
            let begun = entries.count() > 0;
            assert!(!begun || backups.path("restored/RESTORING").exists(), "{}", part.display());
        }
        fs::write(&part, whole).unwrap();
    }
    // The mark, and the names of each list of rows and of objects.
    let lists = usize::try_from(backups.lists()).unwrap();
    assert_eq!(whole_without, 1 + lists);
    assert!(partly > 0, "objects have parts");
}

fn backed_up() -> Backups {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    backups.create();
    backups
}

#[test]
fn every_missing_and_every_changed_part_is_found() {
    let backups = backed_up();
    each_part(&backups, |part| fs::remove_file(part).unwrap());
    each_part(&backups, |part| {
        let mut bytes = fs::read(part).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(part, bytes).unwrap();
    });
    each_part(&backups, |part| {
        let bytes = fs::read(part).unwrap();
        fs::write(part, &bytes[..bytes.len() - 1]).unwrap();
    });
    // Whole again, the interrupted restore begins anew.
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    shown(&backups.serve("restored"), backups.folder.path());
}

#[test]
fn parts_in_the_place_of_each_other_are_found() {
    let backups = backed_up();
    let parts = backups.parts();
    let parts: Vec<_> =
        parts.iter().filter(|it| it.to_str().unwrap().contains("/parts/")).collect();
    for (first, last) in parts.iter().zip(parts.iter().skip(1)) {
        let whole = fs::read(last).unwrap();
        fs::copy(first, last).unwrap();
        let verified = backups.backup("verify", &[]);
        assert_eq!(verified.code, Some(1), "{verified:?}");
        assert!(verified.output.contains(last.file_name().unwrap().to_str().unwrap()));
        fs::write(last, vec![0; 16 * 1024 * 1024]).unwrap();
        assert_eq!(backups.backup("verify", &[]).code, Some(1), "it is too large");
        fs::write(last, whole).unwrap();
    }
}

#[test]
fn an_object_that_the_data_directory_lost_is_named_and_the_rest_is_backed_up() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let lost = fs::read_dir(backups.path("data/blob")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&lost).unwrap();
    let data = backups.text("data");
    let created = backups.backup("create", &["--data-dir", &data, "-o", "json"]);
    assert_eq!(created.code, Some(1), "{created:?}");
    let created: Value = serde_json::from_str(&created.output).unwrap();
    let name = lost.file_name().unwrap().to_str().unwrap();
    assert_eq!(created["damage"][0]["object"], format!("blob/{name}"));
    assert_eq!(created["objects"], 2);

    let restored = backups.restore("restored", &[]);
    assert_eq!(restored.code, Some(1), "{restored:?}");
    let copy = backups.serve("restored");
    succeeds(&copy, &["blob", "cat", "blob://pictures/small"]);
    let read = backups.text("read");
    assert_eq!(run(&copy, &["blob", "cp", "blob://pictures/cat", &read]).code, Some(1));
}
