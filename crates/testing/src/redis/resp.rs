//! As much of Redis' protocol as it takes to ask a question.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that is paused takes connections and never answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came back. A number is the text of it.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    Nothing,
    Text(Vec<u8>),
    List(Vec<Self>),
}

impl Reply {
    /// As `redis-cli` prints it into a pipe: an entry a line, and nothing for nothing.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::List(entries) => entries.iter().map(Self::text).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The texts in a list.
    pub(super) fn texts(self) -> Vec<Vec<u8>> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Text(bytes) => vec![bytes],
            Self::List(entries) => entries.into_iter().flat_map(Self::texts).collect(),
        }
    }
}

/// A connection to a server.
pub(super) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(super) fn open(address: SocketAddr, password: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Self(BufReader::new(stream));
        if let Some(password) = password {
            connection.ask(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// One command and its answer. An error that the server answers with is an error here.
    pub(super) fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> Result<Reply> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&request)?;
        let name = words.first().map(|word| String::from_utf8_lossy(word.as_ref()).into_owned());
        self.read().with_context(|| format!("{} to {:?}", name.unwrap_or_default(), self.0.get_ref().peer_addr().ok()))
    }

    fn read(&mut self) -> Result<Reply> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").context("the connection ended")?;
        let (kind, rest) = line.split_first().context("an answer of nothing")?;
        match kind {
            b'+' | b':' => Ok(Reply::Text(rest.to_vec())),
            b'-' => bail!("{}", String::from_utf8_lossy(rest)),
            b'$' => self.read_text(length(rest)?),
            b'*' => match length(rest)? {
                Some(entries) => Ok(Reply::List((0..entries).map(|_| self.read()).collect::<Result<_>>()?)),
                None => Ok(Reply::Nothing),
            },
            _ => bail!("an answer of an unknown kind: {}", String::from_utf8_lossy(line)),
        }
    }

    fn read_text(&mut self, bytes: Option<usize>) -> Result<Reply> {
        let Some(bytes) = bytes else { return Ok(Reply::Nothing) };
        let mut text = vec![0; bytes + 2];
        self.0.read_exact(&mut text)?;
        text.truncate(bytes);
        Ok(Reply::Text(text))
    }
}

/// A length; minus one stands for nothing.
fn length(text: &[u8]) -> Result<Option<usize>> {
    let number: i64 = std::str::from_utf8(text)?.parse()?;
    Ok(usize::try_from(number).ok())
}
