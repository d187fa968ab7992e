//! Ctrl-C, for commands that report their progress or clean up before they end.
//!
//! After the first listener is registered the signal no longer ends the process. So the work under it must never block
//! its thread: reads of standard input and writes to a pipe run on another thread.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::CliError;

/// Receives Ctrl-C, also when it was pressed between two waits.
pub struct Interrupts(Signal);

impl Interrupts {
    /// Registers the listener.
    ///
    /// # Errors
    /// The operating system does not register it.
    pub fn listen() -> Result<Self, CliError> {
        let listening = signal(SignalKind::interrupt());
        listening.map(Self).map_err(CliError::file("cannot listen for Ctrl-C"))
    }

    /// Does the work, unless Ctrl-C is pressed before it is done.
    ///
    /// # Errors
    /// The error of the work, or [`CliError::Interrupted`].
    pub async fn unless_pressed<T>(
        &mut self,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            _ = self.0.recv() => Err(CliError::Interrupted),
            done = work => done,
        }
    }

    /// Whether Ctrl-C was not pressed so far.
    ///
    /// # Errors
    /// [`CliError::Interrupted`].
    pub async fn none_yet(&mut self) -> Result<(), CliError> {
        self.unless_pressed(std::future::ready(Ok(()))).await
    }
}
