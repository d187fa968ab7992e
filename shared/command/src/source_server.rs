//! The arguments of a server that a command reads beside the one that it calls.

use std::path::PathBuf;

use clap::Args;

use crate::{
    credentials::CredentialArgs,
    endpoint,
    errors::CliError,
    flags::{ClientArgs, ClientFlags},
    outcome::explained,
    trust::TlsArgs,
};

/// A server to read, and the identity for it. What has no flag here, such as a client certificate, a context stores.
#[derive(Debug, Clone, Default, Args)]
pub struct SourceServerArgs {
    /// Address of gRPC of the source: HOST:PORT, http://HOST:PORT or https://HOST:PORT
    #[arg(
        value_name = "ADDRESS",
        required_unless_present = "source_context",
        conflicts_with = "source_context"
    )]
    source: Option<String>,
    /// A context that `trestle context set` stored, in place of the address
    #[arg(long, value_name = "NAME")]
    source_context: Option<String>,
    /// The account that is read; devstoreaccount1 needs no key
    #[arg(long, value_name = "NAME")]
    source_account: Option<String>,
    /// File with a key of that account, in base64
    #[arg(long, value_name = "FILE")]
    source_account_key_file: Option<PathBuf>,
    /// File with a shared access signature for the source
    #[arg(long, value_name = "FILE")]
    source_sas_file: Option<PathBuf>,
    /// CA certificates for the source, in PEM; by default those of the system
    #[arg(long, value_name = "FILE")]
    source_ca_file: Option<PathBuf>,
}

impl SourceServerArgs {
    /// The server and the identity, completed from the context; timeout and form of output are those of `client`.
    ///
    /// # Errors
    /// A malformed address, one that is not encrypted with `--source-ca-file`, a context that does not exist.
    pub fn resolve(self, client: &ClientArgs) -> Result<ClientArgs, CliError> {
        let tls = TlsArgs { ca_file: self.source_ca_file, ..TlsArgs::default() };
        let credentials = CredentialArgs {
            account: self.source_account,
            account_key_file: self.source_account_key_file,
            sas_file: self.source_sas_file,
            prefix: "source-",
            ..CredentialArgs::default()
        };
        let has_file = tls.is_given();
        let flags = ClientFlags {
            endpoint: self.source,
            context: self.source_context,
            tls,
            credentials,
            timeout: Some(client.timeout),
            ..ClientFlags::default()
        };
        let args = flags.resolve()?;
        endpoint::check_source(&args.endpoint, has_file)?;
        Ok(ClientArgs { output: client.output, ..args })
    }
}

impl ClientArgs {
    /// The same for another server, which is on this machine, and another identity.
    #[must_use]
    pub fn with_server(&self, endpoint: String, credentials: CredentialArgs) -> Self {
        Self { endpoint, credentials, tls: TlsArgs::default(), ..self.clone() }
    }

    /// The account of the calls; none where only the server can resolve it, as with a signature alone.
    #[must_use]
    pub fn account_name(&self) -> Option<String> {
        self.credentials.called_account()
    }

    /// An error of a connection to this server, explained by a probe. It does not look like one of the server that the
    /// command calls.
    pub async fn of_source(&self, error: CliError) -> CliError {
        match explained(error, &self.endpoint, &self.tls).await {
            CliError::Connect { endpoint, cause } => CliError::Source {
                text: format!(
                    "cannot connect to the source: {cause}: endpoint=`{}`",
                    endpoint::with_port(&endpoint)
                ),
                busy: true,
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        credentials::SecretText,
        output::{OutputArgs, OutputFormat},
    };

    fn client() -> ClientArgs {
        let flags = ClientFlags { endpoint: Some("here:1".to_owned()), ..ClientFlags::default() };
        let output =
            OutputArgs { format: OutputFormat::Json, width: None, quiet: true, verbose: false };
        ClientArgs { output, ..flags.resolve().unwrap() }
    }

    fn at(address: &str) -> SourceServerArgs {
        SourceServerArgs { source: Some(address.to_owned()), ..SourceServerArgs::default() }
    }

    fn error(args: SourceServerArgs) -> String {
        let resolved = args.resolve(&client());
        resolved.and_then(|args| args.credentials.credentials()).unwrap_err().to_string()
    }

    #[test]
    fn a_source_has_its_own_server_and_identity() {
        let account = Some("acme".to_owned());
        let args = SourceServerArgs { source_account: account.clone(), ..at("there:2") };

        let resolved = args.resolve(&client()).unwrap();

        assert_eq!(resolved.endpoint, "http://there:2");
        assert_eq!(resolved.account_name(), account);
        assert!(resolved.output.quiet);
        let plain = at("there").resolve(&client()).unwrap();
        assert_eq!(plain.account_name().as_deref(), Some("devstoreaccount1"));
        let sas = Some("sv=1&sig=2".parse::<SecretText>().unwrap());
        let signed = CredentialArgs { sas, ..CredentialArgs::default() };
        assert_eq!(ClientArgs { credentials: signed, ..plain }.account_name(), None);
    }

    #[test]
    fn mistakes_name_the_flags_of_the_source() {
        let ca_file = Some("/nowhere".into());
        assert_eq!(
            error(SourceServerArgs { source_ca_file: ca_file, ..at("http://there:2") }),
            "the address of the source: must begin with https:// where --source-ca-file is given: \
             value=`http://there:2`"
        );
        let rule = error(at("there:99999"));
        assert!(rule.starts_with("the address of the source: port must be 1 to"), "{rule}");
        let account = Some("acme".to_owned());
        let alone = error(SourceServerArgs { source_account: account.clone(), ..at("there") });
        assert!(alone.starts_with("--source-account: needs a key"), "{alone}");
        assert!(alone.ends_with("--source-account-key-file, --source-sas-file"), "{alone}");
        let file = Some("/nowhere".into());
        let absent = SourceServerArgs {
            source_account_key_file: file,
            source_account: account,
            ..at("there")
        };
        assert!(error(absent).starts_with("--source-account-key-file: file=`/nowhere`"));
    }
}
