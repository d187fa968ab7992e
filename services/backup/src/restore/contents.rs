//! The objects that a restore wrote, and those that it lacks.

use trestle_command::{
    errors::CliError,
    output::{Output, counted},
};

use crate::{lists::Damage, objects::DAMAGE_MAX};

/// Objects that are named to people.
const SHOWN_MAX: usize = 20;

/// Objects that were restored, and others that cannot be.
#[derive(Debug, Default)]
pub(super) struct RestoredObjects {
    /// How many were restored.
    pub(super) count: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// How many cannot be.
    pub(super) lost: u64,
    /// The first of those.
    pub(super) damage: Vec<Damage>,
}

impl RestoredObjects {
    /// Adds one that was restored, by its bytes, or one that cannot be.
    pub(super) fn add(&mut self, object: Result<u64, Damage>) {
        match object {
            Ok(bytes) => {
                self.count += 1;
                self.bytes = self.bytes.saturating_add(bytes);
            }
            Err(damage) => self.lose(damage),
        }
    }

    /// Adds one that cannot be restored.
    pub(super) fn lose(&mut self, damage: Damage) {
        self.lost += 1;
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(damage);
        }
    }

    /// The same with those of another part of the restore.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.lost += other.lost.saturating_sub(other.damage.len() as u64);
        other.damage.into_iter().for_each(|damage| self.lose(damage));
        self
    }

    /// Names to people what cannot be restored.
    ///
    /// # Errors
    /// [`CliError::Rejected`] where something cannot.
    pub(super) fn verdict(&self, out: &Output) -> Result<(), CliError> {
        for Damage { object, reason } in self.damage.iter().take(SHOWN_MAX) {
            out.note(&format!("not restored: {object}: {reason}"));
        }
        if self.lost == 0 {
            return Ok(());
        }
        out.note(&format!(
            "rows name what is not restored: {}; `trestle blob verify` and `trestle log verify` show whose it is",
            counted(self.lost, "object")
        ));
        Err(CliError::Rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(number: usize) -> Damage {
        Damage { object: number.to_string(), reason: "it is missing".to_owned() }
    }

    #[test]
    fn what_is_lost_is_counted_and_the_first_are_named() {
        let mut one = RestoredObjects::default();
        one.add(Ok(7));
        (0..DAMAGE_MAX + 5).for_each(|number| one.add(Err(damage(number))));
        assert_eq!((one.count, one.bytes, one.lost), (1, 7, DAMAGE_MAX as u64 + 5));
        assert_eq!(one.damage.len(), DAMAGE_MAX);
        let mut other = RestoredObjects::default();
        other.add(Ok(3));
        other.add(Err(damage(0)));
        let both = other.and(one);
        assert_eq!((both.count, both.bytes, both.lost), (2, 10, DAMAGE_MAX as u64 + 6));
        assert_eq!((both.damage.len(), &both.damage[0]), (DAMAGE_MAX, &damage(0)));
    }
}
