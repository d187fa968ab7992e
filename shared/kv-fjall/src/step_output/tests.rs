use super::*;

const MIB: u64 = 1024 * 1024;

fn file<'a>(first: &'a str, last: &'a str, mebibytes: u64) -> File<'a> {
    File { first: first.as_bytes(), last: last.as_bytes(), bytes: mebibytes * MIB }
}

fn output(levels: &[Vec<File<'_>>]) -> u64 {
    output_of(levels, 256 * MIB) / MIB
}

#[test]
fn a_compaction_of_the_first_level_writes_it_and_what_it_overlaps() {
    let below = || vec![file("a", "c", 64), file("d", "f", 64), file("g", "i", 64)];

    assert_eq!(output(&[vec![], below()]), 192, "what is written next overlaps it");
    assert_eq!(output(&[vec![file("a", "b", 16)], vec![], vec![]]), 16);
    assert_eq!(output(&[vec![file("x", "z", 16)], vec![], below()]), 16);
    let spread = vec![file("e", "f", 16), file("b", "d", 16)];
    assert_eq!(output(&[spread, vec![], below()]), 2 * 16 + 2 * 64);
    let full = ('a'..'f').map(|_| file("a", "b", 64)).collect();
    assert_eq!(output(&[vec![file("a", "b", 16)], vec![], full]), 16, "into a new level");
}

#[test]
fn a_level_that_is_too_big_moves_the_file_that_costs_least() {
    let level = || {
        let letters = ["a", "b", "c", "d", "e"];
        letters.iter().map(|letter| file(letter, letter, 64)).collect::<Vec<_>>()
    };
    let next = || vec![file("a", "b", 256), file("c", "c", 224), file("d", "e", 256)];

    assert_eq!(output(&[vec![], level(), next()]), 64 + 224);
    let due = due_output_of(&[vec![], level(), next()], 256 * MIB) / MIB;
    assert_eq!(due, 64 + 224, "it is due without a file in the first level");
    let small = level().into_iter().take(4).collect();
    assert_eq!(output(&[vec![], small, next()]), 4 * 64, "it is not too big");
}

#[test]
fn a_step_down_merges_the_cheapest_file_of_the_deepest_level() {
    let step = |levels: &[Vec<File<'_>>]| step_output_of(levels) / MIB;
    let last = || vec![file("a", "c", 64), file("d", "f", 64)];
    let marks = || vec![file("a", "f", 2)];

    assert_eq!(step(&[vec![], vec![], last()]), 0);
    assert_eq!(step(&[marks(), vec![], last()]), 2, "into an empty level");
    assert_eq!(step(&[marks(), marks(), last()]), 2 + 2 * 64);
    let pieces = vec![file("a", "d", 1), file("e", "f", 1)];
    assert_eq!(step(&[marks(), pieces, last()]), 1 + 64);
}

#[test]
fn the_first_level_is_split_into_pieces_by_its_size() {
    let piece = |levels: &[Vec<File<'_>>]| piece_bytes(levels, MIB);
    let last = || vec![file("a", "f", 64)];

    assert_eq!(piece(&[vec![file("a", "f", 16)], vec![], last()]), MIB / 4);
    assert_eq!(piece(&[vec![file("a", "f", 640)], vec![], last()]), MIB);
    assert_eq!(piece(&[vec![], vec![], last()]), 16 * 1024);
    assert_eq!(piece(&[vec![], last(), last()]), MIB, "no level is split");
}

#[test]
fn a_merge_takes_what_spans_the_file_and_all_that_this_spans() {
    let next = || vec![file("b", "c", 8), file("e", "f", 8), file("h", "i", 8), file("k", "l", 8)];
    let merged = |level: Vec<File<'_>>| cheapest(&level, &next()) / MIB;

    assert_eq!(merged(vec![file("e", "f", 2)]), 2 + 8);
    assert_eq!(merged(vec![file("d", "f", 2)]), 2 + 2 * 8, "from the one before");
    assert_eq!(merged(vec![file("d", "g", 2)]), 2 + 3 * 8, "to the one after");
    assert_eq!(merged(vec![file("d", "e", 2), file("g", "g", 4)]), 4, "moved as it is");
    let wide = vec![file("b", "b", 1), file("c", "e", 2), file("f", "h", 4)];
    assert_eq!(merged(wide), 1 + 8);
    assert_eq!(merged(vec![file("c", "d", 2), file("e", "e", 1), file("f", "f", 9)]), 1 + 9 + 8);
    assert_eq!(cheapest(&[file("a", "b", 2)], &[]) / MIB, 2);
}

#[test]
fn the_first_level_is_due_with_four_files() {
    let due = |files: usize| {
        let first = (0..files).map(|_| file("a", "z", 16)).collect();
        due_output_of(&[first, vec![], vec![file("a", "f", 64)]], 256 * MIB) / MIB
    };

    assert_eq!(due(2), 0);
    assert_eq!(due(3), 3 * 16 + 64, "the next flush is the fourth");
}
