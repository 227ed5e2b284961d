//! Tests of `keys.rs`.

use tally::KeyRing as _;

use super::*;

fn made(role: Role) -> NewKey {
    NewKey::generate(role, "test", Timestamp(1)).unwrap()
}

#[test]
fn a_made_key_is_accepted_until_it_is_revoked() {
    let ring = KeyRing::new(None);
    assert!(ring.is_empty());
    let key = made(Role::Service);
    assert_eq!(ring.verify(&key.token), None);
    ring.put(&key.id, &key.stored);
    let expected = Principal::Key { id: key.id.as_str().into(), role: Role::Service };
    assert_eq!(ring.verify(&key.token), Some(expected.clone()));
    ring.put(&key.id, &ApiKey { revoked_at: Some(Timestamp(2)), ..key.stored.clone() });
    assert_eq!(ring.verify(&key.token), None);
    let (stored, read_at) = ([(key.id.clone(), key.stored.clone())], ring.changes());
    assert!(ring.replace(&stored, read_at));
    assert_eq!(ring.verify(&key.token), Some(expected));
    ring.remove(&key.id);
    assert_eq!(ring.verify(&key.token), None);
    assert!(!ring.replace(&stored, read_at), "it was read before the key was revoked");
    assert_eq!(ring.verify(&key.token), None);
}

#[test]
fn a_key_that_anybody_may_have_made_is_good_only_where_authentication_is_off() {
    let key = made(Role::Admin);
    let stored = of_dev(key.stored.clone());
    assert!(is_of_dev(&stored) && !is_of_dev(&key.stored));
    for (dev, accepts) in [(true, true), (false, false)] {
        let ring = KeyRing::new(None).with_dev(dev);
        ring.put(&key.id, &stored);
        assert_eq!(ring.verify(&key.token).is_some(), accepts, "dev: {dev}");
    }
}

#[test]
fn a_secret_opens_only_its_own_id() {
    let (one, other) = (made(Role::Admin), made(Role::Read));
    let ring = KeyRing::new(None);
    ring.put(&one.id, &one.stored);
    ring.put(&other.id, &other.stored);
    let (_, secret) = parse(&other.token).unwrap();
    assert_eq!(ring.verify(&format!("tally_{}_{secret}", one.id)), None);
    let mut tampered = one.token.clone();
    let last = if tampered.pop() == Some('A') { 'B' } else { 'A' };
    tampered.push(last);
    assert_eq!(ring.verify(&tampered), None);
}

#[test]
fn neither_token_nor_stored_form_gives_the_other_away() {
    let key = made(Role::Read);
    let (_, secret) = parse(&key.token).unwrap();
    let stored = serde_json::to_string(&key.stored).unwrap();
    assert!(!stored.contains(secret));
    assert_ne!(made(Role::Read).token, key.token);
    // The stored hash is not itself a way in.
    let ring = KeyRing::new(None);
    ring.put(&key.id, &key.stored);
    assert_eq!(ring.verify(&format!("tally_{}_{}", key.id, key.stored.hash)), None);
}

#[test]
fn only_the_whole_form_parses() {
    let key = made(Role::Read);
    assert!(parse(&key.token).is_some());
    let bad = [
        "",
        "tally_",
        "tally__",
        "tally_abc_def",
        &key.token[1..],
        &format!("{}x", key.token),
        &key.token[..key.token.len() - 1],
        &key.token.replace("tally_", "Tally_"),
        &key.token.replace(&key.id, "aaaaaaaaaa-a"),
    ];
    for token in bad {
        assert_eq!(parse(token), None, "{token}");
    }
}

#[test]
fn an_admin_key_is_any_visible_text() {
    for bad in ["", " ", "has a space in the middle", "ümläuts-are-not-ascii", "line\nbreak"] {
        assert!(AdminKey::new(bad).is_err(), "{bad}");
    }
    let short = KeyRing::new(Some(AdminKey::new("x").unwrap()));
    assert!(short.verify("x").is_some() && short.verify("y").is_none() && short.verify("").is_none());
    let ring = KeyRing::new(Some(AdminKey::new("1234567890123456").unwrap()));
    assert!(!ring.is_empty());
    let admin = Principal::Key { id: "admin".into(), role: Role::Admin };
    assert_eq!(ring.verify("1234567890123456"), Some(admin.clone()));
    assert_eq!(ring.verify("1234567890123457"), None);
    assert_eq!(ring.verify("123456789012345"), None);
    // A key of our own form may serve as the admin key, too.
    let key = made(Role::Read);
    let ring = KeyRing::new(Some(AdminKey::new(&key.token).unwrap()));
    assert_eq!(ring.verify(&key.token), Some(admin));
}

#[test]
fn a_damaged_stored_hash_accepts_nothing() {
    let key = made(Role::Admin);
    let ring = KeyRing::new(None);
    for hash in ["", "zz", &"é".repeat(32), &"0".repeat(63)] {
        ring.put(&key.id, &ApiKey { hash: hash.to_owned(), ..key.stored.clone() });
        assert_eq!(ring.verify(&key.token), None, "{hash}");
    }
}

#[test]
fn random_text_uses_the_whole_alphabet() {
    let text = random_text(SECRET_ALPHABET, 20_000).unwrap();
    assert_eq!(text.len(), 20_000);
    for letter in SECRET_ALPHABET {
        assert!(text.as_bytes().contains(letter), "{}", char::from(*letter));
    }
}
