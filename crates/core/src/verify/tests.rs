//! Verifications: one at a time, and nothing that an older round found is mended.

use crate::command::{Command, Recount, Repair, Step, Verify};
use crate::error::Refusal;
use crate::reply::{Done, JobReply, Reply};
use crate::rows::{Job, JobId, Key, Round, Row, TotalKey, VerifyReport, Work};
use crate::tests::world::World;
use crate::{Name, ObjectId};

fn apply(world: &mut World, command: Command) -> Result<JobReply, Refusal> {
    match world.apply(command, None).reply? {
        Reply::Job(job) => Ok(job),
        Reply::Done { .. } => Err(Refusal::NotFound("no job, but done".into())),
        other => panic!("{other:?}"),
    }
}

fn begin(world: &mut World, repair: bool) -> JobReply {
    apply(world, Command::from(Verify { repair })).unwrap()
}

fn step(world: &mut World, job: &JobReply, number: u32, step: Step) -> Result<JobReply, Refusal> {
    let job = JobId::parse(&job.job).unwrap();
    apply(world, Command::from(Recount { of: Round { job, number }, step }))
}

fn end(mended: bool) -> Step {
    Step::End { mended, report: Box::new(VerifyReport { edges: 3, ..VerifyReport::default() }) }
}

/// Whether a repair that a round found is taken.
fn mends(world: &mut World, job: &JobReply, number: u32) -> bool {
    let total = TotalKey::Object { object: ObjectId::new("post:1").unwrap(), relation: Name::new("like").unwrap() };
    let round = Round { job: JobId::parse(&job.job).unwrap(), number };
    let decided = world.apply(Command::from(Repair { found_in: Some(round), total, by: 1 }), None);
    matches!(decided.reply, Ok(Reply::Done(Done { changed: true })))
}

#[test]
fn whoever_asks_before_one_counts_is_told_of_that_one() {
    let mut world = World::new();
    let job = begin(&mut world, false);
    assert_eq!((job.state.as_str(), job.repair, job.rows), ("running", Some(false), Some(0)));
    assert_eq!(begin(&mut world, false), job);
    let joined = begin(&mut world, true);
    assert_eq!((&joined.job, joined.repair), (&job.job, Some(true)));
    assert_eq!(begin(&mut world, false).repair, Some(true), "nobody takes that back");
    step(&mut world, &job, 0, Step::Begin).unwrap();
    assert_eq!(step(&mut world, &job, 1, Step::Read(7)).unwrap().rows, Some(7));
    assert_eq!(step(&mut world, &job, 1, end(false)).unwrap().state, "running", "it has to mend");
    let done = step(&mut world, &job, 1, end(true)).unwrap();
    assert_eq!((done.state.as_str(), done.report.map(|report| report.edges)), ("done", Some(3)));
    assert_eq!(world.rows.get(&Key::Job(JobId::VERIFY)), None, "nothing is left that says it runs");
    assert_ne!(begin(&mut world, false).job, job.job);
}

/// What counts may have passed what they ask about.
#[test]
fn whoever_asks_while_one_counts_is_told_of_the_next() {
    let mut world = World::new();
    let mut running = begin(&mut world, false);
    for _ in 0..3 {
        step(&mut world, &running, 0, Step::Begin).unwrap();
        let next = begin(&mut world, false);
        assert_ne!(next.job, running.job);
        assert_eq!((next.state.as_str(), next.rows), ("running", Some(0)));
        let joined = begin(&mut world, true);
        assert_eq!((&joined.job, joined.repair), (&next.job, Some(true)), "all of them share one");
        assert!(!mends(&mut world, &next, 1), "it has not begun");
        // However many ask, the one that runs ends with its own count.
        let done = step(&mut world, &running, 1, end(true)).unwrap();
        assert_eq!(done.state, "done");
        assert_eq!(begin(&mut world, false).job, next.job, "that one has not counted yet");
        let (before, after) = (points_at(&world), JobId::parse(&next.job));
        assert_eq!(before, after.map(|job| (job, None)), "it is its turn");
        running = next;
    }
    step(&mut world, &running, 0, Step::Begin).unwrap();
    let next = begin(&mut world, false);
    assert_eq!(step(&mut world, &running, 1, Step::Fail("gone".into())).unwrap().state, "failed");
    step(&mut world, &next, 0, Step::Begin).unwrap();
    assert_eq!(step(&mut world, &next, 1, end(false)).unwrap().state, "done");
    assert_eq!(points_at(&world), None, "nothing is left that says it runs");
}

/// The verification that runs, and the next.
fn points_at(world: &World) -> Option<(JobId, Option<JobId>)> {
    match world.rows.get(&Key::Job(JobId::VERIFY)) {
        Some(Row::Job(Job { work: Work::Verifying { job, next }, .. })) => Some((*job, *next)),
        _ => None,
    }
}

#[test]
fn an_older_round_mends_nothing() {
    let mut world = World::new();
    world.drifted = true;
    let job = begin(&mut world, true);
    assert!(!mends(&mut world, &job, 1), "before it has begun");
    step(&mut world, &job, 0, Step::Begin).unwrap();
    assert!(mends(&mut world, &job, 1));
    step(&mut world, &job, 1, Step::Begin).unwrap();
    assert!(!mends(&mut world, &job, 1) && mends(&mut world, &job, 2));
    for late in [Step::Begin, Step::Read(9), end(true), Step::Fail("late".into())] {
        let refused = step(&mut world, &job, 1, late).unwrap_err();
        assert_eq!(refused.code(), "conflict");
    }
    let failed = step(&mut world, &job, 2, Step::Fail("the disk is gone".into())).unwrap();
    assert_eq!((failed.state.as_str(), failed.error.as_deref()), ("failed", Some("the disk is gone")));
    assert!(!mends(&mut world, &job, 2), "after it has ended");
    assert_ne!(begin(&mut world, false).job, job.job);
}
