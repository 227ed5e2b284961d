//! Files that fail: every write, sync, rename, open and folder sync of log and tables fails once, at every place; then
//! the process is killed; then the store opens. Nothing answered is lost, nothing refused comes back.
//!
//! And crash images: of every moment, what a machine without power would find, where only what was synced survives
//! for sure. A child process works on a store behind `shim.c`, which notes and fails its calls. Not covered: reads
//! that fail, and the rename of `current` by the tables' library, which is a system call of its own (its draft, its
//! syncs and everything around it are).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod child;
mod image;
mod trace;

#[path = "../store_common/mod.rs"]
mod store_common;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use child::{Fault, Kind, Run};
use image::{Keep, Machine};
use trace::Event;

/// Shares work out to both cores, and panics with whatever one of them panics with.
fn in_parallel<T: Sync>(work: &[T], each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(piece) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(piece);
                }
            });
        }
    });
}

/// How often each class of calls is made, in a run without a fault.
fn places(run: &Run) -> BTreeMap<String, u32> {
    let mut places = BTreeMap::new();
    for event in &run.trace {
        if let Event::Class(class) = event {
            *places.entry(class.clone()).or_default() += 1;
        }
    }
    places
}

#[test]
fn nothing_answered_is_lost_and_nothing_refused_comes_back_wherever_a_file_fails() {
    child::work_if_asked();
    let sound = Run::of("nothing_answered_is_lost_and_nothing_refused_comes_back_wherever_a_file_fails", None);
    sound.check("no fault");
    let places = places(&sound);
    for class in
        ["write segment", "sync segment", "sync log", "sync rows", "sync tables", "rename segment", "sync list"]
    {
        assert!(places.contains_key(class), "the workload makes no call `{class}`: {places:?}");
    }
    let mut faults = Vec::new();
    for (class, count) in places {
        // Half of a list's small writes is the same as the next one failing. A disk that fails for good is worth
        // trying where something is made durable.
        let kinds: &[Kind] = match class.as_str() {
            "write list" => &[Kind::Once],
            "write segment" => &[Kind::Once, Kind::HalfDone, Kind::EverythingFromThere],
            class if class.starts_with("sync") => &[Kind::Once, Kind::EverySyncFromThere, Kind::EverythingFromThere],
            _ => &[Kind::Once, Kind::HalfDone],
        };
        for index in 0..count {
            faults.extend(kinds.iter().map(|kind| Fault { class: class.clone(), index, kind: *kind }));
        }
    }
    in_parallel(&faults, |fault| {
        let mut run = Run::of(&sound.test, Some(fault));
        if fault.kind != Kind::EverythingFromThere {
            run.refuses_unsettled();
        }
        run.check(&format!("{fault:?}"));
    });
}

#[test]
fn a_refused_write_is_gone_at_once() {
    child::work_if_asked();
    let mut faults = Vec::new();
    for class in ["sync segment", "write segment"] {
        faults.extend((0..16).map(|index| Fault { class: class.into(), index, kind: Kind::HalfDone }));
    }
    in_parallel(&faults, |fault| Run::hasty("a_refused_write_is_gone_at_once", fault).check(&format!("{fault:?}")));
}

#[test]
fn a_segment_that_went_though_the_system_said_no_holds_up_no_other() {
    child::work_if_asked();
    let test = "a_segment_that_went_though_the_system_said_no_holds_up_no_other";
    let faults = ["unlink segment", "rename spare"]
        .map(|class| [0, 1].map(|index| Fault { class: class.into(), index, kind: Kind::HalfDone }));
    in_parallel(faults.as_flattened(), |fault| {
        let run = Run::long(test, fault);
        assert!(run.trace.contains(&Event::Fault), "{fault:?} is not met");
        run.check(&format!("{fault:?}"));
    });
}

#[test]
fn every_crash_image_holds_what_was_answered() {
    child::work_if_asked();
    let run = Run::of("every_crash_image_holds_what_was_answered", None);
    // Between two calls that are not merely announced, nothing on disk changes.
    check_images(&run, "no fault", |event| !matches!(event, Event::Class(_)));
}

#[test]
fn folders_that_were_made_for_a_store_or_its_backup_are_there_after_a_power_cut() {
    child::work_if_asked();
    let run = Run::deep("folders_that_were_made_for_a_store_or_its_backup_are_there_after_a_power_cut", None);
    check_images(&run, "far below", |event| matches!(event, Event::Print(_)));
}

