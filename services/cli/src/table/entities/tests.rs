use trestle_proto::table::v1::value::Kind;

use super::*;

#[test]
fn properties_on_the_command_line_are_text_unless_a_type_is_given() {
    let kind = |text| property("--set", text).unwrap().value.unwrap().kind.unwrap();

    assert_eq!(kind("a=5"), Kind::StringValue("5".to_owned()));
    assert_eq!(kind("a:Edm.Int64=5"), Kind::Int64Value(5));
    assert_eq!(kind("a:Int32=5"), Kind::Int32Value(5));
    assert_eq!(kind("a:int64=5"), Kind::Int64Value(5));
    assert_eq!(kind("a:bool=true"), Kind::BooleanValue(true));
    assert_eq!(kind("a=x:y=z"), Kind::StringValue("x:y=z".to_owned()));
    assert_eq!(kind("a="), Kind::StringValue(String::new()));
}

#[test]
fn malformed_properties_name_the_rule() {
    for (text, rule) in [
        ("a", "must be NAME[:TYPE]=VALUE"),
        ("a:Int16=1", "unknown type `Int16`"),
        (
            "a:text=true",
            "unknown type `text`: must be one of string, int32, int64, double, boolean",
        ),
        ("a:Edm.Text=true", "unknown type `Edm.Text`: must be one of string"),
        ("a:bool=2", "Edm.Boolean: must be"),
        ("a:é=true", "unknown type `é`: must be one of string"),
        ("a:Int32=x", "Edm.Int32: must be a whole number"),
    ] {
        let error = property("--set", text).unwrap_err().to_string();
        assert!(error.contains(rule), "{error}");
    }
}
