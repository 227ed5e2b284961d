//! HTTP/2: frames. A head is a frame of headers, and those that go on with it, up to the one that says it is the last.

use super::Unfinished;

const PREFIX: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

#[derive(Debug, Default)]
pub(in crate::door) struct Http2 {
    /// The frame's own first bytes: length, kind, flags, stream.
    prefix: [u8; PREFIX],
    prefix_bytes: usize,
    /// What of it is still to come.
    left: usize,
    /// Bytes since the last frame that left nothing open.
    bytes: usize,
    heads: u64,
    in_head: bool,
}

impl Http2 {
    pub(super) fn follow(&mut self, mut bytes: &[u8]) -> Unfinished {
        while !bytes.is_empty() {
            let here = if self.prefix_bytes < PREFIX {
                let here = bytes.len().min(PREFIX - self.prefix_bytes);
                self.prefix[self.prefix_bytes..self.prefix_bytes + here].copy_from_slice(&bytes[..here]);
                self.prefix_bytes += here;
                if self.prefix_bytes == PREFIX {
                    self.begin();
                }
                here
            } else {
                let here = bytes.len().min(self.left);
                self.left -= here;
                here
            };
            self.bytes += here;
            bytes = &bytes[here..];
            if self.prefix_bytes == PREFIX && self.left == 0 {
                self.end();
            }
        }
        Unfinished { bytes: self.bytes, head: self.in_head.then_some(self.heads) }
    }

    fn begin(&mut self) {
        let [high, middle, low, kind, ..] = self.prefix;
        self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if kind == HEADERS && !self.in_head {
            self.in_head = true;
            self.heads += 1;
        }
    }

    fn end(&mut self) {
        let [_, _, _, kind, flags, ..] = self.prefix;
        if matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 {
            self.in_head = false;
        }
        self.prefix_bytes = 0;
        if !self.in_head {
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = (payload as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        frame.resize(PREFIX + payload, 0xff);
        frame
    }

    fn after(bytes: &[u8]) -> Unfinished {
        let whole = Http2::default().follow(bytes);
        for step in [1, 2, 7, 10, 1000] {
            let mut framing = Http2::default();
            let cut = bytes.chunks(step).map(|part| framing.follow(part)).last().unwrap_or_default();
            assert_eq!(cut, whole, "in parts of {step}");
        }
        whole
    }

    #[test]
    fn whole_frames_leave_nothing() {
        let (settings, ping, data) = (frame(4, 0, 0), frame(6, 0, 8), frame(0, 1, 70_000));
        let head = frame(HEADERS, END_HEADERS | 1, 40);
        let long = [frame(HEADERS, 1, 20), frame(CONTINUATION, 0, 0), frame(CONTINUATION, END_HEADERS, 30)].concat();
        let all = [settings, head, ping, long, data].concat();
        assert_eq!(after(&all), Unfinished::default());
        assert_eq!(after(&[all.clone(), frame(HEADERS, 0, 50)].concat()), Unfinished { bytes: 59, head: Some(3) });
        assert_eq!(after(&[all, frame(0, 0, 50)[..20].to_vec()].concat()), Unfinished { bytes: 20, head: None });
    }

    #[test]
    fn a_head_is_unfinished_until_its_last_frame_is_whole() {
        let mut bytes = Vec::new();
        for (kind, payload) in [(HEADERS, 100), (CONTINUATION, 20_000), (CONTINUATION, 0)] {
            bytes.extend(frame(kind, 0, payload));
            assert_eq!(after(&bytes), Unfinished { bytes: bytes.len(), head: Some(1) });
        }
        let last = frame(CONTINUATION, END_HEADERS, 10);
        bytes.extend(&last[..last.len() - 1]);
        assert_eq!(after(&bytes), Unfinished { bytes: bytes.len(), head: Some(1) });
        bytes.extend(&last[last.len() - 1..]);
        assert_eq!(after(&bytes), Unfinished::default());
    }
}
