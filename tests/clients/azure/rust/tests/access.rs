//! Access to tables by signatures that the crate mints, and by connection strings.

use azure_data_tables::prelude::*;
use azure_storage::{
    ConnectionString, StorageCredentials,
    shared_access_signature::{
        SasProtocol, SasToken,
        account_sas::{AccountSasPermissions, AccountSasResourceType},
    },
};
use legacy_core::{RetryOptions, StatusCode};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use trestle_azure_clients::{
    ACCOUNT, KEY, name,
    tables::{builder, error_of, signature, signed_by, with_credentials},
    target,
};

fn by(credentials: StorageCredentials) -> TableServiceClient {
    with_credentials(&target().table, credentials).retry(RetryOptions::none()).build()
}

fn forbidden(code: &str) -> (StatusCode, String) {
    (StatusCode::Forbidden, code.to_owned())
}

fn reads() -> AccountSasPermissions {
    AccountSasPermissions { read: true, ..Default::default() }
}

/// A table with one entity, by its name.
async fn filled() -> String {
    let name = name();
    let table = builder(&target().table).build().table_client(&name);
    table.create().await.unwrap();
    let entity = json!({ "PartitionKey": "p", "RowKey": "r" });
    table.insert::<_, Value>(&entity).unwrap().await.unwrap();
    name
}

async fn read(service: &TableServiceClient, table: &str) -> legacy_core::Result<()> {
    let partition = service.table_client(table).partition_key_client("p");
    partition.entity_client("r").get::<Value>().await.map(drop)
}

#[tokio::test]
async fn an_account_sas_permits_exactly_its_grant() {
    let name = filled().await;
    let hour = Duration::hours(1);
    let objects = AccountSasResourceType::Object;
    let reader = by(signed_by(&signature(objects, reads(), hour)));
    read(&reader, &name).await.unwrap();
    let entity = json!({ "PartitionKey": "p", "RowKey": "s" });
    let table = reader.table_client(&name);
    let rejected = error_of(table.insert::<_, Value>(&entity).unwrap().await);
    assert_eq!(rejected, forbidden("AuthorizationPermissionMismatch"));
    let rejected = error_of(table.delete().await);
    assert_eq!(rejected, forbidden("AuthorizationResourceTypeMismatch"));

    let adds = AccountSasPermissions { add: true, ..Default::default() };
    let writer = by(signed_by(&signature(objects, adds, hour)));
    writer.table_client(&name).insert::<_, Value>(&entity).unwrap().await.unwrap();
    let transaction = writer.table_client(&name).partition_key_client("p").transaction();
    let transaction = transaction.insert_or_replace("s", &entity).unwrap();
    // A transaction is answered, and what it may not do is in the answer.
    let answer = transaction.await.unwrap();
    assert_eq!(answer.operation_responses[0].status_code, StatusCode::Forbidden);

    let all = AccountSasPermissions { create: true, delete: true, ..Default::default() };
    let owner = by(signed_by(&signature(AccountSasResourceType::Container, all, hour)));
    let own = owner.table_client(trestle_azure_clients::name());
    own.create().await.unwrap();
    own.delete().await.unwrap();
    assert_eq!(error_of(read(&owner, &name).await), forbidden("AuthorizationResourceTypeMismatch"));
}

#[tokio::test]
async fn a_sas_is_limited_by_time_addresses_and_protocol() {
    let name = filled().await;
    let objects = AccountSasResourceType::Object;
    let good = || signature(objects, reads(), Duration::hours(1));
    let past = signature(objects, reads(), Duration::hours(-1));
    let future = good().start(OffsetDateTime::now_utc() + Duration::minutes(30));
    for (signature, code) in [
        (past, "AuthenticationFailed"),
        (future, "AuthenticationFailed"),
        (good().ip("10.0.0.1".to_owned()), "AuthorizationSourceIPMismatch"),
        (good().ip("127.0.0.2-127.0.0.9".to_owned()), "AuthorizationSourceIPMismatch"),
        (good().protocol(SasProtocol::Https), "AuthorizationProtocolMismatch"),
    ] {
        assert_eq!(error_of(read(&by(signed_by(&signature)), &name).await), forbidden(code));
    }
    let local = good().ip("127.0.0.0-127.0.0.9".to_owned()).protocol(SasProtocol::HttpHttps);
    read(&by(signed_by(&local)), &name).await.unwrap();
}

#[tokio::test]
async fn a_connection_string_is_enough_with_a_key_or_a_signature() {
    let name = filled().await;
    let endpoint = format!("http://{}/{ACCOUNT}", target().table);
    let token = signature(AccountSasResourceType::Object, reads(), Duration::hours(1)).token();
    for secret in [
        format!("AccountKey={KEY}"),
        format!("SharedAccessSignature={}", token.expect("the library signs")),
    ] {
        let text = format!("AccountName={ACCOUNT};{secret};TableEndpoint={endpoint}");
        let string = ConnectionString::new(&text).unwrap();
        assert_eq!(string.table_endpoint, Some(endpoint.as_str()));
        read(&by(string.storage_credentials().unwrap()), &name).await.unwrap();
    }
    let wrong = format!("AccountName={ACCOUNT};AccountKey=d3Jvbmc=;TableEndpoint={endpoint}");
    let wrong = ConnectionString::new(&wrong).unwrap().storage_credentials().unwrap();
    assert_eq!(error_of(read(&by(wrong), &name).await), forbidden("AuthenticationFailed"));
}
