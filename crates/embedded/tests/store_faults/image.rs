//! A machine that loses power: which bytes and which names it may find afterwards.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use crate::{
    store_common::Random,
    trace::{Event, How},
};

/// What survives of that which was not synced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// Nothing.
    Synced,
    /// All of it, as after a mere crash of the process.
    Everything,
    /// Any of it, by this seed.
    Some(u64),
}

type Id = usize;

#[derive(Debug, Clone)]
enum Change {
    Bytes { offset: usize, bytes: Vec<u8> },
    Length(usize),
    Link { name: String, id: Id },
    Unlink { name: String },
    Rename { from: String, to: String, id: Id },
}

/// A file or a folder: what is on disk, and what waits.
#[derive(Debug, Clone, Default)]
struct Node {
    bytes: Vec<u8>,
    names: BTreeMap<String, Id>,
    waiting: Vec<Change>,
}

impl Node {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Bytes { offset, bytes } => {
                let end = offset + bytes.len();
                self.bytes.resize(self.bytes.len().max(end), 0);
                self.bytes[*offset..end].copy_from_slice(bytes);
            }
            Change::Length(length) => self.bytes.resize(*length, 0),
            Change::Link { name, id } => _ = self.names.insert(name.clone(), *id),
            Change::Unlink { name } => _ = self.names.remove(name),
            Change::Rename { from, to, id } => {
                if self.names.get(from) == Some(id) {
                    self.names.remove(from);
                }
                self.names.insert(to.clone(), *id);
            }
        }
    }
}

/// Everything below one folder, as the system has it and as the disk has it.
#[derive(Debug)]
pub(crate) struct Machine {
    nodes: Vec<Node>,
    /// What a path means to the system.
    paths: HashMap<String, Id>,
    open: HashMap<u32, Id>,
    folders: Vec<Id>,
}

impl Machine {
    /// The machine after these calls. The folder itself is there.
    pub(crate) fn after(root: &Path, events: &[Event]) -> Self {
        let root = root.to_str().unwrap().to_owned();
        let mut machine =
            Self { nodes: vec![Node::default()], paths: [(root, 0)].into(), open: HashMap::new(), folders: vec![0] };
        events.iter().for_each(|event| machine.see(event));
        machine
    }

    fn split(path: &str) -> (&str, String) {
        let (folder, name) = path.rsplit_once('/').unwrap();
        (folder, name.to_owned())
    }

    fn link(&mut self, path: &str) -> Id {
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.paths.insert(path.to_owned(), id);
        let (folder, name) = Self::split(path);
        let folder = self.paths[folder];
        self.nodes[folder].waiting.push(Change::Link { name, id });
        id
    }

    fn wait(&mut self, fd: u32, change: Change) {
        let id = self.open[&fd];
        self.nodes[id].waiting.push(change);
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::Class(_) | Event::Fault | Event::Print(_) => {}
            Event::Open { fd, path, how } => {
                let id = match how {
                    How::Created => self.link(path),
                    How::Emptied | How::Left => self.paths[path],
                };
                self.open.insert(*fd, id);
                if *how == How::Emptied {
                    self.wait(*fd, Change::Length(0));
                }
            }
            Event::Write { fd, offset, bytes } => {
                self.wait(*fd, Change::Bytes { offset: *offset, bytes: bytes.clone() });
            }
            Event::Truncate { fd, length } => self.wait(*fd, Change::Length(*length)),
            Event::Sync { fd } => {
                let id = self.open[fd];
                let node = &mut self.nodes[id];
                for change in std::mem::take(&mut node.waiting) {
                    node.apply(&change);
                }
            }
            Event::Rename { from, to } => {
                let id = self.paths.remove(from).unwrap();
                self.paths.insert(to.clone(), id);
                let inside = |path: &String| path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
                let moved: Vec<String> = self.paths.keys().filter(|path| inside(path)).cloned().collect();
                for path in moved {
                    let id = self.paths.remove(&path).unwrap();
                    self.paths.insert(format!("{to}{}", &path[from.len()..]), id);
                }
                let ((folder, from), (other, to)) = (Self::split(from), Self::split(to));
                let (folder, other) = (self.paths[folder], self.paths[other]);
                if folder == other {
                    self.nodes[folder].waiting.push(Change::Rename { from, to, id });
                } else {
                    self.nodes[folder].waiting.push(Change::Unlink { name: from });
                    self.nodes[other].waiting.push(Change::Link { name: to, id });
                }
            }
            Event::Unlink { path } => {
                self.paths.remove(path);
                let (folder, name) = Self::split(path);
                let folder = self.paths[folder];
                self.nodes[folder].waiting.push(Change::Unlink { name });
            }
            Event::Mkdir { path } => {
                // The folder of the store itself is taken for granted.
                if !self.paths.contains_key(path) {
                    let id = self.link(path);
                    self.folders.push(id);
                }
            }
        }
    }

    /// Writes what is found when the power is back.
    pub(crate) fn write(&self, keep: Keep, to: &Path) {
        let mut random = Random(match keep {
            Keep::Some(seed) => seed,
            Keep::Synced | Keep::Everything => 0,
        });
        let mut nodes = self.nodes.clone();
        for node in &mut nodes {
            for change in std::mem::take(&mut node.waiting) {
                let survives = match keep {
                    Keep::Synced => false,
                    Keep::Everything => true,
                    Keep::Some(_) => random.below(2) == 0,
                };
                if survives {
                    node.apply(&change);
                }
            }
        }
        self.put(&nodes, 0, to);
    }

    fn put(&self, nodes: &[Node], id: Id, to: &Path) {
        if !self.folders.contains(&id) {
            return std::fs::write(to, &nodes[id].bytes).unwrap();
        }
        std::fs::create_dir_all(to).unwrap();
        for (name, inside) in &nodes[id].names {
            self.put(nodes, *inside, &to.join(name));
        }
    }
}
