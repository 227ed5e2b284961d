//! An answer as it is remembered: without the names that its call says again. Whoever is forgotten is not to be found in
//! it, and it is shorter.

use crate::batch::{self, Batch};
use crate::command::Command;
use crate::error::Refusal;
use crate::id::{KeyId, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::operation::Names;
use crate::reply::Reply;

type Answer = Result<Reply, Refusal>;

/// What stands in for a name.
const BLANK: &str = "-";
const BLANK_OBJECT: &str = "x:-";

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
    let Command::Batch(batch::Command::Batch(Batch { commands, .. })) = command else {
        return visit(answer, &command.about().names);
    };
    if let Ok(Reply::Batch(answers)) = answer {
        answers.iter_mut().zip(commands).for_each(|(answer, command)| each(answer, command, visit));
    } else if let Err(Refusal::BatchRefused { index, cause }) = answer
        && let Some(command) = commands.get(*index)
    {
        let mut inner: Answer = Err((**cause).clone());
        each(&mut inner, command, visit);
        if let Err(refusal) = inner {
            **cause = refusal;
        }
    }
}

/// Puts names into an answer, wherever it has one.
fn put(answer: &mut Answer, names: &Names<'_>) {
    match answer {
        Ok(reply) => {
            let places = reply.names_mut();
            set(places.object, names.object);
            set(places.subject, names.subject);
            set(places.key, names.key);
            if let (Some(stated), Some(attached)) = (names.meta, places.meta) {
                *attached = Some(stated.clone());
            }
        }
        Err(Refusal::Suspended(subject)) => set(Some(subject), names.subject),
        Err(Refusal::ObjectNotFound(object)) => set(Some(object), names.object),
        // These name nobody, or are not remembered.
        Err(_) => {}
    }
}

fn set<T: Clone>(place: Option<&mut T>, name: Option<&T>) {
    if let (Some(place), Some(name)) = (place, name) {
        *place = name.clone();
    }
}
