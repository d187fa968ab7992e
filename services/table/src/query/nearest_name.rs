//! The name that a misspelled name was probably meant to be.

/// Longest name that is compared, in characters.
const CHARS_MAX: usize = 64;

/// The name with the fewest changed characters, unless too many of them are changed; case does not count.
pub(super) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = lower_case(wanted);
    let changes_max = (wanted.len() + 1) / 3;
    let is_near = |name: &&str| name.chars().count() <= CHARS_MAX;
    if wanted.len() > CHARS_MAX {
        return None;
    }
    let compared = names.into_iter().filter(is_near);
    let compared = compared.map(|name| (changes(&lower_case(name), &wanted), name));
    compared.filter(|(changes, _)| *changes <= changes_max).min().map(|(_, name)| name)
}

fn lower_case(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// How many characters are inserted, removed or replaced between two names (Levenshtein).
fn changes(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (removed, left) in from.iter().enumerate() {
        let mut diagonal = removed;
        let mut last = removed + 1;
        for (right, cell) in to.iter().zip(row.iter_mut().skip(1)) {
            let above = std::mem::replace(cell, 0);
            *cell = (above + 1).min(last + 1).min(diagonal + usize::from(left != right));
            (diagonal, last) = (above, *cell);
        }
        if let Some(first) = row.first_mut() {
            *first = removed + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changes_between_names_are_counted() {
        let changes = |from: &str, to: &str| {
            let (from, to): (Vec<_>, Vec<_>) = (from.chars().collect(), to.chars().collect());
            changes(&from, &to)
        };

        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("total", "total", 0),
            ("total", "totl", 1),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("é", "e", 1),
        ] {
            assert_eq!(changes(from, to), expected, "{from} {to}");
            assert_eq!(changes(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn the_nearest_name_has_few_changes_and_any_case() {
        let names = ["state", "total", "Created", "x"];

        assert_eq!(nearest("totl", names), Some("total"));
        assert_eq!(nearest("TOTAL", names), Some("total"));
        assert_eq!(nearest("created", names), Some("Created"));
        assert_eq!(nearest("status", names), Some("state"));
        assert_eq!(nearest("y", names), None, "every one of its characters would change");
        assert_eq!(nearest("customer", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("X", names), Some("x"));
    }

    #[test]
    fn a_long_name_is_not_compared() {
        let (longest, longer) = ("a".repeat(CHARS_MAX), "a".repeat(CHARS_MAX + 1));

        assert_eq!(nearest(&longest, [longest.as_str()]), Some(longest.as_str()));
        assert_eq!(nearest(&longer, [longest.as_str()]), None);
        assert_eq!(nearest(&longest, [longer.as_str()]), None);
    }
}
