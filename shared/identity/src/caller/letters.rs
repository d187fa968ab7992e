//! The letters of services, resource types and permissions.

use std::fmt;

/// A set of lower-case letters, such as the permissions of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Letters(u32);

impl Letters {
    /// The letters of `text`; none if it has anything but lower-case ASCII letters, or repeats one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.bytes().try_fold(Self::default(), |set, letter| {
            let bit = bit(letter)?;
            (set.0 & bit == 0).then_some(Self(set.0 | bit))
        })
    }

    /// Whether the set contains `letter`.
    #[must_use]
    pub fn has(self, letter: char) -> bool {
        u8::try_from(letter).ok().and_then(bit).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The letters of this set that `others` lacks.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The letters of this set that pass `filter`.
    #[must_use]
    pub fn filter(self, filter: impl Fn(char) -> bool) -> Self {
        let kept = self.iter().filter(|letter| filter(*letter));
        Self(
            kept.filter_map(|letter| bit(u8::try_from(letter).ok()?)).fold(0, |set, bit| set | bit),
        )
    }

    fn iter(self) -> impl Iterator<Item = char> {
        ('a'..='z').filter(move |letter| self.has(*letter))
    }
}

fn bit(letter: u8) -> Option<u32> {
    letter.is_ascii_lowercase().then(|| 1 << (letter - b'a'))
}

/// The letters in alphabetical order.
impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Letters({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_a_set() {
        let letters = Letters::parse("raud").expect("letters");
        assert!(letters.has('r') && letters.has('d') && !letters.has('w') && !letters.has('é'));
        assert_eq!(letters, Letters::parse("duar").expect("letters"));
        assert_eq!(letters.to_string(), "adru");
        assert!(Letters::parse("").is_some_and(Letters::is_empty));
        let other = Letters::parse("axz").expect("letters");
        assert_eq!(letters.without(other).to_string(), "dru");
        assert!(letters.without(letters).is_empty());
        assert_eq!(letters.filter(|letter| "rz".contains(letter)).to_string(), "r");
    }

    #[test]
    fn rejects_other_characters_and_repeated_letters() {
        for text in ["rr", "R", "r,a", "é", "r a"] {
            assert_eq!(Letters::parse(text), None, "{text}");
        }
    }
}
