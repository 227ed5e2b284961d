//! The built binary as a person or a script meets it: what it prints, where, and with which exit code.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails its test, in helpers too")]

mod backup;
mod config;
mod copy;
mod copy_database;
mod counting;
mod data;
mod doctor;
mod import;
mod import_again;
mod keys;
mod postgres;
mod redis;
mod room;
mod room_import;
mod salvage;
mod start;
mod verify;
mod world;
