//! Redis' wire format, as little of it as the benchmark speaks.

use anyhow::{Result, bail};
use std::io::Write;

/// Appends one command.
pub(crate) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    number_line(out, b'*', words.len());
    for word in words {
        number_line(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn number_line(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    // Writing into memory cannot fail.
    let _ = write!(out, "{number}\r\n");
}

/// The length of the first whole reply, `None` while it is not all there. An error reply is an error.
pub(crate) fn reply_length(input: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    let mut missing = 1_usize;
    while missing > 0 {
        let Some(end) = line_end(&input[at..]) else { return Ok(None) };
        let line = &input[at + 1..at + end];
        let kind = input[at];
        at += end + 2;
        missing -= 1;
        match kind {
            b'+' | b':' => {}
            b'-' => bail!("Redis answered: {}", String::from_utf8_lossy(line)),
            b'$' => {
                if let Some(length) = length_of(line)? {
                    at += length + 2;
                    if at > input.len() {
                        return Ok(None);
                    }
                }
            }
            b'*' => missing += length_of(line)?.unwrap_or(0),
            other => bail!("Redis sent a reply of an unknown kind: {:?}", other as char),
        }
    }
    Ok(Some(at))
}

fn line_end(input: &[u8]) -> Option<usize> {
    let at = input.iter().position(|byte| *byte == b'\r')?;
    (input.len() > at + 1).then_some(at)
}

/// A length, or `None` for Redis' null.
fn length_of(line: &[u8]) -> Result<Option<usize>> {
    if line == b"-1" {
        return Ok(None);
    }
    let text = std::str::from_utf8(line)?;
    Ok(Some(text.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_strings() {
        let mut out = Vec::new();
        command(&mut out, &[b"GET", b"ab"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$2\r\nab\r\n");
    }

    #[test]
    fn replies_are_measured_whole() {
        for whole in ["+OK\r\n", ":12\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*-1\r\n", "*2\r\n:1\r\n*1\r\n$2\r\nab\r\n"] {
            for cut in 0..whole.len() {
                assert_eq!(reply_length(&whole.as_bytes()[..cut]).unwrap(), None, "{whole:?} cut at {cut}");
            }
            let more = format!("{whole}:1\r\n");
            assert_eq!(reply_length(more.as_bytes()).unwrap(), Some(whole.len()), "{whole:?}");
        }
        assert!(reply_length(b"-ERR no\r\n").is_err());
    }
}
