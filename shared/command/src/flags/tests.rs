//! Which server a command calls, by the places where addresses are given.

use super::*;

const OF_AZURE: &str = "AccountName=acme;AccountKey=QUJD;TableEndpoint=http://10.0.0.1:10002/acme";

fn endpoint_of_variable() -> VariableArgs {
    VariableArgs { endpoint: true, ..VariableArgs::default() }
}

fn flags(endpoint: Option<&str>, connection_string: &str) -> ClientFlags {
    let connection_string = Some(connection_string.parse().unwrap());
    let credentials = CredentialArgs { connection_string, ..CredentialArgs::default() };
    ClientFlags { endpoint: endpoint.map(str::to_owned), credentials, ..ClientFlags::default() }
}

#[test]
fn a_server_that_a_connection_string_names_is_not_replaced_by_one_of_a_weaker_place() {
    let given = Some("127.0.0.1:50051");

    let on_command_line = flags(given, OF_AZURE).resolve();
    let both = VariableArgs { connection_string: true, ..endpoint_of_variable() };
    let both_variables = flags(given, OF_AZURE).with_variables(both).resolve();
    for resolved in [on_command_line, both_variables] {
        assert_eq!(resolved.unwrap().endpoint, "http://127.0.0.1:50051");
    }

    let variable = flags(given, OF_AZURE).with_variables(endpoint_of_variable()).resolve();
    let none = flags(None, OF_AZURE).resolve();
    let of_variable = VariableArgs { connection_string: true, ..VariableArgs::default() };
    let string_of_variable = flags(None, OF_AZURE).with_variables(of_variable).resolve();
    for rejected in [variable, none, string_of_variable] {
        let error = rejected.unwrap_err().to_string();
        assert!(error.contains("TableEndpoint") && error.contains("--endpoint"), "{error}");
    }
}

#[test]
fn a_connection_string_without_a_server_goes_with_the_address_of_any_place() {
    let text = "DefaultEndpointsProtocol=http;AccountName=acme;AccountKey=QUJD";

    let of_variable = flags(Some("store:1"), text).with_variables(endpoint_of_variable()).resolve();

    assert_eq!(of_variable.unwrap().endpoint, "http://store:1");
    assert_eq!(flags(None, text).resolve().unwrap().endpoint, DEFAULT_ENDPOINT);
}

#[test]
fn a_variable_does_not_take_a_call_to_another_server_than_the_command_line_names() {
    let both = || ClientFlags {
        endpoint: Some("here:1".to_owned()),
        context: Some("there".to_owned()),
        ..ClientFlags::default()
    };
    let left = |variables| {
        let flags = both().with_variables(variables);
        (flags.endpoint.is_some(), flags.context.is_some())
    };
    let context = VariableArgs { context: true, ..VariableArgs::default() };

    assert_eq!(left(endpoint_of_variable()), (false, true));
    assert_eq!(left(context), (true, false));
    assert_eq!(left(VariableArgs::default()), (true, true));
    assert_eq!(left(VariableArgs { context: true, ..endpoint_of_variable() }), (true, true));
}

#[test]
fn a_client_certificate_is_named_as_the_identity_of_a_call() {
    let tls = TlsArgs { cert_file: Some("me.pem".into()), ..TlsArgs::default() };
    let none = CredentialArgs::default();
    let acme = CredentialArgs { account: Some("acme".to_owned()), ..CredentialArgs::default() };

    assert_eq!(identity(&none, &tls), "client certificate=`me.pem`");
    assert_eq!(identity(&acme, &tls), "account=`acme`, client certificate=`me.pem`");
    assert_eq!(identity(&none, &TlsArgs::default()), "without credentials");
}

#[test]
fn arguments_that_contradict_each_other_are_rejected_in_every_position() {
    let output = Some(OutputFormat::Csv);
    for (flags, named) in [
        (ClientFlags { quiet: true, verbose: true, ..ClientFlags::default() }, "--verbose"),
        (ClientFlags { json: true, output, ..ClientFlags::default() }, "--output"),
    ] {
        let error = flags.resolve().unwrap_err().to_string();
        assert!(error.contains("cannot be used with") && error.contains(named), "{error}");
    }
}
