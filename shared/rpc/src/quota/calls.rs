//! The quotas of an account on calls of any service: operations, and bytes of requests and responses.
//!
//! An operation is reserved before a call begins. Bytes are debited as they pass: how many a call has is known only
//! then, so a call may overdraw the bucket, and the next one waits. What a stream transfers is delayed instead.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use tokio::time::Instant;

use super::{KeyedBuckets, LiveQuotas, Rate};
use crate::semconv;
use trestle_model::fault::{Fault, OverQuota};
use trestle_model::name::AccountName;

/// The part of the burst of bytes that streams do not begin: a quarter.
const STREAM_RESERVE: u64 = 4;

/// The limits of calls of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallRates {
    /// Calls; none: no limit.
    pub operations: Option<Rate>,
    /// Bytes of requests and responses; none: no limit.
    pub bytes: Option<Rate>,
}

/// Which of the two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CallLimit {
    Operations,
    Bytes,
}

impl CallLimit {
    /// As in the labels of metrics.
    fn label(self) -> &'static str {
        match self {
            Self::Operations => "account_operations",
            Self::Bytes => "account_bytes",
        }
    }

    fn exceeded(self, account: &AccountName, rate: Rate, wait: Duration) -> Fault {
        let (what, setting) = match self {
            Self::Operations => ("operations", "account_operations_per_second"),
            Self::Bytes => ("bytes of requests and responses", "account_bytes_per_second"),
        };
        let (per_second, burst) = (rate.per_second(), rate.burst());
        let description =
            format!("{per_second} {what} a second, {burst} at once (quotas.{setting})");
        Fault::over_quota(OverQuota { subject: format!("account `{account}`"), description }, wait)
    }
}

/// The limits of calls of every account, and what was used of them.
pub struct CallQuotas {
    quotas: LiveQuotas,
    buckets: KeyedBuckets,
    /// Keyed by the process, so that no client can aim at the bucket of another.
    hasher: RandomState,
    started: Instant,
    /// Counts calls over a quota, and streams that are slowed down.
    throttled: Counter<u64>,
}

/// Prints no buckets, of which there are thousands.
impl std::fmt::Debug for CallQuotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallQuotas").finish_non_exhaustive()
    }
}

impl CallQuotas {
    /// Nothing was used before. Calls over a quota are counted on `meter`.
    #[must_use]
    pub fn new(quotas: LiveQuotas, meter: &Meter) -> Arc<Self> {
        Arc::new(Self {
            quotas,
            buckets: KeyedBuckets::default(),
            hasher: RandomState::new(),
            started: Instant::now(),
            throttled: semconv::throttled(meter),
        })
    }

    /// Admits a call of an account. Returns where its bytes count; none: they have no limit. Calls without credentials,
    /// which anyone may make, have a quota of their own of the same size.
    ///
    /// # Errors
    /// The account has used its operations or overdrawn its bytes: with the quota, and the delay after which a call
    /// is admitted if no other one is before it. Nothing was reserved.
    pub fn admit(
        self: &Arc<Self>,
        account: &AccountName,
        has_credentials: bool,
    ) -> Result<Option<CallMeter>, Fault> {
        let CallRates { operations, bytes } = self.quotas.of(account).calls;
        let now = self.started.elapsed();
        let meter = bytes.map(|rate| {
            let key = self.key(CallLimit::Bytes, (account, has_credentials));
            CallMeter { quotas: Arc::clone(self), rate, key }
        });
        let rejected = |limit: CallLimit, rate, wait| {
            self.throttled.add(1, &[KeyValue::new(semconv::THROTTLE_SCOPE, limit.label())]);
            limit.exceeded(account, rate, wait)
        };
        if let Some(meter) = &meter {
            let wait = meter.wait();
            if !wait.is_zero() {
                return Err(rejected(CallLimit::Bytes, meter.rate, wait));
            }
        }
        if let Some(rate) = operations {
            let key = self.key(CallLimit::Operations, (account, has_credentials));
            let reserved = self.buckets.reserve(key, rate, 1, now);
            reserved.map_err(|wait| rejected(CallLimit::Operations, rate, wait))?;
        }
        Ok(meter)
    }

    fn key(&self, limit: CallLimit, caller: (&AccountName, bool)) -> u64 {
        self.hasher.hash_one((limit, caller))
    }
}

/// Where the bytes of a call count.
#[derive(Debug, Clone)]
pub struct CallMeter {
    quotas: Arc<CallQuotas>,
    rate: Rate,
    key: u64,
}

impl CallMeter {
    /// Debits bytes that have passed.
    pub fn used(&self, bytes: usize) {
        let (bytes, now) = (bytes as u64, self.quotas.started.elapsed());
        self.quotas.buckets.debit(self.key, self.rate, bytes, now);
    }

    /// How long until the bytes of the account are not overdrawn, if no more pass.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait_for(1)
    }

    /// How long until a stream may pass more bytes: a part of the burst is left to calls that are rejected otherwise,
    /// whenever they retry.
    #[must_use]
    pub fn stream_wait(&self) -> Duration {
        self.wait_for((self.rate.burst() / STREAM_RESERVE).max(1))
    }

    /// Counts a stream that is slowed down.
    pub fn slowed(&self) {
        let scope = KeyValue::new(semconv::THROTTLE_SCOPE, CallLimit::Bytes.label());
        self.quotas.throttled.add(1, &[scope]);
    }

    fn wait_for(&self, bytes: u64) -> Duration {
        let now = self.quotas.started.elapsed();
        self.quotas.buckets.wait(self.key, self.rate, bytes, now)
    }
}

#[cfg(test)]
mod tests;
