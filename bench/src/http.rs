//! HTTP/1.1 with keep-alive, as little of it as the benchmark speaks.

use anyhow::{Result, anyhow, bail};
use std::io::Write;

/// A whole reply's place in the input.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Where the body begins.
    pub(crate) body: usize,
    /// Where the reply ends.
    pub(crate) end: usize,
}

/// The part of a request's head that never changes, made once.
pub(crate) fn head_tail(key: &str) -> Vec<u8> {
    format!(" HTTP/1.1\r\nHost: tally\r\nAuthorization: Bearer {key}\r\n").into_bytes()
}

/// Appends a request without a body.
pub(crate) fn request(out: &mut Vec<u8>, line: std::fmt::Arguments<'_>, head_tail: &[u8]) {
    // Writing into memory cannot fail.
    let _ = out.write_fmt(line);
    out.extend_from_slice(head_tail);
    out.extend_from_slice(b"\r\n");
}

/// Appends a request with a JSON body.
pub(crate) fn post(out: &mut Vec<u8>, path: &str, head_tail: &[u8], body: &[u8]) {
    let _ = write!(out, "POST {path}");
    out.extend_from_slice(head_tail);
    let _ = write!(out, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    out.extend_from_slice(body);
}

/// The first whole reply, `None` while it is not all there.
pub(crate) fn parse(input: &[u8]) -> Result<Option<Reply>> {
    let Some(head_end) = find(input, b"\r\n\r\n") else { return Ok(None) };
    let head = &input[..head_end];
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|text| text.parse().ok());
    let status = status.ok_or_else(|| anyhow!("not an HTTP reply: {:?}", String::from_utf8_lossy(head)))?;
    let body = head_end + 4;
    let end = body + content_length(head)?;
    Ok((input.len() >= end).then_some(Reply { status, body, end }))
}

fn content_length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"content-length:";
    for line in head.split(|byte| *byte == b'\n') {
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let text = std::str::from_utf8(&line[NAME.len()..])?;
            return Ok(text.trim().parse()?);
        }
    }
    bail!("a reply without Content-Length: {:?}", String::from_utf8_lossy(head))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Fails unless the reply is a success, with what the server said.
pub(crate) fn expect_success(reply: &Reply, input: &[u8]) -> Result<()> {
    if (200..300).contains(&reply.status) {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&input[reply.body..reply.end]);
    bail!("Tally answered {}: {}", reply.status, body.chars().take(400).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_measured_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n{}";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).unwrap(), None);
        }
        let reply = parse(whole).unwrap().unwrap();
        assert_eq!((reply.status, reply.end), (200, whole.len()));
        assert_eq!(&whole[reply.body..reply.end], b"{}");
    }

    #[test]
    fn a_refusal_says_why() {
        let input = b"HTTP/1.1 503 No\r\ncontent-length: 4\r\n\r\nfull";
        let error = expect_success(&parse(input).unwrap().unwrap(), input).unwrap_err();
        assert_eq!(error.to_string(), "Tally answered 503: full");
    }
}
