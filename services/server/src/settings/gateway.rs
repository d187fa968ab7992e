//! Where the gateway finds what is not in its process.

use serde::{Deserialize, Serialize};
use trestle_service::upstream::Remote;

use super::at_least_one;
use crate::roles::{Role, Roles};

/// The section `gateway`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySettings {
    /// Where the table role is when it is not in this process, such as `http://table:50051`. No
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_endpoint: Option<String>,
    /// Where the development account is there, whose key everybody knows: `loopback`, `off` or
    /// `anywhere`. Default: `loopback`, which is `off` where others can reach the listener.
    pub development_account: DevelopmentAccount,
    /// Connections to each such role, at least 1; about as many as either side has cores. Default:
    /// 4.
    pub connections: usize,
}

/// Where the development account is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DevelopmentAccount {
    /// On a listener that only this machine reaches.
    Loopback,
    /// Nowhere.
    Off,
    /// On every listener. Calls without credentials are still taken from this machine only.
    Anywhere,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        let development_account = DevelopmentAccount::Loopback;
        Self { table_endpoint: None, development_account, connections: 4 }
    }
}

impl GatewaySettings {
    /// What is wrong with the section for a process with these roles, each with its key.
    pub(super) fn problems(&self, roles: &Roles) -> Vec<String> {
        let connections = at_least_one("gateway.connections", self.connections > 0);
        let mut problems = Vec::from_iter(connections);
        let endpoint = self.table_endpoint.as_deref();
        match endpoint.map(|endpoint| Remote::new(endpoint, 1)) {
            Some(Err(error)) => problems.push(format!("gateway.table_endpoint: {error}")),
            None if roles.has(Role::Gateway) && !roles.has(Role::Table) => {
                let rule = "required, since the role table is not in this process";
                problems.push(format!("gateway.table_endpoint: {rule}: roles=`{roles}`"));
            }
            _ => {}
        }
        problems
    }
}
