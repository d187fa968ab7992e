//! Precedence, shorthands and errors of the grammar.

use super::*;

#[test]
fn and_binds_tighter_than_or_and_not_looser_than_a_comparison() {
    let (a, b, c) = (equals("a", 1), equals("b", 2), equals("c", 3));
    let not = |expr| Expr::Not(Box::new(expr));
    let cases = [
        (
            "a eq 1 or b eq 2 and c eq 3",
            Expr::any(vec![a.clone(), Expr::all(vec![b.clone(), c.clone()])]),
        ),
        (
            "(a eq 1 or b eq 2) and c eq 3",
            Expr::all(vec![Expr::any(vec![a.clone(), b.clone()]), c.clone()]),
        ),
        ("not a eq 1 and b eq 2", Expr::all(vec![not(a.clone()), b.clone()])),
        ("not (a eq 1 and b eq 2)", not(Expr::all(vec![a.clone(), b.clone()]))),
        ("not (not (a eq 1))", a.clone()),
        ("((a eq 1))", a.clone()),
    ];
    for (text, expected) in cases {
        assert_eq!(plain(text), expected, "{text}");
    }
}

#[test]
fn chains_are_flat_however_they_are_grouped() {
    let parts = || vec![equals("a", 1), equals("b", 2), equals("c", 3), equals("d", 4)];
    for text in [
        "a eq 1 and b eq 2 and c eq 3 and d eq 4",
        "a eq 1 and (b eq 2 and (c eq 3 and d eq 4))",
        "((a eq 1 and b eq 2) and (c eq 3 and d eq 4))",
    ] {
        assert_eq!(plain(text), Expr::And(parts()), "{text}");
        let or = text.replace("and", "or");
        assert_eq!(plain(&or), Expr::Or(parts()), "{or}");
    }
}

#[test]
fn a_literal_on_the_left_mirrors_the_comparison() {
    for (mirrored, straight) in [
        ("1 eq a", "a eq 1"),
        ("1 ne a", "a ne 1"),
        ("1 lt a", "a gt 1"),
        ("1 le a", "a ge 1"),
        ("1 gt a", "a lt 1"),
        ("1 ge a", "a le 1"),
        ("'x' lt a", "a gt 'x'"),
        ("true ne a", "a ne true"),
    ] {
        assert_eq!(plain(mirrored), plain(straight), "{mirrored}");
    }
}

#[test]
fn a_property_alone_is_true_and_a_boolean_alone_a_constant() {
    let is_true = |name| Expr::compare(name, Operator::Equal, Literal::Boolean(true));
    assert_eq!(plain("a"), is_true("a"));
    assert_eq!(plain("a and (b)"), Expr::all(vec![is_true("a"), is_true("b")]));
    assert_eq!(plain("not a"), Expr::Not(Box::new(is_true("a"))));
    assert_eq!(plain("true"), Expr::Constant(true));
    assert_eq!(plain("false or a"), Expr::any(vec![Expr::Constant(false), is_true("a")]));
    assert_eq!(parse::<Plain>(""), Ok(None));
    assert_eq!(parse::<Plain>(" \t\r\n"), Ok(None));
}

#[test]
fn operators_are_lower_case_and_other_words_are_properties() {
    assert_eq!(plain("And eq 1"), equals("And", 1));
    assert_eq!(plain("eq eq 1"), equals("eq", 1));
    assert_eq!(plain("datetime eq 1"), equals("datetime", 1));
    assert_eq!(plain("x eq 1"), equals("x", 1));
    assert_eq!(plain("_Größe eq 1"), equals("_Größe", 1));
    assert_eq!(plain("a\u{301} eq 1"), equals("a\u{301}", 1));
}

#[test]
fn booleans_are_written_in_any_case() {
    for (text, truth) in [("True", true), ("truE", true), ("FALSE", false), ("faLsE", false)] {
        let expected = Expr::compare("a", Operator::Equal, Literal::Boolean(truth));
        assert_eq!(plain(&format!("a eq {text}")), expected, "{text}");
        assert_eq!(plain(&format!("{text} eq a")), expected, "{text}");
        assert_eq!(plain(text), Expr::Constant(truth), "{text}");
    }
    assert!(plain_error("a eq Truth").1.contains("two properties cannot be compared"));
    assert!(plain_error("TRUE eq FALSE").1.contains("two literals cannot be compared"));
}

