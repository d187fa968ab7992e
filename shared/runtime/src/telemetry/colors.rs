//! Whether the log has colors.

/// Whether a terminal may be sent colors, by the variables that terminals and their users set (<https://no-color.org>).
pub(super) fn may_color(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_off = variable("NO_COLOR").is_some_and(|text| !text.is_empty());
    !is_off && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[allow(clippy::disallowed_methods, reason = "variables of every program, and no settings of ours")]
pub(super) fn env_text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_off_where_the_user_or_the_terminal_has_none() {
        for (name, value, expected) in [
            ("NO_COLOR", "1", false),
            ("NO_COLOR", "", true),
            ("TERM", "dumb", false),
            ("TERM", "xterm-256color", true),
        ] {
            let variable = |key: &str| (key == name).then(|| value.to_owned());
            assert_eq!(may_color(variable), expected, "{name}={value}");
        }
        assert!(may_color(|_| None));
    }
}
