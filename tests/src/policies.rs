//! The verbs on the access policies of a table.

use trestle_proto::service::v1::AccessPolicy;
use trestle_proto::table::v1 as proto;

use crate::{CallError, Table};

impl Table {
    /// The access policies.
    pub async fn policies(&self) -> Result<Vec<AccessPolicy>, CallError> {
        let table = self.name();
        let request = proto::GetTableAccessPoliciesRequest { table };
        let response = self.client().get_table_access_policies(request).await;
        let response = response.map_err(|status| CallError::of(&status))?;
        Ok(response.into_inner().policies)
    }

    /// Replaces the access policies.
    pub async fn set_policies(&self, policies: Vec<AccessPolicy>) -> Result<(), CallError> {
        let table = self.name();
        let request = proto::SetTableAccessPoliciesRequest { table, policies };
        let response = self.client().set_table_access_policies(request).await;
        response.map(drop).map_err(|status| CallError::of(&status))
    }
}
