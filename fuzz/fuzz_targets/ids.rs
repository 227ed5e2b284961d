//! Names and ids: what is taken keeps the contract's form, and comes back from JSON as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tally_core::{Name, ObjectId, SubjectId};

fuzz_target!(|text: &str| {
    if let Ok(object) = ObjectId::new(text) {
        assert_eq!(format!("{}:{}", object.kind(), object.id()), text);
        assert!((1..=32).contains(&object.kind().len()) && (1..=256).contains(&object.id().len()));
        assert!(!text.contains(char::is_control));
        let json = serde_json::to_string(&object).expect("text is JSON");
        assert_eq!(serde_json::from_str::<ObjectId>(&json).expect("it was taken once"), object);
    }
    let plain = (1..=256).contains(&text.len()) && !text.contains(char::is_control);
    assert_eq!(SubjectId::new(text).is_ok(), plain);
    let is_name = text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
    assert_eq!(Name::new(text).is_ok(), is_name);
});
