//! Rooms that are declared.

use tally_core::Name;
use tally_core::room::{BeforeOpen, JoinBy, Mode, RoomSettings};
use tally_settings::render_show;

use crate::{assert_problems, file, load, with_file};

#[test]
fn a_room_is_checked_to_the_last_word() {
    let text = r#"[rooms.sale]
rate_per_s = 0
capacity = "many"
mode = "holdd"
rate_per_sec = 5
idle_ttl_ms = "2m"
opens_at = 2026-11-29T12:00:00
closes_at = "noon"
before_open = "shuffel"
join = "anyone"
bypass = "auth.claims.staff =="
return_hosts = 5
renewable = "no"
one_ticket_per_subject = 1
[rooms.empty]
capacity = 0
[rooms.hasty]
claim_ttl_ms = 1
[rooms.back]
opens_at = 2026-11-29T12:00:00Z
closes_at = "2026-11-29T11:00:00Z"
[rooms.limited]
rate_limit = "5/min per cookie"
[rooms.hosts]
return_hosts = ["https://shop.example/"]
[rooms]
rate = 1
[room.sale]
"#;
    assert_problems(
        "rooms",
        text,
        &[
            "rooms.toml:2:14: `rate_per_s` is not a rate\n  hint: write a number above 0",
            "rooms.toml:3:12: `capacity`: a string where a whole number belongs\n  hint: write a number",
            "rooms.toml:4:8: `mode`: there is no mode `holdd`\n  hint: did you mean `hold`?",
            "rooms.toml:5:1: unknown key `rate_per_sec`\n  hint: did you mean `rate_per_s`?",
            "rooms.toml:6:15: `idle_ttl_ms`: a string where a whole number belongs\n  hint: write milliseconds",
            "rooms.toml:7:12: `opens_at` is not a time\n  hint: write it with its time zone",
            "rooms.toml:8:13: `closes_at` is not a time",
            "rooms.toml:9:15: `before_open`: there is no order `shuffel`\n  hint: did you mean `shuffle`?",
            "rooms.toml:10:8: `join`: there is no way to join `anyone`\n  hint:",
            "rooms.toml:11:10: `bypass` is not a condition",
            "rooms.toml:12:16: `return_hosts` is a list of names\n  hint: write [\"shop.example\"]",
            "rooms.toml:13:13: `renewable`: a string where true or false belongs",
            "rooms.toml:14:26: `one_ticket_per_subject`: a number where true or false belongs",
            "rooms.toml:16:12: `rooms.empty`: capacity is between 1 and 100000000\n  hint: to let nobody in, set mode",
            "rooms.toml:18:16: `rooms.hasty`: claim_ttl_ms is between 100 and 2678400000",
            "rooms.toml:21:13: `rooms.back`: closes_at is later than opens_at",
            "rooms.toml:23:14: `rooms.limited`: rate_limit: `per cookie`: write `per subject` or `per ip`",
            "rooms.toml:25:16: `rooms.hosts`: `https://shop.example/` in return_hosts is no host\n  hint: write shop.example",
            "rooms.toml:27:8: `rate`: a number where a table belongs\n  hint: write [rooms.NAME] with its keys below",
            "rooms.toml:28:2: unknown key `room`\n  hint: did you mean `rooms`?",
        ],
    );
}

#[test]
fn a_declared_room_is_what_the_api_would_make() {
    let text = r#"[rooms.sale]
rate_per_s = 0.5
capacity = 20
mode = "hold"
opens_at = 2030-11-29T21:00:00+09:00
closes_at = "2030-11-29T14:00:00Z"
before_open = "shuffle"
join = "any"
bypass = "auth.claims.staff == true"
rate_limit = "20/min per ip"
return_hosts = ["shop.example"]
[rooms.plain]
[admission]
signing_key_file = "/etc/tally/admission.pem"
"#;
    let settings = load(&with_file(&file("room", text)), &[]).unwrap();
    assert_eq!(settings.admission.signing_key_file.as_deref(), Some("/etc/tally/admission.pem".as_ref()));
    assert_eq!(settings.admission.seal_key_file, None);
    let catalog = settings.catalog();
    let sale = &catalog.room(&Name::new("sale").unwrap()).unwrap().settings;
    assert_eq!((sale.rate_per_s.per_s(), sale.capacity, sale.mode), (0.5, 20, Mode::Hold));
    assert_eq!((sale.before_open, sale.join), (BeforeOpen::Shuffle, JoinBy::Any));
    assert_eq!(sale.opens_at.unwrap().to_string(), "2030-11-29T12:00:00.000Z");
    assert_eq!(sale.closes_at.unwrap().to_string(), "2030-11-29T14:00:00.000Z");
    assert_eq!(sale.return_hosts, ["shop.example"]);
    assert!(sale.bypass.is_some() && sale.rate_limit.is_some());
    let plain = &catalog.room(&Name::new("plain").unwrap()).unwrap().settings;
    assert_eq!(*plain, RoomSettings::default(), "what is left out has its default");
    let again = load(&with_file(&file("room-shown", &render_show(&settings))), &[]).unwrap().catalog();
    assert_eq!(again.room(&Name::new("sale").unwrap()).unwrap().settings, *sale);
}
