use super::*;

fn journal(number: u64) -> Journal {
    Journal { number, written: 100, hash: number * 7 }
}

#[test]
fn a_marker_reads_back_and_any_other_text_does_not() {
    let journals = [journal(3), Journal { number: 4, written: 0, hash: u64::MAX }];
    assert_eq!(parse(&render(&journals)), Some(journals.to_vec()));

    for text in ["", HEADER, "trestle-kv-closed 2\njournal 1 2 3\n", "hello\njournal 1 2 3\n"] {
        assert_eq!(parse(text), None, "{text:?}");
    }
    for line in ["journal 1 2", "journal 1 2 3 4", "journal x 2 3", "table 1 2 3"] {
        assert_eq!(parse(&format!("{HEADER}\n{line}\n")), None, "{line}");
    }
}

#[test]
fn journals_that_changed_since_the_marker_are_damaged() {
    let left = [journal(3), journal(4)];
    assert_eq!(judge(&left, &left), MarkerVerdict::Intact);
    assert_eq!(judge(&left, &[journal(2), journal(3), journal(4)]), MarkerVerdict::Intact);

    let shorter = Journal { written: 99, ..journal(4) };
    let changed = Journal { hash: 1, ..journal(3) };
    let grown = Journal { written: 101, ..journal(3) };
    for (found, named) in [
        (vec![journal(4)], "3.jnl"),
        (vec![journal(3)], "4.jnl"),
        (vec![], "3.jnl"),
        (vec![journal(3), shorter], "4.jnl"),
        (vec![changed, journal(4)], "3.jnl"),
        (vec![grown, journal(4)], "3.jnl"),
    ] {
        let MarkerVerdict::Damaged(reason) = judge(&left, &found) else { panic!("{found:?}") };
        assert!(reason.contains(named), "{reason}");
    }
}
