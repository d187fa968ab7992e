//! A backup that a command shows to itself: a server in this process, on loopback and for a key that only the command
//! has, so that what reads a server reads a backup.

use std::{net::Ipv4Addr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use opentelemetry::metrics::{MeterProvider as _, NoopMeterProvider};
use trestle_backup::MountedBackup;
use trestle_command::{credentials::CredentialArgs, flags::ClientArgs};
use trestle_model::time::SystemClock;
use trestle_rpc::{access::AccessLog, propagation::Traces};
use trestle_runtime::openmetrics::Exposition;

use crate::{
    compose::{NodeDeps, compose},
    process_error::ProcessError,
    roles::ROLES,
    running::{Listeners, Running},
    settings::{AccountSettings, DevelopmentAccount, Listen, SecretSetting, Settings},
};

/// The length of the key, in bytes.
const KEY_BYTES: usize = 64;

/// A backup behind a listener of its own.
pub(crate) struct ShownBackup {
    running: Running,
    /// How a command reads it.
    pub(crate) client: ClientArgs,
}

impl ShownBackup {
    /// Shows the content of an account, to a client that is otherwise as `client`.
    ///
    /// # Errors
    /// A name that no account has, or an address that cannot be bound.
    pub(crate) async fn start(
        mounted: MountedBackup,
        account: &str,
        client: &ClientArgs,
    ) -> Result<Self, ProcessError> {
        let key = STANDARD.encode(rand::random::<[u8; KEY_BYTES]>());
        let settings = settings(account, &key);
        settings.check(ROLES)?;
        let listeners = Listeners::bind(&settings).await?;
        let address = listeners.grpc().map_err(|source| ProcessError::Listen {
            key: "server.listen".to_owned(),
            remedy: "repeat the command",
            source,
        })?;
        let deps = NodeDeps {
            engine: Some(Arc::new(mounted.engine)),
            objects: Some(mounted.objects),
            listen: None,
            clock: Arc::new(SystemClock),
            meter: NoopMeterProvider::new().meter("backup"),
            traces: Traces::default(),
            access: AccessLog::off(),
            random: rand::random,
            source: None,
        };
        let node = compose(&settings, ROLES, deps).await?;
        let running = Running::start(node, listeners, &settings, Exposition::default());
        let credentials = CredentialArgs {
            account: Some(account.to_owned()),
            account_key: Some(key.parse().unwrap_or_else(|never| match never {})),
            ..CredentialArgs::default()
        };
        let client = client.with_server(format!("http://{address}"), credentials);
        Ok(Self { running, client })
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.running.forced().cancel();
        let _ = self.running.stop().await;
    }
}

/// The settings of a server that no other client calls.
fn settings(account: &str, key: &str) -> Settings {
    let mut settings = Settings::default();
    settings.server.listen = (Ipv4Addr::LOCALHOST, 0).into();
    settings.server.admin = (Ipv4Addr::LOCALHOST, 0).into();
    for role in ROLES.iter().filter(|role| role.azure.is_some()) {
        settings.server.azure.set(role.name, Listen::Off);
    }
    settings.server.drain_notice_ms = 0;
    settings.gateway.development_account = DevelopmentAccount::Off;
    let key1 = Some(SecretSetting(key.to_owned()));
    let account_settings = AccountSettings { key1, ..AccountSettings::default() };
    settings.accounts.0.insert(account.to_owned(), account_settings);
    settings
}
