//! A prompt on a terminal before something is deleted.

use std::io::{self, IsTerminal as _, Write as _};

use tonic::{Code, Status};

use crate::{client::NotConnected, errors::CliError, output::escaped};

/// Fails where what is to be deleted does not exist, or no server answers: there is nothing to confirm. Any other error
/// is left to the deletion: its caller may be permitted to delete and not to read.
///
/// # Errors
/// That it is not found, or that no server answers.
pub fn require_found<T>(found: Result<T, Status>) -> Result<(), CliError> {
    match found {
        Err(status) if status.code() == Code::NotFound || NotConnected::of(&status).is_some() => {
            Err(status.into())
        }
        _ => Ok(()),
    }
}

/// Prompts for the name of what is to be deleted unless `yes`; fails with another input, or without a terminal. `doing`
/// is such as `deleting a table`.
///
/// # Errors
/// Another name, or no terminal.
pub fn confirm(yes: bool, doing: &str, kind: &str, name: &str) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::Usage(format!(
            "{doing} deletes everything in it: repeat with --yes: {kind}=`{name}`"
        )));
    }
    let (mut errors, mut answer) = (io::stderr(), String::new());
    write!(
        errors,
        "{doing} {} deletes everything in it. Type the name of the {kind} to continue: ",
        escaped(name)
    )
    .and_then(|()| errors.flush())
    .and_then(|()| io::stdin().read_line(&mut answer))
    .map_err(CliError::file("cannot read the answer"))?;
    match answer.trim() == name {
        true => Ok(()),
        false => {
            Err(CliError::Usage("nothing was deleted: the typed name is another one".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_deleted_ends_a_command_before_its_prompt() {
        let found = |code| require_found::<()>(Err(Status::new(code, "text")));
        let unsent = NotConnected { endpoint: "http://a".to_owned(), cause: "refused".to_owned() };

        assert!(require_found(Ok(())).is_ok());
        assert!(found(Code::NotFound).is_err());
        assert!(require_found::<()>(Err(Status::from_error(Box::new(unsent)))).is_err());
        // Its caller may be permitted to delete and not to read.
        for left in [Code::PermissionDenied, Code::Unavailable, Code::Internal] {
            assert!(found(left).is_ok(), "{left:?}");
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_deleted_unless_it_is_confirmed() {
        assert!(confirm(true, "deleting a table", "table", "orders").is_ok());

        // Tests have no terminal.
        let rejected = confirm(false, "deleting a table", "table", "orders").unwrap_err();

        let text = "deleting a table deletes everything in it: repeat with --yes: table=`orders`";
        assert_eq!(rejected.to_string(), text);
    }
}
