//! An authority that issues certificates, for servers and clients of a test.

use std::{
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority, with a folder of its own for what it issues.
#[derive(Debug)]
pub struct CertificateAuthority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// Files of one certificate, in PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateAuthority {
    /// A new CA.
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed by itself");
        fs::write(folder.path().join("authority.pem"), certificate.pem()).expect("written");
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// The file of its own certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Issues a certificate for a name or an address.
    pub fn issue(&self, name: &str) -> Issued {
        let folder = self.folder.path();
        let file = |ending: &str| folder.join(format!("{name}.{ending}.pem"));
        let issued = Issued { certificate: file("certificate"), key: file("key") };
        let (certificate, key) = self.sign(name);
        fs::write(&issued.certificate, certificate).expect("written");
        fs::write(&issued.key, key).expect("written");
        issued
    }

    /// Replaces the files of an issued certificate by one for another name.
    pub fn replace(&self, issued: &Issued, name: &str) {
        let (certificate, key) = self.sign(name);
        fs::write(&issued.certificate, certificate).expect("written");
        fs::write(&issued.key, key).expect("written");
    }

    /// Replaces the files of an issued certificate by one for the same name that is valid until a time.
    pub fn replace_until(&self, issued: &Issued, name: &str, until: SystemTime) {
        let since_1970 = until.duration_since(UNIX_EPOCH).expect("after 1970");
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970;
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        fs::write(&issued.certificate, certificate.pem()).expect("written");
        fs::write(&issued.key, key.serialize_pem()).expect("written");
    }

    fn sign(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }
}

impl Issued {
    /// The files as the settings of a server.
    pub fn settings(&self) -> [(&'static str, &str); 2] {
        [
            ("TRESTLE__TLS__CERT_FILE", self.certificate.to_str().expect("text")),
            ("TRESTLE__TLS__KEY_FILE", self.key.to_str().expect("text")),
        ]
    }
}
