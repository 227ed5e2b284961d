//! A condition from a settings file: refused when it is read, or answered without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tally_core::condition::{Condition, Facts};
use tally_core::{Refusal, Timestamp};

fuzz_target!(|text: &str| {
    let Ok(condition) = Condition::compile(text) else { return };
    let auth = json!({"kind": "user", "subject": "alice", "claims": {"age": 20, "tags": ["a", "b"], "big": u64::MAX}});
    let meta = json!({"n": 1.5, "deep": {"er": [null, true]}});
    let facts = Facts {
        auth: &auth,
        object: json!({"id": "1", "type": "post", "exists": true, "status": null, "attributes": {"owner": "bob"}}),
        subject: Some("alice"),
        meta: meta.as_object(),
        now: Timestamp(1_700_000_000_000),
    };
    match condition.check(facts) {
        Ok(()) | Err(Refusal::ConditionFailed(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
});
