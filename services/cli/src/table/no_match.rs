//! Why no entity matched a filter, as far as the server finds in one page.

use trestle_proto::table::v1::ExplainQueryRequest;

use super::Context;

/// Prints the reasons as notes. The result is complete without them, so that an error of the call is not reported.
pub(super) async fn note(context: &mut Context, table: &str, filter: &str) {
    if filter.trim().is_empty() || !context.output.shows_notes() {
        return;
    }
    let (table, filter) = (table.to_owned(), filter.to_owned());
    let request = ExplainQueryRequest { table, filter, select: None, analyze: true };
    let Ok(answer) = context.session.table().explain_query(request).await else { return };
    for reason in answer.into_inner().no_match_reasons {
        context.output.note(&format!("note: {reason}"));
    }
}
