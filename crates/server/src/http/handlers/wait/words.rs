//! What the waiting page says, in each language that it speaks.

use axum::http::{HeaderMap, header};

/// The words of one language.
pub(super) struct Words {
    pub(super) lang: &'static str,
    pub(super) title: &'static str,
    pub(super) waiting: &'static str,
    pub(super) before_open: &'static str,
    pub(super) place: &'static str,
    /// With `{n}` for how many.
    pub(super) ahead: &'static str,
    pub(super) unknown: &'static str,
    pub(super) soon: &'static str,
    /// With `{n}` for how many.
    pub(super) minutes: &'static str,
    pub(super) keep: &'static str,
    pub(super) inside: &'static str,
    pub(super) over: &'static str,
    pub(super) again: &'static str,
    pub(super) closed: &'static str,
    pub(super) elsewhere: &'static str,
    pub(super) missing: &'static str,
    pub(super) busy: &'static str,
}

const ENGLISH: Words = Words {
    lang: "en",
    title: "Waiting room",
    waiting: "You are in the queue",
    before_open: "The doors are not open yet",
    place: "Your place",
    ahead: "{n} before you",
    unknown: "Nobody can say yet how long it takes.",
    soon: "Less than a minute",
    minutes: "About {n} minutes",
    keep: "Keep this page open, or come back to it: your place is kept.",
    inside: "It is your turn: you are in.",
    over: "Your place in the queue is over.",
    again: "Join again",
    closed: "Nobody joins at the moment.",
    elsewhere: "This queue cannot be joined from this page.",
    missing: "There is no such queue.",
    busy: "This did not work just now. The page tries again by itself.",
};

const KOREAN: Words = Words {
    lang: "ko",
    title: "대기실",
    waiting: "순서를 기다리고 있습니다",
    before_open: "아직 시작 전입니다",
    place: "내 순서",
    ahead: "앞에 {n}명",
    unknown: "예상 시간을 아직 알 수 없습니다.",
    soon: "1분 이내",
    minutes: "약 {n}분",
    keep: "이 페이지를 열어 두거나 나중에 다시 오세요. 순서는 유지됩니다.",
    inside: "입장하셨습니다.",
    over: "대기 순서가 끝났습니다.",
    again: "다시 줄 서기",
    closed: "지금은 대기열에 들어올 수 없습니다.",
    elsewhere: "이 페이지에서는 이 대기열에 들어올 수 없습니다.",
    missing: "그런 대기열이 없습니다.",
    busy: "지금은 처리하지 못했습니다. 잠시 후 자동으로 다시 시도합니다.",
};

/// The words that a browser likes best.
pub(super) fn spoken(headers: &HeaderMap) -> &'static Words {
    let liked = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (mut korean, mut english) = (0.0, 0.0);
    for part in liked.split(',') {
        let (tag, rest) = part.split_once(';').unwrap_or((part, ""));
        let weight = rest.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>).unwrap_or(0.0);
        let language = tag.trim().split('-').next().unwrap_or_default();
        if language.eq_ignore_ascii_case("ko") {
            korean = weight.max(korean);
        } else if language.eq_ignore_ascii_case("en") {
            english = weight.max(english);
        }
    }
    if korean > english { &KOREAN } else { &ENGLISH }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_language_that_is_liked_best_is_spoken() {
        let cases = [
            ("", "en"),
            ("ko-KR,ko;q=0.9,en;q=0.8", "ko"),
            ("en-US,en;q=0.9,ko;q=0.8", "en"),
            ("fr, ko;q=0.3", "ko"),
            ("fr", "en"),
            ("ko;q=0, en;q=0.1", "en"),
        ];
        for (liked, expected) in cases {
            let headers = HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, HeaderValue::from_static(liked))]);
            assert_eq!(spoken(&headers).lang, expected, "{liked}");
        }
    }
}
