//! Cookies of rooms: the ticket that waits, and the admission that was claimed with it.

use axum::http::{HeaderMap, HeaderValue, header};
use tally::core::Name;

use crate::door::proxy::Told;

/// The cookie with an admission.
pub fn admission(room: &Name) -> String {
    format!("tally_{room}")
}

/// The cookie with a ticket.
pub fn ticket(room: &Name) -> String {
    format!("tally_ticket_{room}")
}

/// The value of a cookie.
pub fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// Sets a cookie that no script reads and no other site sends along, for so many seconds.
pub fn set(headers: &mut HeaderMap, told: &Told<'_>, name: &str, value: &str, path: &str, seconds: u64) {
    let secure = if told.is_secure() { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(value) = HeaderValue::from_maybe_shared(text) {
        headers.append(header::SET_COOKIE, value);
    }
}
