//! A document as elements, each with its text and its children.

use std::borrow::Cow;

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesDecl, BytesStart, Event},
};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::xml::is_allowed;

/// Deepest nesting: twice what any document of the protocol needs.
const DEPTH_MAX: usize = 12;
/// Most elements of a document: several times what any document of the protocol needs.
const ELEMENTS_MAX: usize = 1000;
/// The accepted declared encodings: US-ASCII is valid UTF-8 too.
const ENCODINGS: [&str; 2] = ["utf-8", "us-ascii"];

/// An element. Attributes are not kept: the protocol has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// Its name, as it was written.
    pub(super) name: String,
    /// Its text, decoded: white space between its children is discarded.
    pub(super) text: Cow<'a, str>,
    /// Its children, in their order.
    pub(super) children: Vec<Self>,
    /// The names of the children that were removed.
    removed: Vec<String>,
}

impl<'a> Element<'a> {
    /// The root element of a document, which must have this name.
    ///
    /// # Errors
    /// A malformed document, invalid UTF-8, an exceeded bound, or another name.
    pub(super) fn root(document: &'a [u8], name: &str) -> Result<Self, Fault> {
        Self::root_within(document, name, ELEMENTS_MAX)
    }

    /// The same, with another bound of the elements.
    ///
    /// # Errors
    /// As above.
    pub(super) fn root_within(
        document: &'a [u8],
        name: &str,
        elements_max: usize,
    ) -> Result<Self, Fault> {
        let root = parse(document, elements_max)?;
        if root.name == name {
            return Ok(root);
        }
        let found = quoted(&root.name);
        Err(unreadable(format!("the outermost element must be {name}: element=`{found}`")))
    }

    /// Removes the child of this name.
    pub(super) fn optional(&mut self, name: &str) -> Option<Self> {
        let index = self.children.iter().position(|child| child.name == name)?;
        let child = self.children.remove(index);
        self.removed.push(child.name.clone());
        Some(child)
    }

    /// Removes the child of this name.
    ///
    /// # Errors
    /// The child does not exist.
    pub(super) fn required(&mut self, name: &str) -> Result<Self, Fault> {
        self.optional(name).ok_or_else(|| {
            let rule = format!("must have an element {name}");
            Fault::violation(Reason::MissingRequiredXmlNode, self.name.clone(), rule)
        })
    }

    /// Completes an element whose expected children have all been removed.
    ///
    /// # Errors
    /// A child remains: it is not in the protocol, or repeated. Or text remains: it has an
    /// intended meaning, and treating the element as empty may clear what is stored.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let Some(left) = self.children.first() else {
            if is_white_space(&self.text) {
                return Ok(());
            }
            let rule = "must have elements inside, and no text";
            return Err(Fault::violation(Reason::InvalidXmlDocument, self.name, rule));
        };
        let rule = match self.removed.contains(&left.name) {
            true => format!("must be at most once in {}", self.name),
            false => format!("is no element of {}", self.name),
        };
        Err(Fault::violation(Reason::InvalidXmlDocument, quoted(&left.name), rule))
    }

    /// The text of an element without children.
    ///
    /// # Errors
    /// It has children.
    pub(super) fn into_text(self) -> Result<Cow<'a, str>, Fault> {
        match self.children.first() {
            None => Ok(self.text),
            Some(child) => {
                let rule = format!("must not be in {}, which has text", self.name);
                Err(Fault::violation(Reason::InvalidXmlDocument, quoted(&child.name), rule))
            }
        }
    }

    /// The text of an element, parsed by `read`; surrounding white space is ignored.
    ///
    /// # Errors
    /// Children, or a text that `read` rejects: it must satisfy `rule`.
    pub(super) fn value<T>(
        self,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Fault> {
        let name = self.name.clone();
        let text = self.into_text()?;
        let text = text.trim_ascii();
        read(text).ok_or_else(|| {
            let rule = format!("{rule}: value=`{}`", quoted(text));
            Fault::violation(Reason::InvalidXmlNodeValue, name, rule)
        })
    }
}

/// The error of a malformed document.
fn unreadable(rule: impl Into<String>) -> Fault {
    Fault::violation(Reason::InvalidXmlDocument, "body", rule)
}

/// The state of the parser.
#[derive(Default)]
struct XmlReading<'a> {
    /// The open elements, the outermost first.
    open: Vec<Element<'a>>,
    root: Option<Element<'a>>,
    elements: usize,
    elements_max: usize,
}

