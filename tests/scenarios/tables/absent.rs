//! Tables that are deleted or were never created.

use super::*;

scenario!(recreated_table_is_empty, operations_on_a_missing_table_are_not_found,);

const TABLE_ABSENT: (Code, &str) = (Code::NotFound, "TABLE_NOT_FOUND");

async fn recreated_table_is_empty(world: &World) {
    let table = world.table("again").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    let policy =
        trestle_proto::service::v1::AccessPolicy { id: "reader".to_owned(), ..Default::default() };
    table.set_policies(vec![policy]).await.unwrap();

    world.drop_table("again").await.unwrap();
    assert_eq!(world.list("", None, "").await.unwrap().0.len(), 0);
    let successor = world.table("AGAIN").await;

    assert_eq!(successor.rows("").await.unwrap().len(), 0);
    assert_eq!(successor.get("p", "r").await.unwrap_err().kind(), ABSENT);
    assert_eq!(successor.policies().await.unwrap(), []);
    assert_eq!(world.describe("again").await.unwrap().name, "AGAIN");
    assert!(successor.insert(entity("p", "r", [])).await.is_ok());
}

async fn operations_on_a_missing_table_are_not_found(world: &World) {
    use trestle_proto::table::v1::WriteMode::{Merge, Replace};

    let table = world.table("deleted").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    let etag = table.get("p", "r").await.unwrap().etag;
    world.drop_table("deleted").await.unwrap();
    let row = || entity("p", "r", []);

    let chunk = vec![vec![row()]];
    let batch = vec![trestle_tests::insert_op(row())];
    let errors = [
        table.insert(row()).await.err(),
        table.get("p", "r").await.err(),
        table.update(row(), Replace, None).await.err(),
        table.update(row(), Merge, Some(&etag)).await.err(),
        table.upsert(row(), Merge).await.err(),
        table.delete("p", "r", None).await.err(),
        table.delete("p", "r", Some(&etag)).await.err(),
        table.batch(batch).await.err(),
        table.rows("").await.err(),
        table.rows("PartitionKey eq 'a' and PartitionKey eq 'b'").await.err(),
        table.stream(Default::default()).await.err(),
        table.import(None, chunk).await.err(),
        table.explain("", &[], false).await.err(),
        table.policies().await.err(),
        table.set_policies(Vec::new()).await.err(),
    ];

    for (position, error) in errors.iter().enumerate() {
        let error = error.as_ref().expect("the table is deleted");
        assert_eq!(error.kind(), TABLE_ABSENT, "operation {position}");
    }
    assert_eq!(errors[7].as_ref().unwrap().index, Some(0));
}
