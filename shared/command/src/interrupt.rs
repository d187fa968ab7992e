//! Ctrl-C and SIGTERM, for commands that report their progress or clean up before they end.
//!
//! After the first listener is registered these signals no longer end the process. So the work under it must never
//! block its thread: reads of standard input and writes to a pipe run on another thread.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::CliError;

/// Receives the signals, also when one was sent between two waits.
pub struct Interrupts {
    pressed: Signal,
    terminated: Signal,
}

impl Interrupts {
    /// Registers the listeners.
    ///
    /// # Errors
    /// The operating system does not register one.
    pub fn listen() -> Result<Self, CliError> {
        let listen =
            |kind| signal(kind).map_err(CliError::file("cannot listen for Ctrl-C and SIGTERM"));
        let (pressed, terminated) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { pressed, terminated })
    }

    /// Does the work, unless a signal is received before it is done.
    ///
    /// # Errors
    /// The error of the work, [`CliError::Interrupted`] or [`CliError::Terminated`].
    pub async fn unless_pressed<T>(
        &mut self,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            _ = self.pressed.recv() => Err(CliError::Interrupted),
            _ = self.terminated.recv() => Err(CliError::Terminated),
            done = work => done,
        }
    }

    /// Whether no signal was received so far.
    ///
    /// # Errors
    /// [`CliError::Interrupted`] or [`CliError::Terminated`].
    pub async fn none_yet(&mut self) -> Result<(), CliError> {
        self.unless_pressed(std::future::ready(Ok(()))).await
    }
}
