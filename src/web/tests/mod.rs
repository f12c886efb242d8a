//! The web on loopback: pages as they come, and engines as they answer.

mod engines;
mod pages;

use std::net::IpAddr;
use std::time::Duration;

use super::{Manners, public};
use crate::net::retry::Backoff;

/// The test's own address is let pass, everything else as usual.
fn loopback(address: IpAddr) -> Result<(), String> {
    if address == IpAddr::from([127, 0, 0, 1]) { Ok(()) } else { public(address) }
}

/// In no time, for sites of our own.
fn hasty() -> Manners {
    Manners {
        delay: Duration::ZERO,
        largest: 200_000,
        patience: Duration::from_secs(20),
        backoff: Backoff { base: Duration::ZERO, ..Backoff::default() },
        allow: loopback,
        ..Manners::default()
    }
}