fn parse(document: &[u8], elements_max: usize) -> Result<Element<'_>, Fault> {
    let text = std::str::from_utf8(document).map_err(|_| unreadable("must be UTF-8"))?;
    check_characters(text)?;
    // Skips one byte order mark; a second one is text.
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut reading = XmlReading { elements_max, ..XmlReading::default() };
    let mut is_first = true;
    loop {
        let event = reader.read_event();
        let at = reader.buffer_position();
        let ill_formed = |what: String| unreadable(format!("{what}: byte=`{at}`"));
        match event.map_err(|error| ill_formed(format!("must be well-formed: {error}")))? {
            Event::Start(start) => reading.open(&start)?,
            Event::Empty(start) => {
                reading.open(&start)?;
                reading.close()?;
            }
            Event::End(_) => reading.close()?,
            Event::Text(text) => reading.text(text.into_inner())?,
            Event::CData(text) => reading.inside(text.into_inner())?,
            Event::GeneralRef(reference) => {
                let reference = reference.into_inner();
                let character = character(&reference).ok_or_else(|| {
                    ill_formed(format!("unknown reference &{};", quoted(&reference)))
                })?;
                reading.inside(Cow::Owned(character.into()))?;
            }
            Event::Decl(declaration) if is_first => check_declaration(&declaration)?,
            Event::Decl(_) => return Err(ill_formed("must begin with its declaration".into())),
            Event::DocType(_) => return Err(ill_formed("must have no document type".into())),
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => return reading.finish(),
        }
        is_first = false;
    }
}

/// Validates every character, in text, attributes and comments alike.
fn check_characters(document: &str) -> Result<(), Fault> {
    // Most documents are ASCII, which needs no check of each character.
    let is_plain = document.bytes().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~'));
    if is_plain || document.chars().all(is_allowed) {
        return Ok(());
    }
    Err(unreadable("must have no control characters"))
}

/// The character of a reference: by number, or one of the five names of XML.
fn character(reference: &str) -> Option<char> {
    let Some(number) = reference.strip_prefix('#') else {
        return match reference {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => None,
        };
    };
    let code = match number.strip_prefix('x') {
        Some(number) => hexadecimal(number)?,
        None => decimal(number)?,
    };
    char::from_u32(code).filter(|character| is_allowed(*character))
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { u32::from_str_radix(digits, 16).ok() } else { None }
}

fn decimal(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { digits.parse().ok() } else { None }
}

fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), Fault> {
    let is_first = declaration.version().is_ok_and(|version| version == "1.0");
    if !is_first {
        return Err(unreadable("must be XML 1.0"));
    }
    match declaration.encoding() {
        None => Ok(()),
        Some(Ok(name)) if ENCODINGS.iter().any(|encoding| name.eq_ignore_ascii_case(encoding)) => {
            Ok(())
        }
        Some(_) => Err(unreadable("must be UTF-8, also where an encoding is declared")),
    }
}

/// Attributes are ignored, but a document with malformed ones is rejected.
fn check_attributes(start: &BytesStart<'_>) -> Result<(), Fault> {
    let ill_formed = |what: String| Err(unreadable(format!("must be well-formed: {what}")));
    for attribute in start.attributes() {
        let attribute = match attribute {
            Ok(attribute) => attribute,
            Err(error) => return ill_formed(error.to_string()),
        };
        if attribute.value.contains('<') {
            return ill_formed("< is not in an attribute".to_owned());
        }
        match attribute.normalized_value(XmlVersion::Explicit1_0) {
            Ok(value) if value.chars().all(is_allowed) => {}
            Ok(_) => return ill_formed("an attribute refers to a control character".to_owned()),
            Err(_) => return ill_formed("unknown reference in an attribute".to_owned()),
        }
    }
    Ok(())
}

impl<'a> XmlReading<'a> {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), Fault> {
        if self.open.is_empty() && self.root.is_some() {
            return Err(unreadable("must have one outermost element"));
        }
        if self.open.len() == DEPTH_MAX {
            return Err(unreadable(format!("must be at most {DEPTH_MAX} elements deep")));
        }
        self.elements += 1;
        if self.elements > self.elements_max {
            let max = self.elements_max;
            return Err(unreadable(format!("must have at most {max} elements")));
        }
        check_attributes(start)?;
        let name = start.name().as_ref().to_owned();
        self.open.push(Element { name, ..Element::default() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(closed) = self.open.pop() else {
            return Err(unreadable("must be well-formed: an element ends that never began"));
        };
        if !closed.children.is_empty() && !is_white_space(&closed.text) {
            let rule = "must have text or elements inside, not both";
            return Err(Fault::violation(Reason::InvalidXmlDocument, quoted(&closed.name), rule));
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => self.root = Some(closed),
        }
        Ok(())
    }

    /// Text as it was written, without references and sections.
    fn text(&mut self, text: Cow<'a, str>) -> Result<(), Fault> {
        if text.contains("]]>") {
            return Err(unreadable("must be well-formed: ]]> is not text"));
        }
        if self.open.is_empty() && is_white_space(&text) { Ok(()) } else { self.inside(text) }
    }

    /// Text in an element, in any notation.
    fn inside(&mut self, text: Cow<'a, str>) -> Result<(), Fault> {
        match self.open.last_mut() {
            Some(element) if element.text.is_empty() => element.text = text,
            Some(element) => element.text.to_mut().push_str(&text),
            None => return Err(unreadable("must have no text outside its outermost element")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Element<'a>, Fault> {
        if let Some(open) = self.open.last() {
            let name = quoted(&open.name);
            return Err(unreadable(format!("must be well-formed: {name} does not end")));
        }
        self.root.ok_or_else(|| unreadable("must have an element"))
    }
}

fn is_white_space(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests;
