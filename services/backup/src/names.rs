//! Names of parts: keyed hashes, so that who reads the target cannot test whether a backup has some content.

use std::{
    fmt::{self, Display, Formatter},
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use bytes::Bytes;
use ring::{
    digest::{SHA256, digest},
    hmac::{HMAC_SHA256, Key, sign},
    rand::{SecureRandom as _, SystemRandom},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use trestle_kv::replace_file;

/// What is below it are parts.
pub(crate) const PARTS: &str = "parts";
/// The file of a data directory that has the key.
const FILE: &str = "backup-key";
/// More than it has.
const FILE_BYTES_MAX: u64 = 256;
const BYTES: usize = 32;

/// The name of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PartName([u8; BYTES]);

impl PartName {
    /// From its bytes in a list; none of another number of them.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From its hexadecimal form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok())
            .collect();
        rest.is_empty().then_some(())?;
        Self::from_bytes(&bytes?)
    }

    /// Its bytes, as lists have them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Half of it, which is as unlikely to be that of another part.
    pub(crate) fn mark(&self) -> u128 {
        let (half, _) = self.0.split_at(BYTES / 2);
        <[u8; BYTES / 2]>::try_from(half).map_or(0, u128::from_be_bytes)
    }

    /// Its path at the target.
    pub(crate) fn path(&self) -> String {
        let text = self.to_string();
        format!("{PARTS}/{}/{text}", text.get(..2).unwrap_or_default())
    }

    /// That of a path; none of one that is not a part's.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().and_then(Self::parse)?;
        (name.path() == path).then_some(name)
    }

    /// The name of a piece of the object that has this one.
    pub(crate) fn piece(&self, index: u64) -> Self {
        let name = digest(&SHA256, &[&self.0[..], &index.to_be_bytes()].concat());
        Self::from_bytes(name.as_ref()).unwrap_or(*self)
    }
}

impl Display for PartName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<PartName> for Bytes {
    fn from(name: PartName) -> Self {
        Self::copy_from_slice(&name.0)
    }
}

impl Serialize for PartName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PartName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("a name of a part must be 64 hex digits"))
    }
}

/// The key of the names of a data directory. Without it names cannot be made, and all that they name can be read.
pub(crate) struct NameKey(Key);

impl NameKey {
    /// That of a data directory, which is made where there is none: then all is sent again, once.
    ///
    /// # Errors
    /// A file that cannot be read or written, or is no key.
    pub(crate) fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FILE);
        let text = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(data_dir)?,
            file => {
                let mut text = String::new();
                file?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
                text
            }
        };
        let key = PartName::parse(text.trim_end()).ok_or_else(|| {
            let rule =
                "must be 64 hex digits: delete it, and the next backup sends everything again";
            io::Error::new(io::ErrorKind::InvalidData, format!("`{}` {rule}", path.display()))
        });
        Ok(Self::new(&key?.0))
    }

    fn new(key: &[u8; BYTES]) -> Self {
        Self(Key::new(HMAC_SHA256, key))
    }

    fn make(data_dir: &Path) -> io::Result<String> {
        let mut key = [0; BYTES];
        let random = SystemRandom::new().fill(&mut key);
        random.map_err(|_| io::Error::other("the system has no random numbers"))?;
        let text = format!("{}\n", PartName(key));
        replace_file(data_dir, FILE, text.as_bytes())?;
        Ok(text)
    }

    /// The name of a part with this content.
    pub(crate) fn of_content(&self, plain: &[u8]) -> PartName {
        let name = sign(&self.0, plain);
        PartName::from_bytes(name.as_ref()).unwrap_or(PartName([0; BYTES]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// The name of a content by a key that is not secret.
    pub(crate) fn name(content: &[u8]) -> PartName {
        NameKey::new(&[7; BYTES]).of_content(content)
    }

    #[test]
    fn a_name_is_read_from_its_path_and_its_text() {
        let name = name(b"x");
        assert_eq!(PartName::of_path(&name.path()), Some(name));
        assert_eq!(PartName::parse(&name.to_string()), Some(name));
        assert_eq!(PartName::from_bytes(name.bytes()), Some(name));
        let text = name.to_string();
        for wrong in
            [&text[1..], &format!("{text}0"), &text.to_uppercase(), &text.replace(&text[..1], "g")]
        {
            assert_eq!(PartName::parse(wrong), None, "{wrong}");
        }
        for other in [format!("parts/00/{text}"), format!("chunks/{}/{text}", &text[..2]), text] {
            assert_eq!(PartName::of_path(&other), None, "{other}");
        }
    }

    #[test]
    fn pieces_have_names_of_their_own() {
        let object = name(b"object");
        let names = [object, object.piece(0), object.piece(1), name(b"other").piece(0)];
        let distinct: std::collections::BTreeSet<_> = names.into();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn a_data_directory_keeps_its_key_and_another_one_has_other_names() {
        use std::os::unix::fs::PermissionsExt as _;

        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name =
            |folder: &tempfile::TempDir| NameKey::of(folder.path()).unwrap().of_content(b"x");
        let first = name(&one);
        assert_eq!(name(&one), first);
        assert_ne!(name(&other), first);
        let path = one.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "x").unwrap();
        let error = NameKey::of(one.path()).err().unwrap().to_string();
        assert!(error.contains("must be 64 hex digits"), "{error}");
    }
}
