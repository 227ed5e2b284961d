//! What proxies in front say of a request. Only those that are trusted are believed (`[http] trusted_proxies`): anybody can write
//! a header.

use std::net::IpAddr;

use axum::http::HeaderMap;
use tally_settings::Settings;

/// Who is at the other end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// What is known of a request that came from there.
    pub fn told<'a>(self, settings: &'a Settings, headers: &'a HeaderMap) -> Told<'a> {
        Told { peer: self.0, settings, headers }
    }
}

/// What is known of a request beyond what it says itself.
pub struct Told<'a> {
    peer: IpAddr,
    settings: &'a Settings,
    headers: &'a HeaderMap,
}

impl<'a> Told<'a> {
    fn trusts(&self, address: IpAddr) -> bool {
        self.settings.trusted_proxies.iter().any(|network| network.contains(address))
    }

    /// The value of a header that a proxy has set.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let value = self.headers.get(name).filter(|_| self.trusts(self.peer))?;
        value.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
    }

    /// The first of a list that a proxy has set.
    fn first(&self, name: &str) -> Option<&'a str> {
        self.header(name)?.split(',').next().map(str::trim)
    }

    /// From where it was asked: the last address on the way that is no proxy of ours. Whatever stands before it in the list, the
    /// asker may have written.
    pub fn address(&self) -> IpAddr {
        let mut address = self.peer;
        let lists = self.headers.get_all("x-forwarded-for").iter().filter_map(|list| list.to_str().ok());
        let listed: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
        for before in listed.into_iter().rev() {
            if !self.trusts(address) {
                break;
            }
            let Ok(next) = before.trim().parse() else { break };
            address = next;
        }
        address.to_canonical()
    }

    /// Whether the asker speaks HTTPS.
    pub fn is_secure(&self) -> bool {
        match self.first("x-forwarded-proto") {
            Some(scheme) => scheme.eq_ignore_ascii_case("https"),
            None => self.settings.tls.is_some(),
        }
    }

    /// What the asker calls the server: host and perhaps port.
    pub fn host(&self) -> Option<&'a str> {
        let own = || self.headers.get("host").and_then(|host| host.to_str().ok());
        self.first("x-forwarded-host").or_else(own)
    }

    /// What was asked for first, before the proxy asked here: a path with its query, or a whole address.
    pub fn original(&self) -> Option<&'a str> {
        ["x-forwarded-uri", "x-original-uri", "x-original-url"].into_iter().find_map(|name| self.header(name))
    }
}
