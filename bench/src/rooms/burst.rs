//! Everybody at once: how long until all are answered, what a position costs then, and in which order they are let in.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tally::core::reply::TicketReply;
use tally::core::room::Admit;
use tally::core::rows::TicketState;
use tally_testing::memory_bytes;

use super::hall::{Hall, held};
use crate::report::Report;

const READS: usize = 20_000;
/// Most that are let in by hand with one command.
const BY_HAND: u32 = 500;

/// So many join. Their tickets, by number.
pub(super) async fn joins(
    report: &mut Report,
    hall: &Hall,
    count: u64,
    callers: usize,
    progress: impl Fn(u64),
) -> Result<Vec<TicketReply>> {
    let begun = Instant::now();
    let tickets = hall.burst(count, callers, progress).await?;
    let taken = begun.elapsed().as_secs_f64();
    report.figure("burst.seconds", &format!("until a burst of {count} joins is answered"), taken, "s");
    let dense = (1..=count).eq(tickets.iter().map(|ticket| ticket.seq));
    ensure!(dense, "numbers are dense");
    let wrong = tickets.iter().filter(|ticket| ticket.position != Some(ticket.seq)).count();
    report.figure("tally.wrong", "positions told that were not the place of arrival, Tally", wrong as f64, "%");
    Ok(tickets)
}

/// What a position costs with so many waiting.
pub(super) async fn position(report: &mut Report, hall: &Hall, tickets: &[TicketReply]) -> Result<()> {
    let begun = Instant::now();
    for read in 0..READS {
        let ticket = &tickets[read.wrapping_mul(2_654_435_761) % tickets.len()];
        let now = hall.ticket(ticket).await?;
        ensure!(now.position == Some(ticket.seq), "{} is told {:?}", ticket.seq, now.position);
    }
    let each = begun.elapsed().as_nanos() as f64 / READS as f64 / 1e3;
    report.figure("position.us", &format!("a position among {} who wait, in process", tickets.len()), each, "µs");
    Ok(())
}

/// Some of the last are followed: what that costs, and how long it takes from an admission to its event.
pub(super) async fn watches(report: &mut Report, hall: &Hall, tickets: &[TicketReply], count: usize) -> Result<()> {
    let (count, before) = (count.min(tickets.len()), memory_bytes(std::process::id()));
    let mut following = tokio::task::JoinSet::new();
    let (events, mut seen) = tokio::sync::mpsc::unbounded_channel();
    // The first ones, so that they can be let in.
    for ticket in &tickets[..count] {
        let mut watch = hall.servers[0].watch_ticket(&hall.room, &ticket.ticket, &hall.auth).await?;
        let events = events.clone();
        following.spawn(async move {
            while let Some(Ok(now)) = watch.next().await {
                if now.state == TicketState::Ready {
                    let _ = events.send(Instant::now());
                    return;
                }
            }
        });
    }
    drop(events);
    let memory = memory_bytes(std::process::id()).saturating_sub(before) as f64 / count as f64 / 1e3;
    report.figure("watch.memory", &format!("memory of a ticket that is followed, with {count} of them"), memory, "KB");
    let (wall, busy) = (Instant::now(), cpu_time());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let busy = cpu_time().saturating_sub(busy).as_secs_f64() / wall.elapsed().as_secs_f64();
    report.figure("watch.cores", &format!("processors that {count} of them use while nothing happens"), busy, "cores");
    let admitted = Instant::now();
    let mut left = count as u64;
    let mut settings = held();
    settings["capacity"] = serde_json::json!(tickets.len());
    hall.put(settings).await?;
    while left > 0 {
        let admit = Admit { room: hall.room.clone(), count: BY_HAND.min(left as u32) };
        let many = hall.servers[0].ask(admit).await?.admitted;
        ensure!(many > 0, "there is place for all of them");
        left = left.saturating_sub(many);
    }
    let mut delays = Vec::with_capacity(count);
    while let Some(at) = seen.recv().await {
        delays.push(at.saturating_duration_since(admitted).as_secs_f64() * 1e3);
    }
    delays.sort_by(f64::total_cmp);
    let at = |part: usize| delays.get(delays.len() * part / 100).or(delays.last()).copied().unwrap_or(f64::NAN);
    report.figure("watch.delay_p50", "from letting all of them in to the event, median", at(50), "ms");
    report.figure("watch.delay_p99", "from letting all of them in to the event, 99 of 100", at(99), "ms");
    Ok(())
}

/// Everybody is let in by hand, in steps: whoever is let in has to be whoever came next.
pub(super) async fn let_in(report: &mut Report, hall: &Hall, tickets: &[TicketReply]) -> Result<()> {
    let (begun, mut wrong, mut next) = (Instant::now(), 0_u64, first_waiting(hall, tickets).await?);
    let from = next;
    // The rest of a large burst is like its beginning.
    let until = tickets.len().min(next + 100_000);
    while next < until {
        let many = hall.servers[0].ask(Admit { room: hall.room.clone(), count: BY_HAND }).await?.admitted;
        ensure!(many > 0, "there is place for all of them");
        let after = (next + many as usize).min(tickets.len());
        // The last of them is in, and the one behind it still waits.
        let last = hall.ticket(&tickets[after - 1]).await?;
        let behind = match tickets.get(after) {
            Some(ticket) => Some(hall.ticket(ticket).await?.position.context("it waits")?),
            None => None,
        };
        wrong += u64::from(last.state != TicketState::Ready) + u64::from(behind.is_some_and(|place| place != 1));
        next = after;
    }
    let per_s = (next - from) as f64 / begun.elapsed().as_secs_f64();
    report.figure("let_in.per_s", "admissions a second, in steps of 500", per_s, "/s");
    report.figure("let_in.wrong", "of these, out of the order of their commits", wrong as f64, "");
    Ok(())
}

async fn first_waiting(hall: &Hall, tickets: &[TicketReply]) -> Result<usize> {
    let (mut low, mut high) = (0, tickets.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        match hall.ticket(&tickets[middle]).await?.state {
            TicketState::Waiting => high = middle,
            TicketState::BeforeOpen
            | TicketState::Ready
            | TicketState::Admitted
            | TicketState::Done
            | TicketState::Left
            | TicketState::Expired => low = middle + 1,
        }
    }
    Ok(low)
}

/// Processor time that this process used, as Linux counts it; zero elsewhere.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything: fields 14 and 15 of all, in hundredths of a second.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
