//! Attendance.

use serde_json::json;

use crate::tests::counting::{told, world};

#[test]
fn a_day_ends_where_the_sheet_is() {
    let mut world = world();
    // 15:00 in London is midnight in Seoul.
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond().unsigned_abs();
    world.now_ms = at("2026-03-01T14:59:59Z");
    let here = |sheet: &str| json!({"op": "attend", "sheet": sheet, "subject": "ann"});
    assert_eq!(told(&mut world, here("gym"))["day"], "2026-03-01");
    world.now_ms = at("2026-03-01T15:00:00Z");
    let next = told(&mut world, here("gym"));
    assert_eq!((&next["day"], &next["streak"]), (&json!("2026-03-02"), &json!(2)));
    assert_eq!(told(&mut world, here("daily"))["day"], "2026-03-01");
    let today = json!({"op": "attend", "sheet": "gym", "subject": "ann", "day": "today"});
    let again = told(&mut world, today);
    assert_eq!((&again["day"], &again["changed"]), (&json!("2026-03-02"), &json!(false)));
}
