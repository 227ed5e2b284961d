//! `[rooms.NAME]`. The same names as in the API, and the same check.

use jiff::Timestamp as Moment;
use tally_core::catalog::{RoomDef, RoomSettings};
use tally_core::id::Name;
use tally_core::room::{BeforeOpen, JoinBy, Mode, Rate};
use tally_core::time::Timestamp;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Declares, Table};
use crate::declared::Reader;
use crate::file::raw;
use crate::value::Raw;

const MODES: &[(&str, Mode)] =
    &[("auto", Mode::Auto), ("hold", Mode::Hold), ("drain", Mode::Drain), ("off", Mode::Off), ("reject", Mode::Reject)];
const ORDERS: &[(&str, BeforeOpen)] = &[("arrival", BeforeOpen::Arrival), ("shuffle", BeforeOpen::Shuffle)];
const JOINS: &[(&str, JoinBy)] = &[("any", JoinBy::Any), ("token", JoinBy::Token), ("service", JoinBy::Service)];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "rooms",
    noun: "a room",
    doc: "Waiting rooms: whose turn is it? Without any here, there is none until somebody makes one. What the API changes\nlater stays until something else is written here. Times in milliseconds. See docs/guide/rooms.md.",
    example: "sale",
    keys: &[
        ("rate_per_s", "10", "How many are let in a second; 0.5 is one every two seconds."),
        ("capacity", "100", "How many may be inside at once."),
        (
            "mode",
            "\"auto\"",
            "\"auto\" lets in by rate and capacity, \"hold\" nobody, \"drain\" takes no new joins, \"off\" lets everybody\nstraight in, \"reject\" takes no joins and lets nobody in.",
        ),
        ("one_ticket_per_subject", "true", "Whether a subject that has a ticket gets that one again."),
        ("idle_ttl_ms", "120000", "How long a ticket waits without a sign of life."),
        ("ticket_ttl_ms", "86400000", "How long it waits at most."),
        ("claim_ttl_ms", "300000", "How long somebody whose turn it is has to go in."),
        ("admission_ttl_ms", "600000", "How long an admission lasts."),
        (
            "dedupe_ttl_ms",
            "86400000",
            "How long a ticket that is over is still told, and joining again gives it again.",
        ),
        ("renewable", "false", "Whether using an admission prolongs it."),
        ("opens_at", "2030-11-29T12:00:00Z", "When the doors open; without it they are open."),
        ("closes_at", "2030-11-29T14:00:00+00:00", "From when on nobody joins."),
        (
            "before_open",
            "\"arrival\"",
            "How those stand who came before the doors opened: \"arrival\", or \"shuffle\" in an order that is drawn.",
        ),
        (
            "join",
            "\"service\"",
            "Who may join: \"any\" is anybody, \"token\" users with their token, \"service\" servers with an API key.",
        ),
        ("bypass", "\"auth.claims.staff == true\"", "A condition (CEL) under which somebody goes straight in."),
        (
            "rate_limit",
            "\"5/min per subject\"",
            "A limit that joining passes first: \"per subject\", \"per ip\" or \"in all\".",
        ),
        ("return_hosts", "[\"shop.example\"]", "Where the waiting page may send people back to."),
    ],
    names: |catalog| catalog.rooms().map(|def| def.name.to_string()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, _owner: &str, name: &Name, at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let before = reader.problems.len();
    let mut settings = RoomSettings::default();
    for (key, value) in fields {
        one(reader, &mut settings, key.get_ref(), value);
    }
    // What is wrong by itself was said; the check would only say it in other words.
    if reader.problems.len() == before
        && let Err(refusal) = settings.check(name)
    {
        let text = refusal.to_string();
        // It names the setting, which has its own place in the file.
        let blamed = fields.iter().filter(|(key, _)| text.contains(&**key.get_ref()));
        let at = blamed.min_by_key(|(key, _)| text.find(&**key.get_ref())).map_or(at, |(_, value)| value.span().start);
        let (what, hint) = text.split_once("; ").unwrap_or((&text, "see docs/guide/rooms.md"));
        reader.problem(at, format!("`rooms.{name}`: {what}"), hint);
    }
    let def = RoomDef { name: name.clone(), settings };
    Some(Box::new(move |catalog| catalog.declare_room(def.name.clone(), def.clone())))
}

