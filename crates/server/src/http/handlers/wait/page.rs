//! The waiting page as HTML: one page with nothing from elsewhere, which works without scripts as well.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tally::core::reply::TicketReply;
use tally::core::rows::TicketState;

use super::words::Words;
use crate::http::problem::Problem;

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
/// How often a page without scripts asks again, in seconds.
const REFRESH_S: std::ops::RangeInclusive<u64> = 2..=30;
const MINUTE_MS: u64 = 60_000;

/// What a page shows.
pub(super) struct Page<'a> {
    pub(super) words: &'a Words,
    pub(super) status: StatusCode,
    /// Where the page itself is, with where it leads back to.
    pub(super) own: &'a str,
}

impl Page<'_> {
    /// A ticket that waits, with how many were before it at first.
    pub(super) fn waiting(&self, ticket: &TicketReply, first_ahead: u64) -> Result<Response, Problem> {
        let words = self.words;
        let is_open = ticket.state == TicketState::Waiting;
        let heading = if is_open { words.waiting } else { words.before_open };
        let ahead = ticket.ahead.unwrap_or(0);
        let all = first_ahead.max(ahead).max(1);
        let figures = match ticket.position {
            Some(position) => format!(
                "<p>{}</p>\n<p class=\"position\" id=\"position\">{position}</p>\n<p id=\"ahead\">{}</p>\n\
                 <progress id=\"progress\" max=\"{all}\" value=\"{}\"></progress>\n<p id=\"eta\">{}</p>",
                words.place,
                words.ahead.replace("{n}", &ahead.to_string()),
                all - ahead,
                eta(words, ticket),
            ),
            None => String::new(),
        };
        let state = if is_open { "WAITING" } else { "BEFORE_OPEN" };
        let body = format!(
            "<div id=\"queue\" data-state=\"{state}\" data-ahead=\"{}\" data-unknown=\"{}\" data-soon=\"{}\" \
             data-minutes=\"{}\">\n{figures}\n</div>\n<p class=\"quiet\">{}</p>",
            words.ahead, words.unknown, words.soon, words.minutes, words.keep
        );
        let alive_ms = ticket.facts.until.0.saturating_sub(ticket.facts.now.0);
        let every_s = ticket.poll_after_ms.div_ceil(1_000).min(alive_ms / 3_000);
        let refresh = self.refresh(every_s.clamp(*REFRESH_S.start(), *REFRESH_S.end()));
        self.render(heading, &body, &format!("<noscript>{refresh}</noscript>"), true)
    }

    /// Words and, where it helps, a way to join again.
    pub(super) fn saying(&self, text: &str, again: Option<&str>) -> Result<Response, Problem> {
        let link = again.map(|to| format!("<p><a href=\"{}\">{}</a></p>", escape(to), self.words.again));
        self.render(text, &link.unwrap_or_default(), "", false)
    }

    /// The same, and it tries again by itself.
    pub(super) fn trying(&self, text: &str) -> Result<Response, Problem> {
        self.render(text, "", &self.refresh(*REFRESH_S.end()), false)
    }

    fn refresh(&self, seconds: u64) -> String {
        format!("<meta http-equiv=\"refresh\" content=\"{seconds};url={}\">", escape(self.own))
    }

    fn render(&self, heading: &str, body: &str, refresh: &str, is_live: bool) -> Result<Response, Problem> {
        let nonce = super::super::rooms::secret()?;
        let script = if is_live { format!("<script nonce=\"{nonce}\">\n{SCRIPT}</script>") } else { String::new() };
        // What comes from outside is filled in last, so that nothing of it is taken for a place to fill.
        let html = [
            ("lang", self.words.lang),
            ("title", self.words.title),
            ("nonce", &nonce),
            ("heading", heading),
            ("script", &script),
            ("body", body),
            ("refresh", refresh),
        ]
        .into_iter()
        .fold(TEMPLATE.to_owned(), |html, (name, text)| html.replace(&format!("{{{{{name}}}}}"), text));
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let policy = HeaderValue::try_from(policy).map_err(|_| Problem::internal())?;
        let fixed = |name: HeaderName, value| (name, HeaderValue::from_static(value));
        let headers = [
            (header::CONTENT_SECURITY_POLICY, policy),
            fixed(header::CONTENT_TYPE, "text/html; charset=utf-8"),
            fixed(header::CACHE_CONTROL, "no-store"),
            fixed(header::REFERRER_POLICY, "same-origin"),
            fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            fixed(header::VARY, "accept-language, cookie"),
        ];
        Ok((self.status, headers, html).into_response())
    }
}

/// How long it takes, as far as anybody can say.
fn eta(words: &Words, ticket: &TicketReply) -> String {
    let Some(eta_ms) = ticket.eta_ms else { return words.unknown.to_owned() };
    let minutes = |ms: u64| ms.div_ceil(MINUTE_MS).max(1);
    let [from, to] = ticket.eta_range_ms.unwrap_or([eta_ms, eta_ms]).map(minutes);
    if to <= 1 {
        return words.soon.to_owned();
    }
    let number = if from == to { from.to_string() } else { format!("{from}–{to}") };
    words.minutes.replace("{n}", &number)
}

/// A text inside of HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
