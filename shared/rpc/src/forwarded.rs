//! A value that a request carries within a process, and as headers to the next process: the caller.
//!
//! The middleware of a call needs neither the type nor its rules, so the crate that owns both puts
//! it on the request and reads it from it. Every request to another process carries the value in
//! its headers: without it the call would have another caller.

use std::{any::Any, sync::Arc};

use http::{Extensions, HeaderMap};

use crate::layer::Request;

/// A value that headers can carry.
pub trait Forwarded: Any + Send + Sync {
    /// Writes the value into headers, replacing its previous headers.
    fn write(&self, headers: &mut HeaderMap);
}

#[derive(Clone)]
struct Carried(Arc<dyn Forwarded>);

/// Puts a value on a request, replacing the previous one.
pub fn insert(value: Arc<dyn Forwarded>, extensions: &mut Extensions) {
    extensions.insert(Carried(value));
}

/// The value of a request, if it carries one of this type.
#[must_use]
pub fn get<T: Forwarded>(extensions: &Extensions) -> Option<Arc<T>> {
    let Carried(value) = extensions.get()?;
    let value: Arc<dyn Any + Send + Sync> = Arc::clone(value) as _;
    value.downcast().ok()
}

/// Writes the value of a request to another process into its headers.
pub(crate) fn export(request: &mut Request) {
    if let Some(Carried(value)) = request.extensions_mut().remove::<Carried>() {
        value.write(request.headers_mut());
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tonic::body::Body;

    use super::*;

    struct Name(&'static str);

    impl Forwarded for Name {
        fn write(&self, headers: &mut HeaderMap) {
            headers.insert("name", HeaderValue::from_static(self.0));
        }
    }

    #[test]
    fn a_value_is_read_in_the_process_and_written_once_as_headers() {
        let mut request = Request::new(Body::empty());
        insert(Arc::new(Name("first")), request.extensions_mut());
        insert(Arc::new(Name("second")), request.extensions_mut());
        assert_eq!(get::<Name>(request.extensions()).expect("a value").0, "second");

        export(&mut request);

        assert_eq!(request.headers()["name"], "second");
        assert!(get::<Name>(request.extensions()).is_none());
    }
}
