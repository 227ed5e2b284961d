//! What the shim noted.

/// One call that changed something, or one that is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call of this class comes.
    Class(String),
    Fault,
    Open {
        fd: u32,
        path: String,
        how: How,
    },
    Write {
        fd: u32,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        fd: u32,
        length: usize,
    },
    Sync {
        fd: u32,
    },
    Rename {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    Mkdir {
        path: String,
    },
    Print(String),
}

/// What an opening did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Created,
    Emptied,
    Left,
}

pub(crate) fn read(text: &str) -> Vec<Event> {
    // The child is killed while it works, so the last line may be cut.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(event).collect()
}

fn event(line: &str) -> Option<Event> {
    let mut parts = line.split('\t');
    let kind = parts.next()?;
    let mut next = || parts.next().map(str::to_owned);
    Some(match kind {
        "class" => Event::Class(next()?),
        "fault" => Event::Fault,
        "open" => Event::Open {
            fd: next()?.parse().ok()?,
            path: next()?,
            how: match next()?.as_str() {
                "new" => How::Created,
                "cut" => How::Emptied,
                _ => How::Left,
            },
        },
        "write" => Event::Write { fd: next()?.parse().ok()?, offset: next()?.parse().ok()?, bytes: hex(&next()?) },
        "truncate" => Event::Truncate { fd: next()?.parse().ok()?, length: next()?.parse().ok()? },
        "sync" => Event::Sync { fd: next()?.parse().ok()? },
        "rename" => Event::Rename { from: next()?, to: next()? },
        "unlink" => Event::Unlink { path: next()? },
        "mkdir" => Event::Mkdir { path: next()? },
        "print" => Event::Print(next()?.trim().to_owned()),
        // What a print had behind its line's end.
        _ => return None,
    })
}

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
