//! Runs `trestle backup follow` for as long as the server runs.

use std::{ffi::OsString, io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trestle_model::time::Clock;
use trestle_runtime::task::Task;

use crate::{
    compose::Node,
    roles::ROLES,
    scheduled_backups::{BackupChild, ChildEnd},
    settings::Settings,
};

/// The pause after the first failure; it doubles with each that follows.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// A command that ran for so long begins with the shortest pause again.
const RAN_WELL: Duration = Duration::from_secs(60);

/// Adds the command to a node whose settings have it.
///
/// # Errors
/// An executable or a working directory that the system does not name.
pub fn add_to(node: &mut Node, settings: &Settings, clock: Arc<dyn Clock>) -> io::Result<()> {
    let Some(target) = settings.backup.continuous_target() else { return Ok(()) };
    if !settings.owns_data(ROLES) || settings.storage.ephemeral {
        return Ok(());
    }
    let child = BackupChild::new(&settings.storage.data_dir, target)?;
    let encrypt = settings.backup.encrypt.as_ref().map(std::path::absolute).transpose()?;
    let args = child.data_args(encrypt.as_deref());
    let follower = FollowTask { child, args, clock, failures: 0, stop: CancellationToken::new() };
    let stop = follower.stop.clone();
    node.drains.push(Box::new(move || stop.cancel()));
    node.tasks.push(follower.into_task());
    Ok(())
}

/// The command, and how often it failed.
pub(super) struct FollowTask {
    pub(super) child: BackupChild,
    pub(super) args: Vec<OsString>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) failures: u32,
    pub(super) stop: CancellationToken,
}

impl FollowTask {
    fn into_task(self) -> Task {
        let follower = Arc::new(Mutex::new(self));
        Task::new("backup-follow", PAUSE_MIN, move || {
            let follower = Arc::clone(&follower);
            async move {
                let mut follower = follower.lock().await;
                let pause = follower.run().await;
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = follower.stop.cancelled() => {}
                }
                Ok(false)
            }
        })
    }

    /// Runs it until it ends; how long to wait before it is run again.
    pub(super) async fn run(&mut self) -> Duration {
        let began = self.clock.elapsed();
        let end = self.child.run("follow", &self.args, &self.stop, |record| report(&record)).await;
        match end {
            ChildEnd::Stopped => return Duration::ZERO,
            ChildEnd::Failed(reason) => warn!(reason, "changes are not sent to the backup target"),
            ChildEnd::Succeeded => warn!("the command that sends changes ended"),
        }
        if self.clock.elapsed().saturating_sub(began) >= RAN_WELL {
            self.failures = 0;
        }
        let pause = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        pause.min(PAUSE_MAX)
    }
}

/// Logs what the command reports.
fn report(record: &Value) {
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    let (line, reason) = (text("line"), text("reason"));
    match (text("begun"), text("ended"), text("object")) {
        (Some(instant), ..) => {
            info!(line, instant, "every instant can be restored from the next backup on");
        }
        (_, Some(instant), _) => {
            warn!(
                line,
                instant, reason, "instants from then on cannot be restored until the next backup"
            );
        }
        (.., Some(object)) => warn!(object, reason, "an object was not sent to the backup target"),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
