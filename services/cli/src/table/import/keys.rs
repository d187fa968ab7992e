//! The keys and the constants of an import, from its arguments.

use serde_json::{Map, Value, json};
use trestle_command::{
    errors::CliError,
    row_mapping::{KeyOrigin, PARTITION_KEY, ROW_KEY, RowMapping},
};
use trestle_proto::table::v1::{Property, value::Kind};

use super::{super::entities::property, ImportArgs};

/// Where the keys come from, and what every entity has.
pub(super) fn mapping(args: &ImportArgs) -> Result<RowMapping, CliError> {
    let mut mapping = RowMapping { types: args.types.clone(), ..RowMapping::default() };
    let mut keys = [
        (PARTITION_KEY, "--partition-key", args.partition_key.clone().map(KeyOrigin::Column)),
        (ROW_KEY, "--row-key", args.row_key.clone().map(KeyOrigin::Column)),
    ];
    for text in &args.constants {
        let constant = property("--constant", text)?;
        let rejected = |rule: &str| CliError::Usage(format!("--constant: {rule}: `{text}`"));
        if let Some((_, flag, source)) = keys.iter_mut().find(|(key, ..)| *key == constant.name) {
            if source.is_some() {
                return Err(rejected(&format!("the key is given twice, also by {flag}")));
            }
            *source = Some(KeyOrigin::Constant(
                key_text(constant).ok_or_else(|| rejected("a key is text"))?,
            ));
            continue;
        }
        if constant.name == "Timestamp" || constant.name.starts_with("odata.") {
            return Err(rejected("the server sets it"));
        }
        if mapping.constants.iter().any(|other| other.name == constant.name) {
            return Err(rejected("the property is given twice"));
        }
        mapping.constants.push(constant);
    }
    let [(.., partition_key), (.., row_key)] = keys;
    mapping.partition_key = partition_key.unwrap_or(mapping.partition_key);
    mapping.row_key = row_key.unwrap_or(mapping.row_key);
    Ok(mapping)
}

/// The parts of the job of a checkpoint, where they are given: earlier checkpoints have none.
pub(super) fn job(args: &ImportArgs) -> Value {
    let mut job = Map::new();
    for (name, column) in [("partition_key", &args.partition_key), ("row_key", &args.row_key)] {
        if let Some(column) = column {
            job.insert(name.to_owned(), json!(column));
        }
    }
    if !args.constants.is_empty() {
        job.insert("constants".to_owned(), json!(args.constants));
    }
    Value::Object(job)
}

fn key_text(constant: Property) -> Option<String> {
    match constant.value?.kind? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct ImportLine {
        #[command(flatten)]
        args: ImportArgs,
    }

    fn args(more: &[&str]) -> ImportArgs {
        ImportLine::parse_from([&["import", "t", "rows.csv"], more].concat()).args
    }

    fn rejected(more: &[&str]) -> String {
        mapping(&args(more)).unwrap_err().to_string()
    }

    #[test]
    fn keys_are_columns_or_constants_and_the_usual_columns_by_default() {
        let column = |name: &str| KeyOrigin::Column(name.to_owned());

        assert_eq!(mapping(&args(&[])).unwrap(), RowMapping::default());
        let named = mapping(&args(&["--row-key", "id", "--types", "n=int32"])).unwrap();
        assert_eq!((named.partition_key, named.row_key), (column("PartitionKey"), column("id")));
        assert_eq!(named.types.len(), 1);
        let constant = ["--constant", "RowKey=", "--constant", "a:int64=5"];
        let constant = mapping(&args(&constant)).unwrap();
        assert_eq!(constant.row_key, KeyOrigin::Constant(String::new()));
        let kinds = constant.constants.into_iter().map(|it| (it.name, it.value.unwrap().kind));
        assert_eq!(kinds.collect::<Vec<_>>(), [("a".to_owned(), Some(Kind::Int64Value(5)))]);
    }

    #[test]
    fn a_key_or_a_constant_that_is_given_twice_is_rejected() {
        for (more, rule) in [
            (
                &["--partition-key", "a", "--constant", "PartitionKey=x"][..],
                "also by --partition-key",
            ),
            (&["--constant", "RowKey=x", "--constant", "RowKey=y"], "the key is given twice"),
            (&["--constant", "a=1", "--constant", "a:int32=1"], "the property is given twice"),
            (&["--constant", "RowKey:guid=00000000-0000-0000-0000-000000000000"], "a key is text"),
            (&["--constant", "odata.etag=x"], "the server sets it"),
            (&["--constant", "a:int32=x"], "--constant is malformed: `a:int32=x`: Edm.Int32"),
        ] {
            let error = rejected(more);
            assert!(error.contains(rule), "{more:?}: {error}");
        }
    }

    #[test]
    fn the_job_of_a_checkpoint_has_only_what_is_given() {
        assert_eq!(job(&args(&[])), json!({}), "as earlier checkpoints");
        let given = ["--partition-key", "a", "--row-key", "b", "--constant", "c=d"];
        let expected = json!({ "partition_key": "a", "row_key": "b", "constants": ["c=d"] });
        assert_eq!(job(&args(&given)), expected);
    }
}