#[test]
fn a_backup_that_failed_is_not_there() {
    child::work_if_asked();
    let test = "a_backup_that_failed_is_not_there";
    // Whatever is renamed: the last two are the copy's FORMAT and the copy itself.
    let count = places(&Run::deep(test, None))["rename file"];
    for (index, kind) in [(count - 1, Kind::Once), (count - 1, Kind::HalfDone), (count - 2, Kind::HalfDone)] {
        let run = Run::deep(test, Some(&Fault { class: "rename file".into(), index, kind }));
        assert!(run.trace.contains(&Event::Fault), "the fault is not met");
        assert!(!child::Told::of(&run.trace).copied, "it was told to be done");
    }
}

#[test]
fn what_was_found_after_a_kill_is_found_after_a_power_cut() {
    child::work_if_asked();
    let test = "what_was_found_after_a_kill_is_found_after_a_power_cut";
    for class in ["sync segment", "sync spare", "sync log", "sync rows", "sync current"] {
        let fault = Fault { class: class.into(), index: 5, kind: Kind::Killed };
        let run = Run::of(test, Some(&fault)).again();
        check_images(&run, &format!("{fault:?}"), |event| matches!(event, Event::Print(_) | Event::Sync { .. }));
    }
}

#[test]
fn what_was_refused_is_in_no_crash_image() {
    child::work_if_asked();
    let test = "what_was_refused_is_in_no_crash_image";
    for index in [3, 8] {
        for class in ["sync segment", "sync spare", "sync rows", "sync log", "write segment"] {
            let fault = Fault { class: class.into(), index, kind: Kind::HalfDone };
            check_images(&Run::of(test, Some(&fault)), &format!("{fault:?}"), |event| matches!(event, Event::Print(_)));
        }
    }
}

#[test]
fn what_is_put_right_after_a_failure_may_fail_itself() {
    child::work_if_asked();
    let test = "what_is_put_right_after_a_failure_may_fail_itself";
    let sound = Run::of(test, None);
    let mut faults = Vec::new();
    for (class, count) in places(&sound).into_iter().filter(|(class, _)| class.starts_with("sync")) {
        // Every place where a list of tables is named; of the others, which are much alike, some.
        let step = if class == "sync rows" { 1 } else { 4 };
        let places = (0..count).step_by(step);
        faults.extend(places.map(|index| Fault { class: class.clone(), index, kind: Kind::Twice }));
        faults.push(Fault { class, index: count / 2, kind: Kind::EverySyncFromThere });
    }
    in_parallel(&faults, |fault| {
        let run = Run::of(test, Some(fault));
        let failed = run.trace.iter().rposition(|event| *event == Event::Fault);
        // From there until it has settled: whatever is removed or put into place.
        let moments = run.trace.iter().enumerate().skip(failed.unwrap_or(usize::MAX));
        let moments = moments.filter(|(_, event)| {
            matches!(event, Event::Unlink { .. } | Event::Rename { .. } | Event::Sync { .. } | Event::Print(_))
        });
        check_images_at(&run, &format!("{fault:?}"), moments.map(|(at, _)| at).take(12));
    });
}

/// Cuts the power after these calls of a run, in three ways.
fn check_images(run: &Run, what: &str, after: impl Fn(&Event) -> bool) {
    let moments: Vec<usize> = (0..run.trace.len()).filter(|at| after(&run.trace[*at])).collect();
    assert!(moments.len() > 16, "{what}: only {} moments", moments.len());
    check_images_at(run, what, moments.into_iter());
}

fn check_images_at(run: &Run, what: &str, moments: impl Iterator<Item = usize>) {
    let mut images = Vec::new();
    for at in moments {
        images.extend([Keep::Synced, Keep::Everything, Keep::Some(at as u64)].map(|keep| (at, keep)));
    }
    in_parallel(&images, |(at, keep)| {
        let folder = child::folder();
        let seen = &run.trace[..=*at];
        Machine::after(&run.root, seen).write(*keep, folder.path());
        run.check_image(seen, folder.path(), &format!("{what}, after {at}: {:?}, {keep:?}", run.trace[*at]));
    });
}
