//! The limits of accounts and partitions.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde::{Deserialize, Serialize};
use trestle_model::name::AccountName;
use trestle_rpc::quota::{CallRates, Quota, Quotas, Rate, StorageLimit, StorageMax};

use super::{NumberRule, outside};

/// The range of each number; a rate may also be 0.
const RANGE: RangeInclusive<u64> = 1..=Rate::MAX;
/// That of bytes: a client that gets fewer is disconnected as a slow one.
const BYTES_RANGE: RangeInclusive<u64> = 65_536..=Rate::MAX;

/// The section `quotas`. Without a number, and at 0, nothing is limited.
///
/// Calls and their bytes count in the process with the role `gateway`, entities in that with the role `table`. An
/// entity counts when it is inserted, updated, deleted or examined, returned or not: once for
/// each started KiB. Azure has 20,000 a second for an account and 2,000 for a partition. Processes that serve
/// tables of one database have equal parts of each rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSettings {
    /// Calls a second of every service in the whole account, 1 to 1,000,000,000, or 0: one a stream. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_operations_per_second: Option<u64>,
    /// Burst of calls in the whole account, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_operations: Option<u64>,
    /// Bytes a second of the requests and responses of calls in the whole account, of every service, 64 KiB to
    /// 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_bytes_per_second: Option<u64>,
    /// Burst of these bytes, 64 KiB to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_bytes: Option<u64>,
    /// Entities a second in the whole account, 1 to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_entities_per_second: Option<u64>,
    /// Burst of entities in the whole account, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_entities: Option<u64>,
    /// Entities a second in each partition of a table, 1 to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_entities_per_second: Option<u64>,
    /// Burst of entities in each partition, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_burst_entities: Option<u64>,
    /// Tables that an account may have, up to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_tables_max: Option<u64>,
    /// Queues that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_queues_max: Option<u64>,
    /// Containers of blobs that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_containers_max: Option<u64>,
    /// Streams of log records that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_streams_max: Option<u64>,
    /// Blobs that an account may have, in the same range. Snapshots, versions and deleted blobs do not count.
    /// Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_blobs_max: Option<u64>,
    /// Bytes that an account may store in tables, queues, blobs and streams, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_stored_bytes_max: Option<u64>,
    /// Whether `/hot-partitions` on the admin listener shows partition keys, not only a number for
    /// each. Default: false.
    #[serde(default)]
    pub show_partition_keys: bool,
    /// The limits of single accounts, by name. Unset keys are as for every account; 0 exempts the account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, QuotaNumbers>,
}

/// The section `quotas.accounts.NAME`: the limits of one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaNumbers {
    /// Calls a second of every service in the whole account, 1 to 1,000,000,000, or 0: one a stream. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_operations_per_second: Option<u64>,
    /// Burst of calls in the whole account, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_operations: Option<u64>,
    /// Bytes a second of the requests and responses of calls in the whole account, of every service, 64 KiB to
    /// 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_bytes_per_second: Option<u64>,
    /// Burst of these bytes, 64 KiB to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_bytes: Option<u64>,
    /// Entities a second in the whole account, 1 to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_entities_per_second: Option<u64>,
    /// Burst of entities in the whole account, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_entities: Option<u64>,
    /// Entities a second in each partition of a table, 1 to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_entities_per_second: Option<u64>,
    /// Burst of entities in each partition, 1 to 1,000,000,000. Default: those of one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_burst_entities: Option<u64>,
    /// Tables that an account may have, up to 1,000,000,000, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_tables_max: Option<u64>,
    /// Queues that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_queues_max: Option<u64>,
    /// Containers of blobs that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_containers_max: Option<u64>,
    /// Streams of log records that an account may have, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_streams_max: Option<u64>,
    /// Blobs that an account may have, in the same range. Snapshots, versions and deleted blobs do not count.
    /// Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_blobs_max: Option<u64>,
    /// Bytes that an account may store in tables, queues, blobs and streams, or 0. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_stored_bytes_max: Option<u64>,
}

