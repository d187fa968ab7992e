//! Trees and their canonical texts, and that no text makes the parser panic.

use proptest::{collection::vec, prelude::*, sample::select};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::*;

fn literals() -> impl Strategy<Value = Literal> {
    // A filter has times of 100 ns since 1601.
    let seconds = -11_644_473_600..253_402_300_799_i64;
    prop_oneof![
        "\\PC{0,5}|[\u{0}-\u{20}']{0,4}".prop_map(Literal::String),
        any::<i32>().prop_map(Literal::Int32),
        any::<i64>().prop_map(Literal::Int64),
        any::<f64>().prop_filter("finite", |double| double.is_finite()).prop_map(Literal::Double),
        any::<bool>().prop_map(Literal::Boolean),
        (seconds, 0..10_000_000_i32).prop_map(|(seconds, ticks)| {
            Literal::DateTime(Ticks::from_unix(seconds, ticks * 100).unwrap())
        }),
        vec(any::<u8>(), 0..4).prop_map(|bytes| Literal::Binary(bytes.into())),
    ]
}

fn names() -> impl Strategy<Value = String> {
    let is_word =
        |name: &String| matches!(name.as_str(), "and" | "or" | "not" | "true" | "false" | "null");
    "[a-z_é][a-z0-9_é]{0,4}".prop_filter("a property", move |name| !is_word(name))
}

fn paths() -> impl Strategy<Value = FilterPath> {
    let key = prop_oneof!["[a-z0-9.:_-]{1,5}", "\\PC{0,4}", Just("it's".to_owned())];
    (names().prop_filter("exists", |name| name != "absent"), proptest::option::of(key))
        .prop_map(|(name, key)| FilterPath { name, key })
}

fn tree<C: Clone + fmt::Debug + 'static>(
    condition: impl Strategy<Value = C> + 'static,
) -> impl Strategy<Value = Expr<C>> {
    let leaf = prop_oneof![
        9 => condition.prop_map(Expr::Compare),
        1 => any::<bool>().prop_map(Expr::Constant),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Expr::all),
            vec(inner.clone(), 2..4).prop_map(Expr::any),
            // The opposite of an opposite is not kept.
            inner.prop_map(|inner| match inner {
                Expr::Not(inner) => *inner,
                inner => Expr::Not(Box::new(inner)),
            }),
        ]
    })
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    let guids = any::<u128>().prop_map(|bits| Literal::Guid(Uuid::from_u128(bits)));
    (names(), select(&Operator::ALL[..]), prop_oneof![6 => literals(), 1 => guids])
        .prop_map(|(property, operator, literal)| Comparison { property, operator, literal })
}

fn conditions() -> impl Strategy<Value = PathCondition> {
    let functions = select(&[Function::Contains, Function::StartsWith][..]);
    prop_oneof![
        (paths(), select(&Operator::ALL[..]), literals())
            .prop_map(|(path, operator, literal)| PathCondition::Compare(path, operator, literal)),
        (functions, paths(), "\\PC{1,4}|'")
            .prop_map(|(function, path, text)| PathCondition::Call(function, path, text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_tree_of_tables_is_read_back_from_its_text(expr in tree(comparisons())) {
        let text = expr.to_string();
        prop_assert_eq!(plain(&text), expr, "{}", text);
    }

    #[test]
    fn a_tree_with_paths_is_read_back_from_its_text(expr in tree(conditions())) {
        let text = expr.to_string();
        prop_assert_eq!(with_paths(&text), expr, "{}", text);
    }

    #[test]
    fn any_text_is_parsed_or_rejected_at_a_position_in_it(text in "\\PC{0,40}") {
        // The position may be inside of a character: it is that of a byte.
        for error in [parse::<Plain>(&text).err(), parse::<Paths>(&text).err()].into_iter().flatten() {
            prop_assert!(error.position <= text.len(), "{}", error);
            prop_assert!(!error.message.is_empty());
        }
    }

    #[test]
    fn any_tokens_are_parsed_or_rejected_alike_with_more_blanks(
        tokens in vec(
            select(&[
                "a", "b/k", "a/'x y'", "eq", "ne", "and", "or", "not", "(", ")", ",", "1", "-1", "1L",
                "1.5", "'x'", "''", "true", "null", "X'00'", "contains", "startswith", "absent", "/",
                "datetime'1970-01-01T00:00Z'", "=", "'",
            ][..]),
            0..10,
        ),
    ) {
        let (narrow, wide) = (tokens.join(" "), format!("\t{}\n", tokens.join(" \r\n ")));
        // Blanks are a part of a text.
        prop_assume!(!tokens.contains(&"'"));
        match (parse::<Paths>(&narrow), parse::<Paths>(&wide)) {
            (Ok(narrow), Ok(wide)) => {
                prop_assert_eq!(&narrow, &wide);
                if let Some(expr) = narrow {
                    prop_assert_eq!(with_paths(&expr.to_string()), expr);
                }
            }
            (Err(narrow), Err(wide)) => {
                prop_assert_eq!(&narrow.message, &wide.message);
            }
            (narrow, wide) => prop_assert!(false, "{:?} {:?}", narrow, wide),
        }
    }
}

#[test]
fn comparisons_are_visited_from_left_to_right() {
    let tree = plain("a eq 1 and (b eq 2 or not c eq 3) and true and d");
    let mut visited = Vec::new();
    tree.for_each_comparison(&mut |comparison| visited.push(comparison.property.as_str()));
    assert_eq!(visited, ["a", "b", "c", "d"]);
}

#[test]
fn lists_of_no_or_one_condition_are_not_lists() {
    assert_eq!(Expr::<Comparison>::all(Vec::new()), Expr::Constant(true));
    assert_eq!(Expr::<Comparison>::any(Vec::new()), Expr::Constant(false));
    assert_eq!(Expr::all(vec![equals("a", 1)]), equals("a", 1));
    let or = Expr::any(vec![equals("a", 1), equals("b", 2)]);
    assert_eq!(Expr::any(vec![or.clone(), equals("c", 3)]), plain("a eq 1 or b eq 2 or c eq 3"));
    let and = Expr::all(vec![or, equals("c", 3)]);
    assert_eq!(and.to_string(), "(a eq 1 or b eq 2) and c eq 3");
}
