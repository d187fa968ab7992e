//! The TLS of a listener, and the task that reloads its files.

use trestle_runtime::{
    task::Task,
    tls::{Certificates, Tls, TlsError, TlsFiles},
};

use crate::reload::{ReloadedKeys, Reloads};

/// See the module.
pub struct Encryption {
    files: TlsFiles,
    read: Certificates,
    tls: Tls,
}

impl Encryption {
    /// Reads the files for the first time. Blocks.
    ///
    /// # Errors
    /// Files that cannot be used for TLS.
    pub fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let read = Certificates::read(&files)?;
        Ok(Self { tls: Tls::new(&read), files, read })
    }

    /// For the listener.
    #[must_use]
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// A task that reloads the files when they change. Broken files change nothing.
    #[must_use]
    pub fn watch(&self, name: &'static str, reloads: &Reloads) -> Task {
        let (files, tls) = (self.files.clone(), self.tls.clone());
        let read = move || Certificates::read(&files).map_err(|error| error.to_string());
        reloads.task(name, self.read.clone(), read, move |_, read| {
            tls.replace(read);
            let expires = read.expires().map(|at| format!("the certificate expires {at}"));
            ReloadedKeys::applied(expires.into_iter().collect())
        })
    }
}
