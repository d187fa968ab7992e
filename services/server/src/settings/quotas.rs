//! The limits of accounts and partitions.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde::{Deserialize, Serialize};
use trestle_service::{
    name::AccountName,
    quota::{Quota, Quotas, Rate},
};

use super::{NumberRule, outside};

/// The range of each number.
const RANGE: RangeInclusive<u64> = 1..=Rate::MAX;

/// The section `quotas`. Without a number nothing is limited.
///
/// An entity counts when it is inserted, updated, deleted or examined, returned or not: once for
/// each started KiB. Azure has 20,000 a second for an account and 2,000 for a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSettings {
    /// Entities a second in the whole account, 1 to 1,000,000,000. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_entities_per_second: Option<u64>,
    /// Burst of entities in the whole account, in the same range. Default: those of one
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_entities: Option<u64>,
    /// Entities a second in each partition of a table, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_entities_per_second: Option<u64>,
    /// Burst of entities in each partition, in the same range. Default: those of one
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_burst_entities: Option<u64>,
    /// Whether `/hot-partitions` on the admin listener shows partition keys, not only a number for
    /// each. Default: false.
    #[serde(default)]
    pub show_partition_keys: bool,
    /// The limits of single accounts, by name. Unset keys are as for every account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, QuotaNumbers>,
}

/// The section `quotas.accounts.NAME`: the limits of one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaNumbers {
    /// Entities a second in the whole account, 1 to 1,000,000,000. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_entities_per_second: Option<u64>,
    /// Burst of entities in the whole account, in the same range. Default: those of one
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_burst_entities: Option<u64>,
    /// Entities a second in each partition of a table, in the same range. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_entities_per_second: Option<u64>,
    /// Burst of entities in each partition, in the same range. Default: those of one
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_burst_entities: Option<u64>,
}

impl QuotaSettings {
    /// The limits of the service.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        let default = self.every_account();
        let of = |(name, numbers): (&String, &QuotaNumbers)| {
            Some((AccountName::parse(name)?, numbers.or(default).quota()))
        };
        Quotas { default: default.quota(), accounts: self.accounts.iter().filter_map(of).collect() }
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
            account_entities_per_second: self.account_entities_per_second,
            account_burst_entities: self.account_burst_entities,
            partition_entities_per_second: self.partition_entities_per_second,
            partition_burst_entities: self.partition_burst_entities,
        }
    }
}

impl QuotaNumbers {
    /// These, and where absent those of `default`. A rate sets its own burst.
    fn or(self, default: Self) -> Self {
        let burst = |own: Option<u64>, rate: Option<u64>, default| match rate {
            Some(_) => own,
            None => own.or(default),
        };
        Self {
            account_entities_per_second: self
                .account_entities_per_second
                .or(default.account_entities_per_second),
            account_burst_entities: burst(
                self.account_burst_entities,
                self.account_entities_per_second,
                default.account_burst_entities,
            ),
            partition_entities_per_second: self
                .partition_entities_per_second
                .or(default.partition_entities_per_second),
            partition_burst_entities: burst(
                self.partition_burst_entities,
                self.partition_entities_per_second,
                default.partition_burst_entities,
            ),
        }
    }

    fn quota(self) -> Quota {
        let rate = |per_second: Option<u64>, burst: Option<u64>| {
            per_second.and_then(|per_second| Rate::new(per_second, burst.unwrap_or(per_second)))
        };
        Quota {
            account: rate(self.account_entities_per_second, self.account_burst_entities),
            partition: rate(self.partition_entities_per_second, self.partition_burst_entities),
        }
    }

    /// The numbers of a section, each of which may be absent.
    fn numbers(self) -> [(&'static str, Option<u64>); 4] {
        [
            ("account_entities_per_second", self.account_entities_per_second),
            ("account_burst_entities", self.account_burst_entities),
            ("partition_entities_per_second", self.partition_entities_per_second),
            ("partition_burst_entities", self.partition_burst_entities),
        ]
    }

    /// The same with the range of each, and a value in it.
    pub(super) fn ranges() -> [NumberRule; 4] {
        Self::default().numbers().map(|(key, _)| (key, 1, RANGE))
    }

    fn problems(self, section: &str, default: Self) -> Vec<String> {
        let set = |(key, number): (_, Option<u64>)| Some((key, number?, RANGE));
        let mut problems = outside(section, self.numbers().into_iter().filter_map(set));
        let together = self.or(default);
        let bursts = [
            ("account", self.account_burst_entities, together.account_entities_per_second),
            ("partition", self.partition_burst_entities, together.partition_entities_per_second),
        ];
        for (what, burst, rate) in bursts {
            if burst.is_some() && rate.is_none() {
                let rule = format!("needs {what}_entities_per_second");
                problems.push(format!("{section}.{what}_burst_entities: {rule}"));
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
        ]);
        let quotas = settings.expect("settings").quotas.quotas();

        let (every, partition) = (rate(20_000, 20_000), |burst| rate(2000, burst));
        let of = |name| quotas.of(&account(name));
        assert_eq!(of("any"), Quota { account: every, partition: partition(3000) });
        assert_eq!(of("busy"), Quota { account: every, partition: rate(5000, 5000) });
        assert_eq!(of("waiting"), Quota { account: every, partition: partition(10) });
    }

    #[test]
    fn numbers_out_of_range_and_bursts_without_a_rate_are_named() {
        let rejected = load(&[
            ("ACCOUNT_ENTITIES_PER_SECOND", "0"),
            ("PARTITION_BURST_ENTITIES", "5"),
            ("ACCOUNTS__FINE__ACCOUNT_BURST_ENTITIES", "5"),
            ("ACCOUNTS__X_Y__PARTITION_ENTITIES_PER_SECOND", "1000000001"),
        ]);

        let Err(ConfigError::Invalid { problems }) = rejected else { panic!("not rejected") };
        let range = "must be 1 to 1000000000: value=";
        assert_eq!(
            problems,
            [
                format!("quotas.account_entities_per_second: {range}`0`"),
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
