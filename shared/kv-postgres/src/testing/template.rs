//! The data of a new server, made once for all tests of a build: `initdb` takes 1.5 s of processor time, a copy of what
//! it makes less than a tenth of that.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::UNIX_EPOCH,
};

/// Copies the data to a directory that does not exist. `init` makes it in a directory.
pub(super) fn copy(programs: &Path, to: &Path, init: impl FnOnce(&Path)) {
    let Some(template) = place(programs) else {
        init(to);
        return;
    };
    let lock = template.with_extension("lock");
    let lock = File::create(lock).expect("the build has a directory");
    lock.lock().expect("the build has a directory");
    if !template.exists() {
        // Complete under its name, or not there.
        let part = template.with_extension("part");
        let _ = fs::remove_dir_all(&part);
        init(to);
        copy_whole(to, &part);
        fs::rename(part, template).expect("the build has a directory");
        return;
    }
    drop(lock);
    copy_whole(&template, to);
}

/// Where the template of these programs is: beside the binaries of the build, where the tests are in one.
fn place(programs: &Path) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let directory = test.parent().filter(|it| it.ends_with("deps"))?.parent()?;
    let made = fs::metadata(programs.join("postgres")).ok()?.modified().ok()?;
    let made = made.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let programs: String = programs.to_str()?.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(directory.join(format!("postgres-{programs}-{made}")))
}

/// Copies a directory with the owners and permissions of its files.
fn copy_whole(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    let copied = copy.arg("-a").arg(from).arg(to).stdin(Stdio::null()).output();
    let copied = copied.expect("the machine has cp");
    assert!(copied.status.success(), "{copied:?}");
}
