//! Encrypts streams: whom to trust, who one is, and by which name the server must prove itself.
//!
//! Invariant: the files are read once, when the store is opened; whatever is wrong with them is said then.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::Error;
use crate::options::Tls;

/// How streams of a store are encrypted.
#[derive(Clone)]
pub(super) struct Encryption {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl Encryption {
    /// Reads the files.
    pub(super) fn new(tls: &Tls) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has cipher suites for TLS 1.2 and 1.3");
        let builder = if tls.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        } else {
            builder.with_root_certificates(trusted(tls)?)
        };
        let config = match (&tls.cert_file, &tls.key_file) {
            (Some(cert), Some(key)) => {
                let (chain, secret) = (certificates(cert)?, private_key(key)?);
                let fits = builder.with_client_auth_cert(chain, secret);
                fits.map_err(|e| {
                    bad(key, format!("it does not go with the certificate in {}: {e}", cert.display()))
                })?
            }
            _ => builder.with_no_client_auth(),
        };
        let name = tls.server_name.as_deref().map(server_name).transpose();
        let name = name.map_err(|why| Error::BadOptions { problems: vec![why] })?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(super) async fn wrap<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => server_name(host).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?,
        };
        self.connector.connect(name, stream).await
    }
}

/// A failure that the next attempt meets again: a certificate that is not trusted, a name that does not fit.
pub(super) fn is_lasting(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    inner.is_some_and(|inner| {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};
        matches!(inner, AlertReceived(_) | InvalidCertificate(_) | InvalidMessage(_) | PeerIncompatible(_))
    })
}

fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| format!("`{text}` is no name that a certificate can carry"))
}

fn trusted(tls: &Tls) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &tls.ca_file else {
        // Single certificates of the system that cannot be read are of no interest as long as there are others.
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why =
                "this system has no list of trusted authorities: name a file with tls_ca_file".to_owned();
            return Err(Error::BadOptions { problems: vec![why] });
        }
        return Ok(roots);
    };
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|e| bad(path, format!("a certificate in it cannot be an authority: {e}")))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|e| bad(path, format!("it is no PEM file: {e}")))?;
    if all.is_empty() {
        return Err(bad(
            path,
            "there is no certificate in it, expected PEM: -----BEGIN CERTIFICATE-----".to_owned(),
        ));
    }
    Ok(all)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    // The error of the reader may repeat what it read.
    PrivateKeyDer::from_pem_slice(&read(path)?)
        .map_err(|_| bad(path, "there is no private key in it, expected PEM without a passphrase".to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|e| bad(path, e.to_string()))
}

fn bad(path: &Path, why: String) -> Error {
    Error::BadFile { path: path.display().to_string(), why }
}

/// Takes any certificate, as long as its holder has signed the handshake.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
