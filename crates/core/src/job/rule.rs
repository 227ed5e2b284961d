//! Long work in short steps. A step names the edges that it found; the rule looks at each again,
//! so a step that comes late or twice does no harm.

use super::{JobReply, Sweep};
use crate::decide::Context;
use crate::error::Refusal;
use crate::limits::SWEEP_EDGES_MAX;
use crate::reply::Done;
use crate::rows::{Edge, EdgeKey, Job, JobId, JobKind, Key, Row, TotalKey, Work};
use crate::subject::forget;
use crate::view::{Stop, View};
use crate::{relation, subject};

impl Work {
    /// Its name, as clients see it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } => "copy",
            Self::Verify { .. } | Self::Verifying { .. } => "verify",
            other => other.kind().map_or("", JobKind::name),
        }
    }

    /// What kind of job it is, if it is about somebody or something.
    pub fn kind(&self) -> Option<JobKind> {
        match self {
            Self::Forget { .. } => Some(JobKind::Forget),
            Self::Clear { .. } => Some(JobKind::Clear),
            Self::Hide { .. } => Some(JobKind::Hide),
            Self::Show { .. } => Some(JobKind::Show),
            Self::Ended { work } => Some(*work),
            Self::Copy { .. } | Self::Verify { .. } | Self::Verifying { .. } => None,
        }
    }

    /// The job that does it, where it is about somebody or something.
    fn id(&self) -> Option<JobId> {
        let whom = match self {
            Self::Forget { subject } | Self::Hide { subject } | Self::Show { subject } => subject.as_str(),
            Self::Clear { object } => object.as_str(),
            Self::Ended { .. } | Self::Copy { .. } | Self::Verify { .. } | Self::Verifying { .. } => return None,
        };
        self.kind().map(|kind| JobId::of(kind, whom))
    }
}

/// Writes down a job. One that does the same and has not ended goes on, and also takes what has come since.
pub(crate) fn begin(work: Work, context: &Context<'_>, view: &mut View) -> Result<(JobId, Job), Stop> {
    let id = work.id().unwrap_or(JobId(context.id));
    let open = view.kept(&Key::Job(id), Row::into_job)?.filter(|job| job.finished_at.is_none());
    let job = match open {
        Some(job) if job.work != work => {
            return Err(Refusal::Conflict("another job has this name; ask again when it has ended".into()).into());
        }
        Some(job) => Job { before: context.stamp.max(job.before), ..job },
        None => Job { work, before: context.stamp, edges: 0, created_at: context.now(), finished_at: None },
    };
    view.set(Key::Job(id), Some(Row::Job(job.clone())))?;
    Ok((id, job))
}

/// Changes these edges; or, when none are left of those made before a time, ends the job.
pub(crate) fn sweep(command: &Sweep, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let Sweep { job: id, before, edges } = command;
    let (id, before) = (*id, *before);
    if edges.len() > SWEEP_EDGES_MAX {
        return Err(Refusal::TooLarge(format!("a step takes at most {SWEEP_EDGES_MAX} edges")).into());
    }
    want(id, edges, view)?;
    let Some(Row::Job(mut job)) = view.row_uncounted(&Key::Job(id))? else {
        return Err(Refusal::NotFound("there is no such job".into()).into());
    };
    if matches!(job.work, Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. }) {
        return Err(Refusal::Conflict(format!("a {} has no edges to step over", job.work.name())).into());
    }
    if job.finished_at.is_some() {
        return Ok(JobReply::new(id, &job));
    }
    // A job to hide that was overtaken by a restore has nothing left to do; the other way round,
    // an edge of a subject that is suspended again stays hidden.
    let obsolete = is_obsolete(id, &job.work, view)?;
    if edges.is_empty() || obsolete {
        // Asked for again meanwhile: whoever walks the edges has passed those that came since.
        if before >= job.before || obsolete {
            end(&mut job, context, view)?;
        }
    } else {
        job.edges += steps(&job, edges, context, view)?;
    }
    view.set_uncounted(Key::Job(id), Some(Row::Job(job.clone())))?;
    Ok(JobReply::new(id, &job))
}

/// Does what is left besides edges, and ends the job if that was all.
fn end(job: &mut Job, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    if let Work::Forget { subject } = &job.work {
        if forget::counted(subject, job.before, context, view)? {
            return Ok(());
        }
        subject::end_forgetting(subject, view)?;
    }
    job.finished_at = Some(context.now());
    if let Some(work) = job.work.kind() {
        job.work = Work::Ended { work };
    }
    Ok(())
}