impl QuotaSettings {
    /// The limits of the service.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        let default = self.every_account();
        let of = |(name, numbers): (&String, &QuotaNumbers)| {
            Some((AccountName::parse(name)?, numbers.quota(default)))
        };
        let every = default.quota(QuotaNumbers::default());
        Quotas { default: every, accounts: self.accounts.iter().filter_map(of).collect() }
    }

    /// Whether an account has a quota on what it stores.
    #[must_use]
    pub fn bounds_storage(&self) -> bool {
        let Quotas { default, accounts } = self.quotas();
        accounts.values().chain([&default]).any(|quota| !quota.storage.is_off())
    }

    /// The problems of the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let default = self.every_account();
        let mut problems = default.problems("quotas", QuotaNumbers::default());
        for (name, numbers) in &self.accounts {
            let section = format!("quotas.accounts.{name}");
            if AccountName::parse(name).is_none() {
                let rule = "must be 3 to 24 lower-case letters and digits";
                problems.push(format!("{section}: {rule}"));
            }
            problems.extend(numbers.problems(&section, default));
        }
        problems
    }

    fn every_account(&self) -> QuotaNumbers {
        QuotaNumbers {
            account_operations_per_second: self.account_operations_per_second,
            account_burst_operations: self.account_burst_operations,
            account_bytes_per_second: self.account_bytes_per_second,
            account_burst_bytes: self.account_burst_bytes,
            account_entities_per_second: self.account_entities_per_second,
            account_burst_entities: self.account_burst_entities,
            partition_entities_per_second: self.partition_entities_per_second,
            partition_burst_entities: self.partition_burst_entities,
            account_tables_max: self.account_tables_max,
            account_queues_max: self.account_queues_max,
            account_containers_max: self.account_containers_max,
            account_streams_max: self.account_streams_max,
            account_blobs_max: self.account_blobs_max,
            account_stored_bytes_max: self.account_stored_bytes_max,
        }
    }
}

/// A rate, and the burst of it.
#[derive(Clone, Copy)]
struct RateNumbers {
    per_second: Option<u64>,
    burst: Option<u64>,
}

impl RateNumbers {
    /// These, and where absent those of `default`. A rate sets its own burst.
    fn or(self, default: Self) -> Self {
        match self.per_second {
            Some(_) => self,
            None => Self { per_second: default.per_second, burst: self.burst.or(default.burst) },
        }
    }

    /// The bounds of a rate that is not 0, as errors name them.
    fn bounds(range: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        let start = if *range.start() == 1 { 0 } else { *range.start() };
        start..=*range.end()
    }

    /// None at 0.
    fn rate(self) -> Option<Rate> {
        self.per_second
            .and_then(|per_second| Rate::new(per_second, self.burst.unwrap_or(per_second)))
    }
}

impl QuotaNumbers {
    /// Its rates: operations, bytes, and entities of the account, entities of a partition.
    fn rates(self) -> [RateNumbers; 4] {
        let rate = |per_second, burst| RateNumbers { per_second, burst };
        [
            rate(self.account_operations_per_second, self.account_burst_operations),
            rate(self.account_bytes_per_second, self.account_burst_bytes),
            rate(self.account_entities_per_second, self.account_burst_entities),
            rate(self.partition_entities_per_second, self.partition_burst_entities),
        ]
    }

    /// The rates, with those of `default` where they are absent.
    fn rates_or(self, default: Self) -> [RateNumbers; 4] {
        let mut rates = self.rates();
        for (rate, default) in rates.iter_mut().zip(default.rates()) {
            *rate = rate.or(default);
        }
        rates
    }

    /// The limits of an account with these numbers, where absent those of `default`.
    fn quota(self, default: Self) -> Quota {
        let [operations, bytes, account, partition] = self.rates_or(default).map(RateNumbers::rate);
        let storage = StorageMax::new(|limit| {
            self.storage(limit).or_else(|| default.storage(limit)).unwrap_or_default()
        });
        Quota { calls: CallRates { operations, bytes }, account, partition, storage }
    }

    /// The most that an account may store.
    fn storage(self, limit: StorageLimit) -> Option<u64> {
        match limit {
            StorageLimit::StoredBytes => self.account_stored_bytes_max,
            StorageLimit::Blobs => self.account_blobs_max,
            StorageLimit::Tables => self.account_tables_max,
            StorageLimit::Queues => self.account_queues_max,
            StorageLimit::Containers => self.account_containers_max,
            StorageLimit::Streams => self.account_streams_max,
        }
    }

    /// The range of a number of [`QuotaNumbers::storage`].
    fn storage_range(limit: StorageLimit) -> RangeInclusive<u64> {
        match limit {
            StorageLimit::StoredBytes => 0..=u64::MAX,
            _ => 0..=Rate::MAX,
        }
    }

    /// The keys of the rates, in the same order, and the range of each.
    const RATES: [(&str, &str, RangeInclusive<u64>); 4] = [
        ("account_operations_per_second", "account_burst_operations", RANGE),
        ("account_bytes_per_second", "account_burst_bytes", BYTES_RANGE),
        ("account_entities_per_second", "account_burst_entities", RANGE),
        ("partition_entities_per_second", "partition_burst_entities", RANGE),
    ];

