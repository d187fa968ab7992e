//! The servers.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rusty_s3::{Bucket, Credentials, UrlStyle};

use super::{
    CONTAINER, Store,
    grpc::GrpcStore,
    http::{Dialect, HttpStore, Location},
};
use crate::{
    azurite,
    servers::{Installed, Server, free_port},
};

/// How long SeaweedFS may take until it accepts a bucket: its parts look for each other first.
const READY_MAX: Duration = Duration::from_secs(60);

/// A running server.
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) server: Server,
    protocol: Protocol,
}

enum Protocol {
    Grpc { port: u16 },
    Http { port: u16, dialect: Dialect },
}

impl Side {
    /// A connection.
    pub(super) async fn open(&self) -> Box<dyn Store> {
        match &self.protocol {
            Protocol::Grpc { port } => Box::new(GrpcStore::open(*port).await),
            Protocol::Http { port, dialect } => {
                Box::new(HttpStore::open(*port, dialect.clone()).await)
            }
        }
    }
}

/// Every server, and the outcome of its start.
pub(super) async fn all(installed: &Installed) -> Vec<(&'static str, Result<Side, String>)> {
    vec![
        ("trestle", trestle(installed).await),
        ("azurite", azurite(installed).await),
        ("garage", garage(installed).await),
        ("seaweedfs", seaweedfs(installed).await),
        ("s3s-fs", s3s(installed).await),
    ]
}

/// Trestle over REST and over gRPC, each a server of its own, and Azurite, with the same requests as the first.
pub(super) async fn of_azure(installed: &Installed) -> Vec<(&'static str, Result<Side, String>)> {
    vec![
        ("rest", trestle_rest(installed).await),
        ("trestle", trestle(installed).await),
        ("azurite", azurite(installed).await),
    ]
}

/// Trestle as it is by default: every write is answered when it is on disk. Returns the ports of gRPC and of REST.
async fn started(installed: &Installed) -> Result<(Server, [u16; 2]), String> {
    let (mut server, ports) = (Server::new(), [(); 2].map(|()| free_port()));
    let mut command = Command::new(&installed.trestle);
    command.args(["serve", "--admin", "127.0.0.1:0", "--azure-table", "off"]);
    command.args(["--azure-queue", "off", "--listen", &format!("127.0.0.1:{}", ports[0])]);
    command.args(["--azure-blob", &format!("127.0.0.1:{}", ports[1])]);
    command.env("TRESTLE__TELEMETRY__LOG_FILTER", "warn");
    command.arg("--data-dir").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    for port in ports {
        server.listening(port).await?;
    }
    Ok((server, ports))
}

/// Trestle over gRPC.
async fn trestle(installed: &Installed) -> Result<Side, String> {
    let (server, [port, _]) = started(installed).await?;
    GrpcStore::open(port).await.create().await?;
    Ok(Side { name: "trestle", server, protocol: Protocol::Grpc { port } })
}

/// Trestle by the protocol of Azure Storage.
async fn trestle_rest(installed: &Installed) -> Result<Side, String> {
    let (server, [_, port]) = started(installed).await?;
    let dialect = created_at_azure(port).await?;
    Ok(Side { name: "rest", server, protocol: Protocol::Http { port, dialect } })
}

/// Requests to a server of the protocol of Azure Storage, after the container was created there.
async fn created_at_azure(port: u16) -> Result<Dialect, String> {
    let path = format!("/{}/{CONTAINER}", azurite::ACCOUNT);
    let query = format!("?{}", azurite::signature('b'));
    let container = format!("{path}{query}&restype=container");
    let dialect = Dialect {
        location: Location::Fixed { path, query },
        put: "x-ms-blob-type: BlockBlob\r\n",
        all: "x-ms-version: 2021-10-04\r\n",
    };
    HttpStore::open(port, dialect.clone()).await.create(&container).await?;
    Ok(dialect)
}

/// Azurite with its default persistence.
async fn azurite(installed: &Installed) -> Result<Side, String> {
    let binary = installed.program("azurite/node_modules/.bin/azurite-blob")?;
    let (mut server, port) = (Server::new(), free_port());
    let mut command = Command::new(binary);
    command.args(["--silent", "--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort"]);
    command.arg(port.to_string()).arg("--location").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let dialect = created_at_azure(port).await?;
    Ok(Side { name: "azurite", server, protocol: Protocol::Http { port, dialect } })
}

/// The path of the bucket.
fn bucket_path() -> String {
    format!("/{CONTAINER}")
}

/// Requests to a bucket, unsigned.
fn s3_dialect() -> Dialect {
    let location = Location::Fixed { path: bucket_path(), query: String::new() };
    Dialect { location, put: "", all: "" }
}

