//! The network: TLS, patience and pauses, shared by language models, the hub of models, the web and engines elsewhere.
//!
//! Owns how a client is set up, how a file is fetched and how a request is sent. It must know nothing of what the bytes mean.

mod call;
mod fetch;
pub mod retry;
mod waiting;

use std::net::IpAddr;
use std::sync::Arc;

pub use call::{Call, Caller, Said, Secret, Verb};
pub use fetch::{Allow, Ask, Fetcher, Head, NetError, at};
use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
#[cfg(feature = "milvus")]
pub use waiting::Waiting;

/// Whether a URL names this machine.
pub fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether an address is one of this machine.
pub fn leads_here(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| is_here(&url))
}

/// TLS with ring and the system's certificates; a server on this machine that is asked by http needs none.
///
/// # Errors
/// The system has no certificates and `https` needs them.
pub fn tls(https: bool, here: bool) -> Result<ClientConfig, String> {
    // Not the provider of the process: that is for the program to choose, and it may have chosen none.
    let made = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS could not be set up ({error})"))
    };
    let none = || Ok(made()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    if here && !https {
        return none();
    }
    match made()?.with_platform_verifier() {
        Ok(config) => Ok(config.with_no_client_auth()),
        Err(error) if https => Err(format!(
            "https:// needs the system's certificates ({error}); install the package ca-certificates"
        )),
        // A bare container has no certificates, and http:// needs them only for some proxies.
        Err(_) => none(),
    }
}
