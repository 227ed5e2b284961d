//! A cursor from a client: refused, or exactly one that was given out for this very list.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tally_core::rows::{ListKey, Side};
use tally_core::{Cursor, Name, Stamp};

fn list(side: Side, id: &str) -> ListKey {
    ListKey { side, relation: Name::new("like").ok(), id: id.to_owned(), hidden: false }
}

fuzz_target!(|text: &str| {
    let own = list(Side::Object, "post:1");
    if let Ok(cursor) = Cursor::decode(text, &own) {
        assert_eq!(cursor.encode(&own), text.to_ascii_lowercase());
    }
    // The same text as the far end of an edge, which has no control characters: no id has any.
    if text.len() <= 256 && !text.contains(char::is_control) {
        let cursor = Cursor { stamp: Stamp(text.len() as u64), other: text.to_owned() };
        let written = cursor.encode(&own);
        assert_eq!(Cursor::decode(&written, &own).as_ref(), Ok(&cursor));
        for other in [list(Side::Subject, "post:1"), list(Side::Object, "post:2")] {
            assert!(Cursor::decode(&written, &other).is_err());
        }
    }
});
