//! The encryption of a listener, and the task that keeps it up to date with its files.

use trestle_runtime::{
    task::Task,
    tls::{Certificates, Tls, TlsError, TlsFiles},
};

use crate::reload;

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
    /// Files that make no encryption.
    pub fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let read = Certificates::read(&files)?;
        Ok(Self { tls: Tls::new(&read), files, read })
    }

    /// What the listener takes connections with.
    #[must_use]
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads the files again when they change. Broken ones leave everything as it is.
    #[must_use]
    pub fn watch(&self, name: &'static str) -> Task {
        let (files, tls) = (self.files.clone(), self.tls.clone());
        let read = move || Certificates::read(&files).map_err(|error| error.to_string());
        reload::task(name, self.read.clone(), read, move |read| tls.replace(read))
    }
}
