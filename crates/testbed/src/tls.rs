//! An authority of one server's own and the certificate it signs, made by the `openssl` program at each start.
//!
//! Nothing is kept in the repository that would expire one day, and no key is shared between tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// Sections by which `openssl` knows what it makes: no file of the system's is read.
const CONFIG: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = Poolwright testbed
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
";

const REQUEST: [&str; 3] = ["req", "-config", "openssl.cnf"];

/// A key of the kind that is made and checked fastest.
const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// Where the parts are; all PEM. The certificate serves a client as well, where a server asks clients for theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority, which a client has to trust.
    pub authority: PathBuf,
    /// The certificate for 127.0.0.1 and `localhost`.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn within(dir: &Path) -> Self {
        let [authority, certificate, key] =
            ["authority.crt", "server.crt", "server.key"].map(|name| dir.join(name));
        Self { authority, certificate, key }
    }

    /// Makes them, with a key of the authority beside them.
    pub(crate) fn make(dir: &Path) -> Result<(), Error> {
        fs::write(dir.join("openssl.cnf"), CONFIG).map_err(Error::io("write a configuration"))?;
        let authority = ["-x509", "-extensions", "authority", "-days", "2", "-out", "authority.crt"];
        run(dir, &[&REQUEST, &KEY, &["-keyout", "authority.key"], &authority])?;
        run(dir, &[&REQUEST, &KEY, &["-keyout", "server.key"], &["-new", "-out", "server.csr"]])?;
        let by = ["-CA", "authority.crt", "-CAkey", "authority.key", "-set_serial", "1", "-days", "2"];
        let with = ["-extfile", "openssl.cnf", "-extensions", "server"];
        run(dir, &[&["x509", "-req", "-in", "server.csr", "-out", "server.crt"], &by, &with])
    }
}

fn run(dir: &Path, args: &[&[&str]]) -> Result<(), Error> {
    let mut command = Command::new("openssl");
    let output = command.args(args.concat()).current_dir(dir).stdin(Stdio::null()).output();
    let missing = |source| Error::Missing { program: "openssl".to_owned(), package: "openssl", source };
    let output = output.map_err(missing)?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Ended { server: "openssl".to_owned(), status: output.status.to_string(), log })
}
