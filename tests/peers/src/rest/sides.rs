//! The servers, each with its ports.

use std::process::Command;

use super::Numbers;
use crate::servers::{Installed, Server, free_port};

/// A server of the protocol.
pub(crate) struct Side {
    pub(crate) server: Server,
    pub(crate) table_port: u16,
    pub(crate) queue_port: u16,
    /// Where gRPC is; nowhere at Azurite.
    pub(crate) grpc_port: Option<u16>,
    pub(crate) numbers: Numbers,
}

/// Trestle as it is by default: every write is answered when it is on disk.
pub(crate) async fn trestle(installed: &Installed) -> Result<Side, String> {
    let (mut server, [grpc, table, queue]) = (Server::new(), [(); 3].map(|()| free_port()));
    let mut command = Command::new(&installed.trestle);
    let address = |port: u16| format!("127.0.0.1:{port}");
    command.args(["serve", "--admin", "127.0.0.1:0", "--listen", &address(grpc)]);
    command.args(["--azure-table", &address(table), "--azure-queue", &address(queue)]);
    command.args(["--azure-blob", "off"]);
    command.env("TRESTLE__TELEMETRY__LOG_FILTER", "warn");
    command.arg("--data-dir").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    for port in [grpc, table, queue] {
        server.listening(port).await?;
    }
    let (grpc_port, numbers) = (Some(grpc), Numbers::default());
    Ok(Side { server, table_port: table, queue_port: queue, grpc_port, numbers })
}

/// Azurite with its default persistence: in memory, and written to disk at intervals. One process serves both.
pub(crate) async fn azurite(installed: &Installed) -> Result<Side, String> {
    let binary = installed.program("azurite/node_modules/.bin/azurite")?;
    let (mut server, [blob, queue, table]) = (Server::new(), [(); 3].map(|()| free_port()));
    let mut command = Command::new(binary);
    command.args(["--silent", "--disableTelemetry"]);
    for (service, port) in [("blob", blob), ("queue", queue), ("table", table)] {
        command.args([format!("--{service}Host"), "127.0.0.1".to_owned()]);
        command.args([format!("--{service}Port"), port.to_string()]);
    }
    command.arg("--location").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    for port in [queue, table] {
        server.listening(port).await?;
    }
    let numbers = Numbers::default();
    Ok(Side { server, table_port: table, queue_port: queue, grpc_port: None, numbers })
}
