//! Tests of the module.

use std::time::Duration;

use clap::Parser;
use trestle_command::flags::ClientFlags;

use super::*;

#[derive(Debug, Parser)]
struct TestCli {
    #[command(flatten)]
    client: ClientFlags,
    #[command(subcommand)]
    command: TableCommand,
}

fn parse(line: &[&str]) -> Result<TestCli, clap::Error> {
    TestCli::try_parse_from([&["table"], line].concat())
}

#[test]
fn the_command_line_is_consistent_and_global_flags_are_accepted_anywhere() {
    use clap::CommandFactory as _;
    TestCli::command().debug_assert();

    let cli = parse(&["get", "t", "", "-", "--json", "--timeout", "1500ms"]).unwrap();

    assert!(cli.client.json);
    assert_eq!(cli.client.timeout, Some(Duration::from_millis(1500)));
}

#[test]
fn rejects_half_an_entity_key_and_two_forms_of_an_entity() {
    assert!(parse(&["delete", "t", "p"]).is_err());
    assert!(parse(&["insert", "t", "-p", "p"]).is_err());
    assert!(parse(&["insert", "t", "-p", "p", "-r", "r", "--json-entity", "{}"]).is_err());
    assert!(parse(&["insert", "t", "--json-entity", "-"]).is_ok());
    assert!(parse(&["insert", "t", "-p", "", "-r", "", "-s", "a=1", "-s", "b=2"]).is_ok());
}
