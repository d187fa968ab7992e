//! The verbs on the tables of a world, and on its service.

use trestle_proto::service::v1::ServiceProperties;
use trestle_proto::table::v1 as proto;

use crate::{CallError, World};

impl World {
    /// Creates a table.
    pub async fn create(&self, name: &str) -> Result<proto::Table, CallError> {
        let table = Some(proto::Table { name: name.to_owned(), ..Default::default() });
        let request = proto::CreateTableRequest { table };
        let response = self.client().create_table(request).await;
        let response = response.map_err(CallError::from)?.into_inner();
        Ok(response.table.expect("a created table is returned"))
    }

    /// Reads a table.
    pub async fn describe(&self, name: &str) -> Result<proto::Table, CallError> {
        let table = name.to_owned();
        let request = proto::GetTableRequest { table };
        let response = self.client().get_table(request).await;
        let response = response.map_err(CallError::from)?.into_inner();
        Ok(response.table.expect("a table is returned"))
    }

    /// Deletes a table.
    pub async fn drop_table(&self, name: &str) -> Result<(), CallError> {
        let table = name.to_owned();
        let request = proto::DeleteTableRequest { table };
        let response = self.client().delete_table(request).await;
        response.map(drop).map_err(CallError::from)
    }

    /// The names on one page of the tables, and the token of the next.
    pub async fn list(
        &self,
        filter: &str,
        page_size: Option<i32>,
        page_token: &str,
    ) -> Result<(Vec<String>, String), CallError> {
        let request = proto::ListTablesRequest {
            filter: filter.to_owned(),
            page_size,
            page_token: page_token.to_owned(),
        };
        let response = self.client().list_tables(request).await;
        let response = response.map_err(CallError::from)?.into_inner();
        let names = response.tables.into_iter().map(|table| table.name);
        Ok((names.collect(), response.next_page_token))
    }

    /// The settings of the service.
    pub async fn properties(&self) -> Result<ServiceProperties, CallError> {
        let request = proto::GetServicePropertiesRequest {};
        let response = self.client().get_service_properties(request).await;
        let response = response.map_err(CallError::from)?.into_inner();
        Ok(response.properties.expect("settings are returned"))
    }

    /// Changes settings of the service.
    pub async fn set_properties(&self, change: ServiceProperties) -> Result<(), CallError> {
        let request = proto::SetServicePropertiesRequest { properties: Some(change) };
        let response = self.client().set_service_properties(request).await;
        response.map(drop).map_err(CallError::from)
    }

    /// The state of the service.
    pub async fn stats(&self) -> Result<proto::GetServiceStatsResponse, CallError> {
        let request = proto::GetServiceStatsRequest {};
        let response = self.client().get_service_stats(request).await;
        response.map(tonic::Response::into_inner).map_err(CallError::from)
    }
}
