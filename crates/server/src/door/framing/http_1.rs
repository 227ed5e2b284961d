//! HTTP/1: a head up to an empty line, then a body of a known length or in chunks.

use super::Unfinished;

/// As much of a line as is looked at: more than the headers that say how long a body is ever need.
const LINE_MAX: usize = 256;

#[derive(Debug, Default)]
pub(in crate::door) struct Http1 {
    at: At,
    /// Bytes of the head so far.
    head_bytes: usize,
    heads: u64,
    /// The line so far, cut where it is long.
    line: Vec<u8>,
    length: Option<u64>,
    is_chunked: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// So many bytes of a body are left.
    Body(u64),
    /// The line with a chunk's size: what it says so far, until something else stands there.
    Size { bytes: u64, is_read: bool },
    /// So many bytes of a chunk are left.
    Chunk(u64),
    /// The end of a chunk's line.
    ChunkEnd,
    /// Lines after the last chunk.
    Trailer { is_empty: bool },
}

impl Http1 {
    pub(super) fn follow(&mut self, mut bytes: &[u8]) -> Unfinished {
        while let Some((first, rest)) = bytes.split_first() {
            bytes = match self.at {
                At::Body(left) => {
                    let (left, rest) = skip(left, bytes);
                    self.at = if left == 0 { At::Head } else { At::Body(left) };
                    rest
                }
                At::Chunk(left) => {
                    let (left, rest) = skip(left, bytes);
                    self.at = if left == 0 { At::ChunkEnd } else { At::Chunk(left) };
                    rest
                }
                At::Head => {
                    self.head(*first);
                    rest
                }
                At::Size { bytes, is_read } => {
                    self.at = size(*first, bytes, is_read);
                    rest
                }
                At::ChunkEnd => {
                    self.at = if *first == b'\n' { At::Size { bytes: 0, is_read: false } } else { At::ChunkEnd };
                    rest
                }
                At::Trailer { is_empty } => {
                    self.at = match *first {
                        b'\n' if is_empty => At::Head,
                        b'\n' => At::Trailer { is_empty: true },
                        b'\r' => At::Trailer { is_empty },
                        _ => At::Trailer { is_empty: false },
                    };
                    rest
                }
            };
        }
        let head = (self.head_bytes > 0).then_some(self.heads);
        Unfinished { bytes: self.head_bytes, head }
    }

    fn head(&mut self, byte: u8) {
        if self.head_bytes == 0 {
            // Empty lines before a request are nothing.
            if matches!(byte, b'\r' | b'\n') {
                return;
            }
            self.heads += 1;
            (self.length, self.is_chunked) = (None, false);
        }
        self.head_bytes += 1;
        if byte != b'\n' {
            if self.line.len() < LINE_MAX {
                self.line.push(byte);
            }
            return;
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if line.is_empty() {
            self.head_bytes = 0;
            self.at = match (self.is_chunked, self.length) {
                (true, _) => At::Size { bytes: 0, is_read: false },
                (false, None | Some(0)) => At::Head,
                (false, Some(length)) => At::Body(length),
            };
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                self.is_chunked = true;
            } else if name.eq_ignore_ascii_case(b"content-length") {
                self.length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            }
        }
        self.line.clear();
    }
}

/// Passes over so many bytes; what of them is still to come, and what is behind them.
fn skip(left: u64, bytes: &[u8]) -> (u64, &[u8]) {
    let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (left - here as u64, &bytes[here..])
}

fn size(byte: u8, bytes: u64, is_read: bool) -> At {
    match (byte, char::from(byte).to_digit(16)) {
        (b'\n', _) if bytes == 0 => At::Trailer { is_empty: true },
        (b'\n', _) => At::Chunk(bytes),
        (_, Some(digit)) if !is_read => {
            At::Size { bytes: bytes.saturating_mul(16).saturating_add(digit.into()), is_read }
        }
        _ => At::Size { bytes, is_read: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is unfinished after these bytes, and the same however they are cut.
    fn after(bytes: &str) -> Unfinished {
        let whole = Http1::default().follow(bytes.as_bytes());
        for at in 0..=bytes.len() {
            let mut framing = Http1::default();
            framing.follow(&bytes.as_bytes()[..at]);
            assert_eq!(framing.follow(&bytes.as_bytes()[at..]), whole, "{bytes:?} cut at {at}");
        }
        let mut framing = Http1::default();
        let trickled = bytes.bytes().map(|byte| framing.follow(&[byte])).last().unwrap_or_default();
        assert_eq!(trickled, whole, "{bytes:?}");
        whole
    }

    #[test]
    fn a_head_is_unfinished_until_its_empty_line_whatever_came_before_it() {
        const HALF: &str = "GET / HTTP/1.1\r\nhost: ta";
        let requests = [
            "",
            "\r\n\n\r\n",
            "GET / HTTP/1.1\r\nhost: tally\r\n\r\n",
            "GET / HTTP/1.1\nhost: tally\n\n",
            "GET / HTTP/1.1\r\n\r\n\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "PUT / HTTP/1.1\r\nCONTENT-LENGTH:  5 \r\nx: 1\r\n\r\n{\r\n\r\n",
            "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n2;a=\"b0\"\r\n\n\n\r\n0c \r\nGET / HTTP/1\r\n000\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\n0\r\n0\r\nx: y\r\nz: 1\r\n\r\n",
        ];
        let heads = |text: &str| text.matches("HTTP/1.1").count() as u64;
        for first in requests {
            for second in requests {
                let whole = format!("{first}{second}");
                assert_eq!(after(&whole), Unfinished::default(), "{whole:?}");
                let half = format!("{whole}{HALF}");
                let expected = Unfinished { bytes: HALF.len(), head: Some(heads(&half)) };
                assert_eq!(after(&half), expected, "{half:?}");
            }
        }
    }

    #[test]
    fn bytes_of_a_body_are_of_no_head() {
        for body in [
            "content-length: 100\r\n\r\nGET / HTTP/1.1\r\n\r\nGET",
            "content-length: 99999999999999999999999\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\nffffffffffffffffffff\r\n\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nab",
            "transfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n",
        ] {
            assert_eq!(after(&format!("PUT / HTTP/1.1\r\n{body}")), Unfinished::default(), "{body}");
        }
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\ncontent-length: 4\r\n\r\n1234GET", "x".repeat(1000));
        assert_eq!(after(&long), Unfinished { bytes: 3, head: Some(2) });
    }
}
