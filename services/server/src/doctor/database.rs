//! The database of the store: whether it can be reached, and keeps what it acknowledged.

use trestle_kv_postgres::PostgresEngine;

use super::finding::DoctorFinding;
use crate::{database, roles::ROLES, settings::Settings};

const CHECK: &str = "database";

/// Asks the database of these settings about itself; nothing is written.
pub(super) async fn check(settings: &Settings) -> Option<DoctorFinding> {
    if !settings.owns_data(ROLES) {
        return None;
    }
    let probed = match database::address(&settings.storage) {
        Ok(None) => return None,
        Ok(Some(address)) => PostgresEngine::probe(&address).await,
        Err(error) => Err(error),
    };
    let server = match probed {
        Ok(server) => server,
        Err(error) => {
            let remedy =
                "check storage.engine, the user and its password, and that a primary runs there";
            return Some(DoctorFinding::failure(CHECK, error.to_string(), remedy));
        }
    };
    if let Some(risk) = database::risk(&server) {
        let remedy = "set fsync and synchronous_commit to on in the configuration of the database";
        return Some(DoctorFinding::warning(CHECK, risk, remedy));
    }
    let standbys = match server.synchronous_standbys.as_str() {
        "" => "commits wait for no standby: a failover may lose them",
        _ => "commits wait for a standby",
    };
    Some(DoctorFinding::ok(CHECK, format!("{standbys}: server=`{}`", server.version)))
}
