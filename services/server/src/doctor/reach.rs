//! Whether other roles and the object store can be reached from this machine.

use std::time::Duration;

use trestle_command::trust::TlsArgs;
use trestle_objects::ObjectStorage;

use super::finding::DoctorFinding;
use crate::{
    healthcheck,
    roles::{GATEWAY, ROLES},
    settings::{EndpointText, RoleKey as _, Settings},
};

/// How long an object store may take. It is tried again for longer in a server.
const STORE_WITHIN: Duration = Duration::from_secs(10);

/// Calls each role that the gateway of these settings has in another process.
pub(super) async fn check_roles(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if !settings.server.roles.has(GATEWAY.name) {
        return findings;
    }
    let files = &settings.gateway.tls;
    for (role, EndpointText(endpoint)) in settings.gateway.endpoints.iter() {
        let own = files.server_names.get(role).map(|name| name.0.clone());
        let tls = TlsArgs {
            ca_file: files.ca_file.clone(),
            server_name: own.or_else(|| files.server_name.clone()),
            cert_file: files.cert_file.clone(),
            key_file: files.key_file.clone(),
        };
        let key = EndpointText::full_key(role);
        // The health of a whole process is that of other roles too, or of another server.
        let services = ROLES.iter().filter(|spec| spec.name == role).flat_map(|spec| spec.services);
        let service = services.copied().next().unwrap_or_default();
        findings.push(match healthcheck::check(endpoint, &tls, service.to_owned()).await {
            Ok(None) => DoctorFinding::ok("roles", format!("{key}: serves: endpoint=`{endpoint}`")),
            Ok(Some(limited)) => DoctorFinding::warning(
                "roles",
                format!("{key}: {limited}: endpoint=`{endpoint}`"),
                "free space on the disk of that role",
            ),
            Err(problem) => DoctorFinding::failure(
                "roles",
                format!("{key}: {problem}"),
                "start the role, then check name, port, firewall and, with https, the certificates of both sides",
            ),
        });
    }
    findings
}

/// Reads from the object store of these settings; nothing is written.
pub(super) async fn check_objects(settings: &Settings) -> Option<DoctorFinding> {
    if !settings.has_objects(ROLES) {
        return None;
    }
    // Settings with an invalid URL are reported as such.
    let url = settings.storage.blob_url()?.ok()?;
    let probe = tokio::time::timeout(STORE_WITHIN, ObjectStorage::probe(&url)).await;
    let problem = match probe {
        Ok(Ok(())) => return Some(DoctorFinding::ok("objects", format!("reachable: url=`{url}`"))),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    Some(DoctorFinding::failure(
        "objects",
        format!("{problem}: url=`{url}`"),
        "check that the bucket exists, and endpoint, region and credentials in the variables of the cloud",
    ))
}