#[test]
fn errors_of_tables_have_their_position_and_expectation() {
    for (text, position, message) in [
        ("a", 1, ""),
        ("a eq", 4, "Expected a property or a literal, found the end of the filter"),
        ("a eq 1 b", 8, "Expected `and`, `or` or the end of the filter, found `b`"),
        ("a eq 1)", 7, "found `)`"),
        ("(a eq 1", 7, "Expected `and`, `or` or `)`, found the end"),
        ("()", 2, "Expected a property or a literal, found `)`"),
        ("and", 3, "Expected a property or a literal, found `and`"),
        ("not", 3, "Expected a property or a literal, found the end"),
        ("a eq b", 6, "two properties cannot be compared"),
        ("1 eq 2", 6, "two literals cannot be compared"),
        ("1", 1, "Expected an operator"),
        ("'a' and b", 7, "Expected an operator"),
        ("a eq null", 9, "`null` cannot be compared with"),
        ("null eq a", 4, "`null` cannot be compared with"),
        ("a add 1 eq 2", 5, "Arithmetic such as `add` is not supported"),
        ("a in 1", 4, "Operator `in` is not supported"),
        ("a has 1", 5, "Operator `has` is not supported"),
        ("a eq -", 6, "Malformed number `-`"),
        ("contains(a, 'b')", 8, "Functions such as `contains` are not supported"),
        ("a eq length(b)", 11, "Functions such as `length` are not supported"),
        ("a/b eq 1", 1, "Unexpected character `/`"),
        ("a, b", 1, "Unexpected character `,`"),
        ("a = 1", 2, "equality is written `eq`"),
        ("a != 1", 2, "inequality is written `ne`"),
        ("a < 1", 2, "write `lt` or `le`"),
        ("a > 1", 2, "write `gt` or `ge`"),
        ("a eq \"b\"", 5, "text is written in single quotes"),
        ("a && b", 2, "write `and`"),
        ("a || b", 2, "write `or`"),
        ("a eq \u{1}", 5, "Unexpected character `U+0001`"),
        ("é eq 'é' ?", 11, "Unexpected character `?`"),
    ] {
        if message.is_empty() {
            plain(text);
            continue;
        }
        let (found, error) = plain_error(text);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(found, position, "{text}: {error}");
    }
}

#[test]
fn paths_and_functions_exist_only_where_the_dialect_has_them() {
    let path = |name: &str, key: Option<&str>| FilterPath {
        name: name.to_owned(),
        key: key.map(str::to_owned),
    };
    let compare = |path, number| {
        Expr::Compare(PathCondition::Compare(path, Operator::Equal, Literal::Int32(number)))
    };
    for (text, key) in [
        ("a/b.c-d:e eq 1", "b.c-d:e"),
        ("a/'b c' eq 1", "b c"),
        ("a/'it''s' eq 1", "it's"),
        ("a/'' eq 1", ""),
        ("a/0 eq 1", "0"),
        ("1 eq a/eq", "eq"),
    ] {
        assert_eq!(with_paths(text), compare(path("a", Some(key)), 1), "{text}");
    }
    assert_eq!(with_paths("a eq 1"), compare(path("a", None), 1));
    let call = |function, key: Option<&str>| {
        Expr::Compare(PathCondition::Call(function, path("a", key), "x,)".to_owned()))
    };
    assert_eq!(with_paths("contains(a, 'x,)')"), call(Function::Contains, None));
    assert_eq!(with_paths("startswith ( a/k ,'x,)' )"), call(Function::StartsWith, Some("k")));
    // Without a parenthesis it is the name of a property.
    assert_eq!(with_paths("contains eq 1"), compare(path("contains", None), 1));
}

#[test]
fn errors_of_paths_and_functions_have_their_position() {
    for (text, position, message) in [
        ("a/ eq 1", 2, "Expected a key after `/`"),
        ("a/'b eq 1", 9, "Text has no closing quote"),
        ("absent eq 1", 6, "No such property"),
        ("1 eq absent/k", 13, "No such property"),
        ("a eq guid'01234567-89ab-cdef-0123-456789abcdef'", 47, "No guids"),
        ("contains(a, '')", 14, "No empty texts"),
        ("contains(absent, 'a')", 15, "No such property"),
        ("contains()", 10, "Expected a property or a literal"),
        ("contains(a)", 11, "Expected `,`, found `)`"),
        ("contains(a, b)", 13, "Expected a text in single quotes, found `b`"),
        ("contains(a, 'b', 'c')", 16, "Expected `)`, found `,`"),
        ("contains(contains(a, 'b'), 'c')", 17, "not supported"),
        ("a eq contains(b, 'c')", 13, "not supported"),
        (
            "lower(a) eq 'b'",
            5,
            "Function `lower` is not supported, expected `contains` or `startswith`",
        ),
        (", a", 1, "Expected a property or a literal, found `,`"),
    ] {
        let (found, error) = path_error(text);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(found, position, "{text}: {error}");
    }
}

#[test]
fn the_first_use_of_a_name_is_found_outside_of_quotes() {
    assert_eq!(position_of("b", "a eq 'b' and b eq 1"), 14);
    assert_eq!(position_of("a", "a eq 1"), 1);
    // Where the name is not used, the end.
    assert_eq!(position_of("c", "a eq 1 "), 7);
    assert_eq!(position_of("c", "a = 1"), 0);
}

#[test]
fn an_error_becomes_a_violation_of_the_field_filter() {
    let error = parse::<Plain>("a ?").unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "Syntax error at position 2 in 'a ?'. Unexpected character `?`");

    let fault = trestle_model::fault::Fault::from(error);

    assert_eq!(fault.reason, trestle_model::fault::Reason::InvalidInput);
    let fields: Vec<_> = fault.violations.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["filter"]);
    assert!(fault.message.contains("Syntax error at position 2"), "{}", fault.message);
}
