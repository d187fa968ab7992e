//! Which server a command calls, by the places where addresses are given.

use super::*;

const OF_AZURE: &str = "AccountName=acme;AccountKey=QUJD;TableEndpoint=http://10.0.0.1:10002/acme";

fn flags(endpoint: Option<&str>, connection_string: &str) -> ClientFlags {
    let connection_string = Some(connection_string.parse().unwrap());
    let credentials = CredentialArgs { connection_string, ..CredentialArgs::default() };
    ClientFlags { endpoint: endpoint.map(str::to_owned), credentials, ..ClientFlags::default() }
}

#[test]
fn a_server_that_a_connection_string_names_is_not_replaced_by_one_of_a_weaker_place() {
    let given = Some("127.0.0.1:50051");

    let on_command_line = flags(given, OF_AZURE).resolve();
    let both_variables = flags(given, OF_AZURE).with_variable_endpoint();
    let both_variables = both_variables.with_variable_connection_string().resolve();
    for resolved in [on_command_line, both_variables] {
        assert_eq!(resolved.unwrap().endpoint, "http://127.0.0.1:50051");
    }

    let variable = flags(given, OF_AZURE).with_variable_endpoint().resolve();
    let none = flags(None, OF_AZURE).resolve();
    let string_of_variable = flags(None, OF_AZURE).with_variable_connection_string().resolve();
    for rejected in [variable, none, string_of_variable] {
        let error = rejected.unwrap_err().to_string();
        assert!(error.contains("TableEndpoint") && error.contains("--endpoint"), "{error}");
    }
}

#[test]
fn a_connection_string_without_a_server_goes_with_the_address_of_any_place() {
    let text = "DefaultEndpointsProtocol=http;AccountName=acme;AccountKey=QUJD";

    let of_variable = flags(Some("store:1"), text).with_variable_endpoint().resolve();

    assert_eq!(of_variable.unwrap().endpoint, "http://store:1");
    assert_eq!(flags(None, text).resolve().unwrap().endpoint, DEFAULT_ENDPOINT);
}
