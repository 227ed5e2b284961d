//! Nothing that was answered is lost, and nothing is half done: kills, cut files, full disks, stops.

#[path = "../support/mod.rs"]
mod support;

mod disk;
mod files;
mod kills;
mod load;
mod stops;
