//! Actions on leases.

#[cfg(test)]
mod tests;

use std::{ops::RangeInclusive, time::Duration};

use trestle_model::duration;
use trestle_model::fault::Reason;
use trestle_model::limits::{LEASE_MAX, LEASE_MIN};
use trestle_proto::blob::v1::{
    AcquireLease, BreakLease, ChangeLease, ReleaseLease, RenewLease, lease_blob_request,
    lease_container_request,
};
use uuid::Uuid;

use super::RequestParser;
use crate::lease::LeaseAction;

/// An action of a request, on whatever it is.
pub(in crate::api) enum LeaseRequest {
    Acquire(AcquireLease),
    Renew(RenewLease),
    Change(ChangeLease),
    Release(ReleaseLease),
    Break(BreakLease),
}

macro_rules! from_action {
    ($($module:ident),+) => {$(
        impl From<$module::Action> for LeaseRequest {
            fn from(action: $module::Action) -> Self {
                match action {
                    $module::Action::Acquire(acquire) => Self::Acquire(acquire),
                    $module::Action::Renew(renew) => Self::Renew(renew),
                    $module::Action::Change(change) => Self::Change(change),
                    $module::Action::Release(release) => Self::Release(release),
                    $module::Action::Break(end) => Self::Break(end),
                }
            }
        }
    )+};
}

from_action!(lease_blob_request, lease_container_request);

impl RequestParser {
    /// An action on a lease; `random` becomes the id of a new lease.
    pub(in crate::api) fn lease_action(
        &mut self,
        action: Option<LeaseRequest>,
        random: u128,
    ) -> Option<LeaseAction> {
        let Some(action) = action else {
            self.push(Reason::InvalidHeaderValue, "action", "required: what to do with the lease");
            return None;
        };
        match action {
            LeaseRequest::Acquire(acquire) => {
                let duration =
                    self.seconds(acquire.duration, LEASE_MIN..=LEASE_MAX, "acquire.duration");
                let text = &acquire.proposed_lease_id;
                let proposed = self.lease_id(text, "acquire.proposed_lease_id");
                let generated = uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
                Some(LeaseAction::Acquire { duration, proposed, generated })
            }
            LeaseRequest::Renew(renew) => {
                self.required_id(&renew.lease_id, "renew.lease_id").map(LeaseAction::Renew)
            }
            LeaseRequest::Change(change) => {
                let id = self.required_id(&change.lease_id, "change.lease_id");
                let proposed =
                    self.required_id(&change.proposed_lease_id, "change.proposed_lease_id");
                id.zip(proposed).map(|(id, proposed)| LeaseAction::Change { id, proposed })
            }
            LeaseRequest::Release(release) => {
                self.required_id(&release.lease_id, "release.lease_id").map(LeaseAction::Release)
            }
            LeaseRequest::Break(end) => {
                let range = Duration::ZERO..=LEASE_MAX;
                let period = self.seconds(end.break_period, range, "break.break_period");
                Some(LeaseAction::Break(period))
            }
        }
    }

    fn required_id(&mut self, text: &str, field: &str) -> Option<Uuid> {
        if text.is_empty() {
            self.push(Reason::InvalidHeaderValue, field, "required: a UUID");
        }
        self.lease_id(text, field)
    }

    /// Whole seconds in a range; none if they are absent or rejected.
    fn seconds(
        &mut self,
        duration: Option<prost_types::Duration>,
        range: RangeInclusive<Duration>,
        field: &str,
    ) -> Option<Duration> {
        let given = duration?;
        let parsed = duration::not_negative(given);
        let parsed = parsed.filter(|it| it.subsec_nanos() == 0 && range.contains(it));
        if parsed.is_none() {
            let (min, max) = (range.start().as_secs(), range.end().as_secs());
            let value = duration::exact(given);
            let rule = format!("must be {min} to {max} whole seconds: value=`{value}`");
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        parsed
    }
}
