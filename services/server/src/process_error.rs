//! Errors that end the process, and their exit codes.

use std::{io, path::PathBuf, process::ExitCode};

use trestle_command::errors::{CliError, without_number};
use trestle_kv_fjall::OpenError;
use trestle_objects::OpenObjectsError;
use trestle_runtime::{
    config::ConfigError, health_reflection::DescriptorError, telemetry::TelemetryError,
    tls::TlsError,
};

/// An error that ends the process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Mistakes in the configuration, which are reported before.
    #[error("configuration is wrong: mistakes=`{problems}`{}", named(file.as_ref()))]
    Check {
        /// How many.
        problems: usize,
        /// The file, if there is one.
        file: Option<String>,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store cannot be opened.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The database of the store cannot be opened.
    #[error(transparent)]
    Database(#[from] trestle_kv_postgres::PostgresError),
    /// The processes that serve the store cannot be joined.
    #[error("the processes that serve the store cannot be joined: {reason}")]
    Members {
        /// Why.
        reason: String,
    },
    /// The data directory is not whole.
    #[error(
        "a restore into the data directory did not finish: found=`{}`; run it again to its end, or delete the \
         directory",
        found.display()
    )]
    Restoring {
        /// The file by which that is known.
        found: PathBuf,
    },
    /// The store is the target of a copy that is not complete.
    #[error(
        "a copy into this store did not finish: from=`{from}`; continue it by `trestle store copy` with the same \
         --from and --to, or empty the target"
    )]
    Copying {
        /// The source, for people.
        from: String,
    },
    /// The object store cannot be opened.
    #[error(transparent)]
    Objects(#[from] OpenObjectsError),
    /// The backup that is to be served cannot be read.
    #[error(transparent)]
    Mount(#[from] CliError),
    /// An address cannot be bound.
    #[error("{key}: {source}; {remedy}")]
    Listen {
        /// The key of the address.
        key: String,
        /// A hint.
        remedy: &'static str,
        /// The error of the system; its text names the address.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("output cannot be written")]
    Output(#[source] io::Error),
    /// Man pages cannot be written.
    #[error("man pages cannot be written: folder=`{folder}`")]
    ManPages {
        /// The folder.
        folder: String,
        /// The cause.
        source: io::Error,
    },
    /// Telemetry cannot be started.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The descriptors in the binary are broken.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// The process may not have enough file descriptors.
    #[error(
        "too few file descriptors: limit=`{limit}`, needed=`{needed}`, recommended=`{recommended}`; raise the \
         hard limit (ulimit -Hn, LimitNOFILE)"
    )]
    DescriptorLimit {
        /// The limit of the process.
        limit: usize,
        /// The minimum for a start.
        needed: usize,
        /// The number that the settings need.
        recommended: usize,
    },
    /// The runtime or the signals cannot be set up.
    #[error("process cannot be set up")]
    Process(#[from] io::Error),
    /// A listener ended before the shutdown.
    #[error("listener failed: listener=`{listener}`")]
    Listener {
        /// The key of its address.
        listener: String,
    },
    /// A write or a sync of the store failed, so it accepts no writes until a restart.
    #[error("storage stopped: {reason}; the server ends, so that it is restarted")]
    StorageStopped {
        /// The failure.
        reason: std::sync::Arc<str>,
    },
    /// A forced shutdown did not end in time.
    #[error("shutdown timed out")]
    Hung,
    /// Calls did not end within the drain timeout.
    #[error("calls were cut off: connections=`{connections}`")]
    Cut {
        /// How many connections still had calls.
        connections: usize,
    },
}

impl ProcessError {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Config(_) | Self::Check { .. } | Self::Tls(_) => 2,
            Self::Storage(OpenError::Locked { .. }) => 3,
            Self::Storage(_)
            | Self::Database(_)
            | Self::Members { .. }
            | Self::Restoring { .. }
            | Self::Copying { .. }
            | Self::Objects(_) => 4,
            Self::Mount(error) => return error.exit_code(),
            Self::Listen { .. } => 5,
            Self::Cut { .. } | Self::Hung => 6,
            Self::StorageStopped { .. } => 7,
            Self::Telemetry(_)
            | Self::Descriptors(_)
            | Self::DescriptorLimit { .. }
            | Self::Process(_)
            | Self::Output(_)
            | Self::ManPages { .. }
            | Self::Listener { .. } => 1,
        })
    }

    /// The error and what caused it, on one line, without the numbers of errors of the system.
    #[must_use]
    pub fn chain(&self) -> String {
        let cause = match self {
            // Its text has the cause in the middle.
            Self::Listen { source, .. } => std::error::Error::source(source),
            _ => std::error::Error::source(self),
        };
        with_causes(self.to_string(), cause)
    }
}

/// The text of an error with those of its causes, without the numbers of errors of the system.
pub(crate) fn with_causes(mut text: String, mut cause: Option<&dyn std::error::Error>) -> String {
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    without_number(text)
}

/// The end of a text with a file.
fn named(file: Option<&String>) -> String {
    file.map_or_else(String::new, |file| format!(", file=`{file}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_causes_in_words_and_its_file_where_it_has_one() {
        let listen = ProcessError::Listen {
            key: "server.listen".to_owned(),
            remedy: "set another",
            source: io::Error::from_raw_os_error(98),
        };
        let of = |file: Option<&str>| {
            ProcessError::Check { problems: 1, file: file.map(str::to_owned) }.chain()
        };

        assert_eq!(listen.chain(), "server.listen: Address already in use; set another");
        let output = ProcessError::Output(io::Error::from_raw_os_error(28));
        assert_eq!(output.chain(), "output cannot be written: No space left on device");
        assert_eq!(of(None), "configuration is wrong: mistakes=`1`");
        assert_eq!(of(Some("a.toml")), "configuration is wrong: mistakes=`1`, file=`a.toml`");
    }
}
