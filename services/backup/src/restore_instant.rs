//! The instant that a restore is for.

use trestle_model::time::Ticks;

/// The instant that a restore is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreInstant {
    /// The last one that can be restored.
    Latest,
    /// This one.
    At(Ticks),
}

/// An instant, cut to a tick.
pub(crate) fn restore_instant(text: &str) -> Result<RestoreInstant, String> {
    const RULE: &str = "must be latest, or a time by RFC 3339, such as 2026-01-31T08:00:00.5Z";
    if text == "latest" {
        return Ok(RestoreInstant::Latest);
    }
    let time = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| RULE.to_owned())?;
    let nanos = i32::try_from(time.timestamp_subsec_nanos() / 100 * 100).ok();
    let at = nanos.and_then(|nanos| Ticks::from_unix(time.timestamp(), nanos));
    at.map(RestoreInstant::At).ok_or_else(|| RULE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_latest_or_by_rfc_3339_and_is_cut_to_a_tick() {
        let at = |nanos| Ok(RestoreInstant::At(Ticks::from_unix(1_769_846_400, nanos).unwrap()));
        assert_eq!(restore_instant("latest"), Ok(RestoreInstant::Latest));
        assert_eq!(restore_instant("2026-01-31T08:00:00Z"), at(0));
        assert_eq!(restore_instant("2026-01-31T10:00:00.123456789+02:00"), at(123_456_700));
        for wrong in [
            "",
            "Latest",
            "2026-01-31",
            "2026-01-31T08:00:00",
            "2026-02-30T08:00:00Z",
            "2026-01-31T23:59:60Z",
        ] {
            assert!(restore_instant(wrong).unwrap_err().contains("RFC 3339"), "{wrong}");
        }
    }
}
