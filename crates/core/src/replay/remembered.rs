//! An answer as it is remembered: without the names that its call says again. Whoever is forgotten is not to be found in
//! it, and it is shorter.

use crate::command::{Command, EdgeReply, Reply};
use crate::error::Refusal;
use crate::id::{KeyId, ObjectId, SubjectId};
use crate::meta::Meta;

type Answer = Result<Reply, Refusal>;

/// What stands in for a name.
const BLANK: &str = "-";
const BLANK_OBJECT: &str = "x:-";

/// The names of a call.
struct Names<'a> {
    object: Option<&'a ObjectId>,
    subject: Option<&'a SubjectId>,
    key: Option<&'a KeyId>,
    meta: Option<&'a Meta>,
}

/// Takes the names of its call out of an answer.
pub(super) fn blank(answer: &mut Answer, command: &Command) -> Result<(), Refusal> {
    let (object, subject) = (ObjectId::new(BLANK_OBJECT)?, SubjectId::new(BLANK)?);
    let key = KeyId::new(BLANK)?;
    let nothing = Meta::default();
    each(answer, command, &|answer, names| {
        let meta = names.meta.map(|_| &nothing);
        put(answer, &Names { object: Some(&object), subject: Some(&subject), key: Some(&key), meta });
    });
    Ok(())
}

/// Puts them back.
pub(super) fn fill(answer: &mut Answer, command: &Command) {
    each(answer, command, &|answer, names| put(answer, names));
}

/// Walks an answer along with its call.
fn each(answer: &mut Answer, command: &Command, visit: &impl Fn(&mut Answer, &Names<'_>)) {
    match (answer, command) {
        (Ok(Reply::Batch(answers)), Command::Batch { commands, .. }) => {
            answers.iter_mut().zip(commands).for_each(|(answer, command)| each(answer, command, visit));
        }
        (Err(Refusal::BatchRefused { index, cause }), Command::Batch { commands, .. }) => {
            if let Some(command) = commands.get(*index) {
                let mut inner: Answer = Err((**cause).clone());
                each(&mut inner, command, visit);
                if let Err(refusal) = inner {
                    **cause = refusal;
                }
            }
        }
        (answer, command) => visit(answer, &names(command)),
    }
}

fn names(command: &Command) -> Names<'_> {
    let nobody = Names { object: None, subject: None, key: None, meta: None };
    match command {
        Command::Relate { object, subject, meta, .. } | Command::Toggle { object, subject, meta, .. } => {
            let meta = meta.as_ref().filter(|meta| !meta.is_empty());
            Names { object: Some(object), subject: Some(subject), meta, ..nobody }
        }
        Command::Unrelate { object, subject, .. } => Names { object: Some(object), subject: Some(subject), ..nobody },
        Command::Attend { subject, .. } | Command::Score { member: subject, .. } => {
            Names { subject: Some(subject), ..nobody }
        }
        Command::Count { key, .. } | Command::Observe { key, .. } | Command::Take { key, .. } => {
            Names { key: Some(key), ..nobody }
        }
        _ => nobody,
    }
}

fn put(answer: &mut Answer, names: &Names<'_>) {
    match answer {
        Ok(Reply::Edge(edge)) => put_edge(edge, names),
        Ok(Reply::Count(reply)) => set(&mut reply.key, names.key),
        Ok(Reply::Unique(reply)) => set(&mut reply.key, names.key),
        Ok(Reply::Take(reply)) => set(&mut reply.key, names.key),
        Ok(Reply::Attend(reply)) => set(&mut reply.subject, names.subject),
        Ok(Reply::Score(reply)) => set(&mut reply.member, names.subject),
        Err(Refusal::Suspended(subject)) => set(subject, names.subject),
        Err(Refusal::ObjectNotFound(object)) => set(object, names.object),
        // These name nobody, or are not remembered.
        Ok(Reply::Batch(_) | Reply::Object(_) | Reply::Job(_) | Reply::Done { .. }) | Err(_) => {}
    }
}

fn put_edge(edge: &mut EdgeReply, names: &Names<'_>) {
    set(&mut edge.object, names.object);
    set(&mut edge.subject, names.subject);
    // An edge that is there when its meta was stated has that one.
    if edge.active
        && let (Some(stated), Some(attached)) = (names.meta, &mut edge.meta)
    {
        *attached = Some(stated.clone());
    }
}

fn set<T: Clone>(place: &mut T, name: Option<&T>) {
    if let Some(name) = name {
        *place = name.clone();
    }
}
