//! What can be set of a room: by name in the configuration, or by whoever makes one.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::condition::Condition;
use crate::error::Refusal;
use crate::id::Name;
use crate::limit::{LimitDef, Per, RateLimit};
use crate::time::Timestamp;

/// The highest rate: more are let in by `mode = "off"`.
const RATE_MAX: f64 = 1_000_000.0;
/// The most that may be inside at once.
const CAPACITY_MAX: u64 = 100_000_000;
/// The shortest and the longest of all times, but for how long a ticket is remembered, which may be not at all.
const TTL_MS: std::ops::RangeInclusive<u64> = 100..=2_678_400_000;
/// Hosts to which somebody may be sent back.
const HOSTS_MAX: usize = 100;

/// So many a second, to the millionth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Millionths a second.
    pub micros: u64,
}

impl Rate {
    /// So many a second.
    pub fn new(per_s: f64) -> Option<Self> {
        let fits = per_s.is_finite() && per_s > 0.0 && per_s <= RATE_MAX;
        fits.then(|| Self { micros: ((per_s * 1e6).round() as u64).max(1) })
    }

    /// As people write it.
    pub fn per_s(self) -> f64 {
        self.micros as f64 / 1e6
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.micros % 1_000_000 {
            0 => to.serialize_u64(self.micros / 1_000_000),
            _ => to.serialize_f64(self.per_s()),
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = || de::Error::custom(format!("rate_per_s is more than 0 and at most {RATE_MAX}"));
        Self::new(f64::deserialize(from)?).ok_or_else(wrong)
    }
}

/// Who is let in, and whether anybody is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Mode {
    /// By rate and capacity.
    #[default]
    Auto,
    /// Nobody; whoever waits keeps waiting.
    Hold,
    /// As `auto`, and nobody new joins.
    Drain,
    /// Everybody, straight in.
    Off,
    /// Nobody joins and nobody is let in.
    Reject,
}

/// In which order those stand who came before the doors opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BeforeOpen {
    /// As they came.
    #[default]
    Arrival,
    /// In one that is drawn, and that everybody can check.
    Shuffle,
}

/// Who may join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum JoinBy {
    /// Anybody, without a credential too.
    Any,
    /// Users with a token of theirs, and servers.
    Token,
    /// Servers, for their users.
    #[default]
    Service,
}

/// How a room is set up. What is left out has its default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomSettings {
    /// How many are let in a second. Fractions are allowed.
    #[cfg_attr(feature = "openapi", schema(value_type = f64, exclusive_minimum = 0, maximum = 1_000_000))]
    pub rate_per_s: Rate,
    /// How many may be inside at once.
    pub capacity: u64,
    /// Whether anybody is let in.
    pub mode: Mode,
    /// Whether a subject that has a ticket gets that one again.
    pub one_ticket_per_subject: bool,
    /// How long a ticket waits without a sign of life.
    pub idle_ttl_ms: u64,
    /// How long it waits at most.
    pub ticket_ttl_ms: u64,
    /// How long somebody who is let in has to claim it.
    pub claim_ttl_ms: u64,
    /// How long an admission lasts.
    pub admission_ttl_ms: u64,
    /// How long a ticket that is over is still told.
    pub dedupe_ttl_ms: u64,
    /// Whether using an admission prolongs it.
    pub renewable: bool,
    /// When the doors open.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub opens_at: Option<Timestamp>,
    /// From when on nobody joins.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub closes_at: Option<Timestamp>,
    /// How those stand who came before the doors opened.
    pub before_open: BeforeOpen,
    /// Who may join.
    pub join: JoinBy,
    /// A condition under which somebody goes straight in, within the capacity.
    pub bypass: Option<String>,
    /// A limit that joining passes first, such as `5/min per subject` or `20/min per ip`.
    pub rate_limit: Option<String>,
    /// Where the waiting page may send somebody back to.
    pub return_hosts: Vec<String>,
}

