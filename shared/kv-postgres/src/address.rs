//! Where the database is: an address as `psql` takes it, and the TLS of its connections.

use std::{
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::{PostgresError, failure::Failure};

/// The certificates of the system, read when a connection needs them first.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
});

/// Longest wait for a connection to one host.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// After what silence of the other machine a connection is given up.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// The address of a database, such as `postgres://trestle@db1,db2/trestle?target_session_attrs=read-write`.
///
/// TLS is always verified by certificates: those of `sslrootcert`, or those of the system. It is required where no
/// `sslmode` says otherwise and a host is not this machine.
#[derive(Clone)]
pub struct PostgresAddress {
    config: tokio_postgres::Config,
    /// The certificates that are trusted in place of those of the system.
    roots: Option<Arc<RootCertStore>>,
    /// Made for the first connection, and shared by all.
    tls: Arc<OnceLock<MakeRustlsConnect>>,
}

impl PostgresAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// What is wrong with it, without the password.
    pub fn parse(address: &str) -> Result<Self, PostgresError> {
        let invalid = |rule: &str| PostgresError::Address { rule: rule.to_owned() };
        if !address.starts_with("postgres://") && !address.starts_with("postgresql://") {
            return Err(invalid("must begin with postgres:// or postgresql://"));
        }
        let AddressParts { plain, root, has_mode } = AddressParts::of(address);
        let mut config = tokio_postgres::Config::from_str(&plain).map_err(|error| {
            // The cause names the parameter; neither has its value.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            PostgresError::Address { rule: cause.unwrap_or_else(|| error.to_string()) }
        })?;
        if config.get_hosts().is_empty() {
            return Err(invalid("must name a host"));
        }
        if config.get_dbname().is_none() {
            return Err(invalid("must name a database, such as postgres://host/trestle"));
        }
        if !has_mode {
            let is_here = config.get_hosts().iter().all(is_this_machine)
                && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
            config.ssl_mode(if is_here { SslMode::Disable } else { SslMode::Require });
        }
        let roots = root.map(|file| roots_of(&file)).transpose()?;
        Ok(Self { config, roots, tls: Arc::default() })
    }

    /// How to connect to each of its hosts: one that is silent must not keep the others from being tried.
    pub(crate) fn hosts(&self) -> Vec<tokio_postgres::Config> {
        let (all, ports) = (&self.config, self.config.get_ports());
        let single = |(index, host): (usize, &Host)| {
            let mut config = tokio_postgres::Config::new();
            match host {
                Host::Tcp(name) => config.host(name),
                Host::Unix(path) => config.host_path(path),
            };
            if let Some(port) = ports.get(index).or(ports.first()) {
                config.port(*port);
            }
            if let Some(address) = all.get_hostaddrs().get(index) {
                config.hostaddr(*address);
            }
            if let Some(user) = all.get_user() {
                config.user(user);
            }
            if let Some(password) = all.get_password() {
                config.password(password);
            }
            config.dbname(all.get_dbname().unwrap_or_default());
            config.options(all.get_options().unwrap_or_default());
            config.ssl_mode(all.get_ssl_mode()).channel_binding(all.get_channel_binding());
            // Only a primary takes changes, and only it has all of them to read.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            config.application_name("trestle").connect_timeout(CONNECT_WITHIN);
            config.tcp_user_timeout(SILENT_MAX).keepalives_idle(SILENT_MAX / 2);
            config
        };
        all.get_hosts().iter().enumerate().map(single).collect()
    }

    /// The TLS of its connections.
    pub(crate) fn tls(&self) -> Result<MakeRustlsConnect, Failure> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let roots = match &self.roots {
            Some(roots) => Arc::clone(roots),
            // Nothing is verified.
            None if self.config.get_ssl_mode() == SslMode::Disable => {
                Arc::new(RootCertStore::empty())
            }
            None => Arc::clone(&SYSTEM_ROOTS),
        };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::lost(error.to_string()))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(self.tls.get_or_init(|| MakeRustlsConnect::new(config)).clone())
    }

    /// Whether it has a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// The same with a password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// The hosts and the database, for logs: no user, no password.
    #[must_use]
    pub fn shown(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(index, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            };
            match ports.get(index).or(ports.first()) {
                Some(port) => format!("{host}:{port}"),
                None => host,
            }
        });
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown())
    }
}

/// An address without the parameters that its parser does not know.
struct AddressParts {
    plain: String,
    root: Option<PathBuf>,
    has_mode: bool,
}

impl AddressParts {
    fn of(address: &str) -> Self {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut root, mut has_mode, mut kept) = (None, false, Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslrootcert", path)) => root = Some(PathBuf::from(path)),
                // Certificates and names of hosts are always verified.
                Some(("sslmode", "verify-full" | "verify-ca")) => {
                    has_mode = true;
                    kept.push("sslmode=require");
                }
                Some(("sslmode", _)) => {
                    has_mode = true;
                    kept.push(parameter);
                }
                _ => kept.push(parameter),
            }
        }
        let plain = match kept.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", kept.join("&")),
        };
        Self { plain, root, has_mode }
    }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// The certificates of a file.
fn roots_of(file: &Path) -> Result<Arc<RootCertStore>, PostgresError> {
    let unusable = |error: &dyn std::fmt::Display| PostgresError::Address {
        rule: format!("sslrootcert cannot be used: file=`{}`: {error}", file.display()),
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it has no certificate"));
    }
    Ok(Arc::new(roots))
}

#[cfg(test)]
mod tests;
