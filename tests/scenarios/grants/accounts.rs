//! Accounts are isolated from each other.

use tonic::Code;
use trestle_identity::caller::Authority;
use trestle_model::name::AccountName;
use trestle_proto::service::v1::{AccessPolicy, Logging, ServiceProperties};
use trestle_proto::table::v1::QueryEntitiesRequest;
use trestle_tests::{Service, World, entity, int, service_scenario};

use super::{TABLE_ABSENT, over_account, over_table};

service_scenario!(
    accounts_with_equal_table_names_are_isolated,
    tokens_of_another_account_are_rejected,
    sas_grants_apply_to_their_account_only,
);

/// One account's name is a prefix of the other's.
fn worlds(service: &Service) -> (World, World) {
    let of = |name: &str| service.world_of(AccountName::parse(name).unwrap(), Authority::Owner);
    (of("acme"), of("acme2"))
}

async fn accounts_with_equal_table_names_are_isolated(service: &Service) {
    let (one, two) = worlds(service);
    let (mine, yours) = (one.table("shared").await, two.table("Shared").await);
    one.create("only").await.unwrap();
    mine.insert(entity("p", "r", [int("n", 1)])).await.unwrap();
    mine.insert(entity("p", "mine", [])).await.unwrap();
    yours.insert(entity("p", "r", [int("n", 2)])).await.unwrap();
    let policy = AccessPolicy { id: "p".to_owned(), ..Default::default() };
    mine.set_policies(vec![policy.clone()]).await.unwrap();
    let logging = Logging { version: "1.0".to_owned(), write: true, ..Default::default() };
    let change = ServiceProperties { logging: Some(logging), ..Default::default() };
    one.set_properties(change).await.unwrap();

    assert_eq!(one.list("", None, "").await.unwrap().0, ["only", "shared"]);
    assert_eq!(two.list("", None, "").await.unwrap().0, ["Shared"]);
    assert_eq!(two.list("TableName ge 'a'", None, "").await.unwrap().0, ["Shared"]);
    assert_eq!(two.describe("only").await.unwrap_err().code, Code::NotFound);
    assert_eq!(yours.rows("").await.unwrap(), ["r"]);
    assert_eq!(yours.get("p", "r").await.unwrap().properties, [int("n", 2)]);
    assert_eq!(yours.policies().await.unwrap(), []);
    assert!(!two.properties().await.unwrap().logging.unwrap().write);

    two.drop_table("shared").await.unwrap();
    assert_eq!(mine.rows("").await.unwrap(), ["mine", "r"]);
    assert_eq!(mine.policies().await.unwrap(), [policy]);
    assert_eq!(two.drop_table("only").await.unwrap_err().code, Code::NotFound);
    assert_eq!(service.owner().list("", None, "").await.unwrap().0, [""; 0]);
}

async fn tokens_of_another_account_are_rejected(service: &Service) {
    let (one, two) = worlds(service);
    for world in [&one, &two] {
        for name in ["aaa", "bbb"] {
            let table = world.table(name).await;
            table.insert(entity("p", "1", [])).await.unwrap();
            table.insert(entity("p", "2", [])).await.unwrap();
        }
    }
    let (_, token) = one.list("", Some(1), "").await.unwrap();
    assert_eq!(one.list("", Some(1), &token).await.unwrap().0, ["bbb"]);
    let rejected = two.list("", Some(1), &token).await.unwrap_err();
    assert_eq!(rejected.fields, ["page_token"]);

    let request = QueryEntitiesRequest { page_size: Some(1), ..Default::default() };
    let (_, response) = one.existing_table("aaa").page(request.clone()).await.unwrap();
    let request = QueryEntitiesRequest { page_token: response.next_page_token, ..request };
    one.existing_table("aaa").page(request.clone()).await.unwrap();
    let rejected = two.existing_table("aaa").page(request).await.unwrap_err();
    assert_eq!(rejected.fields, ["page_token"]);
}

async fn sas_grants_apply_to_their_account_only(service: &Service) {
    let (one, two) = worlds(service);
    let table = one.table("shared").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    let account = || AccountName::parse("acme2").unwrap();
    for authority in [over_table("shared", "raud"), over_account("t", "sco", "rwdlacup")] {
        let held = service.world_of(account(), authority);
        let absent = held.existing_table("shared").get("p", "r").await.unwrap_err();
        assert_eq!(absent.kind(), TABLE_ABSENT);
    }
    two.create("shared").await.unwrap();
    let held = service.world_of(account(), over_table("shared", "raud"));
    assert_eq!(held.existing_table("shared").query("").await.unwrap(), []);
}