/// One step; says how many edges it changed.
fn steps(job: &Job, edges: &[EdgeKey], context: &Context<'_>, view: &mut View) -> Result<u64, Stop> {
    let (mut changed, mut missed) = (0, false);
    for key in edges {
        let start = view.savepoint();
        match step(key, job, context, view) {
            Ok(one) => changed += u64::from(one),
            // The totals of an edge's kind are known only now; one load brings them all.
            // What this one did before it missed must not be seen by the next.
            Err(Stop::Miss) => {
                view.rollback(start);
                missed = true;
            }
            Err(stop) => return Err(stop),
        }
    }
    if missed { Err(Stop::Miss) } else { Ok(changed) }
}

fn want(id: JobId, edges: &[EdgeKey], view: &mut View) -> Result<(), Stop> {
    let mut rows = vec![Key::Job(id)];
    rows.extend(edges.iter().cloned().map(Key::Edge));
    rows.extend(edges.iter().map(|edge| Key::Subject(edge.subject.clone())));
    let totals: Vec<TotalKey> = edges
        .iter()
        .flat_map(|key| {
            let edge = Edge { created: Default::default(), kind: None, meta: None, hidden: false };
            key.totals(&edge).collect::<Vec<_>>()
        })
        .collect();
    view.want(&rows, &totals)
}

fn is_obsolete(id: JobId, work: &Work, view: &mut View) -> Result<bool, Stop> {
    let subject = match work {
        Work::Forget { .. }
        | Work::Clear { .. }
        | Work::Copy { .. }
        | Work::Verify { .. }
        | Work::Verifying { .. }
        | Work::Ended { .. } => return Ok(false),
        Work::Hide { subject } | Work::Show { subject } => subject,
    };
    let suspended = subject::read(subject, view)?.suspended;
    Ok(match work {
        Work::Hide { .. } => suspended.is_none_or(|suspension| suspension.job != id),
        _ => suspended.is_some(),
    })
}

/// One edge of a job; says whether it changed.
fn step(key: &EdgeKey, job: &Job, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    let Some(edge) = view.edge(key)? else { return Ok(false) };
    if !edge.created.was_before(job.before, context.stamp) && !is_older_than_its_stamp(key, job, context, view)? {
        return Ok(false);
    }
    match &job.work {
        Work::Forget { subject } if *subject == key.subject => relation::remove(key, &edge, context, view)?,
        Work::Clear { object } if *object == key.object => relation::remove(key, &edge, context, view)?,
        Work::Hide { subject } if *subject == key.subject && !edge.hidden => {
            relation::set_hidden(key, &edge, true, view)?;
        }
        // One that was forgotten stays where the job that removes it looks last.
        Work::Show { subject }
            if *subject == key.subject
                && edge.hidden
                && !subject::read(subject, view)?.has_forgotten(&edge, context.stamp) =>
        {
            relation::set_hidden(key, &edge, false, view)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Where nothing can be made since the job began, whatever is there was there before. Another server
/// may have stamped it later than the job, and committed it first.
fn is_older_than_its_stamp(key: &EdgeKey, job: &Job, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    match &job.work {
        Work::Hide { .. } | Work::Show { .. } => Ok(true),
        Work::Clear { object } => {
            let required = context.catalog.relation(&key.relation).is_ok_and(|relation| relation.requires_object);
            Ok(required && view.row_uncounted(&Key::Object(object.clone()))?.is_none())
        }
        Work::Forget { .. } | Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. } | Work::Ended { .. } => {
            Ok(false)
        }
    }
}

/// Drops jobs that ended long enough ago: nobody asks for them any more.
pub(super) fn expire(jobs: &[JobId], context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let keys: Vec<Key> = jobs.iter().copied().map(Key::Job).collect();
    view.want(&keys, &[])?;
    let mut changed = false;
    for key in keys {
        let Some(Row::Job(job)) = view.row_uncounted(&key)? else { continue };
        if job.finished_at.is_some_and(|ended| ended.plus_ms(context.catalog.jobs_ttl_ms) <= context.now()) {
            view.set_uncounted(key, None)?;
            changed = true;
        }
    }
    Ok(Done { changed })
}
