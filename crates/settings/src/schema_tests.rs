//! Tests of `schema.rs`.

use super::*;

#[test]
fn every_default_and_example_is_acceptable() {
    for setting in SETTINGS {
        assert!(setting.sample().is_some(), "{}", setting.path);
        assert!(setting.doc.lines().all(|line| line.chars().count() <= 100), "{}", setting.path);
        assert!(
            SECTIONS.iter().any(|(section, _)| *section == setting.section()),
            "{} stands in no section",
            setting.path
        );
    }
}

#[test]
fn the_fixed_names_follow_from_the_paths() {
    let env = |path| setting(path).unwrap().env();
    assert_eq!(env("listen").as_deref(), Some("TALLY_LISTEN"));
    assert_eq!(env("store").as_deref(), Some("TALLY_STORE"));
    assert_eq!(env("admin_key").as_deref(), Some("TALLY_ADMIN_KEY"));
    assert_eq!(env("auth.jwt.jwks").as_deref(), Some("TALLY_AUTH_JWT_JWKS"));
    assert_eq!(env("dev"), None);
}