/// Reads one setting. A name that is none was reported where names are.
fn one(reader: &mut Reader<'_>, to: &mut RoomSettings, key: &str, value: &Spanned<DeValue<'_>>) {
    match key {
        "rate_per_s" => set(&mut to.rate_per_s, rate(reader, value)),
        "capacity" => set(&mut to.capacity, number(reader, key, value)),
        "mode" => set(&mut to.mode, reader.choice(key, value, "mode", MODES)),
        "one_ticket_per_subject" => set(&mut to.one_ticket_per_subject, reader.switch(key, value)),
        "idle_ttl_ms" => set(&mut to.idle_ttl_ms, number(reader, key, value)),
        "ticket_ttl_ms" => set(&mut to.ticket_ttl_ms, number(reader, key, value)),
        "claim_ttl_ms" => set(&mut to.claim_ttl_ms, number(reader, key, value)),
        "admission_ttl_ms" => set(&mut to.admission_ttl_ms, number(reader, key, value)),
        "dedupe_ttl_ms" => set(&mut to.dedupe_ttl_ms, number(reader, key, value)),
        "renewable" => set(&mut to.renewable, reader.switch(key, value)),
        "opens_at" => to.opens_at = time(reader, key, value),
        "closes_at" => to.closes_at = time(reader, key, value),
        "before_open" => set(&mut to.before_open, reader.choice(key, value, "order", ORDERS)),
        "join" => set(&mut to.join, reader.choice(key, value, "way to join", JOINS)),
        "bypass" => {
            let text = value.get_ref().as_str().map(str::to_owned);
            to.bypass = reader.condition(key, value).and(text);
        }
        "rate_limit" => {
            const HINT: &str = "write \"5/min per subject\", \"20/min per ip\" or \"1000/s in all\"";
            to.rate_limit = reader.text(key, value, HINT).map(str::to_owned);
        }
        "return_hosts" => set(&mut to.return_hosts, hosts(reader, value)),
        _ => {}
    }
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

fn number(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let given = raw(value.get_ref());
    let number = match &given {
        Raw::Integer(number) => number.and_then(|number| u64::try_from(number).ok()),
        Raw::Text(_) | Raw::Switch(_) | Raw::Texts(_) | Raw::Other(_) | Raw::Word(_) => None,
    };
    if number.is_none() {
        let what = match given {
            Raw::Integer(_) => "the number is out of range".to_owned(),
            Raw::Text(_) | Raw::Switch(_) | Raw::Texts(_) | Raw::Other(_) | Raw::Word(_) => {
                format!("{} where a whole number belongs", given.type_name())
            }
        };
        let unit = if key.ends_with("_ms") { "milliseconds, without quotes: 60000 is a minute" } else { "a number" };
        reader.problem(value.span().start, format!("`{key}`: {what}"), format!("write {unit}"));
    }
    number
}

fn rate(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Rate> {
    let per_s = match value.get_ref() {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    };
    let rate = per_s.and_then(Rate::new);
    if rate.is_none() {
        let hint =
            "write a number above 0 and up to 1000000, such as 10 or 0.5; to let nobody in, set mode to \"hold\"";
        reader.problem(value.span().start, "`rate_per_s` is not a rate", hint);
    }
    rate
}

/// A time as TOML has it, or the same in quotes.
fn time(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Timestamp> {
    let text = match value.get_ref() {
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    };
    let time = text.and_then(|text| text.parse::<Moment>().ok()).and_then(|at| u64::try_from(at.as_millisecond()).ok());
    if time.is_none() {
        let hint = "write it with its time zone, such as 2030-11-29T12:00:00Z or 2030-11-29T21:00:00+09:00";
        reader.problem(value.span().start, format!("`{key}` is not a time"), hint);
    }
    time.map(Timestamp)
}

fn hosts(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    match raw(value.get_ref()) {
        Raw::Texts(hosts) => return Some(hosts),
        Raw::Text(host) => return Some(vec![host]),
        Raw::Integer(_) | Raw::Switch(_) | Raw::Other(_) | Raw::Word(_) => {}
    }
    reader.problem(value.span().start, "`return_hosts` is a list of names", "write [\"shop.example\"]");
    None
}
