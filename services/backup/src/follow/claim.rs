//! Which command may go on with a line: of several that have copies of one data directory, one.
//!
//! Commands have numbers. Each claims the one after that of the command before by a file at the target, which only one
//! can write; a command whose next number is claimed was followed by another, and finds that by this file alone.

use trestle_command::errors::CliError;

use super::sender::WindowSender;
use crate::changes::{ChangesFolder, ShippedChanges};

/// Takes the next number of a line; none where another command has it.
///
/// # Errors
/// The target, or the data directory.
pub(super) async fn claim(
    mut shipped: ShippedChanges,
    folder: &ChangesFolder,
    sender: &WindowSender,
) -> Result<Option<ShippedChanges>, CliError> {
    if let Some(found) = sender.claimant(&shipped.line, shipped.run + 1).await? {
        // Or a command of this directory was killed before it could note that.
        if shipped.claim.as_ref() != Some(&found) {
            return Ok(None);
        }
        shipped.run += 1;
    }
    let name = uuid::Uuid::new_v4().simple().to_string();
    shipped.claim = Some(name.clone());
    folder.note(&shipped)?;
    let run = shipped.run + 1;
    if sender.claim(&shipped.line, run, &name).await? != name {
        return Ok(None);
    }
    (shipped.run, shipped.claim) = (run, None);
    folder.note(&shipped)?;
    Ok(Some(shipped))
}
