//! Spellings of addresses, and addresses of any key.

use proptest::prelude::*;

use super::*;
use crate::table::json::entity_path;

fn entity(table: &str, partition_key: &str, row_key: &str) -> PathResource {
    let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
    PathResource::Entity(table.to_owned(), Key { partition_key, row_key })
}

#[test]
fn every_resource_is_parsed_from_each_of_its_spellings() {
    let entities = PathResource::Entities("t1".to_owned());
    for (path, resource) in [
        ("/", PathResource::Service),
        ("", PathResource::Service),
        ("/Tables", PathResource::Tables),
        ("/Tables()", PathResource::Tables),
        ("/tables", PathResource::Tables),
        ("/Tables('t1')", PathResource::Table("t1".to_owned())),
        ("/Tables(%27t1%27)", PathResource::Table("t1".to_owned())),
        ("/Tables(TableName='t1')", PathResource::Table("t1".to_owned())),
        ("/t1", entities.clone()),
        ("/t1()", entities.clone()),
        ("/$batch", PathResource::Batch),
        ("/$batch/", PathResource::Batch),
        ("/t1/$batch", PathResource::BatchIn),
        ("/t1/", entities.clone()),
        ("/t1()/", entities),
        ("/Tables('t1')/", PathResource::Table("t1".to_owned())),
        ("/t1(PartitionKey='p',RowKey='r')/", entity("t1", "p", "r")),
        ("/%24batch", PathResource::Batch),
        ("/t1(PartitionKey='p',RowKey='r')", entity("t1", "p", "r")),
        ("/t1(RowKey='r',PartitionKey='p')", entity("t1", "p", "r")),
        ("/t1(PartitionKey='p', RowKey='r')", entity("t1", "p", "r")),
        ("/t1( PartitionKey = 'p' , RowKey = 'r' )", entity("t1", "p", "r")),
        ("/t1(PartitionKey=%27p%27,RowKey=%27r%27)", entity("t1", "p", "r")),
        ("/t1(PartitionKey='',RowKey='')", entity("t1", "", "")),
        ("/t1/Tables", PathResource::TablesIn("t1".to_owned())),
        ("/t1/Tables('t2')", PathResource::TableIn("t1".to_owned())),
        ("//", PathResource::Service),
        ("//Tables", PathResource::Tables),
        ("//Tables('t1')", PathResource::Table("t1".to_owned())),
        ("//t1()", PathResource::Entities("t1".to_owned())),
        ("//t1(PartitionKey='p',RowKey='r')", entity("t1", "p", "r")),
        ("//$batch", PathResource::Batch),
    ] {
        assert_eq!(parse(path), Ok(resource), "{path}");
    }
}

#[test]
fn keys_may_contain_the_delimiters_of_addresses() {
    for (path, partition_key, row_key) in [
        ("/t(PartitionKey='a''b',RowKey='''')", "a'b", "'"),
        ("/t(PartitionKey='a%27%27b',RowKey='%27%27')", "a'b", "'"),
        ("/t(PartitionKey='a%20b',RowKey='a+b')", "a b", "a+b"),
        ("/t(PartitionKey='a,b',RowKey=')')", "a,b", ")"),
        ("/t(PartitionKey='RowKey=''x''',RowKey='100%25')", "RowKey='x'", "100%"),
        ("/t(PartitionKey='%252e',RowKey='%2e%2e%2f')", "%2e", "../"),
        ("/t(PartitionKey='%F0%9F%98%80',RowKey='é')", "😀", "é"),
        ("/t(PartitionKey='%00',RowKey='r')", "\0", "r"),
    ] {
        assert_eq!(parse(path), Ok(entity("t", partition_key, row_key)), "{path}");
    }
}

#[test]
fn rejects_addresses_without_a_resource() {
    for path in [
        "/t1(",
        "/t1('p'",
        "/t1(PartitionKey='p',RowKey='r'",
        "/t1(PartitionKey='p',RowKey='r')x",
        "/t1(PartitionKey='p,RowKey='r')",
        "/t1(PartitionKey=p,RowKey=r)",
        "/t1(PartitionKey='p')",
        "/t1(PartitionKey='p',RowKey='r',Other='x')",
        "/t1(PartitionKey='p',PartitionKey='r')",
        "/t1('p','r')",
        "/Tables('a','b')",
        "/Tables(Name='a')",
        "/t1/Tables('x','y')",
        "/t1/t2('x')",
        "/t1%",
        "/t1%4",
        "/t1%zz",
        "/t1%FF",
    ] {
        let fault = parse(path).expect_err(path);
        assert_eq!(fault.reason, Reason::InvalidInput, "{path}");
    }
    let fault = parse("/t1/t2('x')").expect_err("keys of the wrong resource");
    assert!(fault.message.contains("The number of keys specified in the URI does not match"));
    for path in ["/t1//", "/t1//(PartitionKey='p',RowKey='r')", "/t1//$batch"] {
        let fault = parse(path).expect_err("not a name");
        assert_eq!(fault.reason, Reason::InvalidResourceName, "{path}");
    }
    for path in ["/t1/other", "//t1/other"] {
        let fault = parse(path).expect_err("not a resource");
        assert_eq!(fault.reason, Reason::ResourceNotFound, "{path}");
    }
}

#[test]
fn a_path_traversal_names_a_table_that_cannot_exist() {
    for (path, table) in [("/..", ".."), ("/%2e%2e", ".."), ("/%252e", "%2e"), ("/%00", "\0")] {
        assert_eq!(parse(path), Ok(PathResource::Entities(table.to_owned())), "{path}");
    }
    assert_eq!(parse("/../Tables('x')"), Ok(PathResource::TableIn("..".to_owned())));
    assert!(parse("/..%2f..%2fetc").is_err());
}

/// A key of any characters; the service restricts them.
fn keys() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", "['%/(),=+ #?a]{0,12}", "[\u{e000}-\u{ffff}😀]{0,4}"]
}

proptest! {
    #[test]
    fn the_written_address_of_an_entity_is_parsed_to_its_key(
        table in "[A-Za-z][A-Za-z0-9]{2,10}",
        partition_key in keys(),
        row_key in keys(),
    ) {
        // `Tables` is the list of tables.
        prop_assume!(!table.eq_ignore_ascii_case("tables"));
        let path = format!("/{}", entity_path(&table, &partition_key, &row_key));
        prop_assert!(path.is_ascii(), "{}", path);
        prop_assert_eq!(parse(&path), Ok(entity(&table, &partition_key, &row_key)));
    }

    #[test]
    fn a_key_is_parsed_alike_from_each_of_its_escaped_forms(key in "['a-z()/,= ]{0,10}") {
        let quoted = key.replace('\'', "''");
        let escaped: String = quoted.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for written in [quoted.as_str(), escaped.as_str(), escaped.to_uppercase().as_str()] {
            let path = format!("/tab(PartitionKey='{written}',RowKey='{written}')");
            prop_assert_eq!(parse(&path), Ok(entity("tab", &key, &key)), "{}", path);
        }
    }

    #[test]
    fn any_path_has_a_resource_or_a_known_error(path in "[/a-t$'(),=%0-9 ]{0,30}|\\PC{0,20}") {
        if let Err(fault) = parse(&path) {
            let known =
                [Reason::InvalidInput, Reason::ResourceNotFound, Reason::InvalidResourceName];
            let is_known = known.contains(&fault.reason);
            prop_assert!(is_known, "{:?}: {}", fault.reason, path);
        }
    }
}
