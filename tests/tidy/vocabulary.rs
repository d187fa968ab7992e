//! Paraphrases of standard terms, whose meaning a reader has to guess.

use crate::source::{Finding, Source};

/// Each word with the term to use. Words may have the endings below.
const WORDS: [(&str, &str); 63] = [
    (concat!("sh", "elf"), "scheduler"),
    (concat!("sh", "elves"), "schedulers"),
    (concat!("home", "less"), "unknown keyspace"),
    (concat!("vou", "ch"), "authenticate, issue, trust"),
    (concat!("men", "d"), "fix"),
    (concat!("for e", "ver"), "no expiry, always"),
    (concat!("let g", "o"), "release, disconnect"),
    (concat!("lets g", "o"), "releases, disconnects"),
    (concat!("as", "ked to end"), "shut down (SIGTERM)"),
    (concat!("time is o", "ver"), "expired, timed out"),
    (concat!("to", "ll"), "cost, tokens of a bucket"),
    (concat!("gra", "ve"), "dead letter"),
    (concat!("refu", "sal"), "error (of a call), rejection"),
    (concat!("den", "ial"), "denied permission"),
    (concat!("tur", "ned away"), "rejected"),
    (concat!("hur", "ry"), "force a shutdown"),
    (concat!("kee", "per"), "store, task"),
    (concat!("up", "call"), "gRPC call"),
    (concat!("sif", "t"), "filter"),
    (concat!("led", "ger"), "checkpoint"),
    (concat!("sur", "vey"), "scan"),
    (concat!("stre", "tch"), "bucket, key range"),
    (concat!("pass", "age"), "body wrapper, write stall"),
    (concat!("spe", "ak"), "support, use (a protocol)"),
    (concat!("hea", "rd"), "received"),
    (concat!("to", "ld"), "reported, returned"),
    (concat!("tel", "ling"), "reporting"),
    (concat!("stay", "ed"), "remained"),
    (concat!("bur", "ied"), "dead-lettered"),
    (concat!("do", "or"), "listener, HTTP edge"),
    (concat!("pri", "ce"), "cost"),
    (concat!("tick", "et"), "permit, waiter"),
    (concat!("who", "ever"), "the noun: caller, client, holder"),
    (concat!("some", "body"), "the noun: client, consumer, operator"),
    (concat!("every", "body"), "the noun: clients, consumers"),
    (concat!("pati", "ence"), "timeout"),
    (concat!("pati", "ent"), "retrying, waiting"),
    (concat!("de", "bt"), "overdrawn bucket"),
    (concat!("ow", "e"), "debit"),
    (concat!("le", "st"), "so that not"),
    (concat!("spo", "ken"), "the protocol of a request"),
    (concat!("le", "nt"), "borrowed, drained"),
    (concat!("wi", "sh"), "preference"),
    (concat!("as", "k"), "request, send, require"),
    (concat!("go", "ne"), "deleted, closed, disconnected"),
    (concat!("no", "body"), "the noun: no client, no caller"),
    (concat!("any", "body"), "the noun: any client, any caller"),
    (concat!("wa", "nt"), "expected, requested"),
    (concat!("hid", "den"), "invisible (visibility timeout)"),
    (concat!("sta", "nd"), "exist, be"),
    (concat!("sto", "od"), "existed, was"),
    (concat!("sa", "id"), "reported, logged"),
    (concat!("sa", "ys"), "reports, declares"),
    (concat!("set", "tle"), "acknowledge, resolve"),
    (concat!("be", "at"), "heartbeat"),
    (concat!("no", "ting"), "storing, recording"),
    (concat!("ta", "ken"), "accepted, used, received"),
    (concat!("li", "ves"), "TTL, lifetime"),
    (concat!("te", "ll"), "report, distinguish"),
    (concat!("kn", "ow"), "store, support, recognise"),
    (concat!("kn", "ew"), "stored, supported"),
    (concat!("be", "ar"), "serve, sustain"),
    (concat!("lea", "rn"), "detect, receive"),
];
/// Names of libraries with one of the words.
const EXEMPT: [&str; 1] = [concat!("progressbar::hid", "den")];
/// Endings that a word may have.
const ENDINGS: [&str; 5] = ["", "s", "es", "ed", "ing"];

/// Lines with one of the words.
pub(crate) fn paraphrases(source: &Source) -> Vec<Finding> {
    let is_text = matches!(source.extension(), "rs" | "proto" | "md" | "sh" | "py" | "js" | "toml");
    if !is_text {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let line = EXEMPT.iter().fold(line.to_lowercase(), |line, name| line.replace(name, ""));
        for (word, term) in WORDS.iter().filter(|(word, _)| contains(&line, word)) {
            findings.push(source.finding(index, format!("`{word}`: write {term}")));
        }
    }
    findings
}

/// Whether a line has a word by itself, also as a part of a name in snake case.
fn contains(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let rest = line.get(at + word.len()..).unwrap_or_default();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let ending = rest.get(..end).unwrap_or_default();
        before.is_none_or(|c| !c.is_alphabetic()) && ENDINGS.contains(&ending)
    })
}

#[test]
fn reports_a_word_and_its_forms_and_no_other_words() {
    let found = |text: &str| paraphrases(&Source::new("a/b.rs", text)).len();
    let (first, second) = (WORDS[3].0, WORDS[4].0);

    for text in [format!("// {first}es"), format!("fn {second}_it()"), format!("Was {second}ed.")] {
        assert_eq!(found(&text), 1, "{text}");
    }
    for text in [format!("recom{second}"), format!("a{second}ment")] {
        assert_eq!(found(&text), 0, "{text}");
    }
    assert_eq!(paraphrases(&Source::new("page.html", first)), []);
}

#[test]
fn reports_the_standard_term_and_exempts_names_of_libraries() {
    let (word, term) = WORDS[0];
    let found = |text: &str| paraphrases(&Source::new("a/b.rs", text));

    assert_eq!(found(word)[0].to_string(), format!("a/b.rs:1: `{word}`: write {term}"));
    assert_eq!(found(EXEMPT[0]), []);
}
