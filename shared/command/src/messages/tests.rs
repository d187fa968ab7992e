//! Tests of the module.

use trestle_proto::queue::v1::SentMessage;

use super::*;

#[test]
fn a_response_with_another_number_of_outcomes_is_an_error() {
    let sent = SendResult { outcome: Some(Outcome::Sent(SentMessage::default())) };
    assert_eq!(outcomes(vec![sent.clone()], 1).map(|sent| sent.len()).ok(), Some(1));
    for (results, count) in [
        (vec![sent.clone()], 0),
        (vec![sent.clone()], 2),
        (vec![sent.clone(), SendResult { outcome: None }], 2),
        (vec![sent, SendResult { outcome: None }], 1),
    ] {
        let error = outcomes(results, count).map(drop).map_err(|error| error.to_string());
        let text = format!("{count} messages were answered with 1 outcomes");
        assert!(error.as_ref().is_err_and(|error| error.contains(&text)), "{error:?}");
    }
}
