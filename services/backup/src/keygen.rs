//! `backup keygen`.

use serde_json::json;
use trestle_command::{errors::CliError, output::Output};

use crate::{args::KeygenArgs, sealed::Identities};

/// Makes a key, and prints the public one.
pub(crate) fn run(args: &KeygenArgs, out: &mut Output) -> Result<(), CliError> {
    let key = Identities::generate();
    key.write(&args.file)?;
    let public = key.public();
    let file = args.file.display().to_string();
    out.either(&public, &json!({ "key": public, "file": file }))
}
