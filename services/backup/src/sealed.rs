//! Encryption of parts, in the format age-encryption.org/v1: a part is a file that every implementation of it opens.
//!
//! A backup is made with public keys alone, so that who takes over the server cannot read the backups that it made.

use std::{
    collections::BTreeSet,
    fmt::{self, Debug, Formatter},
    fs::File,
    io::{self, Read as _, Write as _},
    iter,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use age::{
    DecryptError, Decryptor, Encryptor,
    secrecy::ExposeSecret as _,
    x25519::{Identity, Recipient},
};
use trestle_command::{
    errors::CliError,
    files::{cannot, read_small},
};

use crate::failure::broken;

/// What an encrypted part begins with.
const MAGIC: &[u8] = b"age-encryption.org/";
/// Most bytes of a file of keys.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Most keys that a backup is encrypted for: each part has an entry for each.
const KEYS_MAX: usize = 16;
/// Most bytes that encryption adds to a part: an entry for each key, and 16 bytes for each 64 KiB.
pub(crate) const OVERHEAD_MAX: usize = 16 * 1024;

/// Who can read a backup.
#[derive(Debug, Clone)]
pub(crate) struct Recipients(Vec<Recipient>);

/// Who reads a backup.
pub(crate) struct Identities(Vec<Identity>);

/// An encrypted part cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// It is for other keys.
    #[error("it is encrypted for another key")]
    OtherKey,
    /// It was changed.
    #[error("it was changed since it was written: it cannot be decrypted")]
    Changed,
}

/// A line of a file of keys.
enum KeyLine {
    Public(Recipient),
    Secret(Identity),
}

impl Recipients {
    /// Those in a file: public keys, or secret ones, whose public keys count.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that is no key.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let keys = read_keys(path)?.into_iter().map(|line| match line {
            KeyLine::Public(key) => key,
            KeyLine::Secret(key) => key.to_public(),
        });
        let keys: Vec<_> = keys.collect();
        match keys.len() {
            1..=KEYS_MAX => Ok(Self(keys)),
            found => Err(CliError::Usage(format!(
                "a file of keys to encrypt for must have 1 to {KEYS_MAX}: `{}`, keys=`{found}`",
                path.display()
            ))),
        }
    }

    /// Those in a file, if there is one. A pipe that nothing is written to does not keep the command from being ended.
    ///
    /// # Errors
    /// As [`Recipients::read`].
    pub(crate) async fn read_if_named(path: Option<PathBuf>) -> Result<Option<Self>, CliError> {
        let read = move || path.as_deref().map(Self::read).transpose();
        tokio::task::spawn_blocking(read).await.map_err(|error| broken(&error))?
    }

    /// Their textual forms, each once and in order.
    pub(crate) fn texts(&self) -> BTreeSet<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// A part that only they can open.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn seal(&self, part: &[u8]) -> io::Result<Vec<u8>> {
        let keys = self.0.iter().map(|key| key as &dyn age::Recipient);
        let sealed = Encryptor::with_recipients(keys).map_err(io::Error::other)?;
        let mut out = Vec::with_capacity(part.len() + OVERHEAD_MAX / 8);
        let mut writer = sealed.wrap_output(&mut out)?;
        writer.write_all(part)?;
        writer.finish()?;
        Ok(out)
    }
}

impl Identities {
    /// Those in a file.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is no secret key, or none.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let rule = |what: &str| {
            Err(CliError::Usage(format!("--decrypt must have {what}: `{}`", path.display())))
        };
        let mut keys = Vec::new();
        for line in read_keys(path)? {
            match line {
                KeyLine::Secret(key) => keys.push(key),
                KeyLine::Public(_) => return rule("secret keys, and has a public one"),
            }
        }
        if keys.is_empty() { rule("a secret key") } else { Ok(Self(keys)) }
    }

    /// Those in a file, if there is one, as [`Recipients::read_if_named`].
    ///
    /// # Errors
    /// As [`Identities::read`].
    pub(crate) async fn read_if_named(path: Option<PathBuf>) -> Result<Option<Self>, CliError> {
        let read = move || path.as_deref().map(Self::read).transpose();
        tokio::task::spawn_blocking(read).await.map_err(|error| broken(&error))?
    }

    /// A new one.
    pub(crate) fn generate() -> Self {
        Self(vec![Identity::generate()])
    }

    /// Whether one of them is one of these public keys.
    pub(crate) fn include(&self, recipients: &BTreeSet<String>) -> bool {
        self.0.iter().any(|key| recipients.contains(&key.to_public().to_string()))
    }

    /// Its public keys, a line each.
    pub(crate) fn public(&self) -> String {
        let keys: Vec<_> = self.0.iter().map(|key| key.to_public().to_string()).collect();
        keys.join("\n")
    }

    /// Writes a new file with them, which only its owner may read.
    ///
    /// # Errors
    /// A file that exists, or cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let write = || {
            let mut file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
            for key in &self.0 {
                let (public, secret) = (key.to_public(), key.to_string());
                writeln!(file, "# public key: {public}\n{}", secret.expose_secret())?;
            }
            file.sync_all()
        };
        write().map_err(CliError::file(cannot("write", path)))
    }

    /// The content of an encrypted part.
    ///
    /// # Errors
    /// Every kind of [`SealError`].
    pub(crate) fn open(&self, part: &[u8]) -> Result<Vec<u8>, SealError> {
        let sealed = Decryptor::new(part).map_err(|error| SealError::of(&error))?;
        let keys = self.0.iter().map(|key| key as &dyn age::Identity);
        let mut opened = sealed.decrypt(keys).map_err(|error| SealError::of(&error))?;
        let mut plain = Vec::with_capacity(part.len());
        opened.read_to_end(&mut plain).map_err(|_| SealError::Changed)?;
        Ok(plain)
    }
}

