//! The fields of an error, where a message is part of a request.

use super::Fault;

impl Fault {
    /// The error of a message within a request, in its field `parent`: the fields are those of the request.
    #[must_use]
    pub fn below(self, parent: &str) -> Self {
        self.with_fields(|field| format!("{parent}.{field}"))
    }

    /// The error of a request where each field is another one.
    #[must_use]
    pub fn with_fields(mut self, renamed: impl Fn(&str) -> String) -> Self {
        for violation in &mut self.violations {
            violation.field = renamed(&violation.field);
        }
        if let Some(first) = self.violations.first() {
            self.message = format!("{}: {}", first.field, first.description);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Reason, Violations};

    #[test]
    fn fields_and_the_text_are_those_of_the_request() {
        let mut violations = Violations::default();
        violations.push(Reason::InvalidInput, "name", "must be short");
        violations.push(Reason::InvalidInput, "size", "must be small");
        let fault = violations.check(()).expect_err("there are violations").below("spec");

        let fields: Vec<_> = fault.violations.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["spec.name", "spec.size"]);
        assert_eq!(fault.message, "spec.name: must be short");
        let absent = Fault::new(Reason::BlobNotFound, "absent");
        assert_eq!(absent.clone().below("spec"), absent);
    }
}
