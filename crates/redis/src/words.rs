//! What a script is asked, in one piece of memory rather than thousands.

/// A script can pass so many words of a list on to one command.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// Words, one behind the other.
#[derive(Clone, Default)]
pub(crate) struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    pub(crate) fn push(&mut self, word: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(word.as_ref());
        self.ends.push(self.bytes.len());
    }

    /// One word of several pieces.
    pub(crate) fn push_all(&mut self, pieces: &[&str]) {
        pieces.iter().for_each(|piece| self.bytes.extend_from_slice(piece.as_bytes()));
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn number(&mut self, number: usize) {
        self.digits("", number as u64);
    }

    /// A number behind a sign. Written by hand: it is most of what is written.
    pub(crate) fn digits(&mut self, sign: &str, mut number: u64) {
        self.bytes.extend_from_slice(sign.as_bytes());
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[first..]);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How long they are together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

/// All keys that a script touches, and words.
#[derive(Clone, Default)]
pub(crate) struct Ask {
    pub(crate) keys: Words,
    pub(crate) words: Words,
}

impl Ask {
    pub(crate) fn new(keys: impl IntoIterator<Item = String>, words: &[&str]) -> Self {
        let mut ask = Self::default();
        keys.into_iter().for_each(|key| ask.keys.push(key));
        words.iter().for_each(|word| ask.words.push(word));
        ask
    }

    /// The key that says where it goes.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.keys.iter().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_went_in() {
        let mut words = Words::default();
        words.push("a");
        words.push("");
        words.push_all(&["b", "", "c"]);
        for number in [0, 7, 10, 1_234_567_890] {
            words.number(number);
        }
        words.digits("-", u64::MAX);
        let mut twice = words.clone();
        twice.append(&words);
        let found: Vec<&str> = twice.iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        let once = ["a", "", "bc", "0", "7", "10", "1234567890", "-18446744073709551615"];
        assert_eq!(found, [once, once].concat());
    }
}