impl Debug for Identities {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identities").field(&self.0.len()).finish()
    }
}

impl SealError {
    fn of(error: &DecryptError) -> Self {
        match error {
            DecryptError::NoMatchingKeys => Self::OtherKey,
            _ => Self::Changed,
        }
    }
}

/// Why the keys of a file cannot be used to encrypt, if so. Blocks.
#[must_use]
pub fn keys_problem(path: &Path) -> Option<String> {
    Recipients::read(path).err().map(|error| error.to_string())
}

/// Whether a stored part is encrypted.
pub(crate) fn is_sealed(stored: &[u8]) -> bool {
    stored.starts_with(MAGIC)
}

/// The keys of a file. Errors name the line and never show it: it may be a secret.
fn read_keys(path: &Path) -> Result<Vec<KeyLine>, CliError> {
    let text = read_small(path, FILE_BYTES_MAX)?;
    let lines = iter::zip(1.., text.lines().map(str::trim));
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = keys.map(|(number, line)| {
        let secret = || line.parse().map(KeyLine::Secret).ok();
        let key = line.parse().map(KeyLine::Public).ok().or_else(secret);
        key.ok_or_else(|| {
            CliError::Usage(format!(
                "a line must be a key of age, `age1…` or `AGE-SECRET-KEY-1…`: `{}`, line=`{number}`",
                path.display()
            ))
        })
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn recipients(identities: &Identities) -> Recipients {
        Recipients(identities.0.iter().map(Identity::to_public).collect())
    }

    #[test]
    fn only_its_keys_open_a_part() {
        let (one, other) = (Identities::generate(), Identities::generate());
        let both = Recipients([recipients(&one).0, recipients(&other).0].concat());
        for length in [0, 1, 65_535, 65_536, 65_537] {
            let plain = vec![7; length];
            let sealed = recipients(&one).seal(&plain).unwrap();
            assert!(is_sealed(&sealed) && sealed.len() < length + OVERHEAD_MAX);
            assert_eq!(one.open(&sealed), Ok(plain.clone()));
            assert_eq!(other.open(&sealed), Err(SealError::OtherKey));
            let sealed = both.seal(&plain).unwrap();
            assert_eq!((one.open(&sealed), other.open(&sealed)), (Ok(plain.clone()), Ok(plain)));
        }
    }

    #[test]
    fn every_change_of_a_part_is_found() {
        let key = Identities::generate();
        let sealed = recipients(&key).seal(b"rows").unwrap();
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(key.open(&changed).is_err(), "{index}");
            assert!(key.open(&sealed[..index]).is_err(), "{index}");
        }
        assert!(key.open(&[&sealed[..], b"x"].concat()).is_err());
    }

    #[test]
    fn most_keys_add_less_than_the_bound_to_the_largest_part() {
        let keys: Vec<_> = (0..KEYS_MAX).map(|_| Identity::generate().to_public()).collect();
        let plain = [0; 1000];
        let sealed = Recipients(keys).seal(&plain).unwrap();
        let more = crate::packed::PLAIN_BYTES_MAX.div_ceil(64 * 1024) * 16;
        assert!(sealed.len() - plain.len() + more < OVERHEAD_MAX, "{}", sealed.len());
    }

    #[test]
    fn a_key_that_was_written_is_read_and_no_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let written = Identities::generate();
        written.write(&path).unwrap();
        assert!(written.write(&path).unwrap_err().to_string().contains("cannot write"));
        let read = Identities::read(&path).unwrap();
        assert_eq!(read.public(), written.public());
        let recipients = Recipients::read(&path).unwrap();
        assert!(read.include(&recipients.texts()));
        assert!(!Identities::generate().include(&recipients.texts()));
    }

    #[test]
    fn a_file_of_keys_has_rules() {
        let secret = Identities::generate();
        let public = secret.public();
        let (_folder, path) = keys(&format!("# of the vault\n\n {public} \n"));
        assert_eq!(Recipients::read(&path).unwrap().texts(), BTreeSet::from([public.clone()]));
        let error = Identities::read(&path).unwrap_err().to_string();
        assert!(error.contains("has a public one"), "{error}");

        let (_folder, path) = keys("# none\n");
        assert!(
            Identities::read(&path).unwrap_err().to_string().contains("must have a secret key")
        );
        let error = Recipients::read(&path).unwrap_err().to_string();
        assert!(error.contains("1 to 16") && error.contains("keys=`0`"), "{error}");
        let (_folder, path) = keys("# x\nAGE-SECRET-KEY-1WRONG\n");
        let error = Recipients::read(&path).unwrap_err().to_string();
        assert!(error.contains("line=`2`") && !error.contains("WRONG"), "{error}");
        let (_folder, path) = keys(&format!("{public}\n").repeat(KEYS_MAX + 1));
        assert!(Recipients::read(&path).is_err());
    }

    #[tokio::test]
    async fn files_of_keys_are_read_where_they_are_named() {
        assert!(Recipients::read_if_named(None).await.unwrap().is_none());
        assert!(Identities::read_if_named(None).await.unwrap().is_none());
        let secret = Identities::generate();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(keys_problem(&path).unwrap().contains("cannot read"));
        assert!(Identities::read_if_named(Some(path.clone())).await.is_err());
        secret.write(&path).unwrap();
        assert_eq!(keys_problem(&path), None);
        let read = Recipients::read_if_named(Some(path.clone())).await.unwrap().unwrap();
        assert!(secret.include(&read.texts()));
        let read = Identities::read_if_named(Some(path)).await.unwrap().unwrap();
        assert_eq!(format!("{read:?}"), "Identities(1)", "no secret is shown");
    }
}