impl Default for RoomSettings {
    fn default() -> Self {
        Self {
            rate_per_s: Rate { micros: 10_000_000 },
            capacity: 100,
            mode: Mode::Auto,
            one_ticket_per_subject: true,
            idle_ttl_ms: 120_000,
            ticket_ttl_ms: 86_400_000,
            claim_ttl_ms: 300_000,
            admission_ttl_ms: 600_000,
            dedupe_ttl_ms: 86_400_000,
            renewable: false,
            opens_at: None,
            closes_at: None,
            before_open: BeforeOpen::Arrival,
            join: JoinBy::Service,
            bypass: None,
            rate_limit: None,
            return_hosts: Vec::new(),
        }
    }
}

impl RoomSettings {
    /// What cannot be, in words.
    pub fn check(&self, room: &Name) -> Result<(), Refusal> {
        let wrong = |text: String| Err(Refusal::BadRequest(text));
        if self.capacity == 0 || self.capacity > CAPACITY_MAX {
            return wrong(format!("capacity is between 1 and {CAPACITY_MAX}; to let nobody in, set mode to \"hold\""));
        }
        let times = [
            ("idle_ttl_ms", self.idle_ttl_ms),
            ("ticket_ttl_ms", self.ticket_ttl_ms),
            ("claim_ttl_ms", self.claim_ttl_ms),
            ("admission_ttl_ms", self.admission_ttl_ms),
            ("dedupe_ttl_ms", self.dedupe_ttl_ms.max(*TTL_MS.start())),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, ttl)| !TTL_MS.contains(ttl)) {
            return wrong(format!("{name} is between {} and {}", TTL_MS.start(), TTL_MS.end()));
        }
        if let (Some(opens), Some(closes)) = (self.opens_at, self.closes_at)
            && closes <= opens
        {
            return wrong("closes_at is later than opens_at".into());
        }
        if self.return_hosts.len() > HOSTS_MAX {
            return wrong(format!("return_hosts has at most {HOSTS_MAX} names"));
        }
        let is_host = |host: &&String| {
            let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
            !host.is_empty() && host.len() <= 255 && host.bytes().all(part)
        };
        if let Some(host) = self.return_hosts.iter().find(|host| !is_host(host)) {
            return wrong(format!(
                "`{host}` in return_hosts is no host; write shop.example, without https:// and a path"
            ));
        }
        self.bypass().map_err(|error| Refusal::BadRequest(format!("bypass: {error}")))?;
        self.rate_limit(room).map_err(|error| Refusal::BadRequest(format!("rate_limit: {error}")))?;
        Ok(())
    }

    /// Whether those who come early are shuffled.
    pub fn is_shuffled(&self) -> bool {
        self.before_open == BeforeOpen::Shuffle
    }

    /// The condition under which somebody goes straight in.
    pub fn bypass(&self) -> Result<Option<Condition>, String> {
        self.bypass.as_deref().map(Condition::compile_once).transpose()
    }

    /// The limit that joining passes, and whose uses are counted together.
    pub fn rate_limit(&self, room: &Name) -> Result<Option<JoinLimit>, String> {
        let Some(text) = &self.rate_limit else { return Ok(None) };
        let (rate, per) = match text.split_once(" per ") {
            Some((rate, "subject")) => (rate, JoinPer::Subject),
            Some((rate, "ip")) => (rate, JoinPer::Ip),
            Some((_, other)) => return Err(format!("`per {other}`: write `per subject` or `per ip`")),
            None => match text.strip_suffix(" in all") {
                Some(rate) => (rate, JoinPer::All),
                None => (text.as_str(), JoinPer::Subject),
            },
        };
        let limit = LimitDef::parse(&format!("rooms.{room}"), rate, None)?;
        let by = if per == JoinPer::All { Per::All } else { Per::Object };
        Ok(Some(JoinLimit { limit: RateLimit { limit: Arc::new(limit), per: by }, per }))
    }
}

/// A limit that joining passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinLimit {
    /// The limit.
    pub limit: RateLimit,
    /// Whose uses are counted together.
    pub per: JoinPer,
}

/// Whose joins are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinPer {
    /// Each subject's.
    Subject,
    /// Those from one address.
    Ip,
    /// Everybody's.
    All,
}

/// A room that the configuration declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomDef {
    /// Its name.
    pub name: Name,
    /// How it is set up.
    pub settings: RoomSettings,
}

impl RoomDef {
    /// No limit that is known by name: a room's stands in its settings, which change.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        None
    }
}
