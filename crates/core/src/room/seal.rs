//! What a ticket is called: its number with a seal, so that a poll needs no look-up to know which it is, and nobody can guess
//! one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Bytes of a seal: 128 bits.
const SEAL_BYTES: usize = 16;
const BLOCK: usize = 64;

/// The name of a ticket.
pub fn seal(secret: &str, seq: u64) -> String {
    format!("{seq}-{}", URL_SAFE_NO_PAD.encode(&hmac(secret, "ticket", seq)[..SEAL_BYTES]))
}

/// The number of a ticket of this name, if it is one.
pub fn open(secret: &str, ticket: &str) -> Option<u64> {
    let (seq, mac) = ticket.split_once('-')?;
    let number: u64 = seq.parse().ok()?;
    let given = URL_SAFE_NO_PAD.decode(mac).ok().filter(|given| given.len() == SEAL_BYTES)?;
    let own = hmac(secret, "ticket", number);
    // All of it is compared, whatever differs: how long it takes tells nothing.
    let differs = own.iter().zip(&given).fold(0, |differs, (own, given)| differs | (own ^ given));
    (differs == 0 && seq == number.to_string()).then_some(number)
}

/// The id of a ticket's admission: the same however often it is claimed.
pub fn jti(secret: &str, seq: u64) -> String {
    URL_SAFE_NO_PAD.encode(&hmac(secret, "admission", seq)[..SEAL_BYTES])
}

/// A subject for whoever joins without a name: the same for the same token.
pub fn stranger(secret: &str, token: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(mac(secret, &[b"stranger", token.as_bytes()]));
    format!("guest-{}", URL_SAFE_NO_PAD.encode(&hash.finalize()[..SEAL_BYTES]))
}

/// A ticket in an admission: who sees the admission does not get the ticket.
pub fn ticket_hash(ticket: &str) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(ticket.as_bytes())[..SEAL_BYTES])
}

fn hmac(secret: &str, what: &str, seq: u64) -> [u8; 32] {
    mac(secret, &[what.as_bytes(), &seq.to_be_bytes()])
}

/// HMAC with SHA-256 (RFC 2104).
fn mac(secret: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; BLOCK];
    if secret.len() <= BLOCK {
        key[..secret.len()].copy_from_slice(secret.as_bytes());
    } else {
        key[..32].copy_from_slice(&Sha256::digest(secret.as_bytes()));
    }
    let mut inner = Sha256::new();
    inner.update(key.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new();
    outer.update(key.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_given_a_ticket_has_one() {
        let ticket = seal("a secret", 42);
        assert_eq!(open("a secret", &ticket), Some(42));
        assert_eq!(open("another", &ticket), None);
        let other = ticket.replacen("42", "43", 1);
        for wrong in
            ["", "42", "42-", "-", "42-AAAAAAAAAAAAAAAAAAAAAA", &other, &format!("0{ticket}"), &format!("{ticket}A")]
        {
            assert_eq!(open("a secret", wrong), None, "{wrong}");
        }
    }

    /// RFC 4231, test case 2.
    #[test]
    fn it_is_hmac() {
        let mac = mac("Jefe", &[b"what do ya want ", b"for nothing?"]);
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