    /// The keys of the numbers with their ranges, and a value in each.
    pub(super) fn ranges() -> Vec<NumberRule> {
        let keys = Self::RATES.into_iter().flat_map(|(rate, burst, range)| {
            [(rate, *range.start(), 0..=*range.end()), (burst, *range.start(), range)]
        });
        let storage = StorageLimit::ALL
            .into_iter()
            .map(|limit| (limit.setting(), 0, Self::storage_range(limit)));
        keys.chain(storage).collect()
    }

    fn problems(self, section: &str, default: Self) -> Vec<String> {
        let set =
            Self::RATES.into_iter().zip(self.rates()).flat_map(|((rate, burst, range), it)| {
                let bounds = RateNumbers::bounds(&range);
                let is_on = |number: &u64| *number > 0;
                let per_second = it.per_second.filter(is_on).map(|number| (rate, number, bounds));
                per_second.into_iter().chain(it.burst.map(|number| (burst, number, range)))
            });
        let storage = StorageLimit::ALL.into_iter().filter_map(|limit| {
            Some((limit.setting(), self.storage(limit)?, Self::storage_range(limit)))
        });
        let mut problems = outside(section, set.chain(storage));
        let together = self.rates_or(default);
        for ((rate, burst, _), (own, all)) in
            Self::RATES.into_iter().zip(self.rates().into_iter().zip(together))
        {
            if own.burst.is_some() && all.per_second.is_none() {
                problems.push(format!("{section}.{burst}: needs {rate}"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use trestle_runtime::config::{ConfigError, Sources};

    use super::{super::Settings, *};
    use crate::roles::ROLES;

    fn rate(per_second: u64, burst: u64) -> Option<Rate> {
        Rate::new(per_second, burst)
    }

    fn account(name: &str) -> AccountName {
        AccountName::parse(name).expect("a name")
    }

    /// The settings of a process with these variables, by what follows `TRESTLE__QUOTAS__`.
    fn load(variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let variable =
            |(key, value): &(&str, &str)| (format!("TRESTLE__QUOTAS__{key}"), (*value).to_owned());
        let environment = variables.iter().map(variable).collect();
        Settings::load(ROLES, Sources { environment, ..Sources::default() })
    }

    #[test]
    fn nothing_is_limited_by_default() {
        let settings = load(&[]).expect("settings");

        assert!(settings.quotas.quotas().of(&account("any")).is_unlimited());
        assert!(!settings.quotas.show_partition_keys);
    }

    #[test]
    fn an_account_has_the_limits_of_every_account_but_for_its_own() {
        let settings = load(&[
            ("ACCOUNT_ENTITIES_PER_SECOND", "20000"),
            ("PARTITION_ENTITIES_PER_SECOND", "2000"),
            ("PARTITION_BURST_ENTITIES", "3000"),
            ("ACCOUNTS__BUSY__PARTITION_ENTITIES_PER_SECOND", "5000"),
            ("ACCOUNTS__WAITING__PARTITION_BURST_ENTITIES", "10"),
            ("ACCOUNTS__WAITING__ACCOUNT_OPERATIONS_PER_SECOND", "7"),
            ("ACCOUNT_OPERATIONS_PER_SECOND", "100"),
            ("ACCOUNT_BYTES_PER_SECOND", "1000000"),
            ("ACCOUNT_BURST_BYTES", "2000000"),
        ]);
        let quotas = settings.expect("settings").quotas.quotas();

        let (every, partition) = (rate(20_000, 20_000), |burst| rate(2000, burst));
        let of = |name| quotas.of(&account(name));
        let calls = CallRates { operations: rate(100, 100), bytes: rate(1_000_000, 2_000_000) };
        let any = Quota {
            calls,
            account: every,
            partition: partition(3000),
            storage: StorageMax::default(),
        };
        assert_eq!(of("any"), any);
        assert_eq!(of("busy"), Quota { partition: rate(5000, 5000), ..any });
        let calls = CallRates { operations: rate(7, 7), ..calls };
        assert_eq!(of("waiting"), Quota { calls, partition: partition(10), ..any });
    }

    #[test]
    fn a_rate_of_zero_is_no_limit_also_for_one_account_with_a_default() {
        let rates = [
            "ACCOUNT_OPERATIONS_PER_SECOND",
            "ACCOUNT_BYTES_PER_SECOND",
            "ACCOUNT_ENTITIES_PER_SECOND",
            "PARTITION_ENTITIES_PER_SECOND",
        ];
        let own = rates.map(|key| format!("ACCOUNTS__EXEMPT__{key}"));
        let off: Vec<_> = own.iter().map(|key| (key.as_str(), "0")).collect();
        let on = rates.map(|key| (key, "100000"));
        let with_burst = [("ACCOUNT_BURST_ENTITIES", "5")];

        let exempt = load(&[&on[..], &off, &with_burst].concat()).expect("settings");
        let every = load(&[&rates.map(|key| (key, "0"))[..], &with_burst].concat());

        let quotas = exempt.quotas.quotas();
        assert_eq!(quotas.of(&account("exempt")), Quota::default());
        assert_eq!(quotas.of(&account("any")).partition, rate(100_000, 100_000));
        assert_eq!(every.expect("settings").quotas.quotas().of(&account("any")), Quota::default());
    }

    #[test]
    fn numbers_of_resources_are_those_of_every_account_but_for_its_own() {
        let settings = load(&[
            ("ACCOUNT_TABLES_MAX", "10"),
            ("ACCOUNT_STREAMS_MAX", "20"),
            ("ACCOUNTS__BUSY__ACCOUNT_TABLES_MAX", "1000"),
            ("ACCOUNTS__EXEMPT__ACCOUNT_TABLES_MAX", "0"),
            ("ACCOUNTS__EXEMPT__ACCOUNT_QUEUES_MAX", "1"),
            ("ACCOUNT_STORED_BYTES_MAX", "3GiB"),
            ("ACCOUNTS__EXEMPT__ACCOUNT_STORED_BYTES_MAX", "0"),
            ("ACCOUNTS__BUSY__ACCOUNT_BLOBS_MAX", "7"),
        ]);
        let quotas = settings.expect("settings").quotas.quotas();

        let of = |name| {
            let storage = quotas.of(&account(name)).storage;
            StorageLimit::ALL.map(|limit| storage.of(limit))
        };
        let bytes = Some(3 << 30);
        assert_eq!(of("any"), [bytes, Some(10), None, None, None, Some(20)]);
        assert_eq!(of("busy"), [bytes, Some(1000), None, None, Some(7), Some(20)]);
        assert_eq!(of("exempt"), [None, None, Some(1), None, None, Some(20)]);
        let bounds = |key| load(&[(key, "5")]).expect("settings").quotas.bounds_storage();
        assert!(bounds("ACCOUNTS__BUSY__ACCOUNT_BLOBS_MAX"));
        assert!(!bounds("ACCOUNT_ENTITIES_PER_SECOND"));
        let rejected = load(&[("ACCOUNT_QUEUES_MAX", "1000000001")]);
        let Err(ConfigError::Invalid { problems }) = rejected else { panic!("not rejected") };
        let rule = "must be 0 to 1000000000: value=`1000000001`";
        assert_eq!(problems, [format!("quotas.account_queues_max: {rule}")]);
    }

    #[test]
    fn numbers_out_of_range_and_bursts_without_a_rate_are_named() {
        let rejected = load(&[
            ("ACCOUNT_ENTITIES_PER_SECOND", "1000000001"),
            ("PARTITION_BURST_ENTITIES", "5"),
            ("ACCOUNT_BYTES_PER_SECOND", "65535"),
            ("ACCOUNT_BURST_OPERATIONS", "5"),
            ("ACCOUNTS__FINE__ACCOUNT_BURST_ENTITIES", "5"),
            ("ACCOUNTS__X_Y__PARTITION_ENTITIES_PER_SECOND", "1000000001"),
        ]);

        let Err(ConfigError::Invalid { problems }) = rejected else { panic!("not rejected") };
        let range = "must be 0 to 1000000000: value=";
        assert_eq!(
            problems,
            [
                "quotas.account_bytes_per_second: must be 64KiB to 1000000000: value=`65535`"
                    .to_owned(),
                format!("quotas.account_entities_per_second: {range}`1000000001`"),
                "quotas.account_burst_operations: needs account_operations_per_second".to_owned(),
                "quotas.partition_burst_entities: needs partition_entities_per_second".to_owned(),
                "quotas.accounts.x_y: must be 3 to 24 lower-case letters and digits".to_owned(),
                format!("quotas.accounts.x_y.partition_entities_per_second: {range}`1000000001`"),
            ]
        );
    }

    #[test]
    fn a_misspelt_limit_is_named() {
        let rejected = load(&[("ACCOUNTS__BUSY__PARTITION_PER_SECOND", "5")]);

        let Err(ConfigError::UnknownKeys { keys }) = rejected else { panic!("not rejected") };
        assert_eq!(keys, ["quotas.accounts.busy.partition_per_second"]);
    }
}
