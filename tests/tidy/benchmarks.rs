//! The rule that every recorded figure has its day, or a date for its section: builds differ from day to day.

use crate::source::{Finding, Source};

const DOCUMENT: &str = "docs/benchmarks.md";
/// The years in which figures were recorded.
const CENTURY: &str = "20";

/// Rows of figures without a day, in sections without a date in their text.
pub(crate) fn undated(source: &Source) -> Vec<Finding> {
    if source.path != DOCUMENT {
        return Vec::new();
    }
    let (mut is_dated, mut found) = (false, Vec::new());
    for (index, line) in source.text.lines().enumerate() {
        if line.starts_with('#') {
            is_dated = false;
        }
        let is_row = line.starts_with("| ") && line.chars().any(|c| c.is_ascii_digit());
        if !line.starts_with('|') {
            is_dated |= has_long_date(line);
        } else if is_row && !is_dated && !has_day(line) {
            found.push(source.finding(index, "a figure without the day of its record"));
        }
    }
    found
}

/// Whether the last cell of a row is a day, such as `2026-11-25`.
fn has_day(row: &str) -> bool {
    let day = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
    let parts: Vec<_> = day.split('-').map(|part| part.parse::<u16>().is_ok()).collect();
    day.starts_with(CENTURY) && day.len() == 10 && parts == [true; 3]
}

/// Whether a text has a date with its day, such as `25 November 2026`.
fn has_long_date(text: &str) -> bool {
    let words: Vec<_> = text.split([' ', ',', '(', ')']).collect();
    let is_day = |word: &str| word.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day));
    let is_year = |word: &str| word.len() == 4 && word.starts_with(CENTURY);
    words.windows(3).any(|words| is_day(words[0]) && is_year(words[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> usize {
        undated(&Source::new(DOCUMENT, text)).len()
    }

    #[test]
    fn reports_a_figure_without_its_day() {
        let dated = "| path | day |\n|---|---|\n| get 1 | 2026-11-25 |\n";
        assert_eq!(rows(dated), 0);
        assert_eq!(rows("| get 1 | 7 |\n| get 2 | 2026-11 |\n| get 3 | November 2026 |\n"), 3);
        assert_eq!(undated(&Source::new("docs/sizing.md", "| get | 1 |\n")), []);
    }

    #[test]
    fn a_date_is_for_its_section_only() {
        let section = "## A\n\n25 November 2026, on a machine.\n\n| get | 1 |\n";
        assert_eq!(rows(section), 0);
        assert_eq!(rows(&format!("{section}\n## B\n\nIn November 2026.\n\n| get | 1 |\n")), 1);
    }
}
