//! The secret of gateways, from the settings or its file.

use std::{fs, io::Read as _, path::Path};

use trestle_identity::gateway_secret::{GatewaySecret, SECRET_BYTES_MAX};

use crate::settings::{ServerSettings, misplaced_key};

const KEY: &str = "server.gateway_secret";
/// Longest file that is read, in bytes: the longest secret, with space around it.
const FILE_BYTES_MAX: u64 = 2 * SECRET_BYTES_MAX as u64;

/// The secret of these settings, if they have one. Blocks while the file is read.
///
/// # Errors
/// The problem with its key, without the content of the file.
pub(crate) fn read(server: &ServerSettings) -> Result<Option<GatewaySecret>, String> {
    match (&server.gateway_secret, &server.gateway_secret_file) {
        (Some(text), _) => {
            GatewaySecret::parse(&text.0).map(Some).map_err(|error| format!("{KEY}: {error}"))
        }
        (None, Some(file)) => in_file(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// The problem of the file, as [`read`] reports it. Blocks.
pub(crate) fn file_problem(server: &ServerSettings) -> Option<String> {
    in_file(server.gateway_secret_file.as_deref()?).err()
}

fn in_file(file: &Path) -> Result<GatewaySecret, String> {
    let key = format!("{KEY}_file");
    if let Some(rule) = misplaced_key(file) {
        return Err(format!("{key}: {rule}"));
    }
    let fails =
        |problem: &dyn std::fmt::Display| format!("{key}: {problem}: file=`{}`", file.display());
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(|error| fails(&error))?;
    opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| fails(&error))?;
    GatewaySecret::parse(&text).map_err(|error| fails(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn the_file_has_the_secret_and_its_problems_name_the_setting() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secret");
        let mut server = Settings::default().server;
        assert!(read(&server).expect("none is valid").is_none());
        server.gateway_secret_file = Some(file.clone());

        let missing = read(&server).expect_err("no such file");
        fs::write(&file, "hunter2\n").expect("written");
        let short = read(&server).expect_err("too short");
        fs::write(&file, format!("{}\n", "s".repeat(44))).expect("written");

        assert!(read(&server).expect("valid").is_some());
        assert_eq!(file_problem(&server), None);
        for problem in [missing, short] {
            assert!(problem.starts_with("server.gateway_secret_file: "), "{problem}");
            assert!(problem.contains("file=`") && !problem.contains("hunter2"), "{problem}");
        }
    }
}
