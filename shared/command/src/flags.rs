//! The arguments of every client command: the server, the identity, the form of the output.

use std::time::Duration;

use clap::Args;

use crate::{
    context::{self, ClientContext},
    credentials::CredentialArgs,
    endpoint,
    errors::CliError,
    output::{self, OutputArgs, OutputFormat},
    trust::TlsArgs,
    values::duration,
};

/// The variable with the address of the server.
const ENDPOINT_VARIABLE: &str = "TRESTLE_ENDPOINT";
/// The variable with the name of a context.
const CONTEXT_VARIABLE: &str = "TRESTLE_CONTEXT";
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:50051";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The server and the form of output, as they are given.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server and output")]
pub struct ClientFlags {
    /// Address of gRPC: HOST:PORT, http://HOST:PORT or https://HOST:PORT [default: of the context, or 127.0.0.1:50051]
    #[arg(long, global = true, env = ENDPOINT_VARIABLE, value_name = "ADDRESS")]
    pub(crate) endpoint: Option<String>,
    /// A context that `trestle context set` stored [default: of `trestle context use`, unless an endpoint is given]
    #[arg(long, global = true, env = CONTEXT_VARIABLE, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// TLS
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Form of results [default: table on a terminal, plain in a pipe]
    #[arg(long, short = 'o', global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<OutputFormat>,
    /// The same as --output jsonl: one JSON object a line, errors included
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Print results and errors only, no progress and no notes
    #[arg(long, short = 'q', global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also print which server is called as whom, and what reads cost
    #[arg(long, short = 'v', global = true)]
    pub(crate) verbose: bool,
    /// Longest wait for a single call, such as 500ms, 10s or 2m; streams have no limit [default: 30s]
    #[arg(long, global = true, value_parser = duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Which of them are those of variables.
    #[arg(skip)]
    pub(crate) variables: VariableArgs,
    /// The width of tables
    #[arg(id = "terminal_columns", long, global = true, env = "COLUMNS", hide = true)]
    pub(crate) terminal_columns: Option<String>,
    /// Credentials
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// Whether the value of an argument is that of its variable.
#[derive(Debug, Clone, Copy, Default)]
pub struct VariableArgs {
    /// `TRESTLE_ENDPOINT`.
    pub endpoint: bool,
    /// `TRESTLE_CONTEXT`.
    pub context: bool,
    /// `TRESTLE_CONNECTION_STRING`.
    pub connection_string: bool,
}

/// The server and the form of output, complete.
#[derive(Debug, Clone)]
pub struct ClientArgs {
    /// Address of the server, with its scheme.
    pub endpoint: String,
    /// TLS.
    pub(crate) tls: TlsArgs,
    /// Longest wait for a single call.
    pub timeout: Duration,
    /// The identity.
    pub credentials: CredentialArgs,
    /// The form of output.
    pub output: OutputArgs,
}

impl ClientFlags {
    /// The form of output on the command line.
    #[must_use]
    pub fn format(&self) -> Option<OutputFormat> {
        self.output.or(self.json.then_some(OutputFormat::Jsonl))
    }

    /// Whether results and errors only are printed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The same with the knowledge of which arguments are those of variables.
    #[must_use]
    pub fn with_variables(self, variables: VariableArgs) -> Self {
        Self { variables, ..self }.without_weaker_server()
    }

    /// The same where a variable and an argument of the command line name two servers: the variable does not count,
    /// since credentials of a context are for its server only.
    fn without_weaker_server(mut self) -> Self {
        if self.context.is_some() && self.endpoint.is_some() {
            match (self.variables.endpoint, self.variables.context) {
                (true, false) => self.endpoint = None,
                (false, true) => self.context = None,
                (true, true) | (false, false) => {}
            }
        }
        self
    }

    /// Whether the address was given in the place of the connection string, or in a stronger one: calls go to the
    /// address, so one of another place must not replace a server that the string names.
    fn has_endpoint_of_string(&self) -> bool {
        self.endpoint.is_some() && (!self.variables.endpoint || self.variables.connection_string)
    }

