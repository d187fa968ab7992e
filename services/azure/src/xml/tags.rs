//! The tags of a blob.

use std::collections::HashMap;

use trestle_model::fault::{Fault, Reason, quoted};

use super::{element::Element, write::XmlWriter};

/// The tags of a blob as a document.
#[must_use]
pub fn write_tags(tags: &HashMap<String, String>) -> String {
    XmlWriter::document("Tags", |writer| write_tag_set(writer, tags))
}

/// Tags by name, so that equal tags give equal responses.
pub(super) fn write_tag_set(writer: &mut XmlWriter, tags: &HashMap<String, String>) {
    let mut tags: Vec<_> = tags.iter().collect();
    tags.sort_unstable();
    writer.element("TagSet", |writer| {
        for (name, value) in tags {
            writer.element("Tag", |writer| {
                writer.text("Key", name);
                writer.text("Value", value);
            });
        }
    });
}

/// Parses the tags of a document.
///
/// # Errors
/// A malformed document, a missing element, or a name that is there twice.
pub fn read_tags(body: &[u8]) -> Result<HashMap<String, String>, Fault> {
    let mut root = Element::root(body, "Tags")?;
    let mut set = root.required("TagSet")?;
    root.finish()?;
    let mut tags = HashMap::new();
    while let Some(mut tag) = set.optional("Tag") {
        let name = tag.required("Key")?.into_text()?.into_owned();
        let value = tag.required("Value")?.into_text()?.into_owned();
        tag.finish()?;
        let rule = format!("must be there once: value=`{}`", quoted(&name));
        if tags.insert(name, value).is_some() {
            return Err(Fault::violation(Reason::InvalidTags, "Key", rule));
        }
    }
    set.finish()?;
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_survive_a_round_trip_in_the_order_of_their_names() {
        let of = |pairs: &[(&str, &str)]| -> HashMap<_, _> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let tags = of(&[("b", ""), ("a", "1 + 1 = 2")]);

        let text = write_tags(&tags);

        assert!(
            text.ends_with(
                "<Tags><TagSet><Tag><Key>a</Key><Value>1 + 1 = 2</Value></Tag>\
                 <Tag><Key>b</Key><Value /></Tag></TagSet></Tags>"
            ),
            "{text}"
        );
        assert_eq!(read_tags(text.as_bytes()), Ok(tags));
        assert_eq!(read_tags(b"<Tags><TagSet/></Tags>"), Ok(of(&[])));
    }

    #[test]
    fn rejects_documents_that_are_no_tags() {
        let reason = |body: &str| read_tags(body.as_bytes()).expect_err(body).reason;
        let tag = |inside: &str| reason(&format!("<Tags><TagSet>{inside}</TagSet></Tags>"));
        assert_eq!(reason("<Tags/>"), Reason::MissingRequiredXmlNode);
        assert_eq!(reason("<TagSet/>"), Reason::InvalidXmlDocument);
        assert_eq!(tag("<Tag><Key>a</Key></Tag>"), Reason::MissingRequiredXmlNode);
        assert_eq!(tag("<Label/>"), Reason::InvalidXmlDocument);
        let one = "<Tag><Key>a</Key><Value>1</Value></Tag>";
        assert_eq!(tag(&format!("{one}{one}")), Reason::InvalidTags);
    }
}
