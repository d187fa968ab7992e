//! The TLS of a listener, and the task that reloads its files.

use std::time::Duration;

use tracing::warn;
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_runtime::{
    task::Task,
    tls::{Certificates, Tls, TlsError, TlsFiles},
};

use crate::reload::{ReloadedKeys, Reloads};

/// The time that a renewal must have: that of the common authorities.
pub(crate) const RENEWED_BEFORE: Duration = Duration::from_secs(14 * 24 * 3600);

/// How a certificate expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Days ago.
    Expired(i64),
    /// Days from now, fewer than a renewal leaves.
    Soon(i64),
    /// Later.
    Later(i64),
}

impl Expiry {
    /// That of a certificate that is valid until a time, in seconds since 1970.
    pub(crate) fn at(until: i64, now: Ticks) -> Self {
        let left = until.saturating_sub(now.to_unix().0);
        let days = left / (24 * 3600);
        match left {
            ..=0 => Self::Expired(days.saturating_neg()),
            _ if left.unsigned_abs() < RENEWED_BEFORE.as_secs() => Self::Soon(days),
            _ => Self::Later(days),
        }
    }
}

/// Logs that the certificate of a listener has expired, or will soon.
fn warn_of_expiry(read: &Certificates, files: &TlsFiles) {
    let Some(until) = read.expires_at() else { return };
    let (file, expires) = (files.certificate.display(), read.expires());
    match Expiry::at(until, SystemClock.now()) {
        Expiry::Expired(days_ago) => {
            warn!(%file, expires, days_ago, "the certificate has expired: clients reject it; renew it");
        }
        Expiry::Soon(days_left) => {
            warn!(%file, expires, days_left, "the certificate expires soon; renew it");
        }
        Expiry::Later(_) => {}
    }
}

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
        warn_of_expiry(&read, &files);
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
        let named = files.clone();
        let read = move || Certificates::read(&files).map_err(|error| error.to_string());
        reloads.task(name, self.read.clone(), read, move |_, read| {
            tls.replace(read);
            warn_of_expiry(read, &named);
            let expires = read.expires().map(|at| format!("the certificate expires {at}"));
            ReloadedKeys::applied(expires.into_iter().collect())
        })
    }
}
