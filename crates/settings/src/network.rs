//! A network of addresses, as people write it: `10.0.0.0/8`, or one address.

use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether an address is in it. One of version 4 that is written as version 6 is the same address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => alike(own.to_bits().into(), other.to_bits().into(), 32, self.bits),
            (IpAddr::V6(own), IpAddr::V6(other)) => alike(own.to_bits(), other.to_bits(), 128, self.bits),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn alike(own: u128, other: u128, width: u8, bits: u8) -> bool {
    let rest = u32::from(width - bits.min(width));
    own.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| ())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        match bits.unwrap_or(width) {
            bits if bits <= width => Ok(Self { address, bits }),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_their_network_and_no_other() {
        let cases = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
        ];
        for (network, address, expected) in cases {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network:?} {address}");
        }
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "localhost", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(wrong.parse::<Network>(), Err(()), "{wrong}");
        }
    }
}
