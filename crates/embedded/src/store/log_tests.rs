//! Tests of `log.rs`.

use super::*;

#[test]
fn a_segment_is_used_again_only_if_the_disk_never_failed_under_it() {
    for (failed, spares) in [(false, 1), (true, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFolder::new(folder.path().to_path_buf(), 512);
        let mut writer = LogWriter::start(&log, 1, 1, 0, 512).unwrap();
        writer.failed = failed;
        writer.hand_over(&log);
        // One of an earlier run, of which nobody knows.
        let earlier = segment_path(folder.path(), 2);
        create_zeroed(&earlier, 512).unwrap();
        log.add_closed(earlier, 0);
        log.retire(0).unwrap();
        let kept = log.kept();
        assert_eq!((kept.spares.len(), kept.closed.len()), (spares, 0));
    }
}

#[test]
fn a_segment_that_is_gone_already_holds_up_no_other() {
    for again in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFolder::new(folder.path().to_path_buf(), 512);
        for number in [1, 2] {
            let mut writer = LogWriter::start(&log, number, 1, 0, 512).unwrap();
            writer.failed = !again;
            writer.hand_over(&log);
        }
        fs::remove_file(segment_path(folder.path(), 1)).unwrap();
        log.retire(0).unwrap();
        let kept = log.kept();
        assert_eq!((kept.spares.len(), kept.closed.len()), (usize::from(again), 0));
        assert!(kept.spares.iter().all(|spare| spare.path.exists()));
    }
}
