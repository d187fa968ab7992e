//! A quota that a call would exceed.

use std::time::Duration;

use trestle_model::fault::{self, Fault};
use trestle_rpc::quota::Rate;

/// A quota that would be exceeded.
#[derive(Debug, Clone)]
pub struct QuotaExceeded {
    /// What has the quota.
    pub(crate) subject: String,
    pub(super) rate: Rate,
    /// How long until enough tokens are available, if no other caller reserves them.
    pub(crate) wait: Duration,
}

impl From<QuotaExceeded> for Fault {
    fn from(exceeded: QuotaExceeded) -> Self {
        let (per_second, burst) = (exceeded.rate.per_second(), exceeded.rate.burst());
        let description = format!(
            "{per_second} entities of 1 KiB a second, {burst} at once; examined ones count too"
        );
        let quota = fault::OverQuota { subject: exceeded.subject, description };
        Self::over_quota(quota, exceeded.wait)
    }
}