    /// Rejects an address and a context of another one, both named in the same place, where the credentials would be
    /// those of the context.
    fn reject_two_servers(
        &self,
        name: Option<&str>,
        context: &ClientContext,
    ) -> Result<(), CliError> {
        let complete = |text: &str| endpoint::complete(text, context.tls.is_given());
        let (Some(given), Some(own), Some(name)) = (&self.endpoint, &context.endpoint, name) else {
            return Ok(());
        };
        if complete(given) == complete(own) || self.credentials.is_given() {
            return Ok(());
        }
        let (one, other) = match self.variables.endpoint {
            true => (ENDPOINT_VARIABLE, CONTEXT_VARIABLE),
            false => ("--endpoint", "--context"),
        };
        let rule = format!(
            "{one} and {other} name two servers, and credentials of a context are for its server only: give one of \
             the two, or credentials for {one}"
        );
        let (given, own) = (endpoint::shown(given), endpoint::shown(own));
        let places =
            format!("endpoint=`{given}`, context=`{name}`, endpoint of the context=`{own}`");
        Err(CliError::Usage(format!("{rule}: {places}")))
    }

    /// Rejects arguments that contradict each other. The parser sees those before a command and those after it apart.
    fn reject_contradictions(&self) -> Result<(), CliError> {
        let contradictions = [
            (self.quiet && self.verbose, "--quiet", "--verbose"),
            (self.json && self.output.is_some(), "--json", "--output"),
        ];
        match contradictions.iter().find(|(are_given, ..)| *are_given) {
            Some((_, one, other)) => {
                Err(CliError::Usage(format!("{one} cannot be used with {other}")))
            }
            None => Ok(()),
        }
    }

    /// The form of output.
    #[must_use]
    pub fn output(&self) -> OutputArgs {
        let columns = self.terminal_columns.as_ref().and_then(|text| text.parse().ok());
        let (width, default) = output::terminal(columns);
        let format = self.format().unwrap_or(default);
        OutputArgs { format, width, quiet: self.quiet, verbose: self.verbose }
    }

    /// What is given, completed from the context.
    ///
    /// An endpoint or a connection string of its own is used without the current context, whose credentials are for
    /// another server.
    ///
    /// # Errors
    /// A context that does not exist, a malformed address, a connection string with endpoints that are not of gRPC.
    pub fn resolve(self) -> Result<ClientArgs, CliError> {
        self.reject_contradictions()?;
        let output = self.output();
        let is_complete = self.endpoint.is_some() || self.credentials.connection_string.is_some();
        let (name, context) = match (&self.context, is_complete) {
            (None, true) => (None, ClientContext::default()),
            (name, _) => context::selected(name.as_deref())?,
        };
        if !self.has_endpoint_of_string() {
            self.credentials.reject_endpoints()?;
        }
        self.reject_two_servers(name.as_deref(), &context)?;
        let credentials = match self.credentials.is_given() {
            true => self.credentials,
            false => context.credentials,
        };
        let from = match (&self.endpoint, &name) {
            (None, Some(name)) => format!("context {name}"),
            (Some(_), _) if self.variables.endpoint => ENDPOINT_VARIABLE.to_owned(),
            (Some(_), _) => "--endpoint".to_owned(),
            (None, None) => "the default".to_owned(),
        };
        let endpoint = self.endpoint.or(context.endpoint);
        if endpoint.is_none() {
            credentials.reject_endpoints()?;
        }
        let tls = self.tls.or(context.tls);
        let endpoint = endpoint.map(|text| endpoint::complete(&text, tls.is_given()));
        let endpoint = endpoint.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        if output.verbose {
            let (shown, identity) =
                (endpoint::shown(&endpoint::with_port(&endpoint)), identity(&credentials, &tls));
            output::report_line(&format!("server: endpoint=`{shown}`, from {from}, {identity}"));
        }
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Ok(ClientArgs { endpoint, tls, timeout, credentials, output })
    }
}

/// As whom a server is called, without secrets.
fn identity(credentials: &CredentialArgs, tls: &TlsArgs) -> String {
    match (&tls.cert_file, credentials.is_given()) {
        (None, _) => credentials.identity(),
        (Some(file), true) => {
            format!("{}, client certificate=`{}`", credentials.identity(), file.display())
        }
        (Some(file), false) => format!("client certificate=`{}`", file.display()),
    }
}

#[cfg(test)]
mod tests;
