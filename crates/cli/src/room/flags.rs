//! Every setting of a room as a flag.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use tally::core::Timestamp;
use tally::core::room::{BeforeOpen, JoinBy, Mode, Rate, RoomSettings};
use tally_settings::duration;

use crate::parse;

/// How a room is to be set up.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it is set up")]
pub(super) struct Flags {
    /// How many are let in a second; 0.5 is one every two seconds [default: 10]
    #[arg(long, value_name = "N", value_parser = rate)]
    rate: Option<Rate>,
    /// How many may be inside at once [default: 100]
    #[arg(long, value_name = "N")]
    capacity: Option<u64>,
    /// Whether anybody is let in [default: auto]
    #[arg(long, value_parser = word::<Mode>(&["auto", "hold", "drain", "off", "reject"]))]
    mode: Option<Mode>,
    /// When the doors open, such as 2030-11-29T12:00:00Z [default: they are open]
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    opens_at: Option<Timestamp>,
    /// From when on nobody joins
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    closes_at: Option<Timestamp>,
    /// Who comes before the doors open stands in an order that is drawn; the same as --before-open shuffle
    #[arg(long, conflicts_with = "before_open")]
    shuffle: bool,
    /// How those stand who come before the doors open [default: arrival]
    #[arg(long, value_parser = word::<BeforeOpen>(&["arrival", "shuffle"]))]
    before_open: Option<BeforeOpen>,
    /// Who may join: anybody, users with a token, or servers with a key [default: service]
    #[arg(long, value_parser = word::<JoinBy>(&["any", "token", "service"]))]
    join: Option<JoinBy>,
    /// Whether a subject that has a ticket gets that one again [default: true]
    #[arg(long, value_name = "BOOL")]
    one_ticket_per_subject: Option<bool>,
    /// How long a ticket waits without a sign of life, such as 2m [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = ms)]
    idle_ttl: Option<u64>,
    /// How long a ticket waits at most [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = ms)]
    ticket_ttl: Option<u64>,
    /// How long somebody whose turn it is has to go in [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = ms)]
    claim_ttl: Option<u64>,
    /// How long an admission lasts [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = ms)]
    admission_ttl: Option<u64>,
    /// How long a ticket that is over is still told [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = ms)]
    dedupe_ttl: Option<u64>,
    /// Whether using an admission prolongs it [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    renewable: Option<bool>,
    /// A condition (CEL) under which somebody goes straight in
    #[arg(long, value_name = "CONDITION")]
    bypass: Option<String>,
    /// A limit that joining passes first, such as '5/min per subject' or '20/min per ip'
    #[arg(long, value_name = "LIMIT")]
    rate_limit: Option<String>,
    /// Where the waiting page may send people back to, such as shop.example; may be repeated
    #[arg(long = "return-host", value_name = "HOST")]
    return_hosts: Vec<String>,
}

impl Flags {
    /// These settings, with what the flags say instead.
    pub(super) fn over(self, settings: RoomSettings) -> RoomSettings {
        let before_open = if self.shuffle { Some(BeforeOpen::Shuffle) } else { self.before_open };
        RoomSettings {
            rate_per_s: self.rate.unwrap_or(settings.rate_per_s),
            capacity: self.capacity.unwrap_or(settings.capacity),
            mode: self.mode.unwrap_or(settings.mode),
            one_ticket_per_subject: self.one_ticket_per_subject.unwrap_or(settings.one_ticket_per_subject),
            idle_ttl_ms: self.idle_ttl.unwrap_or(settings.idle_ttl_ms),
            ticket_ttl_ms: self.ticket_ttl.unwrap_or(settings.ticket_ttl_ms),
            claim_ttl_ms: self.claim_ttl.unwrap_or(settings.claim_ttl_ms),
            admission_ttl_ms: self.admission_ttl.unwrap_or(settings.admission_ttl_ms),
            dedupe_ttl_ms: self.dedupe_ttl.unwrap_or(settings.dedupe_ttl_ms),
            renewable: self.renewable.unwrap_or(settings.renewable),
            opens_at: self.opens_at.or(settings.opens_at),
            closes_at: self.closes_at.or(settings.closes_at),
            before_open: before_open.unwrap_or(settings.before_open),
            join: self.join.unwrap_or(settings.join),
            bypass: self.bypass.or(settings.bypass),
            rate_limit: self.rate_limit.or(settings.rate_limit),
            return_hosts: if self.return_hosts.is_empty() { settings.return_hosts } else { self.return_hosts },
        }
    }
}

/// One of the API's own words.
fn word<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse().ok().and_then(Rate::new);
    rate.ok_or_else(|| "a rate is more than 0 and at most 1000000 a second; --mode hold lets nobody in".to_owned())
}

fn ms(text: &str) -> Result<u64, String> {
    let length = duration(text).and_then(|length| u64::try_from(length.as_millis()).ok());
    length.ok_or_else(|| "a time is a number with ms, s, m, h or d, such as 2m".to_owned())
}
