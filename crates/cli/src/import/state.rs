//! What an import remembers on disk: where it is, what it has done, and every finding so far.
//!
//! One file of JSON lines. It only grows: findings, and from time to time a checkpoint. What stands behind the
//! last checkpoint belongs to work that will be done again, and is cut off.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::finding::{Finding, Subtotal, Totals};
use super::source::{Kind, Place};
use super::witness::Witnesses;
use crate::failure::Failure;

/// What is imported, from where and to where. A state is good for exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) sets: String,
    pub(super) object: String,
    pub(super) subject: String,
    pub(super) counts: Option<String>,
    pub(super) relation: String,
    pub(super) kind: Option<String>,
    pub(super) dry_run: bool,
}

impl Header {
    /// A name that another import does not have.
    pub(super) fn file_name(&self) -> PathBuf {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest: String = Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("tally-import-{digest}.json").into()
    }
}

/// What is read: everything once for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pass {
    #[default]
    Sets,
    /// Old counters whose set is gone.
    Counters,
    Done,
}

/// How far an import is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) pass: Pass,
    /// The server whose keys are read.
    pub(super) shard: usize,
    /// Where `SCAN` goes on.
    pub(super) cursor: u64,
    /// Sets that were too large to be read at once.
    pub(super) large: Vec<Large>,
    pub(super) totals: Totals,
    /// Some of the edges that were made, to see whether the target still is what it was.
    #[serde(default)]
    pub(super) witnesses: Witnesses,
}

/// A set that is read in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Large {
    pub(super) kind: Kind,
    pub(super) next: Place,
    pub(super) so_far: Subtotal,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line, with the runs of the servers that the cursors belong to.
    Import {
        #[serde(flatten)]
        header: Header,
        runs: Option<Vec<String>>,
    },
    Found(Finding),
    At(Checkpoint),
}

/// The open file. Nobody else has it open meanwhile.
pub(super) struct State {
    path: PathBuf,
    file: BufWriter<File>,
}

impl State {
    /// Opens or makes the file; gives also where to go on.
    pub(super) fn open(
        path: PathBuf,
        header: &Header,
        runs: Option<Vec<String>>,
        restart: bool,
    ) -> Result<(Self, Option<Checkpoint>), Failure> {
        let cannot = |error: std::io::Error| Failure::new(format!("cannot use {}: {error}", path.display()));
        let mut options = File::options();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new(format!("another import is using {}", path.display())),
            TryLockError::Error(error) => cannot(error),
        })?;
        let kept = Kept::read(&file, &path)?;
        let at = match kept {
            Some(kept) if !restart && kept.header != *header => {
                let (path, sets) = (path.display(), kept.header.sets);
                return Err(Failure::usage(format!(
                    "{path} is of another import, of {sets}; name another file with --state, or use --restart"
                )));
            }
            // Cursors of a server that was started anew point anywhere, so all of it is read again.
            Some(kept) if !restart && runs.is_some() && kept.runs == runs => kept.at,
            _ => None,
        };
        file.set_len(at.as_ref().map_or(0, |(_, end)| *end)).map_err(cannot)?;
        file.seek(SeekFrom::End(0)).map_err(cannot)?;
        let mut state = Self { path, file: BufWriter::new(file) };
        if at.is_none() {
            state.write(&Line::Import { header: header.clone(), runs })?;
            state.file.flush()?;
        }
        Ok((state, at.map(|(at, _)| at)))
    }

    /// Begins anew: what was done before counts for nothing.
    pub(super) fn begin_anew(&mut self, header: &Header, runs: Option<Vec<String>>) -> Result<(), Failure> {
        self.file.flush()?;
        self.file.get_mut().set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.write(&Line::Import { header: header.clone(), runs })?;
        Ok(self.file.flush()?)
    }

    /// Keeps a finding. It counts from the next checkpoint on.
    pub(super) fn found(&mut self, finding: Finding) -> Result<(), Failure> {
        self.write(&Line::Found(finding))
    }

    /// Keeps how far the import is.
    pub(super) fn reach(&mut self, at: &Checkpoint) -> Result<(), Failure> {
        self.write(&Line::At(at.clone()))?;
        Ok(self.file.flush()?)
    }

    /// Every finding, read from the file: there may be more than fit into memory.
    pub(super) fn findings(&self) -> std::io::Result<impl Iterator<Item = std::io::Result<Finding>> + use<>> {
        let lines = BufReader::new(File::open(&self.path)?).lines();
        Ok(lines.filter_map(|line| match line.map(|line| serde_json::from_str(&line)) {
            Ok(Ok(Line::Found(finding))) => Some(Ok(finding)),
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(Err(error.into())),
            Err(error) => Some(Err(error)),
        }))
    }

    /// The import is done, and its report is out.
    pub(super) fn remove(self) -> Result<(), Failure> {
        Ok(std::fs::remove_file(&self.path)?)
    }

    fn write(&mut self, line: &Line) -> Result<(), Failure> {
        let path = self.path.display();
        let kept = serde_json::to_writer(&mut self.file, line).map_err(std::io::Error::from);
        let kept = kept.and_then(|()| self.file.write_all(b"\n"));
        kept.map_err(|error| Failure::new(format!("cannot write {path}: {error}")))
    }
}

/// What is in a file from before.
struct Kept {
    header: Header,
    runs: Option<Vec<String>>,
    /// The last checkpoint, and where its line ends.
    at: Option<(Checkpoint, u64)>,
}

impl Kept {
    /// Reads the file. Nothing where it is empty, and a failure where it is somebody else's.
    fn read(file: &File, path: &Path) -> Result<Option<Self>, Failure> {
        let foreign = || Failure::usage(format!("{} is not the state of an import; name another file", path.display()));
        let (mut reader, mut line, mut end) = (BufReader::new(file), Vec::new(), 0);
        let mut next = |line: &mut Vec<u8>| -> Result<u64, Failure> {
            line.clear();
            // A line without an end was being written when the import was killed.
            let bytes = reader.by_ref().read_until(b'\n', line)? as u64;
            Ok(if line.ends_with(b"\n") { bytes } else { 0 })
        };
        end += next(&mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let Ok(Line::Import { header, runs }) = serde_json::from_slice(&line) else { return Err(foreign()) };
        let mut kept = Self { header, runs, at: None };
        loop {
            let bytes = next(&mut line)?;
            end += bytes;
            match serde_json::from_slice(&line) {
                Ok(Line::At(at)) if bytes > 0 => kept.at = Some((at, end)),
                Ok(Line::Found(_)) if bytes > 0 => {}
                _ => return Ok(Some(kept)),
            }
        }
    }
}