/// One node of Garage with synced writes; its requests are signed, since it has no anonymous writes.
async fn garage(installed: &Installed) -> Result<Side, String> {
    let binary = installed.program("garage/bin/garage")?;
    let (mut server, ports) = (Server::new(), [(); 3].map(|()| free_port()));
    let [port, rpc, admin] = ports;
    let (settings, data) = (server.data().join("garage.toml"), server.data().display());
    let secret = "1".repeat(64);
    let text = format!(
        "metadata_dir = \"{data}/metadata\"\ndata_dir = \"{data}/data\"\ndb_engine = \"lmdb\"\n\
         metadata_fsync = true\ndata_fsync = true\nreplication_factor = 1\n\
         rpc_bind_addr = \"127.0.0.1:{rpc}\"\nrpc_public_addr = \"127.0.0.1:{rpc}\"\n\
         rpc_secret = \"{secret}\"\n[s3_api]\ns3_region = \"garage\"\n\
         api_bind_addr = \"127.0.0.1:{port}\"\n[admin]\napi_bind_addr = \"127.0.0.1:{admin}\"\n"
    );
    fs::write(&settings, text).map_err(|error| error.to_string())?;
    let key = format!("GK{}", "0".repeat(24));
    let mut command = Command::new(binary);
    command.arg("-c").arg(&settings).args(["server", "--single-node", "--default-bucket"]);
    command.env("GARAGE_DEFAULT_BUCKET", CONTAINER).env("GARAGE_DEFAULT_ACCESS_KEY", &key);
    command.env("GARAGE_DEFAULT_SECRET_KEY", &secret).env("RUST_LOG", "warn");
    command.env("GARAGE_ALLOW_WORLD_READABLE_SECRETS", "true");
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let endpoint = "http://127.0.0.1".parse().map_err(|error| format!("{error}"))?;
    let bucket = Bucket::new(endpoint, UrlStyle::Path, CONTAINER, "garage");
    let bucket = bucket.map_err(|error| error.to_string())?;
    let signed = Box::new((bucket, Credentials::new(key, secret)));
    let dialect = Dialect { location: Location::Signed(signed), put: "", all: "" };
    Ok(Side { name: "garage", server, protocol: Protocol::Http { port, dialect } })
}

/// SeaweedFS with synced writes, without users.
async fn seaweedfs(installed: &Installed) -> Result<Side, String> {
    let binary = installed.program("seaweedfs/bin/weed")?;
    let (mut server, ports) = (Server::new(), [(); 8].map(|()| free_port()));
    let [master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc] = ports;
    let mut command = Command::new(&binary);
    command.args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]);
    command.arg(format!("-dir={}", server.data().display()));
    command.args(["-volume.max=50", "-master.volumeSizeLimitMB=1024", "-s3.port.iceberg=0"]);
    let options = [
        ("master.port", master),
        ("master.port.grpc", master_grpc),
        ("volume.port", volume),
        ("volume.port.grpc", volume_grpc),
        ("filer.port", filer),
        ("filer.port.grpc", filer_grpc),
        ("s3.port", s3),
        ("s3.port.grpc", s3_grpc),
    ];
    command.args(options.map(|(option, port)| format!("-{option}={port}")));
    server.spawn(&mut command)?;
    for port in [master, volume, filer, s3] {
        server.listening(port).await?;
    }
    let dialect = s3_dialect();
    let began = Instant::now();
    let mut store = HttpStore::open(s3, dialect.clone()).await;
    while let Err(reason) = store.create(&bucket_path()).await {
        if began.elapsed() > READY_MAX {
            return Err(format!("it creates no bucket: {reason}"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let prefix = format!("/buckets/{CONTAINER}/");
    let rule = format!("fs.configure -locationPrefix={prefix} -fsync -apply");
    shell(binary, &format!("127.0.0.1:{master}.{master_grpc}"), &rule)?;
    Ok(Side { name: "seaweedfs", server, protocol: Protocol::Http { port: s3, dialect } })
}

/// Runs a command of the administration shell of SeaweedFS.
fn shell(binary: PathBuf, master: &str, command: &str) -> Result<(), String> {
    let mut shell = Command::new(binary);
    shell.args(["shell", &format!("-master={master}")]).stdin(Stdio::piped());
    let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.as_mut().map_err(|error| error.to_string())?;
    let sent = child.stdin.take().map(|mut input| writeln!(input, "{command}"));
    sent.ok_or("it has no input")?.map_err(|error| error.to_string())?;
    match child.wait().map_err(|error| error.to_string())?.success() {
        true => Ok(()),
        false => Err(format!("`{command}` failed")),
    }
}

/// s3s-fs: objects as files of a directory, without syncs.
async fn s3s(installed: &Installed) -> Result<Side, String> {
    let binary = installed.program("s3s/bin/s3s-fs")?;
    let (mut server, port) = (Server::new(), free_port());
    let mut command = Command::new(binary);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string()]).arg(server.data());
    command.env("RUST_LOG", "error");
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let dialect = s3_dialect();
    HttpStore::open(port, dialect.clone()).await.create(&bucket_path()).await?;
    Ok(Side { name: "s3s-fs", server, protocol: Protocol::Http { port, dialect } })
}
