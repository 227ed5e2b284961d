//! Rooms in tables.

use std::time::Duration;

use tally::core::room::RoomSettings;
use tally::core::room::read::{MinuteItem, RoomAnswer};
use tally_settings::duration_text;

use crate::output::{cell, table, yes};

/// One of the API's own words, without quotes.
pub(super) fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A length of time as people say it, to the second.
pub(super) fn about(ms: Option<u64>) -> String {
    let Some(ms) = ms else { return "unknown".to_owned() };
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        (_, _) => format!("{hours} h {minutes} min"),
    }
}

/// How a room is.
pub(super) fn room(room: RoomAnswer) -> String {
    let mut rows = vec![
        ["waiting".to_owned(), room.waiting.to_string()],
        ["ready".to_owned(), room.ready.to_string()],
        ["admitted".to_owned(), room.admitted.to_string()],
        ["joined so far".to_owned(), room.joined.to_string()],
        ["wait of a newcomer".to_owned(), about(room.eta_ms)],
        ["doors open".to_owned(), yes(room.open)],
        ["hash of the seed".to_owned(), room.seed_hash],
    ];
    rows.extend(room.seed.map(|seed| ["seed".to_owned(), seed]));
    rows.extend(room.early.map(|early| ["came early".to_owned(), early.to_string()]));
    rows.push(["made".to_owned(), room.created_at.to_string()]);
    format!("{}\n{}", table([room.room.as_str(), ""], rows), settings(&room.settings))
}

/// All rooms.
pub(super) fn rooms(rooms: Vec<RoomAnswer>) -> String {
    let row = |room: RoomAnswer| {
        [
            room.room.to_string(),
            word(room.settings.mode),
            room.waiting.to_string(),
            room.ready.to_string(),
            room.admitted.to_string(),
            room.settings.rate_per_s.per_s().to_string(),
            room.settings.capacity.to_string(),
            about(room.eta_ms),
        ]
    };
    let header = ["room", "mode", "waiting", "ready", "admitted", "rate a second", "capacity", "wait of a newcomer"];
    table(header, rooms.into_iter().map(row).collect())
}

/// How a room is set up, by the names that the file and the API have.
pub(super) fn settings(settings: &RoomSettings) -> String {
    let ms = |ms: u64| duration_text(Duration::from_millis(ms));
    let rows = [
        ("rate_per_s", settings.rate_per_s.per_s().to_string()),
        ("capacity", settings.capacity.to_string()),
        ("mode", word(settings.mode)),
        ("one_ticket_per_subject", yes(settings.one_ticket_per_subject)),
        ("idle_ttl_ms", ms(settings.idle_ttl_ms)),
        ("ticket_ttl_ms", ms(settings.ticket_ttl_ms)),
        ("claim_ttl_ms", ms(settings.claim_ttl_ms)),
        ("admission_ttl_ms", ms(settings.admission_ttl_ms)),
        ("dedupe_ttl_ms", ms(settings.dedupe_ttl_ms)),
        ("renewable", yes(settings.renewable)),
        ("opens_at", cell(settings.opens_at)),
        ("closes_at", cell(settings.closes_at)),
        ("before_open", word(settings.before_open)),
        ("join", word(settings.join)),
        ("bypass", cell(settings.bypass.as_ref())),
        ("rate_limit", cell(settings.rate_limit.as_ref())),
        ("return_hosts", settings.return_hosts.join(", ")),
    ];
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    table(["setting", "value"], rows.map(|(name, value)| [name.to_owned(), value]).collect())
}

/// Minutes.
pub(super) fn minutes(items: Vec<MinuteItem>) -> String {
    let row = |item: MinuteItem| {
        [
            item.minute.to_string(),
            item.joined.to_string(),
            item.admitted.to_string(),
            item.left.to_string(),
            item.expired.to_string(),
            about(Some(item.longest_wait_ms)),
        ]
    };
    let header = ["minute", "joined", "let in", "left", "expired", "longest wait"];
    table(header, items.into_iter().map(row).collect())
}
